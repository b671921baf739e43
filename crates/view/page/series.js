// @ts-check
// Fields of events as counters: a track for each, with the least, the greatest and the last value of each column.
// The server reads the events; meanwhile what it has found is shown.

import { ask, series } from "./api.js";
import { notice } from "./opening.js";
import { SERIES, SECOND, beginOf, sideOf } from "./sides.js";

/** Counters at most. */
export const MOST_SERIES = 4;
/** How often the server is asked while it reads, in milliseconds. */
const AGAIN = 250;
/** While the recording is made, it is read again after so many milliseconds, and this many times as long as it took. */
const [NEWER, SHARE] = [2000, 10];
/** Fields that the server finds: those directly in the scopes of an event. */
const FIELD = /^(payload|specific_context|common_context|packet_context)\.[^.[\]]+$/;
/** Numbers that are names. */
const NAME = /(tid|pid|cpu|cpu_id)$/;

/** A field of events, of one of two recordings. @typedef {{event: string, field: string, side: number}} Field */
/** @typedef {{row: number, of: Field, number: number | null, older: number | null, state: any, turn: number, timer: number, begun: number}} One */

/** Whether a field can be a counter. @param {string} path @param {string} value */
export function isCounter(path, value) {
  return FIELD.test(path) && !NAME.test(path) && value !== "" && Number.isFinite(Number(value));
}

/** Fields in a link: an empty one keeps the place of one that is gone. @param {(Field | null)[]} fields */
export function toLink(fields) {
  return fields.map((one) => (one ? [one.event, one.field, ...(one.side ? ["b"] : [])].map(encodeURIComponent).join("/") : "")).join(",");
}

/** @param {string} text @param {boolean} isOfTwo @returns {(Field | null)[]} */
export function ofLink(text, isOfTwo) {
  try {
    return text.split(",").slice(0, MOST_SERIES).map((one) => {
      const [event, field, side] = one.split("/").map(decodeURIComponent);
      const isShown = event && FIELD.test(field ?? "") && (isOfTwo || side !== "b");
      return isShown ? { event, field, side: side === "b" ? 1 : 0 } : null;
    });
  } catch {
    return [];
  }
}

