// @ts-check
// Two recordings above each other on one time scale: B is moved relative to A, by dragging its line, by a time that
// is typed, or so that what was selected in both begins at the same time.

import { counted, tell } from "./about.js";
import { $, nameOf, notice } from "./opening.js";
import { beginOf, place, sideOf } from "./sides.js";
import { duration } from "./time.js";
import { HEIGHT, each, recording, tree } from "./tracks.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {import("./tracks.js").Node} Node */

/** Tracks of each recording that are unfolded at first: those of both are seen. */
const FEWEST = 6;
/** How long B must not move before the panel shows what is there now, in milliseconds. */
const STILL = 150;

const UNITS = /** @type {const} */ ([["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]);

/** A length of time with its unit, exactly. @param {number} ns */
export function amount(ns) {
  const [unit, size] = UNITS.find(([, size]) => ns >= size) ?? UNITS[3];
  return `${ns / size} ${unit}`;
}

/** The nanoseconds of a text, negative for a time before; null if it is none. @param {string} text */
export function nanoseconds(text) {
  const found = /^([-−+]?)(\d*\.?\d+)\s*(s|ms|µs|μs|us|ns)?(?:\s*(before|after))?$/.exec(text.trim());
  if (!found || (!found[3] && Number(found[2]) !== 0)) return null;
  const unit = (found[3] ?? "ns").replace(/^[μu]s$/, "µs");
  const size = UNITS.find(([name]) => name === unit)?.[1] ?? 1;
  return Math.round(Number(found[2]) * size) * (found[1] === "-" || found[1] === "−" ? -1 : 1) * (found[4] === "before" ? -1 : 1);
}

export class Compare {
  /** @param {Page} page @param {[any, any]} facts of A and B */
  constructor(page, facts) {
    this.page = page;
    this.facts = facts;
    this.names = facts.map(nameOf);
    this.offset = 0;
    this.timer = 0;
    /** Where B is dragged to before the next frame. @type {number | null} */
    this.dragged = null;
    /** The states that were selected last, in the time of their recording. @type {[number | null, number | null]} */
    this.chosen = [null, null];
    this.input = /** @type {HTMLInputElement} */ ($("offset"));
  }

  /** @param {import("./window.js").View} view */
  connect(view) {
    view.length = this.length;
    view.to = view.length;
    view.place = (offset) => this.put(offset);
    document.body.classList.add("compared");
    $("compare").hidden = false;
    document.title = `${this.names.join(", ")} – tracewing`;
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.tell();
      else if (event.key !== "Enter") return;
      else if (!this.typed()) return;
      $("labels").focus();
    });
    this.input.addEventListener("change", () => this.typed());
    $("begins").addEventListener("click", () => this.move(0));
    $("align").addEventListener("click", () => this.align());
    $("within").hidden = false;
    $("within").addEventListener("click", () => {
      const { search } = this.page;
      const { text } = search;
      search.within(search.side ? 0 : 1);
      void search.start(text, text !== "");
    });
    $("more").textContent = "Drag over the time axis to compare what both did in that time. Drag the line B to move B, or type a time above; ";
    this.tell();
  }

  /** What the recordings are, in a line. */
  about() {
    $("name").textContent = "Two recordings";
    $("name").title = this.facts.map(({ name }) => name).join("\n");
    $("about").textContent = "";
    for (const [side, facts] of this.facts.entries()) {
      const { length, name, is_cut_off } = facts;
      const place = $(side ? "second" : "first");
      const first = [this.names[side], duration(length), ...counted(facts, this.page.fillings.get(side))];
      tell(place, [first, is_cut_off ? ["a part could not be read"] : []], facts, () => this.page.panels.missing(side));
      place.title = name;
    }
  }

  /** Which recording an area is of that has nothing in its time; null if it has some. @param {{from: number, to: number, rows: number[] | null}} area @returns {number | null} */
  outside({ from, to, rows }) {
    if (!rows?.length) return null;
    const side = sideOf(rows[0]);
    if (rows.some((row) => sideOf(row) !== side)) return null;
    return to <= beginOf(side) || from >= beginOf(side) + this.lengths[side] ? side : null;
  }

  /** How long both are, as far as that is known. */
  get lengths() {
    return this.facts.map(({ length }, side) => (this.page.fillings.has(side) ? Infinity : length));
  }

  /** The time of both together. */
  get length() {
    return Math.max(...this.facts.map(({ length }, side) => beginOf(side) + length));
  }

  /** The tracks of both, A's above B's. @param {import("./tracks.js").Row[]} rows @returns {Node[]} */
  tree(rows) {
    const half = Math.floor($("scroll").clientHeight / HEIGHT / 2) - 2;
    return [0, 1].map((side) => {
      const own = rows.filter(({ id }) => sideOf(id) === side);
      const made = recording(`${side ? "B" : "A"}: ${this.names[side]}`, tree(own, Math.max(FEWEST, half)), side);
      [made.begin, made.end] = [beginOf(side), beginOf(side) + this.facts[side].length];
      made.extent = side ? "B: drag to move it" : "A";
      return made;
    });
  }

  /** Moves B so that it begins this much after A, in nanoseconds. @param {number} offset */
  move(offset) {
    const { page, offset: before } = this;
    const { view } = page;
    const [wasAll, begin] = [view.from === 0 && view.to === view.length, beginOf(0)];
    const [from, to] = [view.from - begin, view.to - begin];
    this.put(offset);
    if (this.offset === before) return;
    // A stays where it is.
    if (wasAll) view.set(0, view.length);
    else view.set(from + beginOf(0), to + beginOf(0));
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.settle(), STILL);
  }

  /** Moves B once before the next frame, however often the pointer moves until then. @param {number} offset */
  drag(offset) {
    if (this.dragged === null) requestAnimationFrame(() => this.drop());
    this.dragged = offset;
  }

  /** B is where it was dragged to. */
  drop() {
    if (this.dragged !== null) this.move(this.dragged);
    this.dragged = null;
  }

  /** Moves B, and what is known of both; the view stays. @param {number} offset */
  put(offset) {
    const [a, b] = this.facts.map(({ length }) => length);
    const wanted = Math.round(Math.max(-b, Math.min(a, offset)));
    const { page } = this;
    const before = [beginOf(0), beginOf(1)];
    place(wanted);
    this.offset = page.view.offset = wanted;
    page.view.length = this.length;
    const by = before.map((begin, side) => beginOf(side) - begin);
    this.tell();
    if (by[0] === 0 && by[1] === 0) return;
    const shift = (/** @type {{begin: number, end: number}} */ one, /** @type {number} */ side) => {
      [one.begin, one.end] = [one.begin + by[side], one.end + by[side]];
    };
    for (const row of page.rows.values()) shift(row, sideOf(row.id));
    // Headings are of all time.
    each(page.roots, (node) => node.kind !== "heading" && shift(node, node.side));
    const { view, picture } = page;
    page.losses.moved(by);
    const ofArea = by[view.area?.rows?.every((row) => sideOf(row) === 1) ? 1 : 0];
    if (view.area) view.area = { ...view.area, from: view.area.from + ofArea, to: view.area.to + ofArea };
    if (view.state) view.state = { ...view.state, time: view.state.time + by[sideOf(view.state.row)] };
    if (view.event) view.event = { ...view.event, at: view.event.at + by[view.event.side] };
    if (view.why) view.why = { ...view.why, from: view.why.from + by[sideOf(view.why.row)], to: view.why.to + by[sideOf(view.why.row)] };
    [page.found, page.path, page.pointed, page.picture.spansOf] = [null, null, null, ""];
    picture.spans.clear();
    page.search.shifted();
    page.marks.shifted();
    page.fold();
  }

  /** The panel shows something since B was moved last: it is where B is now. */
  opened() {
    clearTimeout(this.timer);
  }

  /** The panel shows what is there now. */
  settle() {
    const { page } = this;
    const { state, event, area, why } = page.view;
    if (page.isWriting()) return page.view.keep();
    if (state || event || area || why) page.restored();
    else page.again?.();
    page.view.keep();
  }

  /** A state has been selected. @param {number} row @param {number} time */
  selected(row, time) {
    const side = sideOf(row);
    this.chosen[side] = time - beginOf(side);
    this.tell();
  }

  /** Aligns what was selected in both; false if nothing is in one of them. */
  align() {
    const [a, b] = this.chosen;
    if (a === null || b === null) return false;
    this.move(a - b);
    return true;
  }

  /** Moves B a little. @param {-1 | 1} by */
  step(by) {
    const { view } = this.page;
    this.move(this.offset + by * Math.max(1, (view.to - view.from) / 100));
  }

  /** What is typed moves B; whether it is a time. */
  typed() {
    const found = nanoseconds(this.input.value);
    this.input.setAttribute("aria-invalid", String(found === null));
    if (found === null) {
      notice(new Error(`“${this.input.value}” is no time: give a number and its unit, such as 1.5 ms after or 20 µs before.`));
      return false;
    }
    this.move(found);
    this.tell();
    return true;
  }

  /** Shows how B is placed. */
  tell() {
    this.input.value = `${amount(Math.abs(this.offset))} ${this.offset < 0 ? "before" : "after"}`;
    this.input.setAttribute("aria-invalid", "false");
    const [a, b] = this.chosen;
    /** @type {HTMLButtonElement} */ ($("align")).disabled = a === null || b === null;
    $("aligned").textContent = a === null && b === null ? "" : a === null ? "now select one in A" : b === null ? "now select one in B" : "";
  }
}
