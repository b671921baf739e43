// @ts-check
// The user's notes: each has a time, perhaps a track, and a text. They are drawn into the picture, listed, edited,
// and saved to and read from a file. The server keeps them. Their texts are never markup.

import { ask } from "./api.js";
import { ink } from "./classes.js";
import { endJob } from "./job.js";
import { notice } from "./opening.js";
import { element, head } from "./selection.js";
import { beginOf, bySide, sideOf } from "./sides.js";
import { download, table } from "./tables.js";
import { exact } from "./time.js";
import { HEIGHT } from "./tracks.js";

/** Longest text in the picture, in characters, and widest, in pixels. */
const [LONGEST, WIDEST] = [60, 220];
/** Size of a request, and of a file that is read, in bytes: the server takes no longer request. */
const [REQUEST, FILE] = [40_000, 4_000_000];
/** Most notes of a recording, longest text in bytes, and what a track's names are made of: the server keeps no others. */
const [MOST, BYTES, PART] = [1000, 2000, /^[0-9A-Za-z]{0,32}$/];

/** @typedef {{kind: string, number: string, process: string}} Track */
/** `time`: since its recording begins; `side`: which of two recordings it is about. @typedef {{time: number, track: Track | null, text: string, side: number}} Note */

/** When a note is, on the page's scale. @param {Note} note */
const at = ({ time, side }) => time + beginOf(side);

export class Notes {
  /** @param {import("./page.js").Page} page @param {HTMLElement} place the panel */
  constructor(page, place) {
    this.page = page;
    this.place = place;
    /** In the order of time within each recording. @type {Note[][]} */
    this.lists = [[]];
    /** Rows by what notes have of them, and of which rows it was made. @type {Map<string, import("./tracks.js").Row[]>} */
    this.known = new Map();
    this.knownOf = { rows: this.page.rows, size: -1 };
    /** Where the notes are in the picture: left, top, right, bottom. @type {[number, number, number, number, Note][]} */
    this.boxes = [];
  }

  async load() {
    const sides = this.page.compare ? [0, 1] : [0];
    try {
      const answers = await Promise.all(sides.map((side) => ask("notes", { side })));
      answers.forEach(({ notes }, side) => this.keep(notes, side));
    } catch (error) {
      this.page.lost(error);
    }
  }

  /** Takes the notes of a recording. @param {Omit<Note, "side">[]} notes in the order of time @param {number} side */
  keep(notes, side) {
    this.lists[side] = notes.map((note) => ({ ...note, side }));
    this.page.redraw();
  }

  /** All notes. */
  get list() {
    return this.lists.flat();
  }

  /** Adds and removes some; whether that was done. @param {Note[]} add @param {Note[]} remove */
  async change(add, remove) {
    try {
      await this.send(add, remove);
    } catch (error) {
      this.page.lost(error);
      return false;
    }
    return true;
  }

  /** @param {Note[]} add @param {Note[]} remove */
  async send(add, remove) {
    for (const side of this.lists.keys()) {
      const own = (/** @type {Note[]} */ notes) => notes.filter((note) => note.side === side).map(({ time, track, text }) => ({ time, track, text }));
      const change = { add: own(add), remove: own(remove) };
      if (change.add.length + change.remove.length > 0) this.keep((await ask("note", { ...change, side })).notes, side);
    }
  }

  /** The track of a row, by what stays the same in other indexes. @param {number} row @returns {Track | null} */
  track(row) {
    const of = this.page.thread(row);
    if (!of) return null;
    const process = of.parent === null ? "" : (this.page.rows.get(of.parent)?.number ?? "");
    return { kind: of.kind, number: of.number, process };
  }

  /** The row of a note. @param {Note} note @returns {number | null} */
  row({ track, time, side }) {
    if (!track) return null;
    const fit = this.rows().get(JSON.stringify([side, track.kind, track.number, track.process])) ?? [];
    time += beginOf(side);
    return (fit.find(({ begin, end }) => begin <= time && time <= end) ?? fit[0])?.id ?? null;
  }

  /** The rows by what notes have of them; made anew only when there are other rows. */
  rows() {
    const { rows } = this.page;
    if (this.knownOf.rows === rows && this.knownOf.size === rows.size) return this.known;
    this.knownOf = { rows, size: rows.size };
    this.known = new Map();
    for (const row of rows.values()) {
      const process = row.parent === null ? "" : (rows.get(row.parent)?.number ?? "");
      const key = JSON.stringify([sideOf(row.id), row.kind, row.number, process]);
      const same = this.known.get(key);
      if (same) same.push(row);
      else this.known.set(key, [row]);
    }
    return this.known;
  }

  /** The notes between two times of the page: only these are looked at. @param {number} from @param {number} to */
  between(from, to) {
    return this.lists.flatMap((list, side) => {
      const first = after(list, Math.ceil(from) - beginOf(side));
      return list.slice(first, after(list, Math.floor(to) - beginOf(side) + 1, first));
    });
  }

