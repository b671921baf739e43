// @ts-check
// What rows did, by tiles: 512 buckets of one row at one zoom. Tiles that were asked once are kept, the least
// recently used go first; while one is asked, coarser ones that are there are drawn.

import { rows } from "./api.js";

/** @typedef {import("./api.js").Runs} Runs */
/** @typedef {{runs: Runs, shift: number, first: number}} Tile */

/** Buckets of a tile, as a power of two. */
const BUCKETS = 9;
/** Most bytes that are kept. */
const MOST = 64 << 20;
/** Most rows of a question. */
const ROWS = 60;
/** How many times coarser a tile may be that is drawn meanwhile, as a power of two. */
const COARSER = 12;

export class Tiles {
  /** @param {() => void} came called when tiles have come @param {(error: unknown) => void} failed */
  constructor(came, failed) {
    this.came = came;
    this.failed = failed;
    /** @type {Map<string, Runs>} */
    this.kept = new Map();
    this.bytes = 0;
    /** @type {Set<string>} */
    this.asked = new Set();
    /** @type {Set<string>} */
    this.refused = new Set();
    this.isBusy = false;
    /** @type {{shift: number, tile: number, row: number}[]} */
    this.wanted = [];
  }

  /** Whether nothing is on its way. */
  get isIdle() {
    return !this.isBusy && this.wanted.length === 0;
  }

  /**
   * The tiles that show a row between two times; those that are missing are asked with `ask`.
   * @param {number} row @param {number} from @param {number} to @param {number} shift
   * @returns {Tile[]}
   */
  get(row, from, to, shift) {
    const length = 2 ** (shift + BUCKETS);
    const found = [];
    for (let tile = Math.floor(from / length); tile * length < to; tile++) {
      const runs = this.use(`${row} ${shift} ${tile}`);
      if (runs) {
        found.push({ runs, shift, first: tile * 2 ** BUCKETS });
        continue;
      }
      this.wanted.push({ shift, tile, row });
      const coarser = this.coarser(row, shift, tile);
      if (coarser) found.push(coarser);
    }
    return found;
  }

  /** @param {number} row @param {number} shift @param {number} tile @returns {Tile | null} */
  coarser(row, shift, tile) {
    for (let up = 1; up <= COARSER; up++) {
      const parent = Math.floor(tile / 2 ** up);
      const runs = this.use(`${row} ${shift + up} ${parent}`);
      if (runs) return { runs, shift: shift + up, first: parent * 2 ** BUCKETS };
    }
    return null;
  }

  /** @param {string} key */
  use(key) {
    const runs = this.kept.get(key);
    if (runs) {
      this.kept.delete(key);
      this.kept.set(key, runs);
    }
    return runs;
  }

  /** Asks what was missing since the last time. */
  async ask() {
    if (this.isBusy) return;
    const missing = this.wanted.filter(({ shift, tile, row }) => !this.refused.has(`${row} ${shift} ${tile}`));
    this.wanted = [];
    if (missing.length === 0) return;
    const { shift, tile } = missing[0];
    const same = missing.filter((one) => one.shift === shift && one.tile === tile).map(({ row }) => row);
    const few = [...new Set(same)].slice(0, ROWS);
    this.isBusy = true;
    try {
      const first = tile * 2 ** BUCKETS;
      for (const [row, runs] of await rows({ shift, first, count: 2 ** BUCKETS, rows: few })) {
        this.keep(`${row} ${shift} ${tile}`, runs);
      }
    } catch (error) {
      for (const row of few) this.refused.add(`${row} ${shift} ${tile}`);
      this.failed(error);
    }
    this.isBusy = false;
    this.came();
  }

  /** @param {string} key @param {Runs} runs */
  keep(key, runs) {
    this.kept.set(key, runs);
    this.bytes += runs.bytes.length + 100;
    for (const [old, { bytes }] of this.kept) {
      if (this.bytes <= MOST) break;
      this.kept.delete(old);
      this.bytes -= bytes.length + 100;
    }
  }
}
