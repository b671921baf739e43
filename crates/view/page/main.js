// @ts-check
// The page: opens the recording, and connects view, tracks, picture, and input.

import { Unknown, Unreachable, ask, enter } from "./api.js";
import { axis, fit, minimap } from "./axis.js";
import { CLASSES, color, onScheme, patterns } from "./classes.js";
import { drags, keys, map } from "./input.js";
import { Picture, seen } from "./picture.js";
import { Search, showMatch } from "./search.js";
import { showState } from "./selection.js";
import { showLongest } from "./longest.js";
import { showStatistics, titled } from "./statistics.js";
import { Tiles } from "./tiles.js";
import { duration, exact } from "./time.js";
import { ALL_CPUS, HEIGHT, isGroup, isPart, label, shown, tree } from "./tracks.js";
import { View } from "./window.js";

/** How long the page waits before it looks again how far the index is, in milliseconds. */
const AGAIN = 250;

/** @template {HTMLElement} E @param {string} id @returns {E} */
const $ = (id) => /** @type {E} */ (document.getElementById(id));

const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ ($(id));

/** Gives the token in the address to the server, and takes it out of the address. */
async function present() {
  const link = new URLSearchParams(location.hash.slice(1));
  const token = link.get("token");
  if (token === null) return;
  link.delete("token");
  history.replaceState(null, "", `#${link}`);
  await enter(token);
}

