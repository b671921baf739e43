// @ts-check
// An area of two recordings: what the analyses say for A and for B side by side, with differences. Tracks and
// what they did are compared by kind and name, since numbers of threads and processes differ from run to run. The
// server answers with 1,000 lines at most: what may lack some has no difference.

import { ask } from "./api.js";
import { tabs, titleOf } from "./analyses.js";
import { drawFlame } from "./flame.js";
import { endJob, result } from "./job.js";
import { element, head } from "./selection.js";
import { beginOf, bySide, sideOf } from "./sides.js";
import { MEASURES, time, uncertain } from "./statistics.js";
import { save, table } from "./tables.js";
import { duration, exact } from "./time.js";
import { isPart } from "./tracks.js";

/** @typedef {{from: number, to: number, rows: number[] | null}} Area */
/** @typedef {import("./tables.js").Column<any>} Column */
/**
 * What leads on.
 * @typedef {object} Page
 * @property {(row: number) => import("./tracks.js").Row | undefined} row
 * @property {() => Iterable<import("./tracks.js").Row>} rows
 * @property {number[]} leftOut tracks of each recording that only the server has
 * @property {string[]} names of the recordings
 * @property {number[]} lengths
 * @property {(error: unknown) => void} lost
 * @property {() => void} close
 * @property {(kind: string) => void} tab
 * @property {(part: import("./longest.js").Part) => void} longest
 * @property {(area: Area) => void} area
 */

/** Whether an area has tracks of both recordings. @param {Area} area */
export function areBoth({ rows }) {
  return rows === null || bySide(rows).every((some) => some.length > 0);
}

/**
 * A line: its name, and what each recording has of it, null if that is unknown. `isLeast`: whether there may be more.
 * @typedef {{name: string, kind: string, sides: any[], isLeast: boolean[]}} Line
 */

/** The question for each recording; null for one that has nothing in this time. @param {Area} area @param {Page} page */
function asked({ from, to, rows }, page) {
  const each = rows && bySide(rows);
  return [0, 1].map((side) => {
    if (to <= beginOf(side) || from >= beginOf(side) + page.lengths[side]) return null;
    return each ? { from, to, side, rows: each[side] } : { from, to, side };
  });
}

/** Says which recording has nothing. @param {HTMLElement} inner @param {boolean[]} have @param {string} why */
function without(inner, have, why) {
  for (const [side, has] of have.entries()) if (!has) inner.append(element("p", `${"AB"[side]} ${why}`));
}

const OUTSIDE = "has nothing in this area: it begins later, or has ended.";

/** How many lines the server has left out of each, in a text. @param {number[]} left */
function more(left) {
  return left.flatMap((count, side) => (count > 0 ? [`${count.toLocaleString("en")} more in ${"AB"[side]}`] : [])).join(" and ");
}

/** How sums that may lack some are shown. */
const LEAST = "Sums that may lack some of them are marked with ≥ and have no difference.";

