// @ts-check
// What is seen and selected: connects view, tracks, picture and panel.

import { NotRead, Unknown, Unreachable, ask } from "./api.js";
import { axis, minimap } from "./axis.js";
import { nameMarks } from "./classes.js";
import { Compare } from "./compare.js";
import { reconnect } from "./connection.js";
import { Picture } from "./picture.js";
import { $, canvas, fail, notice } from "./opening.js";
import { endJob } from "./job.js";
import { press } from "./keys.js";
import { Kin } from "./kin.js";
import { keep } from "./live.js";
import { Losses } from "./losses.js";
import { Marks } from "./marks.js";
import { Filling } from "./filling.js";
import { toLink as rowToLink } from "./names.js";
import { Notes } from "./notes.js";
import { Others } from "./others.js";
import { Panels } from "./panels.js";
import { begins, grouped, members, placeOf, refold, scroll } from "./place.js";
import { Search } from "./search.js";
import { Series, toLink } from "./series.js";
import { showState } from "./selection.js";
import { Tiles } from "./tiles.js";
import { ALL_CPUS, SECOND, beginOf, isSeries, sideOf } from "./sides.js";
import { tip } from "./tip.js";
import { HEIGHT, Layout, MOST_PINS, all, counted, each, ids, isGroup, isMarks, isPart, label, reorder, shown, tree } from "./tracks.js";
import { View } from "./window.js";

/** How far from an event it may be clicked, in pixels. */
const NEAR = 5;

export class Page {
  /** @param {any} facts @param {any} tracks @param {{facts: any, tracks: any} | null} [other] what it is compared with */
  constructor(facts, tracks, other = null) {
    this.facts = facts;
    /** @type {Map<number, import("./tracks.js").Row>} */
    this.rows = new Map([...tracks.rows, ...(other?.tracks.rows ?? [])].map((/** @type {any} */ row) => [row.id, row]));
    /** With what the recording is compared. */
    this.compare = other ? new Compare(this, [facts, other.facts]) : null;
    this.roots = this.tree();
    this.view = new View(facts.length, () => this.rows);
    this.view.tracks = {
      place: () => placeOf(this),
      named: (row) => this.inLink(row),
      grouped: (rows) => grouped(this.roots, this.rows, rows, (row) => this.inLink(row)),
      members: (text) => members(this.roots, this.rows, text),
    };
    this.tiles = new Tiles(() => this.redraw(), (error) => this.lost(error));
    this.picture = new Picture(canvas("picture"), canvas("overlay"), this.view, this.tiles, (row) => this.named(row, true));
    this.losses = new Losses(this);
    this.layout = new Layout([], 0);
    /** @type {import("./tracks.js").Node | null} */
    this.chosen = null;
    /** @type {{x: number, y: number} | null} */
    this.at = null;
    /** @type {import("./selection.js").Found | null} */
    this.found = null;
    /** The critical path that is shown. @type {import("./why.js").Path | null} */
    this.path = null;
    /** Shows again what the panel has, if times of it have changed that no link has. @type {(() => void) | null} */
    this.again = null;
    /** The time of the event under the pointer. @type {number | null} */
    this.pointed = null;
    this.frame = 0;
    this.asked = 0;
    /** What a click selects. @type {Promise<void>} */
    this.clicked = Promise.resolve();
    this.panels = new Panels(this);
    this.kin = new Kin(this);
    this.notes = new Notes(this, $("details"));
    this.isLost = false;
    /** Recordings whose indexes are being made. @type {Map<number, Filling>} */
    this.fillings = new Map(this.all.flatMap((of, side) => (of.filling ? [[side, new Filling(of, side)]] : [])));
    /** While there will be more. @type {import("./live.js").Live | null} */
    this.live = null;
    const buttons = ["previous", "next", "end"].map((id) => /** @type {HTMLButtonElement} */ ($(id)));
    this.search = new Search(this, /** @type {HTMLInputElement} */ ($("find")), $("matches"), buttons);
    nameMarks([...tracks.marks, ...(other?.tracks.marks ?? [])]);
    this.marks = new Marks(this);
    this.series = new Series(this);
    /** Tracks of each recording that the page has from the beginning, and those that it does not have. */
    this.listed = [counted(tracks.rows), ...(other ? [counted(other.tracks.rows)] : [])];
    this.leftOut = [tracks.left_out, ...(other ? [other.tracks.left_out] : [])];
    this.others = new Others(this);
    this.compare?.connect(this.view);
    this.view.changed.push(() => [this.picture.expect(this.layout), this.redraw(), this.search.moved(), this.marks.moved()]);
    this.view.restored.push(() => {
      refold(this, this.view.linked);
      this.restored();
      scroll(this, this.view.linked);
    });
    this.fold();
    void this.notes.load();
  }

