// @ts-check
// Two recordings on one time scale: A, and B if there is one. Each is moved by a time. Rows and names of states of
// B have numbers of their own, so that a number says which recording it belongs to. This module translates
// questions to the numbers and times of a recording, and answers back.

/** Numbers of B begin here. */
export const SECOND = 2 ** 33;

/** The row that stands for all CPUs. */
export const ALL_CPUS = 0xffffffff;

/** Numbers of rows that only the page has begin here: fields of events as counters. */
export const SERIES = 2 ** 32;

/** Whether only the page has a row. @param {number} row */
export const isSeries = (row) => row % SECOND >= SERIES;

/** By how much A and B are moved, in nanoseconds: the one that begins first by nothing. */
const shifts = [0, 0];

/** Moves B by a time relative to A, in nanoseconds. @param {number} offset */
export function place(offset) {
  [shifts[0], shifts[1]] = [Math.max(0, -offset), Math.max(0, offset)];
}

/** To which recording a row or state belongs. @param {number} number */
export const sideOf = (number) => (number >= SECOND ? 1 : 0);

/** When a recording begins on the page's scale. @param {number} side */
export const beginOf = (side) => shifts[side];

/** Numbers by recording. @param {number[]} numbers @returns {[number[], number[]]} */
export function bySide(numbers) {
  return [numbers.filter((number) => sideOf(number) === 0), numbers.filter((number) => sideOf(number) === 1)];
}

/** Keys of questions that have a row or state, or several, and a time. */
const [ASKED_NUMBERS, ASKED_TIMES] = [["row", "rows", "state", "states", "kind"], ["from", "to", "time"]];
/** Keys of answers that have a row or state, and a time. */
const NUMBERS = new Set(["id", "parent", "group", "row", "thread", "ran_on", "number"]);
const TIMES = new Set(["from", "to", "at", "begin", "end", "until", "longest_poll_begin", "max_delay_end"]);

/** Which recording is asked: that of the rows, unless the question says it. @param {any} asked */
export function sideAsked(asked) {
  return asked.side ?? sideOf(asked.row ?? asked.rows?.[0] ?? 0);
}

/** A question in the numbers and times of a recording. @param {any} asked @param {number} side */
export function toSide(asked, side) {
  const { side: _, ...made } = asked;
  const number = (/** @type {number} */ one) => one - side * SECOND;
  for (const key of ASKED_NUMBERS) {
    if (Array.isArray(made[key])) made[key] = made[key].filter((/** @type {number} */ one) => !isSeries(one)).map(number);
    else if (typeof made[key] === "number") made[key] = number(made[key]);
  }
  for (const key of ASKED_TIMES) if (key in made) made[key] = Math.max(0, made[key] - shifts[side]);
  return made;
}

/** Answers that name rows without saying what these are. */
const NAMING = ["at", "spans", "longest", "statistics", "job"];

/** The rows that an answer names. @param {string} path @param {any} answer @returns {number[]} */
export function namedIn(path, answer) {
  /** @type {Set<number>} */
  const found = new Set();
  if (!NAMING.includes(path)) return [];
  /** @param {any} value */
  const walk = (value) => {
    if (Array.isArray(value)) return value.forEach(walk);
    if (value === null || typeof value !== "object") return;
    for (const [key, one] of Object.entries(value)) {
      if (typeof one === "number" && ["row", "thread", "ran_on"].includes(key)) found.add(one);
      else if (key === "holders") one?.forEach((/** @type {number} */ row) => found.add(row));
      // States that are listed begin with their row.
      else if (Array.isArray(one) && (key === "spans" || key === "longest")) {
        for (const span of one) if (Array.isArray(span)) found.add(span[0]);
      } else walk(one);
    }
  };
  walk(path === "spans" ? answer.states : answer);
  return [...found];
}

/** An answer of a recording in the page's numbers and times. @param {string} path @param {any} answer @param {number} side */
export function fromSide(path, answer, side) {
  const [base, shift] = [side * SECOND, shifts[side]];
  if (base === 0 && shift === 0) return answer;
  const number = (/** @type {number} */ one) => one + base;
  const time = (/** @type {number} */ one) => one + shift;
  /** @param {any} value @returns {any} */
  const walk = (value) => {
    if (Array.isArray(value)) return value.map(walk);
    if (value === null || typeof value !== "object") return value;
    if (value.names && value.longest) return durations(value);
    return Object.fromEntries(Object.entries(value).map(([key, one]) => {
      if (typeof one !== "number") return [key, key === "holders" ? one?.map(number) : walk(one)];
      // A match has a number of its own.
      if (NUMBERS.has(key) && path !== "match") return [key, number(one)];
      return [key, TIMES.has(key) ? time(one) : one];
    }));
  };
  const keyed = (/** @type {Record<string, any>} */ all, /** @type {(value: any) => any} */ change) =>
    Object.fromEntries(Object.entries(all).map(([key, value]) => [number(Number(key)), change(value)]));
  /** @type {Record<string, () => any>} */
  const special = {
    spans: () => ({
      rows: keyed(answer.rows, (spans) => spans?.map((/** @type {number[]} */ [state, from, to]) => [number(state), time(from), time(to)]) ?? null),
      values: keyed(answer.values, (values) => values?.map((/** @type {number[]} */ [value, from, to]) => [value, time(from), time(to)]) ?? null),
      states: keyed(answer.states, walk),
    }),
    longest: () => ({
      ...answer, states: keyed(answer.states, walk),
      spans: answer.spans.map((/** @type {number[]} */ [row, state, from, to]) => [number(row), number(state), time(from), time(to)]),
    }),
    tracks: () => ({ ...walk(answer), marks: answer.marks.map((/** @type {[number, string]} */ [state, name]) => [number(state), name]) }),
    marked: () => ({ ...answer, until: time(answer.until), rows: keyed(answer.rows, (runs) => runs) }),
    valued: () => ({ ...answer, until: time(answer.until), values: answer.values?.map((/** @type {number[]} */ [value, from, to]) => [value, time(from), time(to)]) ?? null }),
    statistics: () => ({
      ...answer, states: keyed(answer.states, walk),
      rows: answer.rows.map((/** @type {any} */ sums) => ({ ...sums, row: number(sums.row), states: sums.states.map((/** @type {number[]} */ [state, ns]) => [number(state), ns]) })),
    }),
  };
  /** @param {any} found */
  const durations = (found) => ({
    ...found, longest: found.longest.map((/** @type {number[]} */ [row, from, to]) => [number(row), time(from), time(to)]),
  });
  return Object.hasOwn(special, path) ? special[path]() : walk(answer);
}
