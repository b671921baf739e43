// @ts-check
// A recording that is being made, or whose index is: asks how far it is, follows its end, and marks what is not
// certain yet.

import { ask, Unknown } from "./api.js";
import { about } from "./about.js";
import { fit } from "./axis.js";
import { ink, nameMarks } from "./classes.js";
import { $, canvas } from "./opening.js";
import { beginOf, isSeries, sideOf } from "./sides.js";
import { HEIGHT, counted, each, isMarks } from "./tracks.js";
import { SHORTEST } from "./window.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {import("./tracks.js").Node} Node */

/** How often it is asked, in milliseconds: while the end is seen, otherwise, and while the page is hidden. */
const OFTEN = 250;
const SELDOM = 1000;
const RARELY = 4000;
/** Time between two steps of what scrolls, in milliseconds. */
const STEP = 50;
/** What is seen at first, in nanoseconds, and how far it may stay behind what is known. */
const FIRST = 10e9;
const BEHIND = 0.4e9;
/** Shortest time between two looks at all tracks, in milliseconds, and how many times as long as that takes. */
const TRACKS = 1000;
const SHARE = 10;
/** Rows of a question. */
const ROWS = 1000;

export class Live {
  /** @param {Page} page @param {boolean} follows whether the end is seen at first */
  constructor(page, follows) {
    this.page = page;
    /** Whether there will be more. */
    this.isLive = true;
    this.follows = follows;
    /** What is known of each recording: of which index, and when all its tracks may be looked at again. */
    this.sides = page.all.map(({ is_live, filling, losses, losses_left_out }) => (
      { grows: Boolean(is_live || filling), version: -1, changed: 0, passes: 0, losses: losses.length + losses_left_out, next: 0 }
    ));
    /** Whether something was asked that needs more than was read. */
    this.isAwaited = false;
    /** From when on a row may still change, in the time of its recording; nothing is known of those that are missing. @type {Map<number, number>} */
    this.certain = new Map();
    /** What is seen: how long it is, and its end. */
    this.width = FIRST;
    this.end = page.view.length;
    this.last = performance.now();
    /** The timer of the next question; 0 while one is on its way, and in the end. */
    this.waits = 0;
    /** What was seen last: if it is the same, nothing has moved. */
    this.seen = { from: page.view.from, to: page.view.to };
    page.tiles.certain = (row) => (this.sides[sideOf(row)].grows ? this.certain.get(row) ?? 0 : Infinity);
    page.view.changed.push(() => this.moved());
    canvas("overlay").addEventListener("pointerdown", () => this.follow(false));
    $("order").addEventListener("change", () => {
      forget(page.roots);
      page.fold();
    });
    $("live").addEventListener("click", () => this.toggle());
    $("live").hidden = page.fillings.size > 0;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden || !this.waits) return;
      clearTimeout(this.waits);
      void this.poll();
    });
    this.follow(follows);
    void this.poll();
    this.timer = window.setInterval(() => this.step(), STEP);
  }

  /** Follows the end, or no longer. @param {boolean} follows */
  follow(follows) {
    // Of a recording whose index is made, the end is known.
    if (!this.isLive || this.page.fillings.size > 0) return;
    this.follows = follows;
    $("live").setAttribute("aria-pressed", String(follows));
    if (follows) [this.end, this.width] = [this.page.view.length, Math.max(this.page.view.to - this.page.view.from, 1e6)];
    if (follows && this.page.view.to - this.page.view.from >= this.page.view.length) this.width = FIRST;
    this.seen = { from: this.page.view.from, to: this.page.view.to };
    this.last = performance.now();
  }

  toggle() {
    this.follow(!this.follows);
    if (!this.follows) this.page.view.tell();
  }

  /** The view has moved: away from the end, or to it. */
  moved() {
    const { from, to, length } = this.page.view;
    if (!this.isLive || (from === this.seen.from && to === this.seen.to)) return;
    this.seen = { from, to };
    const isAtEnd = to >= (this.follows ? this.end : length) - (to - from) / 500;
    if (isAtEnd !== this.follows) this.follow(isAtEnd);
    else if (isAtEnd) this.width = Math.max(to - from, 1e6);
  }

  /** What is seen scrolls. */
  step() {
    const [now, { view }] = [performance.now(), this.page];
    const passed = (now - this.last) * 1e6;
    this.last = now;
    if (!this.follows || document.hidden || this.page.isLost) return;
    const end = Math.min(view.length, Math.max(this.end + passed, view.length - BEHIND));
    if (end === this.end && view.to === end) return;
    this.end = end;
    [view.from, view.to] = [Math.max(0, end - this.width), end];
    this.seen = { from: view.from, to: view.to };
    this.page.redraw();
  }

  /** Asks how far the recording is, again and again. */
  async poll() {
    const { page } = this;
    this.waits = 0;
    let pause = document.hidden ? RARELY : this.follows || page.fillings.size > 0 ? OFTEN : SELDOM;
    try {
      for (const [side, { grows }] of this.sides.entries()) if (grows) await this.look(side);
      if (!this.isLive) return;
      if (page.fillings.size > 0) about(page);
    } catch (error) {
      page.lost(error);
      if (error instanceof Unknown) return;
      pause = SELDOM;
    }
    this.waits = window.setTimeout(() => void this.poll(), pause);
  }

  /** Asks how far a recording is. @param {number} side */
  async look(side) {
    const { page } = this;
    const rows = page.isLost ? [] : this.rows(side);
    const state = await ask("live", { rows, side });
    rows.forEach((row, at) => this.certain.set(row, state.certain[at] ?? Infinity));
    await page.fillings.get(side)?.reads(state, page);
    if (state.version !== this.sides[side].version) await this.grown(state, side);
    if (!grows(state)) this.ends(side, state.why, state.filling !== null);
  }

  /** The rows of a recording that are seen, and that of the minimap. @param {number} side */
  rows(side) {
    const seen = this.page.layout.seen().flatMap(({ track }) => (track.id === null || isSeries(track.id) ? [] : [track.id]));
    return [...new Set([...this.page.wholes, ...seen])].filter((row) => sideOf(row) === side).slice(0, ROWS);
  }

  /** There is more. @param {any} state @param {number} side */
  async grown(state, side) {
    const { page } = this;
    const [facts, known] = [page.all[side], this.sides[side]];
    const wasAll = !this.follows && page.view.from === 0 && page.view.to === page.view.length;
    Object.assign(facts, { length: state.length, events: state.events, rows: state.rows });
    // Times are counted from its beginning, which an earlier event has moved.
    if (state.begin_ns !== facts.begin_ns) await this.begins(side);
    this.lasts(page.compare?.length ?? state.length, wasAll);
    if (grows(state) && state.passes !== known.passes) this.moves();
    else if (state.changed !== known.changed) page.tiles.forget();
    else page.tiles.expire();
    [known.changed, known.passes] = [state.changed, state.passes];
    page.picture.spansOf = "";
    if (state.losses !== known.losses) {
      const { losses, losses_left_out } = await ask("state", { side });
      known.losses = state.losses;
      Object.assign(facts, { losses, losses_left_out });
      page.losses.changed(side);
    }
    if (performance.now() >= known.next || !grows(state)) await this.refresh(side);
    about(page);
    page.redraw();
    // If a question fails, all of this is done again.
    known.version = state.version;
    this.answers();
  }

  /**
   * So long is the recording now. It can become shorter: what was read of a packet that was still being written may
   * have had a wrong time, and was read again.
   * @param {number} length @param {boolean} isAll whether all of it is seen
   */
  lasts(length, isAll) {
    const { view } = this.page;
    view.length = Math.max(length, SHORTEST);
    this.end = Math.min(this.end, view.length);
    if (isAll) view.to = view.length;
    if (view.to <= view.length) return;
    [view.from, view.to] = [Math.max(0, view.length - (view.to - view.from)), view.length];
    this.seen = { from: view.from, to: view.to };
  }

  /** It begins at another time: so do its losses, and its notes, which the server has. @param {number} side */
  async begins(side) {
    const { page } = this;
    const { begin_ns, begin, losses, losses_left_out } = await ask("state", { side });
    Object.assign(page.all[side], { begin_ns, begin, losses, losses_left_out });
    page.losses.changed(side);
    await page.notes.load();
  }

  /** All was read again: rows have other places. */
  moves() {
    this.page.tiles.clear();
    this.page.marks.again();
    this.page.picture.spans = new Map();
    this.certain.clear();
    for (const known of this.sides) known.next = 0;
  }

  /** Reads all tracks of a recording again; those that were there stay where they are. @param {number} side */
  async refresh(side) {
    const begin = performance.now();
    const { page } = this;
    const tracks = await ask("tracks", { side });
    this.sides[side].next = performance.now() + Math.max(TRACKS, (performance.now() - begin) * SHARE);
    [page.leftOut[side], page.listed[side]] = [tracks.left_out, counted(tracks.rows)];
    nameMarks(tracks.marks);
    const own = await page.others.again(side, tracks.rows);
    const others = [...page.rows.values()].filter(({ id }) => sideOf(id) !== side);
    page.rows = new Map([...others, ...tracks.rows, ...own].map((/** @type {import("./tracks.js").Row} */ row) => [row.id, row]));
    const numbers = page.plant();
    if (numbers.size) {
      rename(page, numbers);
      page.marks.again();
    }
    page.tiles.refused.clear();
    page.refold(numbers);
    if (page.view.filter) void page.others.search();
  }

  /** What was asked about a time that was not read then is asked again. */
  answers() {
    const { page } = this;
    if (!this.isAwaited || page.isWriting()) return;
    const { area, why } = page.view;
    const to = area?.to ?? why?.to ?? Infinity;
    const rows = area ? area.rows : why && [why.row];
    const isUnread = (/** @type {[number, import("./filling.js").Filling]} */ [side, filling]) => (rows === null || rows.some((row) => sideOf(row) === side)) && filling.isUnread(to - 1);
    if ([...page.fillings].some(isUnread)) return;
    this.isAwaited = false;
    page.restored();
  }

  /**
   * No more of it comes.
   * @param {number} side @param {string | null} why if it has not ended by itself
   * @param {boolean} isPart whether its index is not whole
   */
  ends(side, why, isPart) {
    const { page } = this;
    this.sides[side].grows = false;
    this.isLive = this.sides.some(({ grows }) => grows);
    if (!this.isLive) window.clearInterval(this.timer);
    page.tiles.forget();
    page.picture.spansOf = "";
    if (page.fillings.has(side)) this.filled(side, isPart, why);
    else this.recorded(why);
    page.redraw();
  }

  /** A recording has been read. @param {number} side @param {boolean} isPart whether some of it never will be @param {string | null} why */
  filled(side, isPart, why) {
    const { page } = this;
    if (isPart) $("ended").textContent += `${page.compare ? `${"AB"[side]}: ` : ""}It cannot be read further: ${why} `;
    if (isPart) return void about(page);
    page.fillings.delete(side);
    about(page);
    for (const row of [...this.certain.keys()]) if (sideOf(row) === side) this.certain.delete(row);
    page.marks.again();
    page.series.again();
    this.answers();
  }

  /** The recording has ended. @param {string | null} why if it has not ended by itself */
  recorded(why) {
    const { page } = this;
    if (this.follows) [page.view.from, page.view.to] = [Math.max(0, page.view.length - this.width), page.view.length];
    this.follows = false;
    page.marks.again();
    page.series.again();
    this.certain.clear();
    $("live").hidden = true;
    $("ended").textContent = why === null ? "The recording has ended" : `It is not followed any more: ${why}`;
    if (page.view.state && page.found && !page.isWriting()) void page.select(page.view.state.row, page.view.state.time, 0, undefined, true, page.view.state.nth);
    page.view.tell();
  }

  /** Marks what may still change. */
  draw() {
    const { page } = this;
    const { context, width } = fit(canvas("overlay"));
    const { from, to } = page.view;
    context.fillStyle = ink("--paper");
    for (const { track, y } of page.layout.seen()) {
      const own = track.id === null || isMarks(track) ? Infinity : this.certain.get(track.id) ?? Infinity;
      const certain = beginOf(track.side) + own;
      if (certain >= to) continue;
      // What was not read has lines of its own.
      const end = Math.min(width, (((page.fillings.get(track.side)?.begin ?? to) - from) / (to - from)) * width);
      for (let x = Math.max(0, Math.ceil(((certain - from) / (to - from)) * width)); x < end; x += 4) context.fillRect(x, y + 3, 1, HEIGHT - 6);
    }
  }
}

