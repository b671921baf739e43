// @ts-check
// The picture: tracks as pixels, and on a canvas above them names, grid, losses, selection.

import { ask } from "./api.js";
import { fit } from "./axis.js";
import { CLASSES, PARTS, color, ink, patterns, textOn } from "./classes.js";
import { hatch } from "./losses.js";
import { Rows, Sheet, columns, counts, levels, marks, paint } from "./pixels.js";
import { beginOf, bySide, isSeries, sideOf } from "./sides.js";
import { ROOM } from "./store.js";
import { BUCKETS } from "./tiles.js";
import { HEIGHT, isGroup, isMarks } from "./tracks.js";

/** @typedef {import("./tracks.js").Node} Node */
/** @typedef {{class: number, name: string, about: string, thread: number | null}} State */

/** Space above and below the pixels of a track. */
const MARGIN = 3;
/** Shortest state with a name in it, in pixels. */
const NAMED = 34;
/** Matches of a search that have lines through the picture, at most. */
const LINES = 30;
/** How long nothing must move before names are asked, in milliseconds. */
const STILL = 120;

export class Picture {
  /**
   * @param {HTMLCanvasElement} pixels @param {HTMLCanvasElement} overlay @param {import("./window.js").View} view
   * @param {import("./tiles.js").Tiles} tiles @param {(row: number) => string} named names of threads
   */
  constructor(pixels, overlay, view, tiles, named) {
    this.pixels = pixels;
    this.overlay = overlay;
    this.view = view;
    this.tiles = tiles;
    this.named = named;
    /** By time. @type {import("./losses.js").Loss[]} */
    this.losses = [];
    this.sheet = new Sheet();
    this.rows = {
      drawn: new Rows(Uint8Array), counted: new Rows(Uint32Array), marked: new Rows(Uint32Array), valued: new Rows(Float32Array),
    };
    /** Of counters, the values that are seen. @type {Map<number, [number, number, number][]>} */
    this.values = new Map();
    /** And the values at the lower and the upper edge of the track. @type {Map<number, [number, number]>} */
    this.edges = new Map();
    /** @type {Map<number, [number, number, number][]>} */
    this.spans = new Map();
    /** @type {Map<number, State>} */
    this.states = new Map();
    this.spansOf = "";
    this.timer = 0;
    /** What arrows there are: what they mean, from which row to which, when. @type {[string, number, number, number][]} */
    this.shownArrows = [];
  }

  /** What was drawn: by row, the heights of the classes of each column. @returns {Map<number, Uint8Array>} */
  get drawn() {
    return this.rows.drawn.used;
  }

  /** Of events, how many lie in each column. @returns {Map<number, Uint32Array>} */
  get counted() {
    return this.rows.counted.used;
  }

  /** Of events, the name of one in each column. @returns {Map<number, Uint32Array>} */
  get marked() {
    return this.rows.marked.used;
  }

  /** Of counters, the least, the greatest and the last value in each column. @returns {Map<number, Float32Array>} */
  get valued() {
    return this.rows.valued.used;
  }

  /**
   * The exponent of the buckets: not longer than a pixel, unless the tiles of so many rows would not fit into memory.
   * @param {number} width @param {number} rows
   */
  shift(width, rows) {
    const length = this.view.to - this.view.from;
    // A tile may begin before what is seen, and one end after it.
    const most = Math.max(256, ROOM / Math.max(1, rows) - 2 * 2 ** BUCKETS);
    return Math.max(0, Math.floor(Math.log2(length / width)), Math.ceil(Math.log2(length / most)));
  }

  /** What is seen, in the time of a row's recording. @param {number} row */
  times(row) {
    const begin = beginOf(sideOf(row));
    return [this.view.from - begin, this.view.to - begin];
  }

  /** Asks for what will be seen, before it is drawn: it often comes in time. @param {import("./tracks.js").Layout} layout */
  expect(layout) {
    if (this.tiles.isBusy) return;
    this.tiles.begin();
    const seen = layout.seen();
    const shift = this.shift(this.pixels.width, seen.length);
    for (const { track: { id } } of seen) {
      if (id === null) continue;
      const [from, to] = this.times(id);
      this.tiles.get(id, from, to, shift);
    }
    void this.tiles.ask();
  }

