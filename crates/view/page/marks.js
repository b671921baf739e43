// @ts-check
// Events of chosen names: each name has a colour, its events are marked in the tracks of their threads, processes
// and CPUs, and counted in what is seen. The server looks for them; meanwhile what it has found is shown.

import { ask } from "./api.js";
import { chooseMarks, chosenColor } from "./classes.js";
import { $ } from "./opening.js";
import { element, link } from "./selection.js";
import { beginOf, bySide } from "./sides.js";
import { HEIGHT } from "./tracks.js";

/** Names that are chosen at most: each has a colour of its own. */
export const MOST = 6;
/** How often the server is asked while it looks, in milliseconds, and how long nothing must move before. */
const [AGAIN, STILL] = [250, 40];
/** Rows of a question, and parts of the time: marks are two pixels wide. */
const [ROWS, PARTS] = [256, 2048];

/** How high a mark is at most, in pixels: states are seen below it. */
const TALLEST = 8;

/** Of a row, by name: runs of parts of the time that have any. @typedef {[number, [number, number][]][]} Runs */
/** From, to, and into how many parts it is divided. @typedef {{from: number, to: number, count: number}} Window */
/** @typedef {{is_done: boolean, failure: string | null, until: number, names: {count: number, marked: number, within: number}[], rows: Record<string, Runs>, of: Window}} Answer */

