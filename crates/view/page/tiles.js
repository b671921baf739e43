// @ts-check
// What rows did, by tiles: 512 buckets of one row at one zoom. Tiles that were asked once are kept; those that were
// not drawn for long go first. While one is asked, coarser ones that are there are drawn.

import { rows } from "./api.js";
import { sideOf } from "./sides.js";
import { Store } from "./store.js";

/** @typedef {import("./api.js").Runs} Runs */
/** @typedef {{runs: Runs, shift: number, first: number}} Tile */

/** Buckets of a tile, as a power of two. */
export const BUCKETS = 9;
/** Tiles that the server has refused, at most: the first ones are asked again. */
const REFUSED = 10_000;
/** Most rows of a question. */
const ROWS = 60;
/** Most questions at the same time: a wide window has so many tiles, and the map. A browser sends six at once. */
const QUESTIONS = 12;
/** How many times coarser a tile may be that is drawn meanwhile, as a power of two. */
const COARSER = 12;

export class Tiles {
  /** @param {() => void} came called when tiles have come @param {(error: unknown) => void} failed */
  constructor(came, failed) {
    this.came = came;
    this.failed = failed;
    this.kept = new Store((key) => [this.uncertain.delete(key), this.old.delete(key)]);
    /** @type {Set<string>} */
    this.refused = new Set();
    /** From when on a row may still change. @type {(row: number) => number} */
    this.certain = () => Infinity;
    /** The same of rows that only the page has. @type {Map<number, number>} */
    this.known = new Map();
    /** Tiles that may still change, and those of them that have to be asked again. @type {Set<string>} */
    this.uncertain = new Set();
    /** @type {Set<string>} */
    this.old = new Set();
    /** How often they expired, and how often they had when certain ones did, too. */
    this.turn = 0;
    this.doubted = 0;
    /** The same when rows were dropped: earlier answers are of what they were before. @type {Map<number, number>} */
    this.dropped = new Map();
    /** And when rows got other places: earlier answers are of other rows. */
    this.moved = 0;
    this.isBusy = false;
    /** @type {{shift: number, tile: number, row: number}[]} */
    this.wanted = [];
  }

  /** Whether nothing is on its way. */
  get isIdle() {
    return !this.isBusy && this.wanted.length === 0;
  }

  /** Another picture begins: what only earlier ones lack is not asked. */
  begin() {
    this.wanted = [];
  }

  /**
   * The tiles that show a row between two times of its recording; those that are missing are asked with `ask`.
   * @param {number} row @param {number} from @param {number} to @param {number} shift
   * @returns {Tile[]}
   */
  get(row, from, to, shift) {
    const length = 2 ** (shift + BUCKETS);
    const found = [];
    for (let tile = Math.max(0, Math.floor(from / length)); tile * length < to; tile++) {
      const key = `${row} ${shift} ${tile}`;
      const runs = this.kept.get(key);
      if (runs) found.push({ runs, shift, first: tile * 2 ** BUCKETS });
      if (runs && !this.old.has(key)) continue;
      this.wanted.push({ shift, tile, row });
      const coarser = runs ? null : this.coarser(row, shift, tile);
      if (coarser) found.push(coarser);
    }
    return found;
  }

  /** @param {number} row @param {number} shift @param {number} tile @returns {Tile | null} */
  coarser(row, shift, tile) {
    for (let up = 1; up <= COARSER; up++) {
      const parent = Math.floor(tile / 2 ** up);
      const runs = this.kept.get(`${row} ${shift + up} ${parent}`);
      if (runs) return { runs, shift: shift + up, first: parent * 2 ** BUCKETS };
    }
    return null;
  }

  /** Asks what was missing since the last time: for each tile all rows together. */
  async ask() {
    if (this.isBusy) return;
    /** Of each recording by itself. @type {Map<string, {shift: number, tile: number, rows: Set<number>}>} */
    const questions = new Map();
    for (const { shift, tile, row } of this.wanted) {
      if (this.refused.has(`${row} ${shift} ${tile}`)) continue;
      const key = `${sideOf(row)} ${shift} ${tile}`;
      const question = questions.get(key) ?? { shift, tile, rows: new Set() };
      questions.set(key, question);
      if (question.rows.size < ROWS) question.rows.add(row);
    }
    this.wanted = [];
    if (questions.size === 0) return;
    this.isBusy = true;
    await Promise.all([...questions.values()].slice(0, QUESTIONS).map((question) => this.askTile(question)));
    this.isBusy = false;
    this.came();
  }

  /** @param {{shift: number, tile: number, rows: Set<number>}} question */
  async askTile({ shift, tile, rows: some }) {
    const turn = this.turn;
    try {
      const asked = { shift, first: tile * 2 ** BUCKETS, count: 2 ** BUCKETS, rows: [...some] };
      const end = (tile + 1) * 2 ** (shift + BUCKETS);
      const uncertain = new Set(asked.rows.filter((row) => (this.known.get(row) ?? this.certain(row)) < end));
      const found = await rows(asked);
      if (turn < this.moved) return;
      for (const row of some) {
        if (turn < (this.dropped.get(row) ?? 0)) continue;
        const [key, runs] = [`${row} ${shift} ${tile}`, found.get(row)];
        if (runs) this.kept.set(key, runs);
        // The row has another number now; or, of one that only the page has, the server knew none when it was asked.
        else if (!this.known.has(row) || turn === this.turn) this.refuse(key);
        // What was asked before it changed, or may have changed, is asked again.
        if (runs && (turn < this.doubted || (turn < this.turn && uncertain.has(row)))) this.old.add(key);
        else this.old.delete(key);
        if (runs && uncertain.has(row)) this.uncertain.add(key);
        else this.uncertain.delete(key);
      }
    } catch (error) {
      for (const row of some) {
        if (turn >= (this.dropped.get(row) ?? 0)) this.refuse(`${row} ${shift} ${tile}`);
      }
      this.failed(error);
    }
  }

  /** A tile is not asked again. @param {string} key */
  refuse(key) {
    if (this.refused.size >= REFUSED) {
      // Half of them at once: each walk passes what was deleted before.
      for (const first of this.refused) {
        if (this.refused.size <= REFUSED / 2) break;
        this.refused.delete(first);
      }
    }
    this.refused.add(key);
  }

  /** Tiles that were not certain are asked again; until they come, they are drawn as they are. */
  expire() {
    this.turn++;
    for (const key of this.uncertain) this.old.add(key);
  }

  /** Those of a row that were not certain are asked again. @param {number} row */
  again(row) {
    this.turn++;
    for (const key of this.uncertain) if (key.startsWith(`${row} `)) this.old.add(key);
    for (const key of this.refused) if (key.startsWith(`${row} `)) this.refused.delete(key);
  }

  /** Nothing that is kept of a row is of use. @param {number} row */
  drop(row) {
    for (const key of [...this.kept.tiles.keys()]) if (key.startsWith(`${row} `)) this.kept.delete(key);
    this.dropped.set(row, ++this.turn);
  }

  /** All tiles are asked again. */
  forget() {
    this.uncertain = new Set(this.kept.tiles.keys());
    this.expire();
    this.doubted = this.turn;
  }

  /** Rows have other places: nothing that is kept is theirs. */
  clear() {
    for (const kept of [this.kept, this.uncertain, this.old, this.refused]) kept.clear();
    this.expire();
    [this.doubted, this.moved] = [this.turn, this.turn];
  }
}
