// @ts-check
// The list of events around a state, in the words of `tracewing list`: those within it, some before and some
// after it, and further ones on demand. A click shows all fields of one.

import { ask } from "./api.js";
import { pick } from "./kin.js";
import { element, link } from "./selection.js";
import { isCounter } from "./series.js";
import { sideOf } from "./sides.js";
import { duration, exact } from "./time.js";

/** @typedef {{at: number | null, cpu: string | null, tid: string | null, name: string, source: string | null, text: string, fields: [string, string][]}} Event */

/** Most events within the state at first, around it, and more on each demand. */
const [WITHIN, AROUND, MORE] = [200, 8, 100];
/** Most events that a question may ask for. */
const MOST = 500;
/** Contexts of which columns have everything, or flags of the CPU. */
const COLUMNS = /^\{ cpu_id = \d+ \}, (\{ (flags = 0x[\dA-F]+, )?tid = -?\d+ \}, )?/;
/** A time after all others. */
const EVER = Number.MAX_SAFE_INTEGER;

export class Events {
  /**
   * @param {HTMLElement} place @param {{from: number, to: number}} span @param {import("./tracks.js").Row | undefined} track
   * @param {import("./selection.js").Ways} ways @param {import("./kin.js").Picked | null} [picked] the event whose fields are shown
   */
  constructor(place, span, track, ways, picked = null) {
    this.place = place;
    /** What scrolls. */
    this.scroller = place.closest(".events") ?? place;
    this.span = span;
    this.ways = ways;
    this.picked = picked;
    /** Of which recording. */
    this.side = track ? sideOf(track.id) : (ways.side ?? 0);
    /** Of a CPU's state, only its events. */
    this.cpu = track?.kind === "cpu" ? Number(track.number) : null;
    this.tid = track?.kind === "thread" ? track.number : null;
    /** @type {Event[]} */
    this.list = [];
    /** Those whose fields are shown. @type {Set<Event>} */
    this.opened = new Set();
    this.isOwn = false;
    this.title = element("h2", "Events around it");
    this.note = element("small", "reading …");
    this.body = element("tbody");
    this.earlier = this.button("Earlier events", () => this.before(MORE));
    this.later = this.button("Later events", () => this.after(MORE));
    // What comes between them does not move them.
    this.earlier.hidden = this.later.hidden = true;
  }

  /** @param {string} text @param {() => Promise<void>} act */
  button(text, act) {
    const button = /** @type {HTMLButtonElement} */ (element("button", text, "more"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      await act().catch((error) => this.warn(String(error.message)));
      button.disabled = false;
    });
    return button;
  }

  async show() {
    this.title.append(this.note);
    if (this.tid !== null) this.title.append(this.choice());
    const table = element("table", undefined, "listing");
    table.setAttribute("aria-label", "Events");
    table.append(this.body);
    this.place.replaceChildren(this.title, this.earlier, table, this.later);
    try {
      const { from, to } = this.span;
      const answer = await this.ask({ from, to, most: WITHIN });
      this.list = answer.events;
      const own = this.picked && pick(this.list, this.picked);
      if (own) this.open(own);
      const count = answer.is_cut ? `the first ${answer.events.length}` : String(answer.events.length);
      const whose = this.cpu === null ? "of all threads" : "of this CPU";
      this.note.textContent = `${count} within it, ${whose}`;
      if (from > 0) await this.before(AROUND);
      if (!answer.is_cut) await this.after(AROUND);
      else this.later.hidden = false;
      this.fill();
      this.scroll();
      return;
    } catch (error) {
      this.note.textContent = "";
      this.warn(String(/** @type {Error} */ (error).message));
    }
    this.fill();
  }

  /** Shows the first event of the state below some before it. */
  scroll() {
    const first = /** @type {HTMLElement | null} */ (this.body.querySelector(".within"));
    if (first) this.scroller.scrollTop += first.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - 90;
  }

  /** Whether only events of the thread are shown. */
  choice() {
    const [label, box] = [element("label", undefined, "own"), /** @type {HTMLInputElement} */ (element("input"))];
    box.type = "checkbox";
    box.addEventListener("change", () => {
      this.isOwn = box.checked;
      this.fill();
    });
    label.append(box, "only this thread's");
    return label;
  }

  /** @param {{from: number, to: number, most: number, last?: boolean}} asked */
  async ask(asked) {
    const { cpu, side } = this;
    const answer = await ask("events", cpu === null ? { ...asked, side } : { ...asked, side, buffer: cpu });
    for (const warning of answer.warnings) this.warn(warning);
    return answer;
  }

  /** Shows all fields of an event. @param {Event} event */
  open(event) {
    this.opened.add(event);
    this.ways.opened(this, event);
  }

  /** How many events with the name and the time of one come before it. @param {Event} event @returns {Promise<number>} */
  async among(event) {
    const { picked, side } = this;
    if (picked && picked.tid === null && pick(this.list, picked) === event) return picked.nth;
    const at = event.at ?? 0;
    const { events } = await ask("events", { from: at, to: at, most: MOST, side });
    const own = JSON.stringify(event);
    // Of those that are the same in everything, as many are before it as in the list.
    const same = this.list.filter((one) => JSON.stringify(one) === own).indexOf(event);
    const named = events.filter((/** @type {Event} */ { name }) => name === event.name);
    const places = named.flatMap((/** @type {Event} */ one, /** @type {number} */ place) => (JSON.stringify(one) === own ? [place] : []));
    return places[same] ?? 0;
  }