  /**
   * @param {import("./tracks.js").Layout} layout @param {number} width @param {number} height
   */
  draw(layout, width, height) {
    for (const canvas of [this.pixels, this.overlay]) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const { context, ratio } = fit(this.pixels);
    const wide = this.pixels.width;
    const { image, target, sums } = this.sheet.blank(context, wide, this.pixels.height);
    const seen = layout.seen();
    const [colors, shift] = [patterns(), this.shift(wide, seen.length)];
    for (const rows of Object.values(this.rows)) rows.begin();
    for (const { track, at, y } of seen) {
      const [first, last] = [Math.round((y + MARGIN) * ratio), Math.round((y + HEIGHT - MARGIN) * ratio)];
      if (at < layout.pinned) target.fill(0, Math.round(y * ratio) * wide, Math.round((y + HEIGHT) * ratio) * wide);
      if (track.id === null) continue;
      if (isMarks(track)) {
        this.events(track.id, target, [first, last], shift, ratio);
        continue;
      }
      const [from, to] = this.times(track.id);
      const tiles = this.tiles.get(track.id, from, to, shift);
      if (track.counter) {
        const edges = levels(tiles, from, to, wide, track.counter, isSeries(track.id), sums, this.rows.valued.of(track.id, wide * 3));
        this.edges.set(track.id, edges);
      } else {
        columns(tiles, from, to, wide, sums);
      }
      paint(target, wide, first, last - first, wide, sums, colors, this.rows.drawn.of(track.id, wide * CLASSES.length));
    }
    context.putImageData(image, 0, 0);
  }

  /** @param {number} row @param {Uint32Array} target @param {number[]} lines @param {number} shift @param {number} ratio */
  events(row, target, [first, last], shift, ratio) {
    const wide = this.pixels.width;
    const [found, names, kept] = [this.rows.counted.of(row, wide), this.rows.marked.of(row, wide), this.rows.drawn.of(row, wide * CLASSES.length)];
    const [from, to] = this.times(row);
    counts(this.tiles.get(row, from, to, shift), from, to, wide, found, names);
    marks(target, wide, first, last - first, Math.round(2 * ratio), found, names, kept);
  }

  /**
   * @param {import("./tracks.js").Layout} layout @param {number[]} grid where lines are
   * @param {(import("./selection.js").Found & {row: number}) | null} state the selected one
   * @param {number | null} pointer the pointer's time @param {import("./search.js").Marks} found matches of the search
   * @param {import("./notes.js").Notes} notes @param {Map<number, import("./filling.js").Filling>} fillings
   */
  annotate(layout, grid, state, pointer, found, notes, fillings) {
    const { context, width, height } = fit(this.overlay);
    context.clearRect(0, 0, width, height);
    context.globalAlpha = 0.5;
    context.fillStyle = ink("--line");
    for (const x of grid) context.fillRect(x, 0, 1, height);
    context.globalAlpha = 1;
    const scale = width / (this.view.to - this.view.from);
    const x = (/** @type {number} */ time) => (time - this.view.from) * scale;
    for (const { track, at, y } of layout.seen()) {
      if (at < layout.pinned) context.clearRect(0, y, width, HEIGHT);
      const { area } = this.view;
      if (area && isMarked(track, area.rows)) {
        context.fillStyle = ink("--accent");
        context.globalAlpha = 0.16;
        context.fillRect(x(area.from), y, Math.max(1, x(area.to) - x(area.from)), HEIGHT);
        context.globalAlpha = 1;
      }
      if (track.extent) extent(context, track, y, x, width);
      if (track.id === null) continue;
      if (isMarks(track)) this.eventNames(context, track.id, y, x, width);
      else this.names(context, track.id, y, x, width);
      if (track.end <= this.view.from) hint(context, "◂ earlier", 6, y);
      else if (track.begin >= this.view.to) hint(context, "later ▸", width - 56, y);
      hatch(context, track, this.losses, y, this.view, x);
      if (state && state.row === track.id) {
        context.strokeStyle = ink("--ink");
        context.lineWidth = 2;
        const [left, right] = [Math.max(x(state.from), -4), Math.min(x(state.to), width + 4)];
        context.strokeRect(left, y + 1, Math.max(2, right - left), HEIGHT - 2);
      }
    }
    for (const filling of fillings.values()) filling.draw(context, x, width, layout);
    if (layout.pinned > 0) {
      context.fillStyle = ink("--faint");
      context.fillRect(0, layout.pinned * HEIGHT - 1, width, 1);
    }
    this.shownArrows = [];
    if (state) this.arrows(context, layout, state, x);
    if (this.view.area) {
      context.fillStyle = ink("--accent");
      for (const time of [this.view.area.from, this.view.area.to]) context.fillRect(Math.round(x(time)), 0, 1, height);
    }
    // Many of them are seen on the axis only.
    if (found.parts.length <= LINES) {
      context.fillStyle = ink("--found");
      for (const [part] of found.parts) {
        context.fillRect(Math.round(x(found.from + ((part + 0.5) / found.count) * (found.to - found.from))), 0, 1, height);
      }
    }
    notes.draw(context, layout, x, width, height);
    if (pointer !== null) {
      context.fillStyle = ink("--faint");
      context.fillRect(Math.round(x(pointer)), 0, 1, height);
    }
  }

