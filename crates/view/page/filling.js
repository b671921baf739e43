// @ts-check
// A recording whose index is being made: how much of it has been read, and what is known of the rest: where it has
// how much, from the headers of its packets.

import { ask } from "./api.js";
import { ink } from "./classes.js";
import { HEIGHT } from "./tracks.js";

/** @typedef {import("./page.js").Page} Page */
/** Bytes in equal parts of a time. @typedef {{from: number, to: number, parts: number[]}} Outline */

/** What is said of a time that has not been read. */
const UNREAD = "not read yet";
/** Distance of the lines over such a time, in pixels: what is unknown has narrow ones. */
const APART = 14;
/** Room of the words over such a time, in pixels. */
const ROOM = 96;

export class Filling {
  /** @param {any} facts */
  constructor(facts) {
    /** All up to this time is known, in nanoseconds. @type {number} */
    this.known = facts.filling.known;
    /** The share of the recording that was read. */
    this.share = share(facts.filling);
    /** @type {Outline | null} */
    this.outline = facts.outline;
    this.hasOutline = facts.filling.has_outline;
    /** Why it is not read any further. @type {string | null} */
    this.why = facts.why;
    /** Whether something was asked that needs more than was read. */
    this.isAwaited = false;
  }

  /** More has been read. @param {any} state @param {Page} page */
  async reads({ filling, why }, page) {
    if (!filling) return;
    [this.known, this.share, this.why] = [filling.known, share(filling), why];
    if (!filling.has_outline || this.hasOutline) return;
    this.outline = (await ask("state")).outline;
    this.hasOutline = true;
    page.redraw();
  }

  /** Whether nothing is known of a time. @param {number} time */
  isUnread(time) {
    return time >= this.known;
  }

  /** How far it is, in words. */
  words() {
    const share = `${Math.floor(this.share * 100)} % read`;
    return this.why === null ? share : `only ${share}`;
  }

  /**
   * Covers what has not been read.
   * @param {CanvasRenderingContext2D} context @param {(time: number) => number} x @param {number} width
   * @param {number} height @param {number} top above it are tracks that stay
   */
  draw(context, x, width, height, top = 0) {
    const left = Math.max(0, x(this.known));
    if (left >= width) return;
    lines(context, left, width, height);
    context.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    const words = context.measureText(UNREAD).width;
    if (width - left < ROOM) return;
    const [middle, y] = [(left + width) / 2, Math.min(top + 2.5 * HEIGHT, height / 2)];
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

  /**
   * The outline of what has not been read, in the minimap.
   * @param {CanvasRenderingContext2D} context @param {number} scale pixels of a nanosecond @param {number} width
   * @param {number} height
   */
  map(context, scale, width, height) {
    const left = Math.max(0, this.known * scale);
    if (left >= width) return;
    lines(context, left, width, height);
    if (!this.outline) return;
    context.fillStyle = ink("--faint");
    for (const [column, share] of this.columns(Math.ceil(width), scale).entries()) {
      if (column < left || share === 0) continue;
      const high = Math.max(1, share * (height - 8));
      context.fillRect(column, height - 4 - high, 1, high);
    }
  }

  /** The outline by column: shares of the highest one. @param {number} width @param {number} scale @returns {Float64Array} */
  columns(width, scale) {
    const columns = new Float64Array(width);
    if (!this.outline) return columns;
    const { from, to, parts } = this.outline;
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

/** Wide hatching, and a line where it begins. @param {CanvasRenderingContext2D} context @param {number} left @param {number} width @param {number} height */
function lines(context, left, width, height) {
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, height);
  context.clip();
  context.globalAlpha = 0.9;
  context.fillStyle = ink("--sheet");
  context.fillRect(left, 0, width - left, height);
  context.globalAlpha = 1;
  context.strokeStyle = ink("--line");
  context.lineWidth = 1;
  context.beginPath();
  // They stay where they are while the beginning moves.
  for (let at = Math.floor((left - height) / APART) * APART; at < width; at += APART) {
    context.moveTo(at, height);
    context.lineTo(at + height, 0);
  }
  context.stroke();
  context.restore();
  context.fillStyle = ink("--accent");
  if (left > 0) context.fillRect(Math.round(left), 0, 1, height);
}
