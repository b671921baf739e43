// @ts-check
// The list of places in which events are missing. Each leads to its time.

import { ask } from "./api.js";
import { link, element, head } from "./selection.js";
import { table } from "./tables.js";
import { exact } from "./time.js";

/** Places that are listed at a time. */
const MOST = 300;

/** @typedef {import("./losses.js").Loss} Loss */

/** Which events a loss lacks. @param {Loss} loss */
export function lacks({ scope, cpu }) {
  if (scope === "samples") return "of the profile";
  return scope === "kernel" ? `of the kernel${cpu === null ? "" : ` on CPU ${cpu}`}` : "of programs";
}

/**
 * @param {HTMLElement} place @param {number} side of which recording @param {number} first the number of the first one
 * @param {{close: () => void, lost: (error: unknown) => void, go: (loss: Loss) => void, list: (first: number) => void, of: string}} page
 */
export async function showMissing(place, side, first, page) {
  const whole = element("div");
  const title = head(`Events are missing${page.of}`, "", page.close);
  whole.append(title);
  place.className = "wide";
  place.replaceChildren(whole);
  let answer;
  try {
    answer = await ask("lost", { first, most: MOST, side });
  } catch (error) {
    page.lost(error);
    whole.append(element("p", /** @type {Error} */ (error).message, "lost"));
    return;
  }
  /** @type {{count: number, losses: Loss[]}} */
  const { count, losses } = answer;
  const number = (/** @type {number} */ one) => one.toLocaleString("en");
  const more = title.querySelector("small");
  if (more) more.textContent = count === losses.length ? `in ${count === 1 ? "1 place" : `${number(count)} places`}` : `in ${number(count)} places; ${number(first + 1)} to ${number(first + losses.length)}`;
  if (first > 0) title.insertBefore(link("earlier ones", () => page.list(Math.max(0, first - MOST))), title.lastElementChild);
  if (first + losses.length < count) title.insertBefore(link("later ones", () => page.list(first + MOST)), title.lastElementChild);
  /** @type {import("./tables.js").Column<Loss>[]} */
  const columns = [
    { title: "after", unit: "text", value: ({ from }) => exact(from), weight: ({ from }) => from, hint: "Shows this time", act: (loss) => () => page.go(loss) },
    { title: "within", unit: "ns", value: ({ from, to }) => to - from },
    { title: "events", unit: "count", value: ({ events }) => events },
    { title: "which", unit: "text", value: lacks },
  ];
  whole.append(table("Places in which events are missing", columns, losses, 0));
}
