// @ts-check
// Rows in links. They are named by what they are, since another index of the recording may have other numbers: process
// 7, its task 5, the locks of that.

import { ALL_CPUS, SECOND, isSeries, sideOf } from "./sides.js";

/** @typedef {import("./tracks.js").Row} Row */

/** How kinds begin in links. @type {Record<string, string>} */
const KINDS = {
  cpu: "c", process: "p", thread: "t", task: "k", functions: "f", locks: "l", spans: "s", samples: "m", "system calls": "y", events: "e", counter: "u", tasks: "g", all: "a",
};
/** Kinds that need no name of what they belong to. */
const WHOLE = ["cpu", "process", "thread"];

/** What distinguishes a row from others of its kind: a number, or the name of a provider or counter, or of tasks. @param {Row} row */
function own({ kind, name, number }) {
  // Tasks of one name; of all other names.
  if (kind === "tasks") return number === "others" ? "o" : `n${encoded(name)}`;
  return kind === "events" || kind === "counter" ? encoded(name) : number;
}

/** Links and their parts are separated by some of the signs that stay otherwise. @param {string} name */
function encoded(name) {
  return encodeURIComponent(name).replace(/[-._~!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** To which row one belongs, if its name needs that. @param {Row} row */
function above({ kind, parent }) {
  return WHOLE.includes(kind) ? null : parent;
}

/** What a row adds to the name of what it belongs to. @param {Row} row @param {number} before how many of the same name are earlier */
function part(row, before) {
  return `${KINDS[row.kind]}${own(row)}${before > 0 ? `~${before}` : ""}`;
}

/** The rows of each name, and how many there were. @type {WeakMap<Map<number, Row>, {size: number, by: Map<string, Row[]>}>} */
const known = new WeakMap();

/** What is one name. @param {string} kind @param {string} text @param {number | null} of @param {number} side */
const keyOf = (kind, text, of, side) => JSON.stringify([kind, text, of, side]);

/** The rows of a name, the earliest first: numbers are used again. @param {Map<number, Row>} rows @param {string} kind @param {string} text @param {number | null} of @param {number} side @returns {Row[]} */
function same(rows, kind, text, of, side) {
  const { size } = rows;
  let found = known.get(rows);
  if (found?.size !== size) {
    /** @type {Map<string, Row[]>} */
    const by = new Map();
    for (const row of rows.values()) {
      if (isSeries(row.id)) continue;
      const key = keyOf(row.kind, own(row), above(row), sideOf(row.id));
      by.set(key, [...(by.get(key) ?? []), row]);
    }
    for (const some of by.values()) some.sort((a, b) => a.begin - b.begin);
    known.set(rows, (found = { size, by }));
  }
  return found.by.get(keyOf(kind, text, of, side)) ?? [];
}

/** A row in a link. One that the page does not know, or not what has it, has its number. @param {Map<number, Row>} rows @param {number} row */
export function toLink(rows, row) {
  if (row % SECOND === ALL_CPUS || isSeries(row)) return String(row);
  const parts = [];
  for (let at = /** @type {number | null} */ (row); at !== null; ) {
    const one = rows.get(at);
    if (!one) return String(row);
    const before = same(rows, one.kind, own(one), above(one), sideOf(row)).indexOf(one);
    parts.unshift(part(one, before));
    at = above(one);
  }
  return [...(sideOf(row) ? ["b"] : []), ...parts].join("_");
}

/**
 * Names of all rows, as links have them while a recording is made. No two are equal, whatever texts a recording has.
 * @param {Row[]} rows @returns {Map<number, string>}
 */
export function named(rows) {
  const known = new Map(rows.map((row) => [row.id, row]));
  /** How many rows had a name before. @type {Map<string, number>} */
  const seen = new Map();
  /** @type {Map<number, string>} */
  const parts = new Map();
  for (const row of [...rows].sort((a, b) => a.begin - b.begin)) {
    const key = JSON.stringify([sideOf(row.id), above(row), row.kind, own(row)]);
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    parts.set(row.id, part(row, before));
  }
  /** @param {Row} row @returns {string} */
  const whole = (row) => {
    const [parent, own] = [above(row), parts.get(row.id)];
    if (parent === null) return `${sideOf(row.id) ? "b_" : ""}${own}`;
    const of = known.get(parent);
    // Of very many rows, the page has not all.
    return `${of ? whole(of) : `x${parent}`}_${own}`;
  };
  return new Map(rows.map((row) => [row.id, whole(row)]));
}

/** The row of a link; null if there is none. @param {Map<number, Row>} rows @param {string} text */
export function ofLink(rows, text) {
  if (/^\d{1,16}$/.test(text)) return Number(text);
  const parts = text.split("_");
  const side = parts[0] === "b" ? 1 : 0;
  /** @type {number | null} */
  let found = null;
  for (const part of parts.slice(side)) {
    const [, letter, own, before] = /^([a-z])([^~]*)(?:~(\d{1,6}))?$/.exec(part) ?? [];
    const kind = Object.keys(KINDS).find((kind) => KINDS[kind] === letter);
    if (kind === undefined) return null;
    found = same(rows, kind, own, found, side)[Number(before ?? 0)]?.id ?? null;
    if (found === null) return null;
  }
  return found;
}