/** Waits for the index. @param {boolean} [again] whether it waits for the server, too @returns {Promise<any>} */
async function opened(again = false) {
  for (;;) {
    let state;
    try {
      state = await ask("state");
    } catch (error) {
      if (!(again && error instanceof Unreachable)) throw error;
      await new Promise((done) => setTimeout(done, AGAIN));
      continue;
    }
    $("name").textContent = state.name;
    document.title = `${state.name} – tracewing`;
    if (state.phase === "ready") return state;
    if (state.phase === "failed") throw new Error(state.why);
    const bar = /** @type {HTMLProgressElement} */ ($("progress"));
    bar.hidden = false;
    if (state.total > 0) [bar.max, bar.value] = [state.total, state.done];
    $("phase").textContent = "The recording is indexed; the next time, it opens at once";
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

/** @param {unknown} error */
function fail(error) {
  const isUnknown = error instanceof Unknown;
  $("phase").textContent = isUnknown ? "This browser is not known" : "The recording cannot be shown";
  $("why").textContent = isUnknown
    ? "Open the address that tracewing view has printed; it has a token."
    : String(error instanceof Error ? error.message : error);
  $("progress").hidden = true;
  $("cover").hidden = false;
}

class Page {
  /** @param {any} facts @param {any} tracks */
  constructor(facts, tracks) {
    this.facts = facts;
    this.roots = tree(tracks.rows);
    /** @type {Map<number, import("./tracks.js").Row>} */
    this.rows = new Map(tracks.rows.map((/** @type {any} */ row) => [row.id, row]));
    this.view = new View(facts.length);
    this.tiles = new Tiles(() => this.redraw(), (error) => this.lost(error));
    this.picture = new Picture(canvas("picture"), canvas("overlay"), this.view, this.tiles, (row) => this.named(row), facts.losses);
    /** @type {import("./tracks.js").Node[]} */
    this.tracks = [];
    /** @type {import("./tracks.js").Node | null} */
    this.chosen = null;
    /** @type {{x: number, y: number} | null} */
    this.at = null;
    /** @type {import("./selection.js").Found | null} */
    this.found = null;
    /** The time of the event under the pointer. @type {number | null} */
    this.pointed = null;
    this.frame = 0;
    this.asked = 0;
    this.timer = 0;
    this.isLost = false;
    const buttons = ["previous", "next", "end"].map((id) => /** @type {HTMLButtonElement} */ ($(id)));
    this.search = new Search(this, /** @type {HTMLInputElement} */ ($("find")), $("matches"), buttons);
    this.leftOut = tracks.left_out;
    this.searched = 0;
    this.view.changed.push(() => [this.redraw(), this.search.moved()]);
    this.view.restored.push(() => this.restored());
    this.fold();
  }

  /** A row as text. @param {number} id */
  named(id) {
    if (id === ALL_CPUS) return "All CPUs";
    const row = this.rows.get(id);
    if (!row) return `row ${id}`;
    if (row.kind === "cpu") return `CPU ${row.number}`;
    if (isPart(row)) return `${row.kind} of ${this.named(row.parent ?? -1)}`;
    return row.name ? `${row.name} ${row.number}` : `${row.kind} ${row.number || "unknown"}`;
  }

  /** The tracks that are shown have changed. */
  fold() {
    this.tracks = shown(this.roots, this.view.filter);
    $("sheet").style.height = `${this.tracks.length * HEIGHT}px`;
    this.redraw();
  }

  redraw() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const scroll = $("scroll");
    const height = scroll.clientHeight;
    const width = Math.max(1, scroll.clientWidth - 270);
    document.body.style.setProperty("--bar", `${scroll.offsetWidth - scroll.clientWidth}px`);
    $("stage").style.height = `${height}px`;
    const top = scroll.scrollTop;
    const cpus = this.facts.rows > 0 && this.roots[0]?.id === ALL_CPUS ? ALL_CPUS : (this.roots[0]?.id ?? null);
    minimap(canvas("minimap"), $("span"), this.view, this.tiles, cpus, this.facts.losses);
    const pointer = this.pointer();
    const grid = axis(canvas("axis"), $("base"), this.view, pointer, this.search.seen);
    this.picture.draw(this.tracks, top, width, height);
    const { state } = this.view;
    const selected = state && this.found ? { row: state.row, ...this.found } : null;
    this.picture.annotate(this.tracks, top, grid, selected, pointer ?? this.pointed, this.search.seen);
    label($("labels"), this.tracks, top, height, this.chosen);
    this.picture.askNames(this.tracks, top, height, () => this.redraw());
    void this.tiles.ask();
    this.tip();
  }

  /** The time under the pointer. @returns {number | null} */
  pointer() {
    const width = canvas("overlay").clientWidth;
    return this.at === null ? null : this.view.from + (this.at.x / width) * (this.view.to - this.view.from);
  }

  /** @param {number} y @returns {import("./tracks.js").Node | undefined} */
  track(y) {
    return this.tracks[Math.floor((y + $("scroll").scrollTop) / HEIGHT)];
  }

  /** What lies under the pointer, beside it. */
  tip() {
    const tip = $("tip");
    const track = this.at && this.at.y >= 0 ? this.track(this.at.y) : undefined;
    const drawn = track && track.id !== null ? this.picture.drawn.get(track.id) : undefined;
    tip.hidden = !this.at || !drawn || !track || track.id === null;
    if (tip.hidden || !this.at || !drawn || !track || track.id === null) return;
    const time = /** @type {number} */ (this.pointer());
    const lines = [track.number ? `${track.name} ${track.number}` : track.name];
    const span = this.picture.spans.get(track.id)?.find(([, from, to]) => from <= time && time < to);
    const state = span && this.picture.states.get(span[0]);
    if (state && span) {
      lines.push(state.thread === null ? state.name : `${this.named(state.thread)}: ${CLASSES[state.class].name}`);
      lines.push(`for ${duration(span[2] - span[1])}`);
    } else lines.push(...this.shares(drawn, track));
    tip.replaceChildren(...lines.map((text, at) => {
      const line = document.createElement("div");
      line.textContent = text;
      if (at > 0) line.className = "dim";
      return line;
    }));
    const box = canvas("overlay").getBoundingClientRect();
    const [x, y] = [box.left + this.at.x, box.top + this.at.y];
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    tip.style.left = `${x + 16 + width > innerWidth ? x - 12 - width : x + 16}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? y - 10 - height : y + 18}px`;
  }

  /** What a column of the picture shows, in words. @param {Uint8Array} drawn @param {import("./tracks.js").Node} track */
  shares(drawn, track) {
    const width = canvas("picture").width;
    const column = Math.min(width - 1, Math.floor(((this.at?.x ?? 0) / canvas("overlay").clientWidth) * width));
    const heights = [...drawn.slice(column * CLASSES.length, (column + 1) * CLASSES.length)].map((height, of) => ({ height, of }));
    const some = heights.filter(({ height }) => height > 0).sort((a, b) => b.height - a.height);
    const whole = Math.max(1, Math.round((HEIGHT - 6) * (devicePixelRatio || 1)));
    if (some.length === 0) return [isPart(track) ? "none" : "nothing is known"];
    const per = duration((this.view.to - this.view.from) / width);
    const parts = some.map(({ height, of }) => `${CLASSES[of].name} ${Math.round((height / whole) * 100)} %`);
    return [`within ${per}, about`, ...parts.slice(0, 4)];
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
    const track = this.track(y);
    if (!track) return;
    this.chosen = track;
    const time = this.view.from + (x / canvas("overlay").clientWidth) * (this.view.to - this.view.from);
    const { from, to } = this.view;
    if (isGroup(track)) this.area({ from: Math.floor(from), to: Math.ceil(to), rows: track.id === null ? all(track) : [track.id] });
    else if (track.id === null) this.clear();
    else void this.select(track.id, Math.floor(time), 0);
  }

  /**
   * Selects a state; a further one (`step`) only of the same kind if one is given.
   * @param {number} row @param {number} time @param {-1 | 0 | 1} step @param {number} [kind]
   * @param {boolean} [isRestored] whether the view is the last one, or a link's
   */
  async select(row, time, step, kind, isRestored = false) {
    const turn = ++this.asked;
    const found = await ask("at", { row, time, step, kind }).catch((error) => this.lost(error));
    if (turn !== this.asked) return;
    if (!found) {
      if (step === 0) this.clear();
      return;
    }
    this.view.step(() => {
      [this.found, this.view.area, this.view.part, this.pointed] = [found, null, null, null];
      this.view.state = { row, time: found.from };
      if (found.to <= this.view.from || found.from >= this.view.to) {
        const half = (this.view.to - this.view.from) / 2;
        this.view.set((found.from + found.to) / 2 - half, (found.from + found.to) / 2 + half);
      }
    }, isRestored);
    this.open();
    showState($("details"), row, found, this.rows.get(row), this.ways());
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
      point: (time) => {
        this.pointed = time;
        this.redraw();
      },
      close: () => this.clear(),
    };
  }

  /** Selects the state after the selected one, or before it. @param {-1 | 1} step @param {boolean} ofKind */
  next(step, ofKind) {
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
      const marked = seen(this.tracks, $("scroll").scrollTop, $("scroll").clientHeight)
        .filter((one) => one.y < bottom && one.y + HEIGHT > top).map(({ track }) => track);
      rows = [...new Set(marked.flatMap(ids))];
    }
    this.area({ from, to, rows });
  }

  /** @param {{from: number, to: number, rows: number[] | null}} area */
  area(area) {
    this.asked++;
    [this.found, this.view.state, this.view.part, this.pointed] = [null, null, null, null];
    this.view.area = area;
    this.view.tell();
    this.open();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      if (this.view.area !== area || this.view.part) return;
      void showStatistics($("details"), area, {
        lost: (error) => this.lost(error),
        named: (row) => this.named(row),
        close: () => this.clear(),
        choose: (row) => this.choose(row),
        longest: (part) => this.longest(part),
      });
    }, 80);
  }

  /**
   * Lists the states of which a number in the statistics of the area is the sum.
   * @param {import("./longest.js").Part} part @param {boolean} [isRestored]
   */
  longest(part, isRestored = false) {
    const { area } = this.view;
    if (!area) return;
    clearTimeout(this.timer);
    this.view.step(() => (this.view.part = part), isRestored);
    this.open();
    void showLongest($("details"), area, part, {
      lost: (error) => this.lost(error),
      named: (row) => this.named(row),
      close: () => this.clear(),
      select: (row, time) => {
        this.choose(row);
        void this.select(row, time, 0);
      },
      statistics: () => this.view.step(() => this.area({ ...area })),
    }, titled(part.classes));
  }

  /** Nothing is selected. */
  clear() {
    this.asked++;
    [this.found, this.view.state, this.view.area, this.view.part, this.pointed] = [null, null, null, null, null];
    $("details").replaceChildren();
    $("details").hidden = true;
    $("hints").hidden = false;
    this.view.tell();
  }

  /** Opens the panel. */
  open() {
    $("hints").hidden = true;
    $("details").hidden = false;
  }

  /** Of very many tracks, the page has the busiest: the server looks among the others. */
  async searchTracks() {
    const text = this.view.filter.trim();
    if (this.leftOut === 0 || text === "") return;
    const turn = ++this.searched;
    const answer = await ask("search", { text }).catch((error) => this.lost(error));
    if (turn !== this.searched || !answer) return;
    const more = answer.rows.filter((/** @type {import("./tracks.js").Row} */ row) => !this.rows.has(row.id));
    if (more.length === 0) return;
    for (const row of more) this.rows.set(row.id, row);
    this.roots = tree([...this.rows.values()]);
    this.fold();
  }

  /** Shows a match of the search, and the track of its thread. @param {number} number @param {number} at */
  show(number, at) {
    this.asked++;
    this.view.step(() => {
      [this.found, this.view.state, this.view.area, this.view.part, this.pointed] = [null, null, null, null, at];
      const half = (this.view.to - this.view.from) / 2;
      if (at < this.view.from || at > this.view.to) this.view.set(at - half, at + half);
    });
    this.open();
    showMatch($("details"), `Match ${(number + 1).toLocaleString("en")} of “${this.search.text}”`, at, this.ways());
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
    if (!unfold(this.roots)) return;
    this.fold();
    this.go(this.tracks.findIndex(({ id }) => id === row));
  }

  /** @param {number} at */
  go(at) {
    if (!this.tracks[at]) return;
    this.chosen = this.tracks[at];
    const scroll = $("scroll");
    if (at * HEIGHT < scroll.scrollTop) scroll.scrollTop = at * HEIGHT;
    else if ((at + 1) * HEIGHT > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = (at + 1) * HEIGHT - scroll.clientHeight;
    this.redraw();
  }

  /** @param {import("./tracks.js").Node} track */
  toggle(track) {
    track.folded = !track.folded;
    this.fold();
  }

  /** A link has been opened, or the browser's Back. */
  restored() {
    /** @type {HTMLInputElement} */ ($("filter")).value = this.view.filter;
    this.fold();
    if (this.view.find !== this.search.text) void this.search.start(this.view.find, false);
    const { state, area, part } = this.view;
    if (area) {
      this.area(area);
      if (part) this.longest(part, true);
    } else if (state && this.rows.has(state.row)) void this.select(state.row, state.time, 0, undefined, true);
    else this.clear();
    clearTimeout(this.view.timer);
  }

  /** An answer has not come. @param {unknown} error */
  lost(error) {
    if (error instanceof Unknown) fail(error);
    else if (error instanceof Unreachable) void this.reconnect();
    else console.error(error);
  }

  /** Waits until the server is there again. */
  async reconnect() {
    if (this.isLost) return;
    this.isLost = true;
    $("phase").textContent = "The server has ended";
    $("why").textContent = "This page continues when tracewing view runs again at the same port.";
    $("progress").hidden = true;
    $("cover").hidden = false;
    try {
      const { begin_ns, length, events } = await opened(true);
      const isSame = begin_ns === this.facts.begin_ns && length === this.facts.length && events === this.facts.events;
      if (!isSame) location.reload();
    } catch (error) {
      fail(error);
      return;
    }
    this.isLost = false;
    this.tiles.refused.clear();
    $("cover").hidden = true;
    this.redraw();
  }

  /** What is selected, then everything. */
  fits() {
    const some = this.found ?? this.view.area;
    const margin = some ? (some.to - some.from) * 0.1 : 0;
    const isSeen = some && Math.abs(this.view.from - (some.from - margin)) < 2 && Math.abs(this.view.to - (some.to + margin)) < 2;
    if (some && !isSeen) this.view.set(some.from - margin, some.to + margin);
    else this.view.set(0, this.view.length);
  }

  /** @param {string} name of a key @returns {boolean} */
  key(name) {
    const at = this.chosen ? this.tracks.indexOf(this.chosen) : -1;
    /** @type {Record<string, () => void>} */
    const known = {
      f: () => this.fits(),
      m: () => this.area({ from: Math.floor((this.found ?? this.view).from), to: Math.ceil((this.found ?? this.view).to), rows: null }),
      "/": () => /** @type {HTMLInputElement} */ ($("find")).select(),
      t: () => $("filter").focus(),
      j: () => void this.search.step(1),
      k: () => void this.search.step(-1),
      "?": () => /** @type {HTMLDialogElement} */ ($("keys")).showModal(),
      escape: () => this.clear(),
      " ": () => this.chosen?.children.length && this.toggle(this.chosen),
      home: () => this.view.set(0, this.view.length),
      arrowdown: () => this.go(at + 1),
      arrowup: () => this.go(Math.max(0, at - 1)),
      enter: () => {
        if (this.chosen && isGroup(this.chosen)) this.toggle(this.chosen);
        else if (this.chosen?.id != null) void this.select(this.chosen.id, Math.floor((this.view.from + this.view.to) / 2), 0);
      },
      ".": () => this.next(1, false),
      ",": () => this.next(-1, false),
      n: () => this.next(1, true),
      p: () => this.next(-1, true),
    };
    if (!Object.hasOwn(known, name)) return false;
    known[name]();
    return true;
  }
}

