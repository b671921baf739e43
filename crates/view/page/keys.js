// @ts-check
// What each key does.

import { $, notice } from "./opening.js";
import { isGroup } from "./tracks.js";

/** @typedef {import("./page.js").Page} Page */

/** @param {Page} page @param {string} name of a key @returns {boolean} whether it does something */
export function press(page, name) {
  const at = page.chosen ? page.tracks.indexOf(page.chosen) : -1;
  /** @type {Record<string, () => void>} */
  const known = {
    f: () => fits(page),
    m: () => page.panels.area({ from: Math.floor((page.found ?? page.view).from), to: Math.ceil((page.found ?? page.view).to), rows: null }),
    "/": () => /** @type {HTMLInputElement} */ ($("find")).select(),
    t: () => $("filter").focus(),
    j: () => void page.search.step(1),
    k: () => void page.search.step(-1),
    "?": () => /** @type {HTMLDialogElement} */ ($("keys")).showModal(),
    escape: () => page.clear(),
    " ": () => page.chosen?.children.length && page.toggle(page.chosen),
    home: () => page.view.set(0, page.view.length),
    arrowdown: () => page.go(at + 1),
    arrowup: () => page.go(Math.max(0, at - 1)),
    enter: () => {
      if (page.chosen && isGroup(page.chosen)) page.toggle(page.chosen);
      else if (page.chosen?.id != null) void page.enter(page.chosen.id);
      else say("Choose a track first: click its name, or press an arrow key.");
    },
    ".": () => next(page, 1, false),
    ",": () => next(page, -1, false),
    n: () => next(page, 1, true),
    y: () => why(page),
    g: () => {
      const { from, to } = page.found ?? page.view.why ?? page.view;
      if (!page.view.area) page.panels.area({ from: Math.floor(from), to: Math.ceil(to), rows: null });
      page.panels.tab("samples");
    },
    l: () => page.live?.toggle(),
    b: () => page.compare?.align() === false && say("Select a state or an event in A and one in B first; then both are aligned."),
    "<": () => page.compare?.step(-1),
    ">": () => page.compare?.step(1),
    c: () => $("share").click(),
    o: () => page.notes.edit(null),
    u: () => void page.marks.open(),
    i: () => (page.chosen ? page.pin(page.chosen) : say("Choose a track first: click its name, or press an arrow key.")),
    delete: () => page.chosen && page.series.remove(page.chosen.id ?? 0),
    e: () => /** @type {HTMLElement | null} */ ($("details").querySelector("button"))?.focus(),
    1: () => markEnd(page, 0),
    2: () => markEnd(page, 1),
    p: () => next(page, -1, true),
  };
  if (!Object.hasOwn(known, name)) return false;
  known[name]();
  return true;
}

/** What a key needs; gone with the next key or click. @param {string} text */
function say(text) {
  notice(new Error(text));
  const [place, end] = [$("notice"), new AbortController()];
  const hide = () => {
    end.abort();
    // An error that came later stays.
    if (place.querySelector("span")?.textContent === text) place.hidden = true;
  };
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, hide, { signal: end.signal, capture: true });
}

/** @param {Page} page @param {-1 | 1} step @param {boolean} ofKind */
function next(page, step, ofKind) {
  if (page.view.state || ofKind && page.kin.isThere) page.next(step, ofKind);
  else say("Select a state first: click it, or press Enter on a track.");
}

/** @param {Page} page */
function why(page) {
  const asked = slow(page);
  if (asked && page.isWaiter(asked.row)) page.panels.why(asked);
  else say("Select a state of a thread or task first, or choose its track: then the page says what it waited for.");
}

/** What is selected, then everything. @param {Page} page */
function fits(page) {
  const some = page.found ?? page.view.area ?? page.view.why;
  const margin = some ? (some.to - some.from) * 0.1 : 0;
  const isSeen = some && Math.abs(page.view.from - (some.from - margin)) < 2 && Math.abs(page.view.to - (some.to + margin)) < 2;
  if (some && !isSeen) page.view.set(some.from - margin, some.to + margin);
  else page.view.set(0, page.view.length);
}

/** Moves the start (0) or the end (1) of the marked area to the pointer, or the middle. @param {Page} page @param {0 | 1} which */
function markEnd(page, which) {
  const time = Math.round(page.pointer() ?? (page.view.from + page.view.to) / 2);
  const { from, to, rows } = page.view.area ?? { from: Math.floor(page.view.from), to: Math.ceil(page.view.to), rows: null };
  const ends = which === 0 ? [time, to > time ? to : Math.ceil(page.view.to)] : [from < time ? from : Math.floor(page.view.from), time];
  if (ends[0] < ends[1]) page.panels.area({ from: ends[0], to: ends[1], rows });
}

/** What is asked by the key: the selected state, else the chosen track in the area or what is seen. @param {Page} page */
function slow(page) {
  const [from, to] = [Math.floor(page.view.from), Math.ceil(page.view.to)];
  const { state, area } = page.view;
  if (state && page.found) {
    const row = page.found.state.thread ?? state.row;
    return { row, from: page.found.from, to: page.found.to };
  }
  const only = area?.rows?.filter((row) => page.isWaiter(row)) ?? [];
  const row = only.length === 1 ? only[0] : page.chosen?.id;
  return row == null ? null : { row, from: area?.from ?? from, to: area?.to ?? to };
}
