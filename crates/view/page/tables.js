// @ts-check
// Tables that are sorted by a click on a column, and saved as comma-separated values.

import { element, link } from "./selection.js";
import { duration, exact } from "./time.js";

/** Lines that are shown at most. */
const MOST = 300;

/** A point in time is a `time`, a duration `ns`. @typedef {"text" | "time" | "ns" | "count" | "%"} Unit */
/**
 * A column: its times are in nanoseconds; what is unknown is null. `act`: where a value leads.
 * @template R
 * @typedef {object} Column
 * @property {string} title
 * @property {Unit} unit
 * @property {(row: R) => string | number | null} value
 * @property {(row: R) => (() => void) | null} [act]
 * @property {string} [hint] what the column has, and where it leads
 * @property {boolean} [isSigned] whether it is a difference
 * @property {(row: R) => number | null} [weight] what orders it instead of its value
 * @property {(row: R) => boolean} [isLeast] whether the value may be larger
 * @property {boolean} [isSaved] false if the file does not have it
 * @property {boolean} [isSparse] whether 0 is left empty
 * @property {(row: R) => (string | Node)[]} [parts] what is shown instead of the value
 * @property {(row: R) => Node | null} [more] what follows the value
 */

/** @param {string | number | null} value @param {Unit} unit @param {boolean} [isSigned] @returns {string} */
function shown(value, unit, isSigned = false) {
  if (value === null) return "–";
  if (unit === "time") return exact(Number(value));
  if (unit === "%") return `${Number(value).toFixed(1)} %`;
  if (isSigned && value) return `${Number(value) < 0 ? "−" : "+"}${shown(Math.abs(Number(value)), unit)}`;
  if (unit === "text") return String(value);
  return unit === "ns" ? duration(Number(value)) : Number(value).toLocaleString("en");
}

/** Texts and times rise at first, figures fall. @param {Unit} unit */
const rises = (unit) => unit === "text" || unit === "time";

/**
 * @template R
 * @param {string} label for screen readers @param {Column<R>[]} columns the first one names the row
 * @param {R[]} rows @param {number} sorted the column that orders them at first
 * @param {{className?: string, row?: (row: R) => number, isRising?: boolean}} [how] `row`: the track of a line
 * @returns {HTMLElement}
 */
export function table(label, columns, rows, sorted, how = {}) {
  const whole = element("div");
  const made = element("table", undefined, how.className ?? "figures");
  made.setAttribute("aria-label", label);
  const [top, body, line] = [element("thead"), element("tbody"), element("tr")];
  let [by, isRising] = [sorted, how.isRising ?? rises(columns[sorted].unit)];
  const more = element("p");
  const fill = () => {
    const { unit, weight } = columns[by];
    const value = weight ?? columns[by].value;
    const order = (/** @type {R} */ a, /** @type {R} */ b) => {
      const [one, other] = [value(a), value(b)];
      // What is unknown comes last.
      if (one === null || other === null) return Number(one === null) - Number(other === null);
      const found = unit === "text" ? String(one).localeCompare(String(other), "en", { numeric: true }) : Number(one) - Number(other);
      return isRising ? found : -found;
    };
    const all = [...rows].sort(order);
    body.replaceChildren(...all.slice(0, MOST).map((row) => {
      const line = cells(columns, row);
      if (how.row) line.dataset.row = String(how.row(row));
      return line;
    }));
    for (const [at, cell] of [...line.children].entries()) {
      cell.setAttribute("aria-sort", at !== by ? "none" : isRising ? "ascending" : "descending");
    }
    more.textContent = all.length > MOST ? `${(all.length - MOST).toLocaleString("en")} more lines are not shown; the CSV file has them.` : "";
    more.hidden = all.length <= MOST;
  };
  for (const [at, column] of columns.entries()) {
    const cell = element("th");
    cell.setAttribute("scope", "col");
    if (column.unit === "text") cell.className = "text";
    const button = element("button", column.title);
    if (column.hint) button.title = column.hint;
    button.addEventListener("click", () => {
      [by, isRising] = [at, at === by ? !isRising : rises(column.unit)];
      fill();
    });
    cell.append(button);
    line.append(cell);
  }
  top.append(line);
  made.append(top, body);
  fill();
  whole.append(made, more);
  return whole;
}

/** @template R @param {Column<R>[]} columns @param {R} row */
function cells(columns, row) {
  const line = element("tr");
  for (const [at, { unit, value, act, hint, isSigned, isLeast, isSparse, parts, more }] of columns.entries()) {
    const cell = element(at === 0 ? "th" : "td");
    if (at === 0) cell.setAttribute("scope", "row");
    const found = value(row);
    const go = found === null ? null : (act?.(row) ?? null);
    const text = `${found !== null && isLeast?.(row) ? "≥ " : ""}${shown(found, unit, isSigned)}`;
    if (at === 0) cell.title = text;
    if (parts) cell.append(...parts(row));
    else if (!isSparse || found !== 0) cell.append(go ? link(text, go, at === 0 ? text : hint) : text);
    const after = more?.(row);
    if (after) cell.append(" ", after);
    if (unit === "text") cell.className = "text";
    else if (unit === "time") cell.dataset.time = String(found);
    else if (found !== null) cell.dataset.ns = String(found);
    line.append(cell);
  }
  return line;
}

/** A field of a line of comma-separated values. @param {string | number | null} value */
function field(value) {
  if (typeof value === "number") return String(value);
  if (value === null) return "";
  // A spreadsheet would run it as a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}

/** Saves a file. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const made = document.createElement("a");
  [made.href, made.download] = [URL.createObjectURL(blob), name];
  made.click();
  setTimeout(() => URL.revokeObjectURL(made.href), 60_000);
}

/** A link that saves a table. @param {string} name of the file @param {() => string[]} lines */
function saved(name, lines) {
  const made = /** @type {HTMLAnchorElement} */ (element("a", "Save as CSV"));
  made.href = "#";
  made.addEventListener("click", (event) => {
    event.preventDefault();
    download(new Blob([[...lines(), ""].join("\n")], { type: "text/csv" }), `${name}.csv`);
  });
  return made;
}

/** A link to a table as comma-separated values, in nanoseconds. @template R @param {Column<R>[]} columns @param {R[]} rows @param {string} name of the file */
export function save(columns, rows, name) {
  columns = columns.filter(({ isSaved }) => isSaved !== false);
  const named = (/** @type {Column<R>} */ { title, unit }) => (unit === "ns" || unit === "time" ? `${title} ns` : unit === "%" ? `${title} %` : title);
  const head = columns.map((column) => field(named(column))).join(",");
  return saved(name, () => [head, ...rows.map((row) => columns.map(({ value, isLeast }) => field(isLeast?.(row) ? null : value(row))).join(","))]);
}
