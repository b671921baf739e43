// @ts-check
// The window of time that is seen, the views before it, and links to it.

import { isTab } from "./analyses.js";
import { MOST } from "./marks.js";
import * as names from "./names.js";
import { notice } from "./opening.js";
import { ofParts } from "./place.js";
import { ofLink, toLink } from "./series.js";
import { SECOND } from "./sides.js";
import { MOST_PINS, ORDERS } from "./tracks.js";

/** Shortest window, in nanoseconds. */
export const SHORTEST = 50;
/** Time without a change after which a view is one to come back to, in milliseconds. */
const SETTLED = 400;

/** Most rows, or groups of rows, of an area that a link has. */
const LONGEST = 200;
/** What these links mean. */
const VERSION = "1";

/** A link without what it says of the place among the tracks. @param {string} link */
const unplaced = (link) => link.replace(/&(fold|open|top)=[^&]*/g, "");

/** A text in a link: `--at` refuses some of what `encodeURIComponent` leaves. @param {string} text */
function encoded(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The names of events in a link. @param {string} text */
function counted(text) {
  try {
    return [...new Set(text.split(",").map(decodeURIComponent))].filter(Boolean).slice(0, MOST);
  } catch {
    return [];
  }
}

export class View {
  /** @param {number} length of the recording, in nanoseconds @param {() => Map<number, import("./tracks.js").Row>} [rows] that there are */
  constructor(length, rows = () => new Map()) {
    this.rows = rows;
    this.length = Math.max(length, SHORTEST);
    this.from = 0;
    this.to = this.length;
    this.filter = "";
    /** How tracks are ordered, and rows that stay at the top. */
    this.order = "used";
    /** @type {number[]} */
    this.pins = [];
    /** Names of events that are marked and counted. @type {string[]} */
    this.counted = [];
    /** Fields of events that are counters, by place. @type {(import("./series.js").Field | null)[]} */
    this.series = [];
    /** What is searched among events. */
    this.find = "";
    /** And in which of two recordings. */
    this.findSide = 0;
    /** The time and row of the selected state, or of the `nth` event of its name and thread then. @type {{row: number, time: number, nth: number} | null} */
    this.state = null;
    /** The selected event, if no track has it. @type {import("./kin.js").Picked | null} */
    this.event = null;
    /** The number of the statistics whose states are listed. @type {import("./longest.js").Part | null} */
    this.part = null;
    /** The area that is marked. @type {{from: number, to: number, rows: number[] | null} | null} */
    this.area = null;
    /** Of which thread or task, and when, it is asked why. @type {{row: number, from: number, to: number} | null} */
    this.why = null;
    /** What of the area is shown: empty for the states of its tracks. */
    this.tab = "";
    /** @type {(() => void)[]} */
    this.changed = [];
    /** @type {(() => void)[]} */
    this.restored = [];
    this.timer = 0;
    /** What the page knows of the tracks as they are seen, and of groups of rows, for links. */
    this.tracks = {
      /** @type {() => [string, string][]} */
      place: () => [],
      /** @type {(row: number) => string} */
      named: String,
      /** @type {(rows: number[]) => string[]} */
      grouped: (rows) => rows.map(String),
      /** @type {(text: string) => number[]} */
      members: () => [],
    };
    /** Where the last link is among the tracks. */
    this.linked = ofParts(new URLSearchParams());
    this.moves = 0;
    /** By how much the second of two recordings is moved, in nanoseconds, and what moves it. */
    this.offset = 0;
    /** @type {((offset: number) => void) | null} */
    this.place = null;
  }

  /** Moves the window. @param {number} from @param {number} to */
  set(from, to) {
    const wanted = Math.min(Math.max(to - from, SHORTEST), this.length);
    const begin = Math.min(Math.max(from + (to - from - wanted) / 2, 0), this.length - wanted);
    this.from = begin;
    this.to = begin + wanted;
    this.tell();
  }

  /** @param {number} factor below 1: closer @param {number} time what stays in place */
  zoom(factor, time) {
    const wanted = Math.min(Math.max((this.to - this.from) * factor, SHORTEST), this.length);
    const share = (time - this.from) / (this.to - this.from);
    this.set(time - wanted * share, time + wanted * (1 - share));
  }

  /** @param {number} share of the window, to the right */
  pan(share) {
    const by = (this.to - this.from) * share;
    const from = Math.min(Math.max(this.from + by, 0), this.length - (this.to - this.from));
    this.set(from, from + (this.to - this.from));
  }

  /** Something of it has changed. */
  tell() {
    for (const call of this.changed) call();
    this.settle();
    this.timer = window.setTimeout(() => this.keep(), SETTLED);
  }

  /** Something else is selected: the browser's Back returns to what is seen now, unless it comes from there. */
  step(/** @type {() => void} */ change, /** @type {boolean} */ isRestored = false) {
    if (!isRestored) this.keep();
    change();
    this.tell();
    if (!isRestored) this.keep();
    else this.settle();
  }

  /** The view is not kept by itself: it is there, or is kept already. */
  settle() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /** Leads to the view before: what is seen is kept first, if it has changed a moment ago. */
  back() {
    if (this.timer) this.keep();
    history.back();
  }

  /** Makes it a view that the browser's Back returns to. Folded and scrolled, it is the same one. */
  keep() {
    this.settle();
    const link = `#${this.link()}`;
    if (link === location.hash) return;
    if (unplaced(link) === unplaced(location.hash)) history.replaceState(null, "", link);
    else history.pushState(null, "", link);
  }

  /** Tracks were folded or scrolled: the address has it soon. */
  moved() {
    this.moves ||= window.setTimeout(() => {
      this.moves = 0;
      const link = `#${this.link()}`;
      if (link !== location.hash && unplaced(link) === unplaced(location.hash)) history.replaceState(null, "", link);
    }, SETTLED);
  }

  /** The rows of the area in a link; null if these are too many. */
  inArea() {
    const { area } = this;
    if (!area?.rows) return [];
    const found = area.rows.length <= LONGEST ? area.rows.map(this.tracks.named) : this.tracks.grouped(area.rows);
    return found.length <= LONGEST ? found : null;
  }

  /** The part of the address after `#`. */
  link() {
    /** @type {[string, string][]} */
    const parts = [["v", VERSION], ["from", String(Math.floor(this.from))], ["to", String(Math.ceil(this.to))]];
    const { named } = this.tracks;
    if (this.state) parts.push(["row", named(this.state.row)], ["at", String(this.state.time)]);
    const { area, event } = this;
    if (event) parts.push(["event", event.name], ["at", String(event.at)]);
    if (event && event.tid !== null) parts.push(["tid", event.tid]);
    if (event?.side) parts.push(["of", "b"]);
    const nth = (event ?? this.state)?.nth ?? 0;
    if (nth > 0) parts.push(["nth", String(nth)]);
    const marked = this.inArea();
    if (area && marked) parts.push(["area", `${area.from}-${area.to}`]);
    if (area?.rows && marked) parts.push(["rows", marked.join(".")]);
    if (area && this.part) {
      const { row, classes, state } = this.part;
      parts.push(["list", [named(row), classes.join("."), ...(state === null ? [] : [state])].join("-")]);
    }
    if (this.why) parts.push(["why", [named(this.why.row), this.why.from, this.why.to].join("-")]);
    if (area && this.tab) parts.push(["show", this.tab]);
    if (this.filter) parts.push(["filter", this.filter]);
    if (this.order !== "used") parts.push(["order", this.order]);
    if (this.pins.length) parts.push(["pin", this.pins.map(named).join(".")]);
    if (this.counted.length) parts.push(["count", this.counted.map(encodeURIComponent).join(",")]);
    if (this.series.some(Boolean)) parts.push(["counter", toLink(this.series)]);
    if (this.find) parts.push(["find", this.find]);
    if (this.find && this.findSide) parts.push(["in", "b"]);
    if (this.offset) parts.push(["offset", String(this.offset)]);
    parts.push(...this.tracks.place());
    return parts.map(([key, value]) => `${key}=${encoded(value)}`).join("&");
  }

  /** The rows that are pinned, selected or marked. @returns {(number | undefined)[]} */
  get marked() {
    return [...this.pins, this.state?.row, this.why?.row, this.part?.row, ...(this.area?.rows ?? [])];
  }

  /** Shows what a link says; whatever makes no sense is ignored. */
  restore() {
    const link = new URLSearchParams(location.hash.slice(1));
    this.linked = ofParts(link);
    const version = link.get("v") ?? VERSION;
    // It moves what is marked: first, so that what the link marks stays.
    const offset = link.get("offset") ?? "";
    this.place?.(/^-?\d{1,16}$/.test(offset) ? Number(offset) : 0);
    const number = (/** @type {string | null | undefined} */ text) => (text && /^\d{1,16}$/.test(text) ? Number(text) : null);
    const [from, to] = [number(link.get("from")), number(link.get("to"))];
    let isOfTwo = this.place === null && link.has("offset");
    const rows = this.rows();
    /** A row that is shown, or null. */
    const shown = (/** @type {string | null | undefined} */ text) => {
      const row = names.ofLink(rows, text ?? "");
      if (this.place || row === null || row < SECOND) return row;
      isOfTwo = true;
      return null;
    };
    const [row, at, nth] = [shown(link.get("row")), number(link.get("at")), number(link.get("nth")) ?? 0];
    const side = link.get("of") === "b" ? 1 : 0;
    isOfTwo ||= this.place === null && side === 1;
    const [begin, end] = (link.get("area") ?? "").split("-").map(number);
    const each = (/** @type {string} */ text) => (text.startsWith("all-") ? this.tracks.members(text.slice(4)) : [shown(text)]);
    const marked = link.get("rows")?.split(".").flatMap(each) ?? null;
    const inArea = marked?.filter((row) => row !== null) ?? null;
    this.filter = link.get("filter") ?? "";
    this.order = Object.keys(ORDERS).find((order) => order === link.get("order")) ?? "used";
    const pins = (link.get("pin") ?? "").split(".").map(shown).filter((row) => row !== null);
    this.pins = /** @type {number[]} */ ([...new Set(pins)]).slice(0, MOST_PINS);
    this.counted = counted(link.get("count") ?? "");
    this.series = ofLink(link.get("counter") ?? "", this.place !== null);
    this.find = link.get("find") ?? "";
    this.findSide = this.place && link.get("in") === "b" ? 1 : 0;
    this.state = row !== null && at !== null ? { row, time: at, nth } : null;
    const isEvent = this.state === null && at !== null && link.has("event") && (side === 0 || this.place !== null);
    this.event = isEvent ? { name: link.get("event") ?? "", at, tid: link.get("tid"), nth, side } : null;
    // Without the tracks that it had, it would be an area of all.
    const isArea = begin != null && end != null && begin < end && !(inArea?.length === 0);
    this.area = isArea ? { from: begin, to: end, rows: inArea } : null;
    const [of, classes, only] = (link.get("list") ?? "").split("-");
    const some = (classes ?? "").split(".").map(number);
    const summed = shown(of);
    this.part = this.area && summed !== null && some.every((one) => one !== null && one < 14)
      ? { row: summed, classes: /** @type {number[]} */ (some), state: number(only) }
      : null;
    const [waiter, ...during] = (link.get("why") ?? "").split("-");
    const [slow, since, until] = [shown(waiter), ...during.map(number)];
    this.why = slow != null && since != null && until != null && since < until ? { row: slow, from: since, to: until } : null;
    // Earlier links had `samples=1`.
    const tab = link.get("samples") === "1" ? "samples" : (link.get("show") ?? "");
    this.tab = this.area !== null && isTab(tab) ? tab : "";
    this.from = 0;
    this.to = this.length;
    if (from !== null && to !== null && from < to) this.set(from, to);
    else this.tell();
    this.settle();
    for (const call of this.restored) call();
    if (version !== VERSION) notice(new Error(`This link was made by another version of tracewing (v=${version}): the page may not show all that it says.`));
    if (isOfTwo) notice(new Error("This link is of two recordings: open it with both. What it marks in the other one is not shown."));
  }
}
