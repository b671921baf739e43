// @ts-check
// The table of an area: how long each track was in each class of states, exactly.

import { ask } from "./api.js";
import { CLASSES, EVENT, PARTS, RUNNING } from "./classes.js";
import { tabs } from "./analyses.js";
import { element, head, link } from "./selection.js";
import { field, saved } from "./tables.js";
import { duration, exact } from "./time.js";

/** @typedef {{row: number, classes: number[], states: [number, number][]}} Sums */
/** `isCount`: its numbers are not times. @typedef {{title: string, classes: number[], isCount?: boolean}} Column */
/** A column's time. @param {Column} column @param {{classes: number[]}} sums */
export const time = ({ classes }, sums) => classes.reduce((sum, of) => sum + sums.classes[of], 0);

/** @type {Column[]} */
const COLUMNS = [
  { title: "on CPU", classes: RUNNING },
  ...[["user", 1], ["system", 2], ["interrupt", 3], ["ready", 5], ["preempted", 6], ["blocked", 7], ["idle", 9], ["unknown", 0]].map(
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

/** Tracks that are shown at most. */
const MOST = 300;

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
  else table(whole, answer, page);
  if (answer.rows.length > 0) title.insertBefore(save(answer, page.named), title.lastElementChild);
  if (answer.open > 0) whole.append(uncertain(answer.open));
  const left = answer.left_out + Math.max(0, answer.rows.length - MOST);
  if (left > 0) whole.append(element("p", `${left.toLocaleString("en")} more ${left === 1 ? "track was" : "tracks were"} on CPUs for less time.`));
}

/** A link to the table as comma-separated values, in nanoseconds. @param {any} answer @param {(row: number) => string} named */
function save(answer, named) {
  const all = [...COLUMNS, ...RARER];
  const head = ["track", ...all.map(({ title, isCount }) => (isCount ? title : `${title} ns`))].join(",");
  const line = (/** @type {Sums} */ sums) => [field(named(sums.row)), ...all.map((column) => time(column, sums))].join(",");
  return saved("statistics", () => [head, ...answer.rows.map(line)]);
}

/** @param {HTMLElement} place @param {any} answer @param {{named: (row: number) => string, choose: (row: number) => void, longest: (part: import("./longest.js").Part) => void, why: (row: number) => (() => void) | null}} page */
function table(place, answer, page) {
  const made = element("table");
  made.setAttribute("aria-label", "Time of each track by state");
  const [top, body] = [element("thead"), element("tbody")];
  const line = element("tr");
  let sorted = COLUMNS[0];
  const fill = () => {
    const rows = [...answer.rows].sort((a, b) => time(sorted, b) - time(sorted, a)).slice(0, MOST);
    body.replaceChildren(...rows.map((sums) => row(sums, columns(answer), answer.states, page)));
    for (const cell of line.children) {
      cell.setAttribute("aria-sort", cell.textContent?.startsWith(sorted.title) ? "descending" : "none");
    }
  };
  const label = element("th", "track");
  label.setAttribute("scope", "col");
  line.append(label);
  for (const column of columns(answer)) {
    const cell = element("th");
    cell.setAttribute("scope", "col");
    const button = element("button", column.title);
    button.addEventListener("click", () => {
      sorted = column;
      fill();
    });
    cell.append(button);
    line.append(cell);
  }
  const why = element("th", "mostly");
  why.title = "Longest waits, calls, spans and locks; most frequent events";
  why.setAttribute("scope", "col");
  line.append(why);
  top.append(line);
  made.append(top, body);
  fill();
  place.append(made);
}

/**
 * @param {Sums} sums @param {Column[]} shown @param {Record<string, import("./picture.js").State>} states
 * @param {{named: (row: number) => string, choose: (row: number) => void, longest: (part: import("./longest.js").Part) => void, why: (row: number) => (() => void) | null}} page
 */
function row(sums, shown, states, page) {
  const line = element("tr");
  line.dataset.row = String(sums.row);
  const label = element("th");
  label.setAttribute("scope", "row");
  const button = element("button", page.named(sums.row));
  button.addEventListener("click", () => page.choose(sums.row));
  label.append(button);
  const why = page.why(sums.row);
  if (why) label.append(" ", link("why?", why, "What it waited for in this time"));
  line.append(label);
  for (const column of shown) {
    const ns = time(column, sums);
    const cell = element("td");
    if (ns) cell.append(link(figure(ns, column.isCount), () => page.longest({ row: sums.row, classes: column.classes, state: null }), column.isCount ? "The events" : "Its states"));
    cell.dataset.ns = String(ns);
    line.append(cell);
  }
  const reasons = sums.states.filter(([state]) => [7, EVENT, ...PARTS].includes(states[state].class) && states[state].about).slice(0, 2);
  const most = element("td");
  for (const [at, [state, ns]] of reasons.entries()) {
    most.append(at ? ", " : "", `${states[state].about} `);
    const isCount = states[state].class === EVENT;
    most.append(link(figure(ns, isCount), () => page.longest({ row: sums.row, classes: [states[state].class], state }), isCount ? "The events" : "Its states"));
  }
  line.append(most);
  return line;
}

/** Says how many tracks may still change. @param {number} count @param {string} [of] which recording */
export function uncertain(count, of = "") {
  const some = count === 1 ? `1 track ${of}is` : `${count.toLocaleString("en")} tracks ${of}are`;
  return element("p", `${some} not certain at the end of this time: what follows may show other states.`, "open");
}
