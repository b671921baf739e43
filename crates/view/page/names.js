// @ts-check
// Rows in links. Most have a number that stays. While a recording is made or read, processes, and threads whose first
// state lasts, have numbers that they lose in the end: those are named by what they are.

import { SECOND, isSeries } from "./sides.js";
import { ALL_CPUS } from "./tracks.js";

/** @typedef {import("./tracks.js").Row} Row */

/** Numbers of rows that have no place yet begin here. */
const NEW = 2 ** 31;
/** How kinds begin in links. @type {Record<string, string>} */
const KINDS = { process: "p", thread: "t" };

/** The rows of a kind and number, the earliest first: numbers are used again. @param {Map<number, Row>} rows @param {string} kind @param {string} number */
function same(rows, kind, number) {
  return [...rows.values()].filter((row) => row.kind === kind && row.number === number).sort((a, b) => a.begin - b.begin);
}

/** A row in a link. @param {Map<number, Row>} rows @param {number} row */
export function toLink(rows, row) {
  const of = rows.get(row);
  const isNew = row % SECOND >= NEW && row % SECOND !== ALL_CPUS && !isSeries(row);
  if (!isNew || !of || !KINDS[of.kind]) return String(row);
  const before = same(rows, of.kind, of.number).indexOf(of);
  return `${KINDS[of.kind]}${of.number}${before > 0 ? `~${before}` : ""}`;
}

/** The row of a link; null if there is none. @param {Map<number, Row>} rows @param {string} text */
export function ofLink(rows, text) {
  if (/^\d{1,16}$/.test(text)) return Number(text);
  const [, letter, number, before] = /^([pt])(\d{0,16})(?:~(\d{1,6}))?$/.exec(text) ?? [];
  const kind = Object.keys(KINDS).find((kind) => KINDS[kind] === letter);
  return kind === undefined ? null : same(rows, kind, number)[Number(before ?? 0)]?.id ?? null;
}