  /**
   * Arrows to the selected state: what woke it or led to it, and who released its lock.
   * @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Layout} layout
   * @param {import("./selection.js").Found & {row: number}} state @param {(time: number) => number} x
   */
  arrows(context, layout, { row, waker, cause, released }, x) {
    for (const [what, other] of /** @type {const} */ ([["wakes", waker], ["wakes", cause], ["releases", released]])) {
      if (other?.row == null) continue;
      const [from, to] = layout.places([other.row, row]);
      if (from === null || to === null || from === to) continue;
      arrow(context, [from, to], x(other.at), what);
      this.shownArrows.push([what, other.row, row, other.at]);
    }
  }

  /** Marks of events with chosen names. @param {import("./tracks.js").Layout} layout @param {import("./marks.js").Marks} marks */
  mark(layout, marks) {
    const { context, width } = fit(this.overlay);
    marks.draw(context, layout, width);
  }

  /**
   * A critical path: a bar below each step, and lines from one to the next.
   * @param {import("./tracks.js").Layout} layout @param {import("./why.js").Step[]} steps
   */
  path(layout, steps) {
    const { context, width } = fit(this.overlay);
    const scale = width / (this.view.to - this.view.from);
    const x = (/** @type {number} */ time) => (time - this.view.from) * scale;
    context.fillStyle = ink("--found");
    let last = null;
    for (const { actor, from, to } of steps) {
      const [place] = actor.row === null ? [null] : layout.places([actor.row]);
      if (to > this.view.from && from < this.view.to) {
        if (place !== null) context.fillRect(Math.max(0, x(from)), place + HEIGHT / 2 - 4, Math.max(2, Math.min(width, x(to)) - Math.max(0, x(from))), 3);
        if (last !== null && place !== null && last !== place && from >= this.view.from) {
          context.globalAlpha = 0.4;
          context.fillRect(Math.round(x(from)), Math.min(last, place) + HEIGHT / 2 - 4, 1, Math.abs(last - place));
          context.globalAlpha = 1;
        }
      }
      last = place ?? last;
    }
  }

  /**
   * Names in the states of a row.
   * @param {CanvasRenderingContext2D} context @param {number} row @param {number} y
   * @param {(time: number) => number} x @param {number} width
   */
  names(context, row, y, x, width) {
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    for (const [number, from, to] of this.spans.get(row) ?? []) {
      const [left, right] = [Math.max(0, x(from)), Math.min(width, x(to))];
      const state = this.states.get(number);
      // Calls that follow each other, and locks, are seen one by one.
      if (state && PARTS.includes(state.class) && x(from) > 0 && right - left > 2) {
        context.fillStyle = ink("--paper");
        context.fillRect(Math.round(x(from)), y + MARGIN, 1, HEIGHT - 2 * MARGIN);
      }
      if (right - left < NAMED || !state) continue;
      const text = state.thread === null ? state.name : this.named(state.thread);
      const fits = context.measureText(text).width <= right - left - 8;
      const fitted = cut(context, fits ? text : state.about || text, right - left - 8);
      if (!fitted) continue;
      context.fillStyle = textOn(state.class);
      // Hatching is no ground for text.
      if (CLASSES[state.class].hatch) {
        context.fillStyle = color(state.class);
        context.fillRect(left + 2, y + 5, context.measureText(fitted).width + 4, HEIGHT - 10);
        context.fillStyle = textOn(state.class);
      }
      context.fillText(fitted, left + 4, y + HEIGHT / 2 + 0.5);
    }
  }

  /**
   * Names of events, where there is room up to the next one.
   * @param {CanvasRenderingContext2D} context @param {number} row @param {number} y
   * @param {(time: number) => number} x @param {number} width
   */
  eventNames(context, row, y, x, width) {
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = ink("--ink");
    const spans = this.spans.get(row) ?? [];
    for (const [at, [number, from]] of spans.entries()) {
      const right = Math.min(width, at + 1 < spans.length ? x(spans[at + 1][1]) : width);
      const state = this.states.get(number);
      if (!state || x(from) < 0 || right - x(from) < NAMED) continue;
      context.fillText(cut(context, state.about, right - x(from) - 10), x(from) + 6, y + HEIGHT / 2 + 0.5);
    }
  }