  /**
   * Draws those that are seen: in their tracks, or through the whole picture.
   * @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Layout} layout
   * @param {(time: number) => number} x @param {number} width @param {number} height
   */
  draw(context, layout, x, width, height) {
    this.boxes = [];
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    const { from, to } = this.page.view;
    /** Where the tracks are that are seen. @type {Map<number, number>} */
    const places = new Map();
    for (const { track, y } of layout.seen()) if (track.id !== null) places.set(track.id, y + HEIGHT / 2);
    /** Where the last text of each line ends: none is drawn over another. @type {Map<number, number>} */
    const ends = new Map();
    for (const note of this.between(from, to)) {
      const row = this.row(note);
      const middle = row === null ? null : places.get(row);
      if (middle === undefined) continue;
      const [left, top] = [Math.round(x(at(note))), middle === null ? 2 : middle - HEIGHT / 2 + 2];
      const line = note.text.split("\n", 1)[0];
      const text = line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
      const wide = Math.min(WIDEST, context.measureText(text).width) + 10;
      const isWide = left >= (ends.get(top) ?? 0) && left + wide <= width;
      const right = left + (isWide ? wide : 8);
      context.fillStyle = ink("--note");
      context.fillRect(left, middle === null ? 0 : top, 2, middle === null ? height : HEIGHT - 4);
      context.fillRect(left, top, right - left, isWide ? HEIGHT - 6 : 10);
      if (isWide) {
        context.fillStyle = ink("--note-ink");
        context.save();
        context.beginPath();
        context.rect(left, top, right - left, HEIGHT);
        context.clip();
        context.fillText(text, left + 6, top + (HEIGHT - 6) / 2 + 0.5);
        context.restore();
      }
      ends.set(top, Math.max(ends.get(top) ?? 0, right + 3));
      this.boxes.push([left - 2, top, right + 2, top + HEIGHT - 6, note]);
    }
  }

  /** The note at a place of the picture. @param {number} x @param {number} y */
  at(x, y) {
    return this.boxes.find(([left, top, right, bottom]) => left <= x && x <= right && top <= y && y <= bottom)?.[4];
  }

  /** Lists all notes. @param {boolean} [isAgain] whether it has listed them, and some have another time now */
  show(isAgain = false) {
    const title = head("Notes", this.list.length === 1 ? "1 note" : `${this.list.length} notes`, () => this.page.clear());
    const [whole, buttons] = [element("div"), element("div", undefined, "tabs")];
    const add = element("button", "New note");
    add.title = "At the selection, the marked area, or the middle of the visible part";
    add.addEventListener("click", () => this.edit(null));
    const out = element("button", "Save as a file");
    out.addEventListener("click", () => this.save());
    const input = /** @type {HTMLInputElement} */ (element("input"));
    [input.type, input.accept, input.className] = ["file", ".json,application/json", "unseen"];
    input.setAttribute("aria-label", "File with notes");
    input.addEventListener("change", () => void this.read(input));
    const into = element("button", "Add from a file");
    into.addEventListener("click", () => input.click());
    buttons.append(add);
    // A file has the notes of one recording.
    if (!this.page.compare) buttons.append(out, into, input);
    whole.append(title, buttons);
    /** @type {import("./tables.js").Column<Note>[]} */
    const columns = [
      { title: "time", unit: "text", value: (note) => exact(at(note)), act: (note) => () => this.go(note), hint: "Show it" },
      { title: "track", unit: "text", value: (note) => this.where(note) },
      { title: "note", unit: "text", value: ({ text }) => text, act: (note) => () => this.edit(note), hint: "Change it" },
    ];
    if (this.list.length > 0) whole.append(table("Notes", columns, this.list, 0));
    else whole.append(element("p", "There are no notes yet. They are kept in your data folder, not in the recording."));
    this.open(whole);
    this.page.again = () => this.show(true);
    if (!isAgain) add.focus();
  }

  /** @param {Note} note */
  where(note) {
    const row = this.row(note);
    if (row !== null) return this.page.named(row);
    return note.track ? `${note.track.kind} ${note.track.number}, not in this recording` : this.page.compare ? `all of ${note.side ? "B" : "A"}` : "all";
  }

  /** Answers that come later do not take its place. @param {HTMLElement} whole */
  open(whole) {
    this.page.asked++;
    clearTimeout(this.page.panels.timer);
    endJob();
    this.page.open();
    this.place.className = "wide";
    this.place.replaceChildren(whole);
  }

  /** Shows where a note is. @param {Note} note */
  go(note) {
    const row = this.row(note);
    if (row !== null) this.page.choose(row);
    const half = (this.page.view.to - this.page.view.from) / 2;
    const time = at(note);
    if (time < this.page.view.from || time > this.page.view.to) this.page.view.set(time - half, time + half);
    this.page.pointed = time;
    this.page.redraw();
  }