/** Whether there will be more. @param {any} state */
function grows({ is_live, filling, why }) {
  return is_live || (filling !== null && why === null);
}

/**
 * Tracks stay as they were; gives the numbers that they had, with those that they have now.
 * @param {Node[]} before @param {Node[]} now @returns {Map<number | null, number | null>}
 */
export function keep(before, now) {
  /** @type {Map<string, Node>} */
  const known = new Map();
  each(before, (node) => known.set(node.key, node));
  const numbers = new Map();
  each(now, (node) => {
    const was = known.get(node.key);
    node.weight = was ? was.weight ?? was.used : node.used;
    if (was) node.folded = was.folded;
    if (was && was.id !== node.id) numbers.set(was.id, node.id);
  });
  return numbers;
}

/** Tracks are ordered by what is known now. @param {Node[]} roots */
function forget(roots) {
  each(roots, (node) => delete node.weight);
}

/** Rows have other numbers. @param {Page} page @param {Map<number | null, number | null>} numbers */
function rename(page, numbers) {
  const { view } = page;
  const now = (/** @type {number} */ row) => numbers.get(row) ?? row;
  view.pins = view.pins.map(now);
  if (view.state) view.state.row = now(view.state.row);
  if (view.area?.rows) view.area.rows = view.area.rows.map(now);
  if (view.part) view.part.row = now(view.part.row);
  if (view.why) view.why.row = now(view.why.row);
}