/** A panel with tabs; gives its place, and its heading. @param {HTMLElement} place @param {string} kind @param {Area} area @param {Page} page @returns {[HTMLElement, HTMLElement]} */
function frame(place, kind, { from, to }, page) {
  const title = head(kind === "" ? "Comparison" : titleOf(kind), `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close);
  const [whole, inner] = [element("div", undefined, "compared"), element("div")];
  whole.append(title, tabs(kind, page.tab), inner);
  place.className = "wide";
  place.replaceChildren(whole);
  return [inner, title];
}

/** An area in which the recording of its tracks has nothing. @param {HTMLElement} place @param {string} kind @param {Area} area @param {number} side @param {Page} page */
export function showNothing(place, kind, area, side, page) {
  const [inner] = frame(place, kind, area, page);
  without(inner, [side === 1, side === 0], OUTSIDE);
}

/** @param {HTMLElement} inner @param {unknown} error @param {Page} page */
function failed(inner, error, page) {
  page.lost(error);
  inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
}

/** B's value less A's; null if one of them is unknown. @param {number | null | undefined} a @param {number | null | undefined} b */
const less = (a, b) => (a == null || b == null ? null : b - a);

/**
 * Columns of a number in A, in B, and how they differ.
 * @param {string} title @param {"ns" | "count"} unit @param {(side: any) => number | null} value
 * @param {(line: any, side: number) => (() => void) | null} [act]
 * @returns {Column[]}
 */
function both(title, unit, value, act) {
  const of = (/** @type {number} */ side) => (/** @type {any} */ line) => (line.sides[side] ? value(line.sides[side]) : null);
  return [0, 1].map((side) => ({
    title: `${title} ${side ? "B" : "A"}`, unit, value: of(side), hint: "What it is the sum of",
    isLeast: (/** @type {Line} */ line) => line.isLeast[side],
    act: (/** @type {any} */ line) => act?.(line, side) ?? null,
  }));
}

/** @param {string} title @param {"ns" | "count"} unit @param {(side: any) => number | null} value @returns {Column[]} */
function difference(title, unit, value) {
  const of = (/** @type {Line} */ { sides: [a, b], isLeast }) => (isLeast.includes(true) ? null : less(a && value(a), b && value(b)));
  const weight = (/** @type {Line} */ line) => {
    const found = of(line);
    return found === null ? null : Math.abs(found);
  };
  return [{ title, unit, isSigned: true, hint: "B less A", weight, value: of }];
}

/** How a track is called in both recordings. @param {import("./tracks.js").Row | undefined} row @param {Page} page @returns {string} */
function called(row, page) {
  if (!row) return "tracks that the page does not list";
  if (row.kind === "cpu") return "CPUs";
  if (isPart(row)) {
    const of = called(page.row(row.parent ?? -1), page);
    return row.kind === "events" ? `${row.name} events of ${of}` : `${row.kind} of ${of}`;
  }
  return row.name || "without a name";
}

/** Of what kind a track is; of a part, what it is a part of. @param {import("./tracks.js").Row | undefined} row @param {Page} page @returns {string} */
function kindOf(row, page) {
  if (!row) return "";
  return row.kind === "cpu" ? "CPU" : isPart(row) ? kindOf(page.row(row.parent ?? -1), page) : row.kind;
}

/** Tracks of one key are one line. @param {import("./tracks.js").Row | undefined} row @param {Page} page @returns {string} */
function keyOf(row, page) {
  if (!row) return "";
  const of = isPart(row) ? keyOf(page.row(row.parent ?? -1), page) : null;
  const isNamed = row.kind !== "cpu" && (of === null || row.kind === "events");
  return JSON.stringify([row.kind, isNamed ? row.name : null, of]);
}

/**
 * The lines of answers with statistics. An answer that lacks tracks is known to have all of a line only if the page
 * knows no other track of its key.
 * @param {any[]} answers null for a recording without any @param {Area} area @param {Page} page @returns {Line[]}
 */
function linesOf(answers, { from, to }, page) {
  /** @type {Map<string, Line>} */
  const lines = new Map();
  const classes = MEASURES.flatMap((measure) => measure.classes);
  const none = () => ({ rows: [], classes: Array(Math.max(...classes) + 1).fill(0) });
  for (const [side, answer] of answers.entries()) {
    for (const { row: id, classes } of answer?.rows ?? []) {
      const row = page.row(id);
      const key = keyOf(row, page);
      const line = lines.get(key) ?? { name: called(row, page), kind: kindOf(row, page), sides: answers.map((one) => one && none()), isLeast: [false, false] };
      lines.set(key, line);
      line.sides[side].rows.push(id);
      for (const [of, ns] of classes.entries()) line.sides[side].classes[of] += ns;
    }
  }
  for (const [side, answer] of answers.entries()) {
    const isUnlisted = answer?.rows.some((/** @type {{row: number}} */ { row }) => !page.row(row));
    if (!answer || (answer.left_out === 0 && !isUnlisted)) continue;
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const row of page.rows()) {
      if (sideOf(row.id) !== side || row.begin >= to || row.end <= from) continue;
      const key = keyOf(row, page);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, line] of lines) {
      const isAll = line.kind === "CPU" || page.leftOut[side] === 0;
      line.isLeast[side] = line.kind === "" || !isAll || line.sides[side].rows.length < (counts.get(key) ?? 0);
    }
  }
  return [...lines.values()];
}

/**
 * The states of both, by kind and name of track.
 * @param {HTMLElement} place @param {Area} area @param {Page} page
 */
export async function showCompared(place, area, page) {
  const [inner, title] = frame(place, "", area, page);
  const questions = asked(area, page);
  let answers;
  try {
    answers = await Promise.all(questions.map((one) => one && ask("statistics", one)));
  } catch (error) {
    return failed(inner, error, page);
  }
  without(inner, questions.map(Boolean), OUTSIDE);
  const all = linesOf(answers, area, page);
  if (all.length === 0) return inner.append(element("p", "No state of these tracks lies in this time."));
  const measures = MEASURES.filter((measure) => all.some(({ sides }) => sides.some((sums) => sums && time(measure, sums) > 0)));
  const [choice, below] = [element("div", undefined, "tabs measures"), element("div")];
  const show = (/** @type {import("./statistics.js").Column} */ measure) => {
    const unit = measure.isCount ? "count" : "ns";
    const value = (/** @type {any} */ sums) => time(measure, sums);
    const go = (/** @type {any} */ line, /** @type {number} */ side) => {
      const rows = line.sides[side]?.rows ?? [];
      return rows.length === 0 ? null : () => (rows.length === 1 ? page.longest({ row: rows[0], classes: measure.classes, state: null }) : page.area({ ...area, rows }));
    };
    /** @type {Column[]} */
    const columns = [
      { title: "track", unit: "text", value: ({ name }) => name },
      { title: "kind", unit: "text", value: ({ kind }) => kind },
      ...both("tracks", "count", ({ rows }) => rows.length, (line, side) => (line.sides[side]?.rows.length ? () => page.area({ ...area, rows: line.sides[side].rows }) : null)),
      ...both(measure.title, unit, value, go), ...difference("difference", unit, value),
    ];
    const shown = all.filter(({ sides }) => sides.some((sums) => sums && value(sums) > 0));
    below.replaceChildren(table(`${measure.title} in A and B, by name`, columns, shown, columns.length - 1));
    for (const button of choice.children) {
      if (button.textContent === measure.title) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    title.querySelector("a")?.remove();
    title.insertBefore(save(columns, shown, "comparison"), title.lastElementChild);
  };
  for (const measure of measures) {
    const button = element("button", measure.title);
    button.addEventListener("click", () => show(measure));
    choice.append(button);
  }
  inner.append(choice, below);
  for (const [side, answer] of answers.entries()) if (answer?.open > 0) inner.append(uncertain(answer.open, `of ${"AB"[side]} `));
  const left = more(answers.map((answer) => answer?.left_out ?? 0));
  if (left) inner.append(element("p", `Only the 1,000 tracks of a recording that were on CPUs the longest are compared; there are ${left}. ${LEAST}`));
  if (measures.length > 0) show(measures[0]);
  else below.append(element("p", "No state of these tracks lies in this time."));
}

/** @returns {Column[]} */
const ofTasks = () => [
  ...both("tasks", "count", ({ tasks }) => tasks), ...both("polls", "count", ({ polls }) => polls),
  ...both("busy", "ns", ({ busy_ns }) => busy_ns), ...difference("difference", "ns", ({ busy_ns }) => busy_ns),
  ...both("longest poll", "ns", ({ longest_poll_ns }) => longest_poll_ns), ...both("max delay", "ns", ({ max_delay_ns }) => max_delay_ns),
];

/** @returns {Column[]} */
const ofDurations = () => [
  ...both("count", "count", ({ count }) => count), ...both("total", "ns", ({ total_ns }) => total_ns),
  ...difference("difference", "ns", ({ total_ns }) => total_ns),
  ...both("p50", "ns", ({ p50_ns }) => p50_ns), ...both("p99", "ns", ({ p99_ns }) => p99_ns), ...both("max", "ns", ({ max_ns }) => max_ns),
];

/** @returns {Column[]} */
const ofEvents = () => [...both("count", "count", ({ count }) => count), ...difference("difference", "count", ({ count }) => count)];

/** What a recording has of a name that is not in it: the longest of nothing is unknown. @type {any} */
const NONE = {
  tasks: 0, polls: 0, busy_ns: 0, longest_poll_ns: null, max_delay_ns: null,
  count: 0, total_ns: 0, p50_ns: null, p99_ns: null, max_ns: null,
};

/** Tasks of a name are one line; what is unknown of one of them is unknown. @param {any[]} tasks */
function byName(tasks) {
  /** @type {Map<string, any>} */
  const found = new Map();
  const joined = (/** @type {number | null | undefined} */ a, /** @type {number | null} */ b, /** @type {(a: number, b: number) => number} */ join) =>
    (a === undefined ? b : a === null || b === null ? null : join(a, b));
  for (const task of tasks) {
    const one = found.get(task.name) ?? { name: task.name, tasks: 0 };
    found.set(task.name, one);
    one.tasks++;
    for (const key of ["polls", "busy_ns"]) one[key] = joined(one[key], task[key], (a, b) => a + b);
    for (const key of ["longest_poll_ns", "max_delay_ns"]) one[key] = joined(one[key], task[key], Math.max);
  }
  return [...found.values()];
}

/**
 * The lines of what an analysis has found in each recording. One that has nothing at all may not have recorded any.
 * @param {string} kind @param {any[]} found null for a recording without any @returns {Line[]}
 */
function linesOfTab(kind, found) {
  /** @type {Map<string, Line>} */
  const lines = new Map();
  const each = found.map((answer) => (kind === "tasks" ? byName(answer?.tasks ?? []) : (answer?.calls ?? answer?.names ?? [])));
  const isCut = found.map((answer) => (answer?.left_out ?? 0) > 0);
  const none = each.map((some, side) => (some.length === 0 || isCut[side] ? null : NONE));
  for (const [side, some] of each.entries()) {
    for (const line of some) {
      const state = kind === "waits" || kind === "locks" ? DONE[line.class] ?? "" : "";
      const key = JSON.stringify([line.name, line.class]);
      // A task that is left out may have any name; other names are whole.
      const both = lines.get(key) ?? { name: line.name, kind: state, sides: [...none], isLeast: isCut.map((is) => is && kind === "tasks") };
      lines.set(key, both);
      both.sides[side] = line;
    }
  }
  return [...lines.values()];
}

/** Addresses of locks differ from run to run. */
const LOCKS = "Locks are compared by the place where they were held longest. Those of which no event shows a place are one line for each kind.";

/** Shows a tab for both. @param {HTMLElement} place @param {string} kind @param {Area} area @param {Page} page */
export async function showComparedTab(place, kind, area, page) {
  const [inner, title] = frame(place, kind, area, page);
  endJob();
  try {
    if (kind === "samples" || kind === "graph") return await showFlames(inner, kind, area, page);
    const questions = asked(area, page);
    const found = [];
    for (const one of questions) {
      const path = { tasks: "tasks", calls: "calls", events: "classes" }[kind];
      const answer = one && (await result(inner, path ?? "durations", path ? one : { ...one, what: kind, by_place: kind === "locks" }));
      if (one && !answer) return;
      found.push(answer);
    }
    without(inner, questions.map(Boolean), OUTSIDE);
    for (const [side, answer] of found.entries()) if (answer?.failure) inner.append(element("p", `${"AB"[side]}: ${answer.failure}`, "lost"));
    const rows = linesOfTab(kind, found);
    if (rows.length === 0) return inner.append(element("p", "Neither recording has any of these in this area."));
    without(inner, questions.map((one, side) => !one || rows.some(({ sides }) => sides[side])), "has none of these in this area.");
    /** @type {Column[]} */
    const columns = [
      { title: "name", unit: "text", value: ({ name }) => name || "task" },
      ...(rows.some(({ kind }) => kind) ? [{ title: "state", unit: /** @type {const} */ ("text"), value: (/** @type {Line} */ { kind }) => kind }] : []),
      ...(kind === "tasks" ? ofTasks() : kind === "events" ? ofEvents() : ofDurations()),
    ];
    inner.append(table(`${titleOf(kind)} in A and B, by name`, columns, rows, columns.findIndex(({ title }) => title === "difference")));
    const left = more(found.map((answer) => answer?.left_out ?? 0));
    if (left && kind === "tasks") inner.append(element("p", `Only the 1,000 tasks of a recording that were polled the longest are compared; there are ${left}. ${LEAST}`));
    else if (left) inner.append(element("p", `Only the 1,000 names of a recording that took the longest are compared; there are ${left}, of which nothing is known here.`));
    if (kind === "locks") inner.append(element("p", LOCKS));
    title.insertBefore(save(columns, rows, `${kind}-comparison`), title.lastElementChild);
  } catch (error) {
    failed(inner, error, page);
  }
}

/** What is done with what has a name, by class. @type {Record<number, string>} */
const DONE = { 5: "ready", 6: "preempted", 7: "blocked", 11: "waits", 12: "holds" };

/** Both flame graphs, A's first. @param {HTMLElement} inner @param {string} kind @param {Area} area @param {Page} page */
async function showFlames(inner, kind, area, page) {
  for (const [side, one] of asked(area, page).entries()) {
    inner.append(element("h3", `${side ? "B" : "A"}: ${page.names[side]}`));
    if (!one) inner.append(element("p", `${"AB"[side]} ${OUTSIDE}`));
    else if (!(await drawFlame(inner, kind, one))) return;
  }
}
