// @ts-check
// The samples of a function in a flame graph, called as it is there. Each leads to its functions and events.

import { frame } from "./analyses.js";
import { result } from "./job.js";
import { element } from "./selection.js";
import { save, table } from "./tables.js";

/** @typedef {{at: number, tid: string | null}} Sample */

/**
 * @param {HTMLElement} place @param {import("./analyses.js").Area} area
 * @param {string[]} chain names of the process and of the functions from the outermost
 * @param {import("./analyses.js").Page} page
 */
export async function showSamples(place, area, chain, page) {
  const inner = frame(place, `Samples in ${chain[chain.length - 1]}`, area, "samples", page);
  try {
    const { from, to, rows } = area;
    const answer = await result(inner, "sampled", { from, to, ...(rows && { rows }), chain });
    if (!answer) return;
    const some = answer.samples.length < answer.count ? `; the first ${answer.samples.length.toLocaleString("en")}` : "";
    const sum = element("p", `${answer.count.toLocaleString("en")} ${answer.count === 1 ? "sample" : "samples"}${some}, called by ${chain.slice(0, -1).join(", ") || "none"}`);
    sum.dataset.count = String(answer.count);
    inner.append(sum);
    const select = async (/** @type {string} */ tid, /** @type {number} */ at) => {
      const row = await page.samplesOf(tid, at);
      if (row !== undefined) page.select(row, at);
    };
    const go = (/** @type {Sample} */ { at, tid }) => (tid === null ? null : () => void select(tid, at));
    /** @type {import("./tables.js").Column<Sample>[]} */
    const columns = [
      { title: "time", unit: "time", value: ({ at }) => at, act: go },
      { title: "thread", unit: "text", value: ({ tid }) => tid, act: go, hint: "Select it: its functions and events" },
    ];
    inner.append(table("Samples, by time", columns, answer.samples, 0));
    const heading = place.querySelector("h2");
    heading?.insertBefore(save(columns, answer.samples, "samples"), heading.lastElementChild);
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}