/**
 * The rows of a track, of a folded one those in it: a group stands for its members.
 * @param {import("./tracks.js").Node} node @returns {number[]}
 */
function ids(node) {
  if (node.children.length === 0) return node.id === null ? [] : [node.id];
  if (!node.folded) return [];
  return node.id === null ? all(node) : [node.id];
}

/** The rows in a heading. @param {import("./tracks.js").Node} node */
function all(node) {
  return node.children.flatMap(({ id }) => (id === null ? [] : [id]));
}

/** Colours with their names. */
function legend() {
  $("legend").replaceChildren(...CLASSES.map(({ name }, of) => {
    const item = document.createElement("li");
    const sample = document.createElement("canvas");
    [sample.width, sample.height] = [14, 12];
    const context = /** @type {CanvasRenderingContext2D} */ (sample.getContext("2d"));
    const image = context.createImageData(14, 12);
    const pixels = new Uint32Array(image.data.buffer);
    const pattern = patterns()[of];
    for (let at = 0; at < pixels.length; at++) pixels[at] = pattern[((Math.floor(at / 14) & 3) << 2) | (at % 14 & 3)];
    context.putImageData(image, 0, 0);
    sample.style.outline = `1px solid ${color(of === 9 || of === 7 ? 0 : of)}`;
    item.append(sample, name);
    return item;
  }));
}