  /** Adds events before those that are there. @param {number} most */
  async before(most) {
    const to = this.list[0]?.at ?? this.span.from;
    // Those of the same time that are there come again.
    const known = this.list.filter(({ at }) => at === to).length;
    const { events, is_cut } = await this.ask({ from: 0, to, most: Math.min(MOST, most + known), last: true });
    this.list.unshift(...events.slice(0, events.length - known));
    this.earlier.hidden = !is_cut;
    const { scrollHeight } = this.scroller;
    this.fill();
    this.scroller.scrollTop += this.scroller.scrollHeight - scrollHeight;
  }

  /** @param {number} most */
  async after(most) {
    const from = this.list.at(-1)?.at ?? this.span.to;
    const known = this.list.filter(({ at }) => at === from).length;
    const { events, is_cut } = await this.ask({ from, to: EVER, most: Math.min(MOST, most + known) });
    this.list.push(...events.slice(known));
    this.later.hidden = !is_cut;
    this.fill();
  }

  fill() {
    const shown = this.isOwn ? this.list.filter((event) => this.isOf(event)) : this.list;
    this.body.replaceChildren(...shown.flatMap((event) => this.lines(event)));
    if (shown.length === 0) this.body.append(element("tr", "No events."));
  }

  /** Whether an event is one of the thread, or names it. @param {Event} event */
  isOf({ tid, fields }) {
    return tid === this.tid || fields.some(([path, value]) => value === this.tid && /tid$/.test(path));
  }

  /** The line of an event, and its fields if they are shown. @param {Event} event */
  lines(event) {
    return this.opened.has(event) ? [this.line(event), this.fields(event)] : [this.line(event)];
  }

  /** @param {Event} event */
  line(event) {
    const line = element("tr");
    const isWithin = event.at !== null && event.at >= this.span.from && event.at <= this.span.to;
    line.className = `${isWithin ? "within" : "around"}${this.tid !== null && this.isOf(event) ? " own" : ""}`;
    const time = element("td", event.at === null ? "" : offset(event.at - this.span.from), "time");
    if (event.at !== null) [time.title, line.dataset.at] = [exact(event.at), String(event.at)];
    const name = element("button", event.name, "link");
    const what = element("td", undefined, "what");
    what.append(name, ` ${event.text.replace(COLUMNS, "")}`);
    line.append(time, element("td", event.cpu ?? "", "cpu"), element("td", event.tid ?? "", "tid"), what);
    name.addEventListener("click", () => this.toggle(line, event));
    line.addEventListener("pointerenter", () => this.ways.point(event.at));
    line.addEventListener("pointerleave", () => this.ways.point(null));
    return line;
  }

  /** Shows or hides all fields of an event. @param {HTMLElement} line @param {Event} event */
  toggle(line, event) {
    if (this.opened.delete(event)) line.nextElementSibling?.remove();
    else {
      this.open(event);
      line.after(this.fields(event));
    }
  }

  /** Buttons to the previous and the next event of this name. @param {Event} event */
  steps(event) {
    const [made, status] = [element("div", undefined, "steps"), element("output")];
    const button = (/** @type {-1 | 1} */ step) => {
      const what = `${step < 0 ? "Previous" : "Next"} event ${event.name}, of any thread`;
      const button = element("button", step < 0 ? "◂" : "▸");
      button.title = what;
      button.setAttribute("aria-label", what);
      button.addEventListener("click", () => this.ways.kin(this, event, step, status));
      return button;
    };
    made.append(button(-1), element("span", event.name), button(1), status);
    return made;
  }

  /** All fields of an event: numbers can become counters. @param {Event} event */
  fields(event) {
    const { at, name, source, fields } = event;
    const list = element("dl");
    if (at !== null) list.append(element("dt", "time"), element("dd", exact(at)));
    if (source !== null) {
      const shown = element("dd", source);
      shown.title = "Where the program's source declares the event";
      shown.dataset.source = source;
      list.append(element("dt", "source"), shown);
    }
    for (const [path, value] of fields) {
      const shown = element("dd", value);
      if (isCounter(path, value)) {
        const counter = link("as a counter", () => this.ways.counter({ event: name, field: path, side: this.side }), `A track of ${path} of all events ${name}`);
        counter.classList.add("counter");
        shown.append(" ", counter);
      }
      list.append(element("dt", path), shown);
    }
    const [line, cell] = [element("tr", undefined, "fields"), element("td")];
    cell.setAttribute("colspan", "4");
    cell.append(...(at === null ? [] : [this.steps(event)]), list);
    line.append(cell);
    return line;
  }

  /** @param {string} text */
  warn(text) {
    this.title.after(element("div", text, "lost"));
  }
}

/** A time after the state's begin, or before it. @param {number} ns */
function offset(ns) {
  return ns < 0 ? `−${duration(-ns)}` : `+${duration(ns)}`;
}
