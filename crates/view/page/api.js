// @ts-check
// What the page asks the server: of A below `/api/`, of B below `/api/other/`.

import { fromSide, isSeries, namedIn, sideAsked, sideOf, SECOND, toSide } from "./sides.js";

/** The user is not known: the address lacked the token, or the server has another one. */
export class Unknown extends Error {}

/** The server does not answer. */
export class Unreachable extends Error {}

/** What is asked for has not been read yet. */
export class NotRead extends Error {}

/**
 * A body to its end: the server may end meanwhile.
 * @template T @param {Promise<T>} body @returns {Promise<T>}
 */
const whole = (body) => body.catch((error) => {
  throw error.name === "AbortError" ? error : new Unreachable(String(error));
});

/** @param {string} path @param {unknown} asked @param {AbortSignal} [signal] */
async function post(path, asked, signal) {
  const body = typeof asked === "string" ? asked : JSON.stringify(asked);
  const response = await fetch(`/api/${path}`, { method: "POST", body, signal }).catch((error) => {
    throw new Unreachable(String(error));
  });
  if (response.status === 401) throw new Unknown(await whole(response.text()));
  if (response.status === 425) throw new NotRead(await whole(response.text()));
  if (!response.ok) throw new Error(await whole(response.text()));
  return response;
}

/** What makes rows known that an answer names, before the answer is used. @type {{learn: (rows: number[]) => Promise<void>}} */
export const naming = { learn: async () => {} };

/**
 * An answer. Rows and states in the question say which recording is asked; without any, `side` does, or it is A.
 * @param {string} path @param {any} [asked] @param {AbortSignal} [signal] @returns {Promise<any>}
 */
export async function ask(path, asked = {}, signal) {
  const side = sideAsked(asked);
  const answer = await whole((await post(of(side, path), toSide(asked, side), signal)).json());
  const found = fromSide(path, answer, side);
  const rows = namedIn(path, found);
  if (rows.length > 0) await naming.learn(rows);
  return found;
}

/** @param {number} side @param {string} path */
function of(side, path) {
  return side === 0 ? path : `other/${path}`;
}

/** Shows the token, for which the server gives a cookie. @param {string} token */
export async function enter(token) {
  await post("enter", token);
}

/**
 * Runs of buckets of equal content, seven 32-bit words each: first bucket, number of buckets, longest state, and
 * then bytes: fourteen shares in 255ths, and the number of changes. They begin at the word `at`.
 * @typedef {{words: Uint32Array, bytes: Uint8Array, floats: Float32Array, at: number, count: number}} Runs
 */

/** Words of a run. */
export const RUN = 7;

/** Fields of events as counters, by row: their numbers in the server, and what is done if it has them no longer. @type {Map<number, {number: number, gone: () => void}>} */
export const series = new Map();

/**
 * What rows of a recording did in the buckets of a window, which are counted from the recording's begin: the words of
 * their runs.
 * @param {{shift: number, first: number, count: number, rows: number[]}} asked
 * @param {AbortSignal} [signal]
 * @returns {Promise<Map<number, Uint32Array>>}
 */
export async function rows(asked, signal) {
  const side = sideOf(asked.rows[0]);
  /** @type {Map<number, Uint32Array>} */
  const found = new Map();
  const { rows, ...window } = asked;
  const own = rows.flatMap((row) => (isSeries(row) && series.has(row) ? [row] : []));
  await Promise.all(own.map(async (row) => {
    const known = series.get(row);
    const response = await post(of(side, "values"), { ...window, series: known?.number }, signal).catch((error) => {
      if (!/not kept/.test(String(error.message))) throw error;
      known?.gone();
    });
    if (!response) return;
    found.set(row, new Uint32Array(await whole(response.arrayBuffer())).subarray(2));
  }));
  if (rows.every(isSeries)) return found;
  const buffer = await whole((await post(of(side, "rows"), toSide(asked, side), signal)).arrayBuffer());
  const head = new Uint32Array(buffer);
  for (let at = 0; at < head.length; ) {
    const [row, count] = [head[at] + side * SECOND, head[at + 1]];
    const length = count * RUN;
    found.set(row, head.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return found;
}