export class Series {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** By place; null where one was removed. @type {(One | null)[]} */
    this.all = [];
  }

  /** Their tracks, as the server has others. @returns {import("./tracks.js").Row[]} */
  rows() {
    return this.all.flatMap((one) => {
      if (!one) return [];
      const { of: { event, field }, state, row } = one;
      const counter = { unit: "", least: state?.least ?? 0, most: state?.most ?? 0 };
      const name = `${event} ${field.replace(/^payload\./, "")}`;
      return [{ id: row, kind: "counter", number: String(row % SECOND - SERIES), name, parent: null, begin: 0, end: Infinity, is_followed: true, used: 0, counter }];
    });
  }

  /** Shows a field as a counter, and its track. @param {Field} of */
  add(of) {
    const known = this.all.find((one) => one && same(one.of, of));
    if (known) return this.page.choose(known.row);
    const free = this.all.findIndex((one) => one === null);
    const place = free < 0 ? this.all.length : free;
    if (place >= MOST_SERIES) return notice(new Error(`At most ${MOST_SERIES} fields can be counters at a time: remove one with Delete.`));
    this.put(place, of);
    this.told();
    this.page.grow();
    this.page.choose(SERIES + place + of.side * SECOND);
  }

  /** No longer shows one. @param {number} row */
  remove(row) {
    const place = row % SECOND - SERIES;
    const one = this.all[place];
    if (!one) return;
    this.end(one);
    this.all[place] = null;
    const { view } = this.page;
    view.pins = view.pins.filter((pin) => pin !== row);
    this.told();
    this.page.grow();
  }

  /** What a link says. @param {(Field | null)[]} fields */
  restore(fields) {
    for (const one of this.all) if (one) this.end(one);
    this.all = [];
    for (const [place, of] of fields.entries()) {
      this.all[place] = null;
      if (of) this.put(place, of);
    }
    this.page.grow();
  }

  /** @param {number} place @param {Field} of */
  put(place, of) {
    const row = SERIES + place + of.side * SECOND;
    /** @type {One} */
    const one = { row, of, number: null, older: null, state: null, turn: 0, timer: 0, begun: 0 };
    this.all[place] = one;
    this.page.tiles.known.set(row, 0);
    void this.start(one);
  }

  /** The view has other ones: so has its link. */
  told() {
    const { view } = this.page;
    view.step(() => (view.series = this.all.map((one) => one?.of ?? null)));
  }

  /** Reads it; what an earlier reading has found is shown meanwhile. @param {One} one */
  async start(one) {
    const turn = ++one.turn;
    clearTimeout(one.timer);
    const { event, field, side } = one.of;
    one.begun = performance.now();
    try {
      const { series: number } = await ask("series", { event, field, side });
      if (turn !== one.turn) return void drop(number, side);
      if (one.number !== null) [one.older, one.number] = [one.number, null];
      one.number = number;
      await this.look(one);
    } catch (error) {
      if (turn === one.turn) this.page.lost(error);
    }
  }

  /** Asks how far it is, until it is done. @param {One} one */
  async look(one) {
    const { turn, number, of: { side }, row } = one;
    if (number === null) return;
    let isGone = false;
    const state = await ask("valued", { series: number, side, from: 0, to: 1 }).catch((error) => {
      isGone = /not kept/.test(String(error.message));
      if (!isGone && turn === one.turn) this.page.lost(error);
    });
    if (turn !== one.turn) return;
    // The server keeps few, and none when it is started again.
    if (isGone) return void this.start(one);
    if (!state || !state.is_done) one.timer = window.setTimeout(() => void this.look(one), AGAIN);
    else if (this.page.live?.isLive) {
      const pause = Math.max(NEWER, (performance.now() - one.begun) * SHARE);
      one.timer = window.setTimeout(() => void this.start(one), pause);
    }
    if (!state) return;
    // What was read before has more until all is read.
    if (one.older !== null && !state.is_done) return;
    if (one.older !== null) drop(one.older, side);
    const before = one.state;
    [one.older, one.state] = [null, state];
    series.set(row, { number, gone: () => void (turn === one.turn && this.start(one)) });
    const { tiles } = this.page;
    // While the recording is made, the last value holds for how long it is.
    tiles.known.set(row, this.page.live?.isLive ? 0 : state.is_done ? Infinity : state.until - beginOf(side));
    tiles.again(row);
    this.page.picture.spansOf = "";
    if (before?.least !== state.least || before?.most !== state.most) this.page.grow();
    else this.page.redraw();
    if (!state.is_done || state.count > 0 && !state.failure) return;
    if (before?.is_done) return;
    notice(new Error(state.failure ?? `No event ${one.of.event} has a number in ${one.of.field}.`));
  }

  /** The recording has more, or has ended. */
  again() {
    for (const one of this.all) if (one) void this.start(one);
  }

  /** @param {One} one */
  end(one) {
    one.turn++;
    clearTimeout(one.timer);
    for (const number of [one.number, one.older]) if (number !== null) drop(number, one.of.side);
    series.delete(one.row);
    this.page.tiles.known.delete(one.row);
    this.page.tiles.drop(one.row);
  }

  /** The values of those that are seen, one by one. @param {number[]} rows @param {{from: number, to: number}} seen @returns {Promise<[number, [number, number, number][]][]>} */
  async values(rows, { from, to }) {
    return Promise.all(rows.flatMap((row) => {
      const known = series.get(row);
      if (!known) return [];
      const answer = ask("valued", { series: known.number, side: sideOf(row), from, to }).catch(() => null);
      return [answer.then((found) => /** @type {[number, [number, number, number][]]} */ ([row, found?.values ?? []]))];
    }));
  }

  /** Shows the event from which a counter has its value. @param {number} row @param {number} time */
  async show(row, time) {
    const [one, known, side] = [this.all[row % SECOND - SERIES], series.get(row), sideOf(row)];
    if (!one || !known) return;
    const turn = ++this.page.asked;
    const answer = await ask("valued", { series: known.number, side, from: Math.floor(time), to: Math.floor(time) + 1 }).catch((error) => this.page.lost(error));
    if (turn !== this.page.asked) return;
    const last = answer?.values?.at(-1);
    if (last) this.page.panels.event({ name: one.of.event, at: last[1], tid: null, nth: 0, side }, null);
    else this.page.clear();
  }
}

/** @param {Field} one @param {Field} other */
function same(one, other) {
  return one.event === other.event && one.field === other.field && one.side === other.side;
}

/** Ends one in the server. @param {number} number @param {number} side */
function drop(number, side) {
  ask("unseries", { series: number, side }).catch(() => {});
}