export class Marks {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** @type {string[]} */
    this.names = [];
    /** Numbers of the choice in the server, by recording. @type {number[]} */
    this.numbers = [];
    /** How often names were chosen: answers to earlier questions are of no use. */
    this.turn = 0;
    /** @type {Answer[]} */
    this.answers = [];
    [this.timer, this.stillTimer] = [0, 0];
    /** What was asked last. @type {string} */
    this.asked = "";
    this.bar = $("counts");
    this.input = /** @type {HTMLInputElement} */ ($("name-of-events"));
    this.hasNames = false;
    this.input.addEventListener("keydown", (event) => this.typed(event));
    this.input.addEventListener("change", () => this.chosen());
    $("no-counts").addEventListener("click", () => this.close());
  }

  /** Shows where names are chosen. */
  async open() {
    this.bar.hidden = false;
    this.page.redraw();
    this.input.focus();
    if (this.hasNames) return;
    this.hasNames = true;
    try {
      const sides = this.page.compare ? [0, 1] : [0];
      const answers = await Promise.all(sides.map((side) => ask("names", { side })));
      const names = [...new Set(answers.flatMap(({ names }) => names))].sort();
      $("names-of-events").replaceChildren(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
      this.known = new Set(names);
    } catch (error) {
      this.hasNames = false;
      this.page.lost(error);
    }
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    if (event.key === "Escape") $("labels").focus();
    else if (event.key === "Enter") this.chosen();
    else return;
    event.preventDefault();
  }

  /** What is typed is chosen, if it is a name. */
  chosen() {
    const name = this.input.value.trim();
    if (name === "") return;
    if (this.known && !this.known.has(name)) {
      if (!this.input.hasAttribute("aria-invalid")) this.page.lost(new Error(`The recording has no events with the name “${name}”. The names are those of tracewing list.`));
      this.input.setAttribute("aria-invalid", "true");
      return;
    }
    this.input.removeAttribute("aria-invalid");
    this.input.value = "";
    if (!this.names.includes(name)) this.toggle(name);
  }

  /** Chooses a name, or no longer. @param {string} name */
  toggle(name) {
    const names = this.names.includes(name) ? this.names.filter((one) => one !== name) : [...this.names, name];
    if (names.length > MOST) return this.page.lost(new Error(`At most ${MOST} names can be marked at a time.`));
    void this.choose(names);
    this.page.view.step(() => (this.page.view.counted = names));
  }

  /** No name is chosen. */
  close() {
    this.bar.hidden = true;
    if (this.names.length > 0) this.page.view.step(() => (this.page.view.counted = []));
    void this.choose([]);
    $("labels").focus();
  }

  /** @param {string[]} names */
  async choose(names) {
    const turn = ++this.turn;
    this.end();
    this.names = names;
    this.answers = [];
    this.asked = "";
    chooseMarks(names);
    if (names.length > 0) this.bar.hidden = false;
    this.tell();
    this.page.redraw();
    if (names.length === 0) return;
    try {
      const sides = this.page.compare ? [0, 1] : [0];
      const started = await Promise.all(sides.map((side) => ask("mark", { names, side })));
      const numbers = started.map(({ marks }) => marks);
      if (turn !== this.turn) return unmark(numbers);
      this.numbers = numbers;
      await this.look();
    } catch (error) {
      if (turn === this.turn) this.page.lost(error);
    }
  }

  /** Ends it in the server. */
  end() {
    clearTimeout(this.timer);
    unmark(this.numbers);
    this.numbers = [];
  }

  /** Looks for them again: rows have other numbers, or there are more events. */
  again() {
    if (this.names.length > 0) void this.choose(this.names);
  }

  /** Asks how far it is, until it is done. */
  async look() {
    clearTimeout(this.timer);
    const { turn } = this;
    this.asked = "";
    await this.ask();
    const isDone = this.answers.length > 0 && this.answers.every((answer) => answer.is_done);
    if (turn === this.turn && !isDone) this.timer = window.setTimeout(() => void this.look(), AGAIN);
  }

  /** The view has changed. */
  moved() {
    if (this.numbers.length === 0) return;
    clearTimeout(this.stillTimer);
    this.stillTimer = window.setTimeout(() => void this.ask(), STILL);
  }

  /** A recording was moved: its events are elsewhere. */
  shifted() {
    [this.answers, this.asked] = [[], ""];
    this.moved();
  }

  /** Asks where they are in what is seen. */
  async ask() {
    const { page, turn, numbers } = this;
    const { view } = page;
    if (numbers.length === 0) return;
    const [from, to] = [Math.floor(view.from), Math.ceil(view.to)];
    const count = Math.max(50, Math.min(PARTS, (innerWidth - 270) >> 1));
    const rows = [...new Set(page.layout.seen().flatMap(({ track }) => (track.id === null ? [] : [track.id])))].slice(0, ROWS);
    const key = JSON.stringify([from, to, count, rows]);
    if (key === this.asked) return;
    this.asked = key;
    const each = bySide(rows);
    try {
      const answers = await Promise.all(numbers.map(async (marks, side) => {
        // What is before a recording has no time in it.
        const begin = beginOf(side);
        if (to <= begin) {
          const of = { from: begin, to: begin + 1, count: 1 };
          const answer = await ask("marked", { marks, ...of, rows: [], side });
          return { ...answer, names: answer.names.map((/** @type {any} */ name) => ({ ...name, within: 0 })), of };
        }
        const of = { from: Math.max(from, begin), to, count };
        return { ...await ask("marked", { marks, ...of, rows: each[side], side }), of };
      }));
      if (turn !== this.turn || this.asked !== key) return;
      this.answers = answers;
    } catch (error) {
      if (turn !== this.turn) return;
      // The server keeps few, and none when it is started again.
      if (/not kept/.test(String(/** @type {Error} */ (error).message))) return this.again();
      page.lost(error);
    }
    this.tell();
    page.redraw();
  }

  /** What is marked of a row: the number of the name, and where, as parts of what is seen. @param {number} row @returns {[number, number, number][]} */
  runs(row) {
    const { view } = this.page;
    const place = (/** @type {Window} */ { from, to, count }, /** @type {number} */ part) => (from + (part / count) * (to - from) - view.from) / (view.to - view.from);
    return this.answers.flatMap(({ rows, of }) => (rows[row] ?? []).flatMap(([name, runs]) =>
      runs.map(([first, length]) => /** @type {[number, number, number]} */ ([name, place(of, first), place(of, first + length)]))));
  }

  /** Where the marks of a name are in a track: top and height. @param {number} name */
  slot(name) {
    const high = Math.max(3, Math.min(TALLEST, Math.floor((HEIGHT - 2) / this.names.length)));
    return [1 + Math.min(name * high, HEIGHT - 2 - high), high];
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Layout} layout @param {number} width */
  draw(context, layout, width) {
    if (this.names.length === 0) return;
    for (const { track, y } of layout.seen()) {
      if (track.id === null) continue;
      for (const [name, left, right] of this.runs(track.id)) {
        const [top, high] = this.slot(name);
        context.fillStyle = chosenColor(name);
        context.fillRect(Math.round(left * width), y + top, Math.max(2, Math.round((right - left) * width)), high);
      }
    }
  }

  /** Says how many there are. */
  tell() {
    // There will be more events of a recording that is still made.
    const isDone = this.answers.length > 0 && this.answers.every((answer) => answer.is_done) && !this.page.live?.isLive;
    const failure = this.answers.find((answer) => answer.failure)?.failure;
    $("counted").replaceChildren(...this.names.map((name, at) => {
      const item = element("li");
      const sample = element("i");
      sample.style.background = chosenColor(at);
      const sum = (/** @type {"count" | "marked" | "within"} */ what) => this.answers.reduce((sum, { names }) => sum + (names[at]?.[what] ?? 0), 0);
      const number = (/** @type {number} */ value) => value.toLocaleString("en");
      const [count, marked, within] = [sum("count"), sum("marked"), sum("within")];
      const text = this.answers.length === 0 ? "…" : `${marked < count ? "≥ " : ""}${number(within)} of ${number(count)}${isDone ? "" : " so far"}`;
      const told = element("output", text);
      told.title = marked < count ? `The first ${number(marked)} are marked and counted in the visible part` : "In the visible part, and in the whole recording";
      if (failure) [told.className, told.title] = ["lost", failure];
      const search = link(name, () => void this.page.search.start(`where $event == ${quoted(name)}`, true), "Go to its events: J and K lead to the next and the previous one");
      const remove = element("button", "×");
      remove.setAttribute("aria-label", `Do not mark ${name}`);
      remove.addEventListener("click", () => this.toggle(name));
      item.append(sample, search, told, remove);
      return item;
    }));
  }
}

/** Ends choices in the server, by recording. @param {number[]} numbers */
function unmark(numbers) {
  for (const [side, marks] of numbers.entries()) ask("unmark", { marks, side }).catch(() => {});
}

/** A name in a condition. @param {string} name */
function quoted(name) {
  return `"${name.replace(/["\\]|[^ -~]/gu, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)}"`;
}