  /**
   * Asks for the states of what is seen, once it is still.
   * @param {import("./tracks.js").Layout} layout @param {boolean} scrolls whether it is never still
   * @param {() => void} came @param {import("./series.js").Series} series
   */
  askNames(layout, scrolls, came, series) {
    const rows = [...new Set(layout.seen().map(({ track }) => track)
      .filter((track) => track.id !== null && !isGroup(track)).map(({ id }) => Number(id)))];
    const asked = { from: Math.floor(this.view.from), to: Math.ceil(this.view.to), rows };
    const key = JSON.stringify(asked);
    if (key === this.spansOf || (scrolls && this.timer)) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      this.timer = 0;
      this.spansOf = key;
      const each = bySide(rows.filter((row) => !isSeries(row))).filter(({ length }) => length > 0);
      const [answers, own] = await Promise.all([
        Promise.all(each.map((rows) => ask("spans", { ...asked, rows }))).catch(() => null), series.values(rows.filter(isSeries), asked),
      ]);
      if (!answers || this.spansOf !== key) return;
      this.spans = new Map(answers.flatMap(({ rows }) => Object.entries(rows)).map(([row, spans]) => [Number(row), spans ?? []]));
      const values = answers.flatMap(({ values }) => Object.entries(values)).map(([row, values]) => /** @type {[number, [number, number, number][]]} */ ([Number(row), values ?? []]));
      this.values = new Map([...values, ...own]);
      this.states = new Map(answers.flatMap(({ states }) => Object.entries(states)).map(([state, named]) => [Number(state), named]));
      came();
    }, STILL);
  }
}

/**
 * An arrow from a row to another at a time: what the one did for the other.
 * @param {CanvasRenderingContext2D} context @param {[number, number]} places @param {number} x @param {string} what
 */
function arrow(context, [from, to], x, what) {
  const down = from < to ? 1 : -1;
  context.strokeStyle = context.fillStyle = ink("--accent");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x, from);
  context.lineTo(x, to - down * 14);
  context.stroke();
  context.beginPath();
  context.arc(x, from, 3.5, 0, 7);
  context.moveTo(x, to - down * 9);
  context.lineTo(x - 5, to - down * 17);
  context.lineTo(x + 5, to - down * 17);
  context.fill();
  // Between neighbours there is no room.
  if (Math.abs(to - from) < 2 * HEIGHT) return;
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  const width = context.measureText(what).width;
  context.fillStyle = ink("--paper");
  context.fillRect(x + 6, (from + to) / 2 - 8, width + 8, 16);
  context.fillStyle = ink("--accent");
  context.fillText(what, x + 10, (from + to) / 2 + 0.5);
}

/**
 * Of a recording that is compared, from when to when it lasts.
 * @param {CanvasRenderingContext2D} context @param {Node} track @param {number} y @param {(time: number) => number} x
 * @param {number} width
 */
function extent(context, track, y, x, width) {
  const [left, right] = [Math.max(-4, x(track.begin)), Math.min(width + 4, x(track.end))];
  if (!track.extent || left >= right) return;
  context.fillStyle = ink("--chosen");
  context.strokeStyle = ink("--accent");
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(left + 0.5, y + 3.5, Math.max(2, right - left - 1), HEIGHT - 7, 4);
  context.fill();
  context.stroke();
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = ink("--ink");
  const text = cut(context, track.extent, right - Math.max(0, left) - 16);
  if (text) context.fillText(text, Math.max(0, left) + 8, y + HEIGHT / 2 + 0.5);
}

/** Where the states of a track are that has none here. */
function hint(/** @type {CanvasRenderingContext2D} */ context, /** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ y) {
  context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = ink("--faint");
  context.fillText(text, x, y + HEIGHT / 2 + 0.5);
}

/** Whether an area of these rows has a track, or what is folded in it. @param {Node} track @param {number[] | null} rows */
function isMarked(track, rows) {
  const isIt = (/** @type {number} */ row) => row === track.id || row === track.parent || row === track.group || row === track.whole;
  return rows === null || rows.some((row) => isIt(row) || (track.folded && has(track, row)));
}

/** Whether a row is in a track. @param {Node} track @param {number} row @returns {boolean} */
function has(track, row) {
  return track.children.some((child) => child.id === row || has(child, row));
}

/** A text, cut so that it fits. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function cut(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [least, most] = [0, text.length];
  while (least < most) {
    const middle = (least + most + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) least = middle;
    else most = middle - 1;
  }
  return least < 2 ? "" : `${text.slice(0, least)}…`;
}
