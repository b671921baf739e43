// @ts-check
// What is shown of the selected state: what it is, and the events in it.

import { ask } from "./api.js";
import { CLASSES } from "./classes.js";
import { duration, exact } from "./time.js";

/** Most events in the list. */
const EVENTS = 200;

/** @typedef {{state: import("./picture.js").State, from: number, to: number}} Found */

/** @param {string} name @param {string} [text] @param {string} [className] */
export function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
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

/**
 * @param {HTMLElement} place @param {string} track the track's name @param {Found} found
 * @param {(row: number) => string} named @param {() => void} close
 */
export function showState(place, track, found, named, close) {
  const { state, from, to } = found;
  const list = element("dl");
  const add = (/** @type {string} */ term, /** @type {string} */ text, /** @type {number} */ ns = -1) => {
    const value = element("dd", text);
    if (ns >= 0) value.dataset.ns = String(ns);
    list.append(element("dt", term), value);
  };
  add("track", track);
  add("state", state.thread === null ? state.name : `${named(state.thread)}: ${CLASSES[state.class].name}`);
  if (state.about) add(state.class === 7 ? "waits for" : "which", state.about);
  add("begin", exact(from), from);
  add("end", exact(to), to);
  add("duration", duration(to - from), to - from);
  const facts = element("div");
  facts.append(head(CLASSES[state.class].name, "", close), list);
  const events = element("div");
  events.append(element("h2", "Events meanwhile"));
  place.className = "";
  place.replaceChildren(facts, events);
  void showEvents(events, from, to);
}

/** @param {HTMLElement} place @param {number} from @param {number} to */
async function showEvents(place, from, to) {
  const title = /** @type {HTMLElement} */ (place.firstElementChild);
  title.append(element("small", "reading …"));
  const answer = await ask("events", { from, to, most: EVENTS }).catch((error) => ({ lines: [], warnings: [String(error.message)] }));
  title.lastElementChild?.remove();
  const count = answer.is_cut ? `the first ${answer.lines.length}` : `${answer.lines.length}`;
  title.append(element("small", `${count}, of all threads`));
  for (const warning of answer.warnings) place.append(element("div", warning, "lost"));
  place.append(element("pre", answer.lines.join("\n"), "lines"));
}
