// @ts-check
// Search among events: it runs in the server; meanwhile its matches are counted, marked on the axis, and
// visited one by one.

import { ask } from "./api.js";
import { Events } from "./events.js";
import { element, head } from "./selection.js";
import { beginOf } from "./sides.js";
import { exact } from "./time.js";

/** How often a search that runs is asked how far it is, in milliseconds. */
const AGAIN = 200;
/** How long nothing must move before marks are asked, in milliseconds. */
const STILL = 40;

/** Where matches are: in which part of the time, and how many. @typedef {{from: number, to: number, count: number, parts: [number, number][]}} Marks */

/**
 * What the page does for a search.
 * @typedef {object} Page
 * @property {import("./window.js").View} view
 * @property {() => void} redraw
 * @property {(error: unknown) => void} lost
 * @property {(number: number, at: number) => void} show a match
 * @property {{facts: any[]} | null} compare
 * @property {number} asked how often something was to be shown
 * @property {() => boolean} isWriting whether the panel has a note that is being written
 */

export class Search {
  /** @param {Page} page @param {HTMLInputElement} input @param {HTMLElement} status @param {HTMLButtonElement[]} buttons previous, next, end */
  constructor(page, input, status, buttons) {
    this.page = page;
    this.input = input;
    this.status = status;
    this.buttons = buttons;
    /** Its number in the server. @type {number | null} */
    this.number = null;
    /** Whether its first match is shown. */
    this.goes = false;
    /** What was to be shown when it was started: if it is something else now, its first match is not shown. */
    this.since = 0;
    /** How often one was started or ended: an answer to an earlier one is of no use. */
    this.turn = 0;
    /** Which one's failure was shown. */
    this.failed = -1;
    this.text = "";
    /** Which of two recordings is searched. */
    this.side = 0;
    /** @type {any} */
    this.state = null;
    /** The match that is shown: its number. @type {number | null} */
    this.at = null;
    /** @type {Marks} */
    this.seen = { from: 0, to: 1, count: 1, parts: [] };
    this.key = "";
    [this.timer, this.stillTimer] = [0, 0];
    input.addEventListener("keydown", (event) => this.typed(event));
    const [previous, next, end] = buttons;
    previous.addEventListener("click", () => void this.step(-1));
    next.addEventListener("click", () => void this.step(1));
    end.addEventListener("click", () => this.end());
    this.tell();
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.key === "Escape") {
      this.input.blur();
      if (this.text) this.end();
    } else if (event.key === "Enter") {
      const text = this.input.value.trim();
      if (text === this.text) void this.step(event.shiftKey ? -1 : 1);
      else void this.start(text, true);
    } else return;
    event.preventDefault();
  }

  /** @param {string} text @param {boolean} goes whether the first match is shown */
  async start(text, goes) {
    this.forget();
    [this.text, this.input.value, this.page.view.find] = [text, text, text];
    this.page.view.tell();
    if (text === "") return this.tell();
    const { turn, side } = this;
    this.since = this.page.asked;
    try {
      const { search } = await ask("find", { text, side });
      if (turn !== this.turn) {
        end(search, side);
        return;
      }
      [this.number, this.goes] = [search, goes];
      await this.look();
    } catch (error) {
      if (turn !== this.turn) return;
      // What was typed stays, to be mended; it is no search that the link has.
      [this.text, this.page.view.find] = ["", ""];
      this.page.view.tell();
      this.page.lost(error);
    }
  }

  /** Asks how far it is, until it is done. */
  async look() {
    clearTimeout(this.timer);
    const { number } = this;
    if (number === null) return;
    await this.marks(true);
    if (this.number !== number) return;
    if (this.goes && this.state?.marked > 0) {
      this.goes = false;
      if (this.since === this.page.asked) await this.step(1, true);
    }
    if (!this.state?.is_done) this.timer = window.setTimeout(() => void this.look(), AGAIN);
  }

  /** Asks where matches are in what is seen. @param {boolean} [again] even if that is known */
  async marks(again = false) {
    const { number, side, page: { view } } = this;
    if (number === null) return;
    // Before a recording begins, it has no time.
    const from = Math.max(Math.floor(view.from), beginOf(side));
    const to = Math.max(from + 1, Math.ceil(view.to));
    const count = Math.max(100, Math.min(4096, innerWidth - 270));
    const key = `${number} ${from} ${to} ${count}`;
    if (key === this.key && !again) return;
    this.key = key;
    const state = await ask("found", { search: number, from, to, count, side }).catch((error) => {
      if (this.number !== number) return;
      // The server keeps few searches, and none when it is started again.
      if (/not kept/.test(String(error.message))) void this.start(this.text, false);
      else this.page.lost(error);
    });
    if (!state || this.number !== number || this.key !== key) return;
    this.state = state;
    this.seen = { from, to, count, parts: state.parts };
    this.tell();
    this.page.redraw();
  }

  /** The view has changed. */
  moved() {
    if (this.number === null) return;
    clearTimeout(this.stillTimer);
    this.stillTimer = window.setTimeout(() => void this.marks(), STILL);
  }

  /**
   * Shows the next match, or the one before; the first time, one that is seen.
   * @param {1 | -1} step @param {boolean} [isOwn] whether the page does it: then a note that is being written stays
   */
  async step(step, isOwn = false) {
    const search = this.number;
    if (search === null) return;
    const { side, page: { view } } = this;
    const turn = this.page.asked;
    const asked = this.at === null
      ? { search, side, time: Math.floor(step === 1 ? view.from : view.to), step }
      : { search, side, number: Math.max(0, this.at + step) };
    let found = null;
    try {
      found = await ask("match", asked);
      // After the last one comes the first.
      if (!found && this.state?.marked) found = await ask("match", { search, side, number: step === 1 ? 0 : this.state.marked - 1 });
    } catch (error) {
      if (search === this.number) this.page.lost(error);
    }
    if (!found || search !== this.number || turn !== this.page.asked || (isOwn && this.page.isWriting())) return;
    this.at = found.number;
    this.tell();
    this.page.show(found.number, found.at);
  }

  /** Shows the match again: its time has changed. */
  async again() {
    const { number, at, side } = this;
    if (number === null || at === null) return;
    const turn = this.page.asked;
    const found = await ask("match", { search: number, side, number: at }).catch((error) => this.page.lost(error));
    if (found && number === this.number && at === this.at && turn === this.page.asked) this.page.show(found.number, found.at);
  }

  /** Searches in this one of two recordings. @param {number} side */
  within(side) {
    this.forget();
    this.text = "";
    this.side = this.page.view.findSide = side;
    /** @type {HTMLElement} */ (document.getElementById("within")).textContent = side ? "in B" : "in A";
  }

  /** A recording was moved: its matches are elsewhere. */
  shifted() {
    this.seen = { from: 0, to: 1, count: 1, parts: [] };
    this.key = "";
    this.moved();
  }

  /** Ends the search and its marks. */
  end() {
    this.forget();
    [this.text, this.input.value, this.page.view.find] = ["", "", ""];
    this.page.view.tell();
    this.tell();
    this.page.redraw();
  }

  forget() {
    clearTimeout(this.timer);
    this.turn++;
    if (this.number !== null) end(this.number, this.side);
    [this.number, this.state, this.at, this.key] = [null, null, null, ""];
    this.seen = { from: 0, to: 1, count: 1, parts: [] };
  }

  /** Says how many there are. */
  tell() {
    for (const button of this.buttons) button.hidden = this.number === null;
    const { state } = this;
    if (!state) {
      this.status.textContent = this.number === null ? "" : "…";
      return;
    }
    const all = state.count.toLocaleString("en");
    const length = this.page.compare?.facts[this.side].length ?? this.page.view.length;
    const done = Math.floor(((state.until - beginOf(this.side)) / Math.max(1, length)) * 100);
    const running = state.is_done ? "" : `, ${done} %`;
    this.status.textContent = `${this.at === null ? all : `${(this.at + 1).toLocaleString("en")} of ${all}`}${running}`;
    const marked = state.marked < state.count ? `; the first ${state.marked.toLocaleString("en")} are marked` : "";
    this.status.title = state.failure ?? `${this.status.textContent}; ${state.within.toLocaleString("en")} in the visible part${marked}`;
    this.status.className = state.failure ? "lost" : "";
    if (!state.failure || this.failed === this.turn) return;
    this.failed = this.turn;
    this.page.lost(new Error(state.failure));
  }
}

