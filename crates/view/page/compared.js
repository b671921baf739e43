// @ts-check
// An area of two recordings: what the analyses say for A and for B side by side, with differences. Tracks and
// what they did are compared by name, since numbers of threads and processes differ from run to run.

import { ask } from "./api.js";
import { tabs, titleOf } from "./analyses.js";
import { drawFlame } from "./flame.js";
import { endJob, result } from "./job.js";
import { element, head } from "./selection.js";
import { bySide } from "./sides.js";
import { MEASURES, time } from "./statistics.js";
import { save, table } from "./tables.js";
import { duration, exact } from "./time.js";
import { isPart } from "./tracks.js";

/** @typedef {{from: number, to: number, rows: number[] | null}} Area */
/** @typedef {import("./tables.js").Column<any>} Column */
/**
 * What leads on.
 * @typedef {object} Page
 * @property {(row: number) => import("./tracks.js").Row | undefined} row
 * @property {string[]} names of the recordings
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

/** The question for each recording. @param {Area} area */
function asked({ from, to, rows }) {
  const each = rows && bySide(rows);
  return [0, 1].map((side) => (each ? { from, to, side, rows: each[side] } : { from, to, side }));
}

/** A panel with tabs; gives its place, and its heading. @param {HTMLElement} place @param {string} kind @param {Area} area @param {Page} page @returns {[HTMLElement, HTMLElement]} */
function frame(place, kind, { from, to }, page) {
  const title = head(kind === "" ? "Comparison" : titleOf(kind), `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close);
  const [whole, inner] = [element("div", undefined, "compared"), element("div")];
  whole.append(title, tabs(kind, page.tab), inner);
  place.className = "wide";
  place.replaceChildren(whole);
  return [inner, title];
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
    act: (/** @type {any} */ line) => act?.(line, side) ?? null,
  }));
}

/** @param {string} title @param {"ns" | "count"} unit @param {(side: any) => number | null} value @returns {Column[]} */
function difference(title, unit, value) {
  return [{
    title, unit, isSigned: true, hint: "B less A", weight: (/** @type {any} */ line) => Math.abs(line.sides.reduce((/** @type {number} */ sum, /** @type {any} */ one, /** @type {number} */ at) => sum + (at ? 1 : -1) * (one ? value(one) ?? 0 : 0), 0)),
    value: (/** @type {any} */ line) => less(line.sides[0] ? value(line.sides[0]) : 0, line.sides[1] ? value(line.sides[1]) : 0),
  }];
}

/** How a track is called in both recordings. @param {import("./tracks.js").Row | undefined} row @param {Page} page @returns {string} */
function called(row, page) {
  if (!row) return "unknown";
  if (row.kind === "cpu") return "CPUs";
  if (isPart(row)) {
    const of = called(page.row(row.parent ?? -1), page);
    return row.kind === "events" ? `${row.name} events of ${of}` : `${row.kind} of ${of}`;
  }
  return row.name || `${row.kind} without a name`;
}

/**
 * The states of both, by name of track.
 * @param {HTMLElement} place @param {Area} area @param {Page} page
 */
export async function showCompared(place, area, page) {
  const [inner, title] = frame(place, "", area, page);
  let answers;
  try {
    answers = await Promise.all(asked(area).map((one) => ask("statistics", one)));
  } catch (error) {
    return failed(inner, error, page);
  }
  /** @type {Map<string, {name: string, sides: ({rows: number[], classes: number[]} | null)[]}>} */
  const lines = new Map();
  for (const [side, { rows }] of answers.entries()) {
    for (const { row, classes } of rows) {
      const name = called(page.row(row), page);
      const line = lines.get(name) ?? { name, sides: [null, null] };
      lines.set(name, line);
      const sums = (line.sides[side] ??= { rows: [], classes: classes.map(() => 0) });
      sums.rows.push(row);
      for (const [of, ns] of classes.entries()) sums.classes[of] += ns;
    }
  }
  const all = [...lines.values()];
  if (all.length === 0) return inner.append(element("p", "No state of these tracks lies in this time."));
  const measures = MEASURES.filter((measure) => all.some(({ sides }) => sides.some((sums) => sums && time(measure, sums) > 0)));
  const [choice, below] = [element("div", undefined, "tabs measures"), element("div")];
  const left = answers.reduce((sum, { left_out }) => sum + left_out, 0);
  const show = (/** @type {import("./statistics.js").Column} */ measure) => {
    const unit = measure.isCount ? "count" : "ns";
    const value = (/** @type {any} */ sums) => time(measure, sums);
    const go = (/** @type {any} */ line, /** @type {number} */ side) => {
      const rows = line.sides[side].rows;
      return () => (rows.length === 1 ? page.longest({ row: rows[0], classes: measure.classes, state: null }) : page.area({ ...area, rows }));
    };
    /** @type {Column[]} */
    const columns = [
      { title: "track", unit: "text", value: ({ name }) => name },
      ...both("tracks", "count", ({ rows }) => rows.length, (line, side) => () => page.area({ ...area, rows: line.sides[side].rows })),
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
  if (left > 0) inner.append(element("p", `${left.toLocaleString("en")} more tracks were on CPUs for less time.`));
  if (measures.length > 0) show(measures[0]);
  else below.append(element("p", "No state of these tracks lies in this time."));
}

/** What is compared in a tab: lines with a name, and their numbers. @type {Record<string, {key: (line: any) => string, columns: () => Column[]}>} */
const KINDS = {
  tasks: {
    key: ({ name }) => name || "task",
    columns: () => [
      ...both("tasks", "count", ({ tasks }) => tasks), ...both("polls", "count", ({ polls }) => polls),
      ...both("busy", "ns", ({ busy_ns }) => busy_ns), ...difference("difference", "ns", ({ busy_ns }) => busy_ns),
      ...both("longest poll", "ns", ({ longest_poll_ns }) => longest_poll_ns), ...both("max delay", "ns", ({ max_delay_ns }) => max_delay_ns),
    ],
  },
};

/** @returns {Column[]} */
const ofDurations = () => [
  ...both("count", "count", ({ count }) => count), ...both("total", "ns", ({ total_ns }) => total_ns),
  ...difference("difference", "ns", ({ total_ns }) => total_ns),
  ...both("p50", "ns", ({ p50_ns }) => p50_ns), ...both("p99", "ns", ({ p99_ns }) => p99_ns), ...both("max", "ns", ({ max_ns }) => max_ns),
];

/** Tasks of a name are one line. @param {any[]} tasks */
function byName(tasks) {
  /** @type {Map<string, any>} */
  const found = new Map();
  const add = (/** @type {number | null} */ a, /** @type {number | null} */ b) => (a === null ? b : b === null ? a : a + b);
  const most = (/** @type {number | null} */ a, /** @type {number | null} */ b) => (a === null ? b : b === null ? a : Math.max(a, b));
  for (const task of tasks) {
    const name = KINDS.tasks.key(task);
    const one = found.get(name) ?? { name, tasks: 0, polls: null, busy_ns: null, longest_poll_ns: null, max_delay_ns: null };
    found.set(name, one);
    one.tasks++;
    for (const key of ["polls", "busy_ns"]) one[key] = add(one[key], task[key]);
    for (const key of ["longest_poll_ns", "max_delay_ns"]) one[key] = most(one[key], task[key]);
  }
  return [...found.values()];
}

/** Shows a tab for both. @param {HTMLElement} place @param {string} kind @param {Area} area @param {Page} page */
export async function showComparedTab(place, kind, area, page) {
  const [inner, title] = frame(place, kind, area, page);
  endJob();
  try {
    if (kind === "samples" || kind === "graph") return await showFlames(inner, kind, area, page);
    /** @type {Map<string, {name: string, state: string, sides: any[]}>} */
    const lines = new Map();
    for (const [side, one] of asked(area).entries()) {
      const isOwn = kind === "tasks" || kind === "calls";
      const found = await result(inner, isOwn ? kind : "durations", isOwn ? one : { ...one, what: kind });
      if (!found) return;
      for (const line of kind === "tasks" ? byName(found.tasks) : (found.calls ?? found.names)) {
        const state = kind === "waits" || kind === "locks" ? DONE[line.class] ?? "" : "";
        const key = JSON.stringify([line.name, state]);
        const both = lines.get(key) ?? { name: line.name, state, sides: [null, null] };
        lines.set(key, both);
        both.sides[side] = line;
      }
    }
    const rows = [...lines.values()];
    if (rows.length === 0) return inner.append(element("p", "Neither recording has any of these in this area."));
    /** @type {Column[]} */
    const columns = [
      { title: "name", unit: "text", value: ({ name }) => name },
      ...(rows.some(({ state }) => state) ? [{ title: "state", unit: /** @type {const} */ ("text"), value: (/** @type {any} */ { state }) => state }] : []),
      ...(KINDS[kind]?.columns ?? ofDurations)(),
    ];
    inner.append(table(`${titleOf(kind)} in A and B, by name`, columns, rows, columns.findIndex(({ title }) => title === "difference")));
    title.insertBefore(save(columns, rows, `${kind}-comparison`), title.lastElementChild);
  } catch (error) {
    failed(inner, error, page);
  }
}

/** What is done with what has a name, by class. @type {Record<number, string>} */
const DONE = { 5: "ready", 6: "preempted", 7: "blocked", 11: "waits", 12: "holds" };

/** Both flame graphs, A's first. @param {HTMLElement} inner @param {string} kind @param {Area} area @param {Page} page */
async function showFlames(inner, kind, area, page) {
  for (const [side, one] of asked(area).entries()) {
    inner.append(element("h3", `${side ? "B" : "A"}: ${page.names[side]}`));
    if (!(await drawFlame(inner, kind, one))) return;
  }
}