  /** Where a new one is: at the selection, the area, or the middle. @returns {Note} */
  fresh() {
    const { found, chosen, view } = this.page;
    const made = (/** @type {number} */ time, /** @type {number | null} */ row, /** @type {number} */ side) =>
      ({ time: Math.max(0, time - beginOf(side)), track: row === null ? null : this.track(row), text: "", side });
    if (view.state && found) return made(found.from, view.state.row, sideOf(view.state.row));
    const row = view.area ? (view.area.rows?.length === 1 ? view.area.rows[0] : null) : (chosen?.id ?? null);
    const time = Math.round(view.area?.from ?? (view.from + view.to) / 2);
    const isOfSecond = view.area ? view.area.rows !== null && bySide(view.area.rows)[0].length === 0 : chosen?.side === 1;
    return made(time, row, Number(isOfSecond));
  }

  /** Changes a note, or makes a new one. @param {Note | null} old */
  edit(old) {
    const note = old ?? this.fresh();
    const title = head(old ? "Note" : "New note", `${exact(at(note))}, ${this.where(note)}`, () => this.page.clear());
    const [whole, text, buttons] = [element("div"), /** @type {HTMLTextAreaElement} */ (element("textarea")), element("div", undefined, "tabs")];
    [text.value, text.rows, text.maxLength] = [note.text, 4, 600];
    text.setAttribute("aria-label", "Text of the note");
    const before = text.value;
    const keep = element("button", "Keep");
    keep.addEventListener("click", async () => {
      const isDone = text.value.trim() === "" || (await this.change([{ ...note, text: text.value }], old ? [old] : []));
      if (isDone && whole.isConnected) this.show();
    });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) keep.click();
      else if (event.key !== "Escape") return;
      else if (text.value === before) this.show();
      event.preventDefault();
      event.stopPropagation();
    });
    buttons.append(keep);
    if (old) {
      const remove = element("button", "Remove");
      remove.addEventListener("click", async () => (await this.change([], [old])) && whole.isConnected && this.show());
      buttons.append(remove);
    }
    const back = element("button", "All notes");
    back.addEventListener("click", () => this.show());
    buttons.append(back);
    whole.append(title, text, buttons);
    this.open(whole);
    text.focus();
  }

  /** Saves all as a file. */
  save() {
    const text = JSON.stringify({ notes: this.list.map(({ time, track, text }) => ({ time, track, text })) }, null, 1);
    download(new Blob([text], { type: "application/json" }), "notes.json");
  }

  /** Adds the notes of a file. @param {HTMLInputElement} input */
  async read(input) {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    let notes;
    try {
      if (file.size > FILE) throw new Error(`${file.name} is too large: a file of notes has at most 4 MB.`);
      notes = parsed(await file.text());
    } catch (error) {
      return notice(new Error(`This is no file of notes: ${/** @type {Error} */ (error).message}`));
    }
    const all = new Set([...this.list, ...notes].map(({ time, track, text }) => JSON.stringify([time, track, text])));
    if (all.size > MOST) return notice(new Error(`A recording has at most ${MOST.toLocaleString("en")} notes: none of the file was added.`));
    let added = 0;
    /** @type {Note[]} */
    let some = [];
    let size = 0;
    try {
      for (const note of [...notes, null]) {
        const more = note ? new TextEncoder().encode(JSON.stringify(note)).length : REQUEST;
        if (size + more > REQUEST && some.length > 0) {
          await this.send(some, []);
          added += some.length;
          [some, size] = [[], 0];
        }
        if (note) some.push(note);
        size += more;
      }
    } catch (error) {
      if (error instanceof Error) error.message = `${added} of ${notes.length} notes were added: ${error.message}`;
      this.page.lost(error);
    }
    if (input.isConnected) this.show();
  }
}

/** How many notes of a list are before a time. @param {Note[]} list in the order of time @param {number} time @param {number} [from] so many are known to be */
function after(list, time, from = 0) {
  let [least, most] = [from, list.length];
  while (least < most) {
    const middle = (least + most) >> 1;
    if (list[middle].time < time) least = middle + 1;
    else most = middle;
  }
  return least;
}

/** The notes in the text of a file. @param {string} text @returns {Note[]} */
function parsed(text) {
  const notes = JSON.parse(text)?.notes;
  if (!Array.isArray(notes)) throw new Error("it has no list of notes");
  return notes.map((note) => {
    if (!Number.isSafeInteger(note?.time) || note.time < 0) throw new Error("a note has no time");
    if (typeof note.text !== "string" || note.text.trim() === "") throw new Error("a note has no text");
    if (new TextEncoder().encode(note.text).length > BYTES) throw new Error(`a note has at most ${BYTES} bytes`);
    const { kind, number, process } = note.track ?? {};
    const isTrack = [kind, number, process].every((part) => typeof part === "string" && PART.test(part));
    if (note.track && !isTrack) throw new Error("a note has no such track");
    return { time: note.time, track: note.track ? { kind, number, process } : null, text: note.text, side: 0 };
  });
}
