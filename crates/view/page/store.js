// @ts-check
// Where tiles are kept: the runs of many in few large buffers, which are used again. What they take is bounded,
// and a tile that goes leaves nothing to a garbage collector, which comes late where buffers are small and many.

import { RUN } from "./api.js";

/** Words of a buffer: 1 MiB. */
const WORDS = 1 << 18;
/** Most buffers. */
export const BUFFERS = 24;
/** What a tile takes besides its runs, in words, as measured in Chromium: most tiles have few runs. */
export const OVERHEAD = 30;

/** Buckets that fit, each with a run of its own; some room is left for what is seen next. */
export const ROOM = Math.floor((0.85 * BUFFERS * WORDS) / RUN);

/** A tile that was drawn since so many buffers were begun stays when its buffer is used again. */
const RECENT = BUFFERS / 2;

/** Runs in a buffer, and when they were drawn. @typedef {import("./api.js").Runs & {key: string, drawn: number}} Kept */

/** A buffer, and the tiles that were put there. */
class Buffer {
  constructor() {
    this.words = new Uint32Array(WORDS);
    this.bytes = new Uint8Array(this.words.buffer);
    this.floats = new Float32Array(this.words.buffer);
    /** @type {Kept[]} */
    this.tiles = [];
    /** The first word that is free. */
    this.end = 0;
  }

  /** Whether some runs fit into it. @param {number} count */
  fits(count) {
    return this.end + count * RUN + (this.tiles.length + 1) * OVERHEAD <= WORDS;
  }
}

export class Store {
  /** @param {(key: string) => void} gone called when a tile is kept no longer */
  constructor(gone) {
    this.gone = gone;
    /** @type {Map<string, Kept>} */
    this.tiles = new Map();
    /** @type {Buffer[]} */
    this.buffers = [];
    /** The one that is filled; the next one is the oldest. */
    this.current = -1;
    /** How many were begun. */
    this.turn = 0;
  }

  /** The runs of a tile, which is being drawn. @param {string} key */
  get(key) {
    const kept = this.tiles.get(key);
    if (kept) kept.drawn = this.turn;
    return kept;
  }

  /** Keeps the runs of a tile: a copy. @param {string} key @param {Uint32Array} runs */
  set(key, runs) {
    const count = runs.length / RUN;
    const before = this.tiles.get(key);
    // What is there may be longer.
    if (before && before.count >= count) {
      before.words.set(runs, before.at);
      before.count = count;
      return;
    }
    const buffer = this.room(count);
    const { words, bytes, floats, end } = buffer;
    const kept = { words, bytes, floats, at: end, count, key, drawn: this.turn };
    words.set(runs, end);
    buffer.end += runs.length;
    buffer.tiles.push(kept);
    this.tiles.set(key, kept);
  }

  /** @param {string} key */
  delete(key) {
    if (this.tiles.delete(key)) this.gone(key);
  }

  clear() {
    this.tiles.clear();
    for (const buffer of this.buffers) [buffer.end, buffer.tiles] = [0, []];
  }

  /** A buffer with room for some runs. @param {number} count @returns {Buffer} */
  room(count) {
    const now = this.buffers[this.current];
    if (now?.fits(count)) return now;
    this.turn++;
    this.current = (this.current + 1) % BUFFERS;
    if (this.buffers.length === this.current) this.buffers.push(new Buffer());
    const next = this.buffers[this.current];
    this.clean(next);
    return next;
  }

  /** The tiles of a buffer go, except those that were drawn recently, which get half of it. @param {Buffer} buffer */
  clean(buffer) {
    const { tiles, words } = buffer;
    [buffer.tiles, buffer.end] = [[], 0];
    for (const kept of tiles) {
      if (this.tiles.get(kept.key) !== kept) continue;
      const stays = this.turn - kept.drawn <= RECENT && buffer.end + kept.count * RUN + buffer.tiles.length * OVERHEAD < WORDS / 2;
      if (!stays) {
        this.delete(kept.key);
        continue;
      }
      // They are in the order of their places.
      words.copyWithin(buffer.end, kept.at, kept.at + kept.count * RUN);
      kept.at = buffer.end;
      buffer.end += kept.count * RUN;
      buffer.tiles.push(kept);
    }
  }
}
