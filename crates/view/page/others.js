// @ts-check
// Tracks that only the server has, of a recording with very many: those that the filter finds, that an answer names,
// or that a link has. The page gets them with all their parts, and with what they belong to.

import { ask, naming } from "./api.js";
import { parsed } from "./filter.js";
import { $ } from "./opening.js";
import { ALL_CPUS, SECOND, isSeries, sideOf } from "./sides.js";

/** What the filter of tracks takes. */
const FILTERS = "A name or number; or as in the command line: --process shop --task 'work/*', --tid 4711,4712, --cpu 0,2-3";
/** Rows of a question. */
const MOST = 1000;

/** @typedef {import("./tracks.js").Row} Row */
/**
 * What is known of the tracks that the filter hides: of each recording, how many there are, if the server has said it;
 * whether more may be hidden; and how many match that the page does not have.
 * @typedef {{hidden: (number | undefined)[], isLeast: boolean, more: number}} Hidden
 */

export class Others {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** Those that the page has got. @type {Set<number>} */
    this.got = new Set();
    this.searched = 0;
    /** What the server said of the filter. @type {{text: string, hidden: (number | undefined)[], more: number} | null} */
    this.answer = null;
    /** Ends when the page has what a link names. @type {Promise<void>} */
    this.learned = Promise.resolve();
    naming.learn = (rows) => this.learn(rows);
  }

  /** Recordings of which the server has more. */
  get sides() {
    return this.page.leftOut.flatMap((count, side) => (count > 0 ? [side] : []));
  }

  /** @returns {Hidden | null} */
  get hidden() {
    if (this.sides.length === 0) return null;
    const { answer } = this;
    const isOfThis = answer?.text === this.page.view.filter.trim();
    return { hidden: isOfThis && answer ? answer.hidden : [], isLeast: !isOfThis, more: isOfThis && answer ? answer.more : 0 };
  }

  /** The page gets these rows. @param {Row[]} rows @returns {boolean} whether any is new */
  add(rows) {
    const more = rows.filter(({ id }) => !this.page.rows.has(id));
    for (const row of more) {
      this.page.rows.set(row.id, row);
      this.got.add(row.id);
    }
    return more.length > 0;
  }

  /** Of some rows, those that the page does not have and the server may have. @param {(number | null | undefined)[]} rows */
  missing(rows) {
    const { sides } = this;
    const isMissing = (/** @type {number | null | undefined} */ row) => row != null && sides.includes(sideOf(row)) && row % SECOND !== ALL_CPUS && !isSeries(row) && !this.page.rows.has(row);
    return /** @type {number[]} */ ([...new Set(rows)].filter(isMissing));
  }

  /** Rows get names; tracks only if they are chosen. @param {(number | null | undefined)[]} rows */
  async learn(rows) {
    const missing = this.missing(rows);
    for (let at = 0; at < missing.length; at += MOST) {
      const some = missing.slice(at, at + MOST);
      for (const side of this.sides) {
        const own = some.filter((row) => sideOf(row) === side);
        if (own.length === 0) continue;
        // Without names, what is shown has numbers.
        const answer = await ask("named", { rows: own, side }).catch(() => null);
        if (answer) this.add(answer.rows);
      }
    }
  }

  /** The row of a thread's number at a time. @param {string} tid @param {number} time @param {number} side @returns {Promise<number | undefined>} */
  async threadAt(tid, time, side) {
    const { page } = this;
    const row = page.rows.get(page.threadAt(tid, time, side) ?? -1);
    if ((row && row.begin <= time && time <= row.end) || !this.sides.includes(side)) return row?.id;
    const answer = await ask("named", { threads: [Number(tid)], side }).catch((error) => page.lost(error));
    if (answer) this.add(answer.rows);
    return page.threadAt(tid, time, side);
  }

  /** The server looks for the filter's text among its tracks. */
  async search() {
    const { page } = this;
    const text = page.view.filter.trim();
    const { wrong } = parsed(text);
    $("filter").setAttribute("aria-invalid", String(wrong !== null));
    $("filter").title = wrong ?? FILTERS;
    const [{ sides }, turn] = [this, ++this.searched];
    if (sides.length === 0 || text === "" || wrong) return;
    const answers = await Promise.all(sides.map((side) => ask("search", { text, side }))).catch((error) => page.lost(error));
    if (turn !== this.searched || !answers) return;
    /** @type {(number | undefined)[]} */
    const hidden = [];
    for (const [at, side] of sides.entries()) hidden[side] = answers[at].hidden;
    this.answer = { text, hidden, more: answers.reduce((sum, { left_out }) => sum + left_out, 0) };
    if (this.add(answers.flatMap(({ rows }) => rows))) page.grow();
    else page.fold();
  }

  /**
   * All tracks of a recording were read again: what else the page needs stays. A number that is another row's now is
   * of no use any more.
   * @param {number} side @param {Row[]} rows the tracks @returns {Promise<Row[]>} the others
   */
  async again(side, rows) {
    const { page } = this;
    const has = new Set(rows.map(({ id }) => id));
    const used = [...page.view.marked, page.chosen?.id, ...this.got];
    const needed = [...new Set(used)].filter((row) => row != null && sideOf(row) === side && !has.has(row) && page.rows.has(row) && !isSeries(row));
    const found = [];
    for (let at = 0; at < needed.length; at += MOST) found.push(...(await ask("named", { rows: needed.slice(at, at + MOST), side })).rows);
    const isSame = (/** @type {Row} */ row) => {
      const known = page.rows.get(row.id);
      return !known || (known.kind === row.kind && known.number === row.number);
    };
    // Meanwhile, the page may have got further ones.
    const late = [...this.got].filter((row) => sideOf(row) === side && !needed.includes(row) && !has.has(row));
    for (const row of late) found.push(...(page.rows.has(row) ? [page.rows.get(row)] : []));
    /** @type {Row[]} */
    const others = found.filter((row) => !has.has(row.id) && isSame(row));
    this.got = new Set([...[...this.got].filter((row) => sideOf(row) !== side), ...others.map(({ id }) => id)]);
    return others;
  }
}