  /** What is known of the recording, or of both. @returns {any[]} */
  get all() {
    return this.compare?.facts ?? [this.facts];
  }

  /** The rows that the minimap shows: of each recording the first one. @returns {number[]} */
  get wholes() {
    const firsts = this.compare ? this.roots.map(({ children }) => children[0]) : this.roots.slice(0, 1);
    return firsts.flatMap((first) => first?.id ?? []);
  }

  /** The tree of all tracks. */
  tree() {
    const rows = [...this.rows.values()];
    return begins(this.compare ? this.compare.tree(rows) : tree(rows));
  }

  /** A row as text. @param {number} id @param {boolean} [isPlain] whether it does not say to which recording it belongs @returns {string} */
  named(id, isPlain = this.compare === null) {
    if (!isPlain) return `${this.named(id, true)} in ${sideOf(id) ? "B" : "A"}`;
    if (id % SECOND === ALL_CPUS) return "All CPUs";
    const row = this.rows.get(id);
    if (!row) return `row ${id % SECOND}`;
    if (row.kind === "cpu") return `CPU ${row.number}`;
    if (row.kind === "tasks") return row.number === "others" ? "tasks of other names" : `tasks ${row.name || "without a name"}`;
    if (row.kind === "all") return `all tasks of ${this.named(row.parent ?? -1, true)}`;
    if (row.kind === "counter") return row.parent === null ? row.name : `${row.name} of ${this.named(row.parent, true)}`;
    if (isPart(row)) return `${row.kind === "events" ? `${row.name} events` : row.kind} of ${this.named(row.parent ?? -1, true)}`;
    return row.name ? `${row.name} ${row.number}` : `${row.kind} ${row.number || "unknown"}`;
  }

  /** The tracks that are shown, in order, the pinned ones first. */
  get tracks() {
    return this.layout.tracks;
  }

  /** The tracks that are shown have changed. */
  fold() {
    reorder(this.roots, this.view.order);
    const nodes = new Map();
    each(this.roots, (node) => nodes.set(node.id, node));
    const pinned = this.view.pins.flatMap((row) => {
      const node = nodes.get(row);
      const name = this.compare && node ? this.named(row) : node && isPart(node) ? this.named(row) : node?.name;
      return node ? [{ ...node, name, children: [], level: 0, isPinned: true }] : [];
    });
    const wasPinned = this.chosen?.isPinned ? this.chosen.id : null;
    this.layout = new Layout([...pinned, ...shown(this.roots, this.view.filter, this.others.hidden)], pinned.length);
    if (wasPinned !== null) this.chosen = this.tracks.find(({ id }) => id === wasPinned) ?? null;
    $("sheet").style.height = `${this.tracks.length * HEIGHT}px`;
    this.marks?.moved();
    this.redraw();
  }

  /** There are other rows: makes the tracks anew; gives the numbers of those that have another one now. */
  plant() {
    for (const row of this.rows.keys()) if (isSeries(row)) this.rows.delete(row);
    for (const row of this.series.rows()) this.rows.set(row.id, row);
    const before = this.roots;
    this.roots = this.tree();
    return keep(before, this.roots);
  }

  /** Shows the tracks; the chosen one is still chosen. @param {Map<number | null, number | null>} numbers of rows that have another one now */
  refold(numbers) {
    const { chosen } = this;
    this.fold();
    const now = chosen ? numbers.get(chosen.id) ?? chosen.id : null;
    this.chosen = this.tracks.find(({ id, isPinned }) => id !== null && id === now && isPinned === chosen?.isPinned) ?? chosen;
  }

  /** Some rows are new, or gone. */
  grow() {
    this.refold(this.plant());
  }

  /** Keeps a track at the top, or no longer. @param {import("./tracks.js").Node} track */
  pin(track) {
    const row = track.id;
    if (row === null) return;
    const { pins } = this.view;
    if (pins.includes(row)) this.view.pins = pins.filter((one) => one !== row);
    else if (pins.length < MOST_PINS) this.view.pins = [...pins, row];
    this.fold();
    this.view.tell();
  }

