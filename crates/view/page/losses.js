// @ts-check
// Where events are missing: which tracks a loss can affect, and their hatching. Of a recording with very many losses,
// the page has those that are seen, and those of one pixel as one.

import { ask } from "./api.js";
import { stripe } from "./axis.js";
import { lacks } from "./missing.js";
import { ALL_CPUS, SECOND, beginOf, isSeries } from "./sides.js";
import { isPart } from "./tracks.js";

/** A question has whole chunks of so many buckets, as an exponent of two: while the picture moves, few are needed. */
const CHUNK = 11;

/** `places`: how many losses it stands for, if there are several. @typedef {{scope: string, cpu: number | null, from: number, to: number, events: number | null, side?: number, places?: number}} Loss */
/**
 * Losses of a recording. `own`: those that the page has from the beginning. If these are not all: `whole`, those of all
 * time for the minimap, and `seen`, those of the time `range`, which the view lies in if it `covers` that.
 * @typedef {{own: Loss[], whole: Loss[] | null, wholeOf: number, seen: Loss[], range: number[], covers: boolean, version: number, key: string, isAsked: boolean}} Side
 */

export class Losses {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {Side[]} */
    this.sides = page.all.map((facts, side) => (
      { own: sided(facts.losses, side), whole: null, wholeOf: -1, seen: [], range: [0, 0], covers: false, version: 0, key: "", isAsked: false }
    ));
    /** What the minimap shows. @type {Loss[]} */
    this.whole = [];
    this.compose();
  }

  /** Whether nothing is being asked. */
  get isIdle() {
    return !this.sides.some(({ isAsked }) => isAsked);
  }

  /** Whether a recording has more than the page has from the beginning. @param {number} side */
  isCut(side) {
    return this.page.all[side].losses_left_out > 0;
  }

  /** What is drawn. */
  compose() {
    const all = (/** @type {Loss[][]} */ losses) => losses.flat().sort((a, b) => a.from - b.from);
    const whole = (/** @type {Side} */ one, /** @type {number} */ side) => (this.isCut(side) ? one.whole : null) ?? one.own;
    this.whole = all(this.sides.map(whole));
    this.page.picture.losses = all(this.sides.map((one, side) => (this.isCut(side) && one.covers ? one.seen : whole(one, side))));
  }

  /** A recording has others now. @param {number} side */
  changed(side) {
    const one = this.sides[side];
    one.own = sided(this.page.all[side].losses, side);
    one.version++;
    this.compose();
  }

  /** Recordings are moved. @param {number[]} by in nanoseconds */
  moved(by) {
    for (const [side, { own, whole, seen }] of this.sides.entries()) {
      for (const loss of [...own, ...(whole ?? []), ...seen]) [loss.from, loss.to] = [loss.from + by[side], loss.to + by[side]];
    }
    this.compose();
  }

  /** Asks for what is seen, unless it is known. @param {number} width of the picture, in pixels */
  look(width) {
    const { from, to } = this.page.view;
    let isOther = false;
    for (const [side, one] of this.sides.entries()) {
      if (!this.isCut(side)) continue;
      const begin = beginOf(side);
      const shift = Math.max(0, Math.floor(Math.log2((to - from) / width)));
      const chunk = 2 ** (shift + CHUNK);
      const first = Math.max(0, Math.floor((from - begin) / chunk)) * chunk;
      const range = [first, Math.max(first, Math.ceil((to - begin) / chunk) * chunk)];
      const covers = one.range[0] <= Math.max(0, from - begin) && one.range[1] >= to - begin;
      if (covers !== one.covers) [one.covers, isOther] = [covers, true];
      const key = `${one.version} ${shift} ${range}`;
      if (key !== one.key && !one.isAsked) void this.ask(side, key, shift, range);
    }
    if (isOther) this.compose();
  }

  /** @param {number} side @param {string} key of the question @param {number} shift @param {number[]} range in the time of the recording */
  async ask(side, key, shift, range) {
    const one = this.sides[side];
    const { version } = one;
    const asked = async (/** @type {number} */ shift, /** @type {number[]} */ range) => {
      const [from, to] = range.map((time) => time + beginOf(side));
      return sided((await ask("losses", { from, to, shift, side })).losses, side);
    };
    one.isAsked = true;
    try {
      const { length } = this.page.all[side];
      // Each is kept at once: recordings may be moved while the other one is asked.
      if (one.wholeOf !== version) [one.whole, one.wholeOf] = [await asked(Math.max(0, Math.floor(Math.log2(Math.max(1, length))) - CHUNK), [0, length]), version];
      [one.seen, one.range] = [await asked(shift, range), range];
    } catch (error) {
      this.page.lost(error);
    }
    [one.key, one.isAsked] = [key, false];
    this.compose();
    this.page.redraw();
  }
}

/** Losses of one of two recordings. @param {Loss[]} losses @param {number} side @returns {Loss[]} */
function sided(losses, side) {
  return losses.map((loss) => ({ ...loss, side }));
}

/**
 * Whether a loss can affect a track. Kernel events: the CPU and every thread, since each may have run there.
 * Programs' events: every thread and task, with the parts of which they report. Samples: tracks of these. Fields of
 * events as counters: all but samples.
 * @param {import("./tracks.js").Node} track @param {Loss} loss
 */
export function touches(track, { scope, cpu, side }) {
  if ((track.side ?? 0) !== (side ?? 0)) return false;
  if (isSeries(track.id ?? 0)) return scope !== "samples";
  if (scope === "kernel") {
    if (track.kind === "cpu") return cpu === null || track.name === `CPU ${cpu}`;
    if (track.kind === "counter") return track.counter?.unit === "kHz";
    return !isPart(track) || track.kind === "locks" || track.kind === "system calls";
  }
  if (scope === "samples") return track.kind === "samples";
  return scope === "programs" && track.kind !== "counter" && track.kind !== "samples" && track.kind !== "system calls" && track.kind !== "cpu" && Number(track.id) % SECOND !== ALL_CPUS;
}

/**
 * Hatches a track where events are missing that touch it.
 * @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Node} track @param {Loss[]} losses
 * @param {number} y @param {{from: number, to: number}} view @param {(time: number) => number} x
 */
export function hatch(context, track, losses, y, view, x) {
  // Losses of several CPUs at the same time are one stripe.
  let drawn = -1;
  for (const loss of losses) {
    if (loss.from >= view.to || loss.to <= view.from || !touches(track, loss)) continue;
    const [left, right] = [Math.max(x(loss.from), drawn), Math.max(x(loss.to), x(loss.from) + 1)];
    if (left < right) stripe(context, left, right - left, y + 1, 4);
    drawn = Math.max(drawn, right);
  }
}

/** What is said of a time of a track in which events are missing. @param {import("./tracks.js").Node} track @param {Loss[]} losses @param {number} time */
export function lossAt(track, losses, time) {
  const found = losses.find((loss) => loss.from <= time && time <= loss.to && touches(track, loss));
  if (!found) return null;
  const count = found.events === null ? "events" : `${found.events.toLocaleString("en")} ${found.events === 1 ? "event" : "events"}`;
  const places = found.places ?? 1;
  return `${count} ${lacks(found)} missing ${places > 1 ? `in ${places.toLocaleString("en")} places ` : ""}here`;
}
