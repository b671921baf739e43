// @ts-check
// What is shown of the selected state: what it is, how it came about and what followed; the events around it.

import { CLASSES, EVENT } from "./classes.js";
import { Events } from "./events.js";
import { result } from "./job.js";
import { sideOf } from "./sides.js";
import { duration, exact } from "./time.js";

/** @typedef {{number: number, state: import("./picture.js").State, from: number, to: number}} Neighbour */
/** What another thread did. @typedef {{at: number, row: number | null, text: string}} Other */
/**
 * @typedef {Neighbour & {waker: Other | null, cause: Other | null, released: Other | null, ran_on: number | null,
 *   holders: number[] | null, before: Neighbour | null, after: Neighbour | null, is_open: boolean}} Found
 */
/**
 * What leads on from the selection.
 * @typedef {object} Ways
 * @property {(row: number) => string} named
 * @property {(row: number, time: number) => void} go selects another state
 * @property {(step: -1 | 1, ofKind: boolean) => void} step
 * @property {(events: Events, event: import("./events.js").Event, step: -1 | 1, place: HTMLElement) => void} kin selects another event of the same name
 * @property {(events: Events, event: import("./events.js").Event) => void} opened the fields of an event are shown
 * @property {(time: number | null) => void} point shows a time in the picture
 * @property {() => void} close
 * @property {() => void} why shows what it waited for
 * @property {(of: import("./series.js").Field) => void} counter shows a field of events as a counter
 * @property {number} [side] of which recording it is, where no track says it
 */

/** What samples are called. */
export const SAMPLE = "profile:sample";

/** @param {string} name @param {string} [text] @param {string} [className] */
export function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** A button that is a part of a text. @param {string} text @param {() => void} act @param {string} [title] */
export function link(text, act, title) {
  const made = element("button", text, "link");
  if (title) made.title = title;
  made.addEventListener("click", act);
  return made;
}

/** A heading with a button that closes. @param {string} text @param {string} more @param {() => void} close */
export function head(text, more, close) {
  const head = element("h2", text);
  head.append(element("small", more));
  const button = element("button", "×", "close");
  button.setAttribute("aria-label", "Close");
  button.addEventListener("click", close);
  head.append(button);
  return head;
}

/** What a state is called: of a CPU, the thread. @param {Neighbour} of @param {Ways} ways */
function called({ state }, ways) {
  return state.thread === null ? state.name : `${ways.named(state.thread)}: ${CLASSES[state.class].name}`;
}

/**
 * Ends when the events around it are there.
 * @param {HTMLElement} place @param {number} row @param {Found} found
 * @param {import("./tracks.js").Row | undefined} track @param {Ways} ways
 * @param {number} nth how many events of its thread with its name and time come before it, if it is one
 */
export function showState(place, row, found, track, ways, nth) {
  const facts = element("div");
  const title = head(ways.named(row), "", ways.close);
  const isThread = track?.kind === "thread" || track?.kind === "task" || found.state.thread !== null;
  if (isThread && found.state.class !== EVENT) title.insertBefore(link("Why so long?", ways.why, "What it waited for (Y)"), title.lastElementChild);
  const list = description(row, found, ways);
  facts.append(title, steps(ways, found.state.class === EVENT), list);
  const events = element("div", undefined, "events");
  place.className = "";
  place.replaceChildren(facts, events);
  const tid = track?.kind === "thread" ? track.number : null;
  const picked = found.state.class === EVENT ? { name: found.state.name, at: found.from, side: sideOf(row), tid, nth } : null;
  if (track?.kind === "thread" && found.state.name === SAMPLE) void functions(list, track.id, found.from);
  return new Events(events, found, track, ways, picked).show();
}

/** The functions of a sample, the innermost first. @param {HTMLElement} list @param {number} thread @param {number} at */
async function functions(list, thread, at) {
  const [term, value] = [element("dt", "function"), element("dd")];
  list.firstElementChild?.nextElementSibling?.after(term, value);
  try {
    const answer = await result(value, "flame", { from: at, to: at + 1, rows: [thread] });
    if (!answer) return;
    // The first one is the process.
    const names = answer.nodes.slice(1).map((/** @type {{name: string}} */ { name }) => name).reverse();
    value.textContent = names[0] ?? "unknown";
    value.dataset.functions = names.join("\n");
    if (answer.hit) {
      const source = element("dd", answer.hit.source ?? `unknown: ${answer.hit.why}`);
      source.dataset.source = answer.hit.source ?? "";
      source.title = "Where the source has the code that the sample has hit";
      value.after(element("dt", "source"), source);
    }
    if (names.length > 1) value.after(element("dt", "called by"), element("dd", names.slice(1).join(", called by ")));
  } catch (error) {
    value.textContent = /** @type {Error} */ (error).message;
    value.className = "lost";
  }
}

