// @ts-check
// A recording whose index is being made: how much of it has been read, and what is known of the rest: where it has
// how much, from the headers of its packets. Two that are compared fill at the same time, each in its own tracks.

import { ask } from "./api.js";
import { ink } from "./classes.js";
import { beginOf } from "./sides.js";
import { HEIGHT } from "./tracks.js";

/** @typedef {import("./page.js").Page} Page */
/** From where to where, in pixels. @typedef {[number, number]} Band */
/** Bytes in equal parts of a time, which is that of the recording. @typedef {{from: number, to: number, parts: number[]}} Outline */

/** What is said of a time that has not been read. */
const UNREAD = "not read yet";
/** Distance of the lines over such a time, in pixels: what is unknown has narrow ones. */
const APART = 14;
/** Room of the words over such a time, in pixels. */
const ROOM = 96;

export class Filling {
  /** @param {any} facts @param {number} [side] of which recording */
  constructor(facts, side = 0) {
    this.facts = facts;
    this.side = side;
    /** All up to this time of the recording is known, in nanoseconds. @type {number} */
    this.known = facts.filling.known;
    /** The share of the recording that was read. */
    this.share = share(facts.filling);
    /** @type {Outline | null} */
    this.outline = own(facts.outline, side);
    this.hasOutline = facts.filling.has_outline;
    /** Why it is not read any further. @type {string | null} */
    this.why = facts.why;
  }

  /** More has been read. @param {any} state @param {Page} page */
  async reads({ filling, why }, page) {
    if (!filling) return;
    [this.known, this.share, this.why] = [filling.known, share(filling), why];
    if (!filling.has_outline || this.hasOutline) return;
    this.outline = own((await ask("state", { side: this.side })).outline, this.side);
    this.hasOutline = true;
    page.redraw();
  }

  /** From when on nothing is known, on the page's scale. */
  get begin() {
    return beginOf(this.side) + this.known;
  }

  /** Whether nothing is known of a time. @param {number} time */
  isUnread(time) {
    return time >= this.begin;
  }

  /** How far it is, in words. */
  words() {
    const share = `${Math.floor(this.share * 100)} % read`;
    return this.why === null ? share : `only ${share}`;
  }

  /**
   * Covers what has not been read.
   * @param {CanvasRenderingContext2D} context @param {(time: number) => number} x @param {number} width
   * @param {import("./tracks.js").Layout} layout
   */
  draw(context, x, width, layout) {
    const [left, right] = this.edges(x, width);
    const bands = this.bands(layout);
    if (left >= right || bands.length === 0) return;
    lines(context, left, right, bands);
    context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    const words = context.measureText(UNREAD).width;
    const top = Math.max(layout.pinned * HEIGHT, Math.min(...bands.map(([top]) => top)));
    const bottom = Math.max(...bands.map(([, bottom]) => bottom));
    if (right - left < ROOM || bottom - top < HEIGHT) return;
    const [middle, y] = [(left + right) / 2, Math.min(top + 2.5 * HEIGHT, (top + bottom) / 2)];
    context.fillStyle = ink("--paper");
    context.strokeStyle = ink("--line");
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(middle - words / 2 - 10, y - 12, words + 20, 24, 12);
    context.fill();
    context.stroke();
    context.fillStyle = ink("--ink");
    context.fillText(UNREAD, middle - words / 2, y + 0.5);
  }

  /** From where to where there is something that has not been read. @param {(time: number) => number} x @param {number} width @returns {Band} */
  edges(x, width) {
    return [Math.max(0, x(this.begin)), Math.min(width, x(beginOf(this.side) + this.facts.length))];
  }

  /** Where the tracks of this recording are: of two, those that belong to it. @param {import("./tracks.js").Layout} layout @returns {Band[]} */
  bands(layout) {
    if (!this.facts.is_compared) return [[0, layout.height]];
    const own = layout.seen().filter(({ track: { side, kind } }) => side === this.side && kind !== "recording" && kind !== "note");
    const above = layout.pinned * HEIGHT;
    const band = (/** @type {{at: number, y: number}} */ { at, y }) => /** @type {Band} */ ([at < layout.pinned ? y : Math.max(y, above), y + HEIGHT]);
    return own.map(band).filter(([top, bottom]) => top < bottom);
  }

  /**
   * The outline of what has not been read, in the minimap.
   * @param {CanvasRenderingContext2D} context @param {number} scale pixels of a nanosecond @param {number} width
   * @param {number} height
   */
  map(context, scale, width, height) {
    const [left, right] = this.edges((time) => time * scale, width);
    if (left >= right) return;
    const half = height / 2;
    const [top, bottom] = !this.facts.is_compared ? [0, height] : this.side ? [half, height] : [0, half];
    lines(context, left, right, [[top, bottom]]);
    if (!this.outline) return;
    context.fillStyle = ink("--faint");
    for (const [column, share] of this.columns(Math.ceil(width), scale).entries()) {
      if (column < left || share === 0) continue;
      const high = Math.max(1, share * (bottom - top - 8));
      context.fillRect(column, bottom - 4 - high, 1, high);
    }
  }

  /** The outline by column: shares of the highest one. @param {number} width @param {number} scale @returns {Float64Array} */
  columns(width, scale) {
    const columns = new Float64Array(width);
    if (!this.outline) return columns;
    const [{ parts }, shift] = [this.outline, beginOf(this.side)];
    const [from, to] = [this.outline.from + shift, this.outline.to + shift];
    const part = ((to - from) / parts.length) * scale;
    for (const [at, bytes] of parts.entries()) {
      const [begin, end] = [from * scale + at * part, from * scale + (at + 1) * part];
      for (let column = Math.max(0, Math.floor(begin)); column < Math.min(width, Math.ceil(end)); column++) {
        const common = Math.min(end, column + 1) - Math.max(begin, column);
        columns[column] += part > 0 ? (bytes * common) / part : 0;
      }
    }
    const most = Math.max(...columns, 1);
    return columns.map((bytes) => bytes / most);
  }
}

/** @param {{done: number, total: number}} filling */
function share({ done, total }) {
  return total > 0 ? Math.min(1, done / total) : 0;
}

/** An outline in the time of its recording. @param {Outline | null} outline @param {number} side @returns {Outline | null} */
function own(outline, side) {
  const shift = beginOf(side);
  return outline && { ...outline, from: outline.from - shift, to: outline.to - shift };
}

/** Wide hatching, and a line where it begins. @param {CanvasRenderingContext2D} context @param {number} left @param {number} right @param {Band[]} bands */
function lines(context, left, right, bands) {
  const height = Math.max(...bands.map(([, bottom]) => bottom));
  context.save();
  context.beginPath();
  for (const [top, bottom] of bands) context.rect(left, top, right - left, bottom - top);
  context.clip();
  context.globalAlpha = 0.9;
  context.fillStyle = ink("--sheet");
  context.fillRect(left, 0, right - left, height);
  context.globalAlpha = 1;
  context.strokeStyle = ink("--line");
  context.lineWidth = 1;
  context.beginPath();
  // They stay where they are while the beginning moves.
  for (let at = Math.floor((left - height) / APART) * APART; at < right; at += APART) {
    context.moveTo(at, height);
    context.lineTo(at + height, 0);
  }
  context.stroke();
  context.fillStyle = ink("--accent");
  if (left > 0) context.fillRect(Math.ceil(left), 0, 1, height);
  context.restore();
}
