// @ts-check
// The panels of what is marked or found: statistics of an area, its longest states, its samples, what a thread
// waited for, a match of the search.

import { showTab } from "./analyses.js";
import { areBoth, showCompared, showComparedTab, showNothing } from "./compared.js";
import { endJob } from "./job.js";
import { $ } from "./opening.js";
import { showLongest } from "./longest.js";
import { showMissing } from "./missing.js";
import { showMatch } from "./search.js";
import { sideOf } from "./sides.js";
import { showStatistics, titled } from "./statistics.js";
import { showWhy } from "./why.js";

/** What is seen on each side of a loss at least, in nanoseconds. */
const AROUND = 1e4;

export class Panels {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    this.timer = 0;
  }

  /** @param {{from: number, to: number, rows: number[] | null}} area */
  area(area) {
    this.page.asked++;
    this.page.forget();
    this.page.view.area = area;
    this.page.view.tell();
    this.page.open();
    this.waits(true);
    clearTimeout(this.timer);
    const turn = this.page.asked;
    this.timer = window.setTimeout(() => {
      // It moves with its recording.
      const area = this.page.view.area;
      if (turn !== this.page.asked || !area || this.page.view.part || this.page.view.tab) return;
      this.waits(false);
      if (this.page.compare && areBoth(area)) return void showCompared($("details"), area, this.compared());
      if (this.isOutside("", area)) return;
      void showStatistics($("details"), area, {
        lost: (error) => this.page.lost(error, true),
        named: (row) => this.page.named(row),
        close: () => this.page.clear(),
        choose: (row) => this.page.choose(row),
        longest: (part) => this.longest(part),
        tab: (kind) => this.tab(kind),
        why: (row) => (this.page.isWaiter(row) ? () => this.why({ row, from: area.from, to: area.to }) : null),
      });
    }, 80);
  }

  /** Whether the panel still has what was there before the marked area. @param {boolean} is */
  waits(is) {
    $("details").setAttribute("aria-busy", String(is));
  }

  /**
   * Lists the states of which a number in the statistics of the area is the sum.
   * @param {import("./longest.js").Part} part @param {boolean} [isRestored]
   */
  longest(part, isRestored = false) {
    const { area } = this.page.view;
    if (!area) return;
    clearTimeout(this.timer);
    endJob();
    this.page.view.step(() => ([this.page.view.part, this.page.view.tab] = [part, ""]), isRestored);
    this.page.open();
    void showLongest($("details"), area, part, {
      lost: (error) => this.page.lost(error, true),
      named: (row) => this.page.named(row),
      close: () => this.page.clear(),
      select: (row, time) => {
        this.page.choose(row);
        void this.page.select(row, time, 0);
      },
      statistics: () => this.page.view.step(() => this.area({ ...area })),
    }, titled(part.classes));
  }

  /** Shows what an analysis says of the area. @param {string} kind @param {boolean} [isRestored] */
  tab(kind, isRestored = false) {
    const { area } = this.page.view;
    if (!area) return;
    if (kind === "") return this.page.view.step(() => this.area({ ...area }));
    clearTimeout(this.timer);
    endJob();
    this.page.view.step(() => ([this.page.view.tab, this.page.view.part] = [kind, null]), isRestored);
    this.page.open();
    if (this.page.compare && areBoth(area)) return void showComparedTab($("details"), kind, area, this.compared());
    if (this.isOutside(kind, area)) return;
    void showTab($("details"), kind, area, {
      lost: (error) => this.page.lost(error, true),
      close: () => this.page.clear(),
      named: (row) => this.page.named(row),
      select: (row, time) => {
        this.page.choose(row);
        void this.page.select(row, Math.floor(time), 0);
      },
      longest: (part) => this.longest(part),
      threadAt: (tid, time) => this.page.others.threadAt(tid, time, sideOf(area.rows?.[0] ?? 0)),
      samplesOf: (tid, time) => this.page.samplesOf(tid, time, sideOf(area.rows?.[0] ?? 0)),
      tab: (kind) => this.tab(kind),
      isMarked: (name) => this.page.marks.names.includes(name),
      mark: (name) => this.page.marks.toggle(name),
      event: (name, at, tid) => this.event({ name, at, tid, nth: 0, side: sideOf(area.rows?.[0] ?? 0) }, tid),
    });
  }

  /**
   * Shows an event among those around it, and the track of its thread.
   * @param {import("./kin.js").Picked} picked @param {string | null} tid @param {boolean} [isRestored]
   */
  event(picked, tid, isRestored = false) {
    const { name, at, side } = picked;
    this.page.asked++;
    this.page.view.step(() => {
      this.page.forget();
      this.page.pointed = at;
      this.page.view.event = picked;
      if (!isRestored) this.see(at);
    }, isRestored);
    this.page.open();
    const choose = this.page.chooser(at, side);
    if (tid !== null) choose(tid);
    const ways = { ...this.page.ways(), side };
    const shown = showMatch($("details"), name, at, name, ways, choose, picked).catch((error) => this.page.lost(error));
    this.page.kin.listed = shown;
  }

  /** Lists where events are missing. @param {number} side of which recording @param {number} [first] the number of the first one */
  missing(side, first = 0) {
    this.page.asked++;
    this.page.view.step(() => this.page.forget());
    this.page.open();
    this.page.again = () => this.missing(side, first);
    void showMissing($("details"), side, first, {
      lost: (error) => this.page.lost(error, true),
      close: () => this.page.clear(),
      list: (first) => this.missing(side, first),
      of: this.page.compare ? ` in ${"AB"[side]}` : "",
      go: ({ from, to }) => {
        const half = Math.max(5 * (to - from), AROUND);
        this.page.pointed = from;
        this.page.view.set((from + to) / 2 - half, (from + to) / 2 + half);
      },
    });
  }

  /** What is seen has this time. @param {number} at */
  see(at) {
    const { view } = this.page;
    const half = (view.to - view.from) / 2;
    if (at < view.from || at > view.to) view.set(at - half, at + half);
  }

  /** Of two recordings: says that the one whose tracks are marked has nothing in this time; whether it is so. @param {string} kind @param {import("./analyses.js").Area} area */
  isOutside(kind, area) {
    const side = this.page.compare?.outside(area) ?? null;
    if (side !== null) showNothing($("details"), kind, area, side, this.compared());
    return side !== null;
  }

  /** What leads on from an area of two recordings. @returns {import("./compared.js").Page} */
  compared() {
    const { compare } = this.page;
    return {
      row: (row) => this.page.rows.get(row),
      rows: () => this.page.rows.values(),
      leftOut: this.page.leftOut,
      names: compare ? compare.names : [],
      lengths: compare ? compare.lengths : [],
      lost: (error) => this.page.lost(error, true),
      close: () => this.page.clear(),
      tab: (kind) => this.tab(kind),
      longest: (part) => this.longest(part),
      area: (area) => this.page.view.step(() => this.area(area)),
    };
  }

  /**
   * Shows what a thread or task waited for.
   * @param {{row: number, from: number, to: number} | null} asked @param {boolean} [isRestored]
   */
  why(asked, isRestored = false) {
    if (!asked || !this.page.isWaiter(asked.row)) return;
    // A part is one of a thread or task, which waits.
    asked = { ...asked, row: this.page.thread(asked.row)?.id ?? asked.row };
    clearTimeout(this.timer);
    const turn = ++this.page.asked;
    this.page.view.step(() => {
      this.page.forget();
      this.page.view.why = asked;
    }, isRestored);
    this.page.open();
    void showWhy($("details"), asked, {
      named: (row) => this.page.named(row),
      lost: (error) => this.page.lost(error, true),
      close: () => this.page.clear(),
      select: (row, time) => {
        this.page.choose(row);
        void this.page.select(row, time, 0);
      },
      found: (path) => {
        if (turn !== this.page.asked) return;
        this.page.path = path;
        this.page.redraw();
      },
    });
  }

  /** Shows a match of the search, and the track of its thread. @param {number} number @param {number} at */
  show(number, at) {
    this.page.asked++;
    this.page.view.step(() => {
      this.page.forget();
      this.page.pointed = at;
      this.see(at);
    });
    this.page.open();
    // Of two recordings, one is moved: the match has the same number, and another time.
    this.page.again = () => void this.page.search.again();
    const title = `Match ${(number + 1).toLocaleString("en")} of “${this.page.search.text}”`;
    const { side } = this.page.search;
    showMatch($("details"), title, at, this.page.search.text, { ...this.page.ways(), side }, this.page.chooser(at, side)).catch((error) => this.page.lost(error));
  }
}