/** @param {number} row @param {Found} found @param {Ways} ways */
function description(row, found, ways) {
  const { state, from, to, waker, cause, released, ran_on, holders, before, after } = found;
  const list = element("dl");
  const add = (/** @type {string} */ term, /** @type {string | Node} */ value, /** @type {number} */ ns = -1) => {
    const made = element("dd");
    made.append(value);
    if (ns >= 0) made.dataset.ns = String(ns);
    list.append(element("dt", term), made);
    return made;
  };
  const isEvent = state.class === EVENT;
  add(isEvent ? "event" : "state", state.thread === null ? state.name : CLASSES[state.class].name);
  if (state.thread !== null) {
    const thread = state.thread;
    add("thread", link(ways.named(thread), () => ways.go(thread, from), "What the thread does then"));
  }
  if (ran_on !== null) add("on", link(ways.named(ran_on), () => ways.go(ran_on, from), "What the CPU does then"));
  if (isEvent) add("time", exact(from), from);
  else {
    add("begin", exact(from), from);
    add("end", `${exact(to)}${found.is_open ? " or later" : ""}`, to);
    add("duration", `${found.is_open ? "at least " : ""}${duration(to - from)}`, to - from);
    if (found.is_open) add("not certain", "what follows may show another state");
  }
  if (holders) {
    const made = add("owner", holders.length ? "" : "no event reports one");
    made.dataset.holders = holders.join();
    for (const [at, holder] of holders.entries()) {
      made.append(at ? ", " : "", link(ways.named(holder), () => ways.go(holder, from), "What it did when the wait began"));
    }
  }
  if (released) other("released by", released, "released");
  if (cause) other("cause", cause, "cause").prepend("woken by ");
  if (waker) other("woken by", waker, "waker");
  else if (state.class === 7 && after) add("woken by", "no event reports it");
  neighbour("before", before, before ? from - before.to : 0);
  neighbour("then", after, after ? after.from - to : 0);
  return list;

  /** What another thread did, and when if it was before. @param {string} term @param {Other} other @param {string} kind */
  function other(term, { at, row: by, text }, kind) {
    const made = add(term, by === null ? text : link(ways.named(by), () => ways.go(by, at), "What it did then"));
    if (kind === "cause") made.append(`, ${duration(from - at)} earlier`);
    made.dataset[kind] = by === null ? text : String(by);
    return made;
  }

  /** @param {string} term @param {Neighbour | null} of @param {number} gap time between them of which nothing is known */
  function neighbour(term, of, gap) {
    if (!of) add(term, isEvent ? "no further event" : "no further state");
    else {
      const value = add(term, link(called(of, ways), () => ways.go(row, of.from), "Select it"));
      if (isEvent) value.append(`, ${duration(gap + of.to - of.from)} ${of === before ? "earlier" : "later"}`);
      else value.append(` ${duration(of.to - of.from)}`);
      if (gap > 0 && !isEvent) value.append(`, ${duration(gap)} without a known state between`);
    }
  }
}

/** Buttons to the states or events before and after. @param {Ways} ways @param {boolean} isEvent */
function steps(ways, isEvent) {
  const made = element("div", undefined, "steps");
  /** @type {[string, string, -1 | 1, boolean][]} */
  const buttons = [
    ["◂", "Previous state (,)", -1, false], ["state", "", -1, false], ["▸", "Next state (.)", 1, false],
    ["◂", "Previous one of its kind (P)", -1, true], ["of its kind", "", -1, true], ["▸", "Next one of its kind (N)", 1, true],
  ];
  if (isEvent) {
    for (const button of buttons) {
      button[1] = button[1].replace("state", "event of this track").replace("one of its kind", "event with this name, of any thread");
      button[0] = button[0].replace("state", "in its track");
    }
  }
  for (const [text, title, step, ofKind] of buttons) {
    if (!title) made.append(element("span", text));
    else {
      const button = element("button", text);
      button.title = title;
      button.setAttribute("aria-label", title);
      button.addEventListener("click", () => ways.step(step, ofKind));
      made.append(button);
    }
  }
  made.append(element("output"));
  return made;
}