/** Ends a search in the server. @param {number} search @param {number} side */
function end(search, side) {
  ask("forget", { search, side }).catch(() => {});
}

/**
 * The panel of a match: the event, among those around it.
 * @param {HTMLElement} place @param {string} title @param {number} at @param {string} text what is searched
 * @param {import("./selection.js").Ways} ways @param {(tid: string) => void} found takes the thread of the match
 * @param {import("./kin.js").Picked | null} [picked] the event, whose fields are shown then
 */
export async function showMatch(place, title, at, text, ways, found, picked = null) {
  const whole = element("div", undefined, "events");
  const inner = element("div");
  whole.append(head(title, exact(at), ways.close), inner);
  place.className = "wide";
  place.replaceChildren(whole);
  const events = new Events(inner, { from: at, to: at }, undefined, ways, picked);
  await events.show();
  if (picked) return;
  // Options are no words, and a condition follows after "where".
  const words = ` ${text}`.toLowerCase().replace(/\s(--)?where\s.*$/s, "").replace(/\s--(user|kernel)(?=\s|$)/g, "")
    .replace(/\s(-e|--[a-z]+)(=\S+|\s+("[^"]*"|'[^']*'|\S+))/g, "").trim().split(/\s+/);
  const match = events.list.find((event) => event.at === at && words.every((word) => `${event.name} ${event.text}`.toLowerCase().includes(word)));
  const tid = match?.tid;
  if (tid != null) found(tid);
}
