// @ts-check
// The polls of a task of which a number in the table of tasks is made. Each leads to its events.

import { frame } from "./analyses.js";
import { result } from "./job.js";
import { element } from "./selection.js";
import { save, table } from "./tables.js";

/** Which polls, and what orders them. @typedef {"duration" | "slept" | "delay" | "long" | "blocking"} By */
/**
 * A poll; `to` is null if it has not ended in the area. What is unknown is null, too.
 * @typedef {{from: number, to: number | null, busy_ns: number | null, running_ns: number | null, slept_ns: number | null, delay_ns: number | null}} Poll
 */

/** What is listed: in words, and the column that orders it. @type {Record<By, [string, string]>} */
const KINDS = {
  duration: ["Longest polls", "duration"],
  slept: ["Polls that slept the longest", "slept"],
  delay: ["Polls with the longest delays", "delay before"],
  long: ["Long polls", "on a CPU"],
  blocking: ["Blocking polls", "slept"],
};

/**
 * @param {HTMLElement} place @param {import("./analyses.js").Area} area @param {number} row the task's @param {By} by
 * @param {import("./analyses.js").Page} page
 */
export async function showPolls(place, area, row, by, page) {
  const [title, ordered] = KINDS[by];
  const inner = frame(place, `${title} of ${page.named(row)}`, area, "tasks", page);
  try {
    const { from, to } = area;
    const answer = await result(inner, "polls", { from, to, rows: [row], by });
    if (!answer) return;
    const some = answer.polls.length < answer.count ? `; the first ${answer.polls.length.toLocaleString("en")}` : "";
    const sum = element("p", `${answer.count.toLocaleString("en")} ${answer.count === 1 ? "poll begins" : "polls begin"} in this time${some}`);
    sum.dataset.count = String(answer.count);
    inner.append(sum);
    if (answer.count === 0) return;
    const go = (/** @type {Poll} */ { from }) => () => page.select(row, from);
    const hint = "Select it: its events";
    /** @type {import("./tables.js").Column<Poll>[]} */
    const columns = [
      { title: "begin", unit: "time", value: ({ from }) => from, act: go },
      { title: "duration", unit: "ns", value: ({ busy_ns }) => busy_ns, isLeast: ({ to }) => to === null, act: go, hint },
      { title: "on a CPU", unit: "ns", value: ({ running_ns }) => running_ns, isLeast: ({ to }) => to === null, act: go, hint: "Of its duration: its worker ran" },
      { title: "slept", unit: "ns", value: ({ slept_ns }) => slept_ns, isLeast: ({ to }) => to === null, act: go, hint: "Of its duration: its worker slept" },
      { title: "delay before", unit: "ns", value: ({ delay_ns }) => delay_ns, act: go, hint: "From ready to this poll" },
    ];
    inner.append(table(title, columns, answer.polls, columns.findIndex(({ title }) => title === ordered)));
    const heading = place.querySelector("h2");
    heading?.insertBefore(save(columns, answer.polls, "polls"), heading.lastElementChild);
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}
