// @ts-check
// The table of an area: how long each track was in each class of states, exactly.

import { ask } from "./api.js";
import { CLASSES, EVENT, PARTS, RUNNING } from "./classes.js";
import { tabs } from "./analyses.js";
import { element, head, link } from "./selection.js";
import { save, table } from "./tables.js";
import { duration, exact } from "./time.js";

/** @typedef {{row: number, classes: number[], states: [number, number][]}} Sums */
/** `isCount`: its numbers are not times. @typedef {{title: string, classes: number[], isCount?: boolean}} Column */
/** A column's time. @param {Column} column @param {{classes: number[]}} sums */
export const time = ({ classes }, sums) => classes.reduce((sum, of) => sum + sums.classes[of], 0);

/** @type {Column[]} */
const COLUMNS = [
  { title: "on CPU", classes: RUNNING },
  ...[["user", 1], ["system", 2], ["interrupt", 3], ["mode unknown", 4], ["ready", 5], ["preempted", 6], ["blocked", 7], ["nested", 8], ["idle", 9], ["unknown", 0]].map(
    ([title, of]) => ({ title: String(title), classes: [Number(of)] }),
  ),
];

/** Of parts of threads. @type {Column[]} */
const RARER = [...PARTS.map((of) => ({ title: CLASSES[of].name, classes: [of] })), { title: "events", classes: [EVENT], isCount: true }];

/** All that is summed. */
export const MEASURES = [...COLUMNS, ...RARER];

/** A number as text. @param {number} value @param {boolean} [isCount] */
const figure = (value, isCount) => (isCount ? value.toLocaleString("en") : duration(value));

/** The columns of an answer that have any time. @param {{rows: Sums[]}} answer */
function columns({ rows }) {
  return [...COLUMNS, ...RARER].filter((column, at) => at === 0 || rows.some((sums) => time(column, sums) > 0));
}

/** What a number of these classes is called. @param {number[]} classes */
export function titled(classes) {
  return [...COLUMNS, ...RARER].find((column) => column.classes.join() === classes.join())?.title ?? "time";
}

/** What columns have, where their titles do not say it. @type {Record<string, string>} */
const HINTS = {
  "on CPU": "The sum of user, system, interrupt and mode unknown",
  "mode unknown": "On a CPU: no event shows whether in the program or in a system call",
  nested: "Of a task: its poll ran another task within itself",
};

/**
 * @param {HTMLElement} place @param {{from: number, to: number, rows: number[] | null}} area
 * @param {{named: (row: number) => string, close: () => void, lost: (error: unknown) => void, choose: (row: number) => void, longest: (part: import("./longest.js").Part) => void, tab: (kind: string) => void, why: (row: number) => (() => void) | null}} page
 */
export async function showStatistics(place, area, page) {
  const { from, to } = area;
  const asked = area.rows ? { from, to, rows: area.rows } : { from, to };
  const title = head("Statistics", `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close);
  const whole = element("div");
  whole.append(title, tabs("", page.tab));
  place.className = "wide";
  place.replaceChildren(whole);
  let answer;
  try {
    answer = await ask("statistics", asked);
  } catch (error) {
    page.lost(error);
    whole.append(element("p", String(/** @type {Error} */ (error).message), "lost"));
    return;
  }
  if (answer.rows.length === 0) whole.append(element("p", "No state of these tracks lies in this time."));
  else {
    whole.append(table("Time of each track by state", columnsOf(answer, page, false), answer.rows, 1, { className: "states", row: ({ row }) => row }));
    title.insertBefore(save(columnsOf(answer, page, true), answer.rows, "statistics"), title.lastElementChild);
  }
  if (answer.open > 0) whole.append(uncertain(answer.open));
  const left = answer.left_out;
  if (left > 0) whole.append(element("p", `${left.toLocaleString("en")} more ${left === 1 ? "track was" : "tracks were"} on CPUs for less time. The CSV file lacks them, too.`));
}

/**
 * @param {any} answer
 * @param {{named: (row: number) => string, choose: (row: number) => void, longest: (part: import("./longest.js").Part) => void, why: (row: number) => (() => void) | null}} page
 * @param {boolean} areAll whether columns without any time are there, too
 * @returns {import("./tables.js").Column<Sums>[]}
 */
function columnsOf(answer, page, areAll) {
  /** @type {Record<string, import("./picture.js").State>} */
  const states = answer.states;
  const reasons = (/** @type {Sums} */ sums) =>
    sums.states.filter(([state]) => [7, EVENT, ...PARTS].includes(states[state].class) && states[state].about).slice(0, 2);
  const mostly = (/** @type {Sums} */ sums) => reasons(sums).flatMap(([state, ns], at) => {
    const { about, class: of } = states[state];
    const isCount = of === EVENT;
    const go = () => page.longest({ row: sums.row, classes: [of], state });
    return [at ? ", " : "", `${about} `, link(figure(ns, isCount), go, isCount ? "The events" : "Its states")];
  });
  const why = (/** @type {Sums} */ { row }) => {
    const go = page.why(row);
    return go && link("why?", go, "What it waited for in this time");
  };
  /** @returns {import("./tables.js").Column<Sums>} */
  const measure = (/** @type {Column} */ column) => ({
    title: column.title, unit: column.isCount ? "count" : "ns", isSparse: true, hint: HINTS[column.title],
    value: (sums) => time(column, sums),
    act: (sums) => () => page.longest({ row: sums.row, classes: column.classes, state: null }),
  });
  return [
    { title: "track", unit: "text", value: ({ row }) => page.named(row), act: ({ row }) => () => page.choose(row), more: why },
    ...(areAll ? MEASURES : columns(answer)).map(measure),
    { title: "mostly", unit: "ns", value: (sums) => reasons(sums)[0]?.[1] ?? null, parts: mostly, isSaved: false, hint: "Longest waits, calls, spans and locks; most frequent events" },
  ];
}

/** Says how many tracks may still change. @param {number} count @param {string} [of] which recording */
export function uncertain(count, of = "") {
  const some = count === 1 ? `1 track ${of}is` : `${count.toLocaleString("en")} tracks ${of}are`;
  return element("p", `${some} not certain at the end of this time: what follows may show other states.`, "open");
}
