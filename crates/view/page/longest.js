// @ts-check
// The states of which a number in the statistics is the sum. Each leads to its events.

import { ask } from "./api.js";
import { EVENT } from "./classes.js";
import { element, head, link } from "./selection.js";
import { duration, exact } from "./time.js";

/** States that are shown at most. */
const MOST = 300;

/** Whose states of which classes; `state`: only this one. @typedef {{row: number, classes: number[], state: number | null}} Part */

/**
 * @param {HTMLElement} place @param {{from: number, to: number}} area @param {Part} part
 * @param {{named: (row: number) => string, close: () => void, lost: (error: unknown) => void,
 *   select: (row: number, time: number) => void, statistics: () => void}} page
 * @param {string} what the number is called
 */
export async function showLongest(place, { from, to }, { row, classes, state }, page, what) {
  const title = head(`${what} of ${page.named(row)}`, `from ${exact(from)} to ${exact(to)}`, page.close);
  title.insertBefore(link("Statistics", page.statistics, "The table that has the number"), title.lastElementChild);
  const whole = element("div");
  whole.append(title);
  place.className = "wide";
  place.replaceChildren(whole);
  let answer;
  try {
    answer = await ask("longest", { from, to, rows: [row], classes, state, most: MOST });
  } catch (error) {
    page.lost(error);
    whole.append(element("p", String(/** @type {Error} */ (error).message), "lost"));
    return;
  }
  // Events have no duration.
  const isEvents = classes.every((of) => of === EVENT);
  const kind = isEvents ? "event" : "state";
  const count = `${answer.count.toLocaleString("en")} ${answer.count === 1 ? kind : `${kind}s`}`;
  const some = answer.spans.length < answer.count ? `; the ${isEvents ? "first" : "longest"} ${answer.spans.length.toLocaleString("en")}` : "";
  const sum = element("p", `${count}${isEvents ? "" : `, together ${duration(answer.sum)}`}${some}`);
  sum.dataset.ns = String(answer.sum);
  const table = element("table", undefined, "narrow");
  table.setAttribute("aria-label", isEvents ? "Events" : "States, the longest first");
  const [top, body] = [element("thead"), element("tbody")];
  const line = element("tr");
  for (const name of isEvents ? ["time", "event"] : ["begin", "duration", "share", "state"]) line.append(element("th", name));
  top.append(line);
  for (const [of, number, begin, end] of answer.spans) {
    const made = element("tr");
    const first = element("th");
    first.append(link(exact(begin), () => page.select(of, begin), "Select it: its events"));
    made.append(first);
    if (!isEvents) {
      made.append(element("td", duration(end - begin)));
      made.lastElementChild?.setAttribute("data-ns", String(end - begin));
    }
    if (isEvents) made.append(element("td", answer.states[number].name));
    else made.append(element("td", `${(((end - begin) / Math.max(1, answer.sum)) * 100).toFixed(1)} %`), element("td", answer.states[number].name));
    body.append(made);
  }
  table.append(top, body);
  whole.append(sum, table);
}