  redraw() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    this.tiles.begin();
    const scroll = $("scroll");
    const height = scroll.clientHeight;
    const width = Math.max(1, scroll.clientWidth - 270);
    document.body.style.setProperty("--bar", `${scroll.offsetWidth - scroll.clientWidth}px`);
    $("stage").style.height = `${height}px`;
    this.losses.look(width);
    minimap(canvas("minimap"), $("span"), this.view, this.tiles, this.wholes, this.losses.whole, this.fillings);
    const pointer = this.pointer();
    const grid = axis(canvas("axis"), $("base"), this.view, pointer, this.search.seen);
    [this.layout.top, this.layout.height] = [scroll.scrollTop, height];
    this.picture.draw(this.layout, width, height);
    const { state } = this.view;
    const selected = state && this.found ? { row: state.row, ...this.found } : null;
    this.picture.annotate(this.layout, grid, selected, pointer ?? this.pointed, this.search.seen, this.notes, this.fillings);
    this.picture.mark(this.layout, this.marks);
    if (this.path) this.picture.path(this.layout, this.path.steps);
    this.live?.draw();
    label($("labels"), this.layout, this.chosen, this.picture.edges);
    this.picture.askNames(this.layout, Boolean(this.live?.follows), () => this.redraw(), this.series);
    void this.tiles.ask();
    tip(this);
  }

  /** The time under the pointer. @returns {number | null} */
  pointer() {
    const width = canvas("overlay").clientWidth;
    return this.at === null ? null : this.view.from + (this.at.x / width) * (this.view.to - this.view.from);
  }

  /** Where the second recording is, if dragging at this place moves it. @param {number} y @returns {number | null} */
  moved(y) {
    const track = this.compare ? this.track(y) : undefined;
    return this.compare && track?.kind === "recording" && track.side === 1 ? this.compare.offset : null;
  }

  /** @param {number} y @returns {import("./tracks.js").Node | undefined} */
  track(y) {
    return this.tracks[this.layout.at(y)];
  }

  /** @param {number} x @param {number} y */
  hover(x, y) {
    this.at = { x, y };
    this.redraw();
  }

  leave() {
    this.at = null;
    this.redraw();
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const note = this.notes.at(x, y);
    if (note) return this.notes.edit(note);
    const track = this.track(y);
    if (!track) return;
    this.chosen = track;
    const time = this.view.from + (x / canvas("overlay").clientWidth) * (this.view.to - this.view.from);
    const { from, to } = this.view;
    if (isGroup(track)) this.panels.area({ from: Math.floor(from), to: Math.ceil(to), rows: track.id === null ? all(track) : [track.id] });
    else if (track.id === null) this.clear();
    else if (isSeries(track.id)) void this.series.show(track.id, time);
    else if (isMarks(track)) this.clicked = this.nearest(track.id, time);
    // The server would take what is before a recording for its beginning.
    else if (time < beginOf(track.side)) this.clear();
    else this.clicked = this.select(track.id, Math.floor(time), 0);
  }

  /** Zooms to what a click selects, as soon as it is known. */
  async fit() {
    await this.clicked;
    this.key("f");
  }

  /** Selects the event next to a time, if one is there. @param {number} row @param {number} time */
  async nearest(row, time) {
    const near = (NEAR * (this.view.to - this.view.from)) / canvas("overlay").clientWidth;
    const [left, turn] = [Math.max(0, Math.floor(time - near)), ++this.asked];
    const found = await ask("at", { row, time: left, step: 1 }).catch((error) => this.lost(error));
    if (turn !== this.asked) return;
    if (found && found.from <= time + near) await this.select(row, found.from, 0);
    else this.clear();
  }

  /**
   * Selects a state; a further one (`step`) only of the same kind if one is given.
   * @param {number} row @param {number} time @param {-1 | 0 | 1} step @param {number} [kind]
   * @param {boolean} [isRestored] whether the view is the last one, or a link's
   * @param {number} [nth] of an event, how many of its thread with its name and time come before it
   */
  async select(row, time, step, kind, isRestored = false, nth = 0) {
    const turn = ++this.asked;
    const found = await ask("at", { row, time, step, kind }).catch((error) => this.lost(error));
    if (turn !== this.asked) return;
    if (!found) {
      if (step === 0) this.clear();
      return;
    }
    this.view.step(() => {
      this.forget();
      this.found = found;
      this.view.state = { row, time: found.from, nth };
      if (found.to <= this.view.from || found.from >= this.view.to) {
        const half = (this.view.to - this.view.from) / 2;
        this.view.set((found.from + found.to) / 2 - half, (found.from + found.to) / 2 + half);
      }
    }, isRestored);
    this.compare?.selected(row, found.from);
    this.open();
    this.kin.listed = showState($("details"), row, found, this.thread(row), this.ways(), nth);
  }

  /** The row whose events lie around a state: of a part, the thread. @param {number} row */
  thread(row) {
    const of = this.rows.get(row);
    return of && isPart(of) && of.parent !== null ? this.rows.get(of.parent) : of;
  }

  /** The row of a thread's number at a time. @param {string} tid @param {number} time @param {number} [side] of which recording */
  threadAt(tid, time, side = 0) {
    const fit = [...this.rows.values()].filter(({ id, kind, number }) => kind === "thread" && number === tid && sideOf(id) === side);
    return (fit.find(({ begin, end }) => begin <= time && time <= end) ?? fit[0])?.id;
  }

  /** A row in a link: of a recording with more rows than the page has, its number, which the server knows. @param {number} row */
  inLink(row) {
    return this.others.sides.includes(sideOf(row)) && !this.live?.isLive ? String(row) : rowToLink(this.rows, row);
  }

  /** The row of a thread's samples, or of the thread if it has none. @param {string} tid @param {number} time @param {number} side */
  async samplesOf(tid, time, side) {
    const thread = await this.others.threadAt(tid, time, side);
    return [...this.rows.values()].find(({ kind, parent }) => kind === "samples" && parent === thread)?.id ?? thread;
  }

  /** What leads on from the selection. @returns {import("./selection.js").Ways} */
  ways() {
    return {
      named: (row) => this.named(row),
      go: (row, time) => {
        this.choose(row);
        void this.select(row, time, 0);
      },
      step: (step, ofKind) => this.next(step, ofKind),
      kin: (events, event, step, place) => void this.kin.go(events, event, step, place),
      opened: (events, event) => (this.kin.opened = { events, event }),
      point: (time) => {
        this.pointed = time;
        this.redraw();
      },
      close: () => this.clear(),
      why: () => this.key("y"),
      counter: (of) => this.series.add(of),
    };
  }

  /** Forgets what is selected. */
  forget() {
    endJob();
    this.kin.forget();
    [this.found, this.path, this.pointed, this.again] = [null, null, null, null];
    [this.view.state, this.view.event, this.view.area, this.view.part, this.view.why, this.view.tab] = [null, null, null, null, null, ""];
  }

  /** Selects the state after the selected one, or before it, or another event. @param {-1 | 1} step @param {boolean} ofKind */
  next(step, ofKind) {
    if (ofKind && this.kin.isThere) return void this.kin.step(step);
    const { state } = this.view;
    if (!state || !this.found) return;
    const time = step === 1 ? this.found.to : this.found.from;
    void this.select(state.row, time, step, ofKind ? this.found.number : undefined);
  }

  /** Marks an area, of which the statistics are shown when the pointer rests. */
  mark(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ endX, /** @type {number} */ endY, /** @type {boolean} */ all) {
    const width = canvas("overlay").clientWidth;
    const time = (/** @type {number} */ x) =>
      Math.round(this.view.from + (Math.min(Math.max(x, 0), width) / width) * (this.view.to - this.view.from));
    const [from, to] = [time(Math.min(x, endX)), time(Math.max(x, endX))];
    if (from >= to) return;
    let rows = null;
    if (!all) {
      const [top, bottom] = [Math.min(y, endY), Math.max(y, endY)];
      const marked = this.layout.seen()
        .filter((one) => one.y < bottom && one.y + HEIGHT > top).map(({ track }) => track);
      rows = [...new Set(marked.flatMap(ids))];
    }
    this.panels.area({ from, to, rows });
  }

  /** Selects the state of a row in the middle of what is seen, or the nearest one. @param {number} row */
  async enter(row) {
    const time = Math.floor(this.pointer() ?? (this.view.from + this.view.to) / 2);
    if (isSeries(row)) return this.series.show(row, time);
    const turn = ++this.asked;
    try {
      for (const step of [0, 1, -1]) {
        const found = await ask("at", { row, time, step });
        if (turn !== this.asked) return;
        if (found) return await this.select(row, found.from, 0);
      }
    } catch (error) {
      this.lost(error);
    }
  }

  /** Whether a row is a thread or task, or a part of one. @param {number} row */
  isWaiter(row) {
    return ["thread", "task"].includes(this.thread(row)?.kind ?? "");
  }

  /** Nothing is selected. */
  clear() {
    this.asked++;
    this.forget();
    this.panels.waits(false);
    $("details").replaceChildren();
    $("details").hidden = true;
    $("hints").hidden = false;
    this.view.tell();
  }

  /** Whether the panel has a note that is being written. */
  isWriting() {
    return $("details").querySelector("textarea") !== null;
  }

  /** Opens the panel. */
  open() {
    this.panels.waits(false);
    this.compare?.opened();
    $("hints").hidden = true;
    $("details").hidden = false;
    this.again = null;
  }

  /**
   * Chooses the row of a thread's number at a time, unless another one is chosen, or something else is shown, before
   * the number is known.
   * @param {number} at @param {number} side @returns {(tid: string) => Promise<void>}
   */
  chooser(at, side) {
    const [turn, chosen] = [this.asked, this.chosen?.id];
    return async (tid) => {
      const row = await this.others.threadAt(tid, at, side);
      if (row !== undefined && turn === this.asked && this.chosen?.id === chosen) this.choose(row);
    };
  }

  /** Shows a row among the others. @param {number} row */
  choose(row) {
    const unfold = (/** @type {import("./tracks.js").Node[]} */ nodes) => {
      for (const node of nodes) {
        if (node.id === row) return true;
        if (unfold(node.children)) {
          node.folded = false;
          return true;
        }
      }
      return false;
    };
    if (!unfold(this.roots)) {
      // It had a name only.
      if (!this.others.got.has(row)) return;
      this.grow();
      if (!unfold(this.roots)) return;
    }
    this.fold();
    this.view.moved();
    const at = this.tracks.findIndex(({ id }) => id === row);
    if (at < 0 && this.view.filter) {
      // The filter hides it.
      this.filter("");
      this.choose(row);
    } else this.go(at);
  }

  /** @param {number} at */
  go(at) {
    if (!this.tracks[at]) return;
    this.chosen = this.tracks[at];
    const [scroll, { pinned }] = [$("scroll"), this.layout];
    if (at < pinned) return this.redraw();
    if ((at - pinned) * HEIGHT < scroll.scrollTop) scroll.scrollTop = (at - pinned) * HEIGHT;
    else if ((at + 1) * HEIGHT > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = (at + 1) * HEIGHT - scroll.clientHeight;
    this.redraw();
  }

  /** @param {import("./tracks.js").Node} track */
  toggle(track) {
    track.folded = !track.folded;
    this.fold();
    this.view.moved();
  }

  /** Shows only tracks with this text in their names. @param {string} text */
  filter(text) {
    /** @type {HTMLInputElement} */ ($("filter")).value = this.view.filter = text;
    $("scroll").scrollTop = 0;
    this.fold();
    this.view.tell();
    void this.others.search();
  }

  /** Orders tracks. @param {string} order */
  order(order) {
    this.view.order = order;
    this.fold();
    this.view.tell();
  }

  /** A link has been opened, or the browser's Back. */
  restored() {
    /** @type {HTMLInputElement} */ ($("filter")).value = this.view.filter;
    /** @type {HTMLSelectElement} */ ($("order")).value = this.view.order;
    this.fold();
    if (this.view.findSide !== this.search.side) this.search.within(this.view.findSide);
    if (JSON.stringify(this.view.counted) !== JSON.stringify(this.marks.names)) void this.marks.choose(this.view.counted);
    if (toLink(this.view.series) !== toLink(this.series.all.map((one) => one?.of ?? null))) this.series.restore(this.view.series);
    if (this.view.find !== this.search.text) void this.search.start(this.view.find, false);
    const searched = this.others.search();
    this.others.learned = searched;
    const missing = this.others.missing(this.view.marked);
    if (missing.length === 0) return this.opens();
    const turn = ++this.asked;
    this.view.settle();
    this.others.learned = this.others.learn(missing).then(() => {
      this.grow();
      if (turn === this.asked) this.opens();
      return searched;
    });
  }

  /** Opens what the view has. */
  opens() {
    const { state, event, area, part, why, tab } = this.view;
    if (why && this.rows.has(why.row)) this.panels.why(why, true);
    else if (area) {
      this.panels.area(area);
      [this.view.part, this.view.tab] = [part, tab];
      if (tab) this.panels.tab(tab, true);
      else if (part) this.panels.longest(part, true);
    } else if (state && this.rows.has(state.row)) void this.select(state.row, state.time, 0, undefined, true, state.nth);
    else if (event) this.panels.event(event, event.tid, true);
    else this.clear();
    this.view.settle();
  }

  /** An answer has not come. @param {unknown} error @param {boolean} [isShown] whether a panel shows the error */
  lost(error, isShown = false) {
    if (error instanceof Unknown) fail(error);
    else if (error instanceof NotRead && isShown && this.live) this.live.isAwaited = true;
    else if (error instanceof Unreachable) void reconnect(this);
    else if (!isShown) notice(error);
  }

  /** Shows a match of the search. @param {number} number @param {number} at */
  show(number, at) {
    this.panels.show(number, at);
  }

  /** @param {string} name of a key @returns {boolean} whether it does something */
  key(name) {
    return press(this, name);
  }
}