/** @param {Page} page */
function connect(page) {
  drags(canvas("overlay"), page, false);
  drags(canvas("axis"), page, true);
  map(canvas("minimap"), page);
  keys(page);
  $("scroll").addEventListener("scroll", () => page.redraw());
  new ResizeObserver(() => page.redraw()).observe($("scroll"));
  onScheme(() => [legend(), page.redraw()]);
  $("labels").addEventListener("click", (event) => {
    const label = /** @type {HTMLElement} */ (event.target).closest(".track");
    const track = page.tracks[Number(/** @type {HTMLElement | null} */ (label)?.dataset.at ?? -1)];
    if (!track) return;
    page.chosen = track;
    if (track.children.length) page.toggle(track);
    else page.redraw();
  });
  const filter = /** @type {HTMLInputElement} */ ($("filter"));
  filter.addEventListener("input", () => {
    page.view.filter = filter.value;
    $("scroll").scrollTop = 0;
    page.fold();
    page.view.tell();
    void page.searchTracks();
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Enter") $("labels").focus();
  });
  $("back").addEventListener("click", () => history.back());
  $("fit").addEventListener("click", () => page.key("f"));
  $("mark").addEventListener("click", () => page.key("m"));
  $("help").addEventListener("click", () => page.key("?"));
  window.addEventListener("popstate", () => page.view.restore());
}

