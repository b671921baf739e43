// @ts-check
// The states of which a number in the statistics is the sum. Each leads to its events.

import { ask } from "./api.js";
import { EVENT } from "./classes.js";
import { element, head, link } from "./selection.js";
import { save, table } from "./tables.js";
import { duration, exact } from "./time.js";

/** States that are shown at most. */
const MOST = 300;

/** Whose states of which classes; `state`: only this one. @typedef {{row: number, classes: number[], state: number | null}} Part */

/** Row, state, begin and end. @typedef {[number, number, number, number]} Span */

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
  const go = (/** @type {Span} */ [of, , begin]) => () => page.select(of, begin);
  /** @type {import("./tables.js").Column<Span>[]} */
  const columns = [
    { title: isEvents ? "time" : "begin", unit: "time", value: ([, , begin]) => begin, act: go },
    { title: "duration", unit: "ns", value: ([, , begin, end]) => end - begin, act: go, hint: "Select it: its events" },
    { title: "share", unit: "%", value: ([, , begin, end]) => ((end - begin) / Math.max(1, answer.sum)) * 100, hint: "Of the time of all of them" },
    { title: isEvents ? "event" : "state", unit: "text", value: ([, number]) => answer.states[number].name },
  ];
  const shown = isEvents ? [columns[0], columns[3]] : columns;
  whole.append(sum, table(isEvents ? "Events" : "States", shown, answer.spans, isEvents ? 0 : 1, { className: "narrow" }));
  title.insertBefore(save(shown, answer.spans, isEvents ? "events" : "states"), title.lastElementChild);
}