async function start() {
  await present();
  const facts = await opened();
  const page = new Page(facts, await ask("tracks"));
  const losses = facts.losses.length + facts.losses_left_out;
  $("about").textContent = [
    `${facts.events.toLocaleString("en")} events`,
    ...(page.leftOut ? [`the ${page.rows.size.toLocaleString("en")} busiest of ${facts.rows.toLocaleString("en")} tracks`] : []),
    ...(losses ? [`events missing in ${losses === 1 ? "1 place" : `${losses} places`}`] : []),
    ...(facts.is_cut_off ? ["a part could not be read"] : []),
    `from ${facts.begin}`,
  ].join(" · ");
  $("about").title = $("about").textContent;
  legend();
  connect(page);
  page.view.restore();
  if (!location.hash.includes("v=")) history.replaceState(null, "", `#${page.view.link()}`);
  $("cover").hidden = true;
  // For tests, and for whoever wants the numbers of the picture.
  Object.assign(window, {
    tracewing: {
      view: page.view,
      found: () => page.found,
      search: page.search,
      select: (/** @type {number} */ row, /** @type {number} */ time) => page.select(row, time, 0),
      isIdle: () => page.tiles.isIdle && page.frame === 0,
      drawn: () => Object.fromEntries([...page.picture.drawn].map(([row, heights]) => [row, [...heights]])),
      exact,
    },
  });
  fit(canvas("overlay"));
}

start().catch(fail);
