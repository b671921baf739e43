// @ts-check
// Classes of states: their names, order in a column, colours for light and dark, and hatching. The colours
// follow Okabe and Ito's palette, which people with colour-blindness distinguish; they differ in lightness, too.

/**
 * @typedef {object} Class
 * @property {string} name what people read
 * @property {string} light colour on a light page
 * @property {string} dark colour on a dark page
 * @property {"none" | "rising" | "falling" | "dots"} [hatch] pattern over the colour
 */

/** By number, as the server counts them. @type {Class[]} */
export const CLASSES = [
  { name: "unknown", light: "#9aa3ad", dark: "#6d7782", hatch: "rising" },
  { name: "user", light: "#1f77b8", dark: "#3f95d6" },
  { name: "system call", light: "#e69f00", dark: "#e8a938" },
  { name: "interrupt", light: "#7d3c8c", dark: "#b57bc4" },
  { name: "running, mode unknown", light: "#56b4e9", dark: "#2d6f9a", hatch: "dots" },
  { name: "ready", light: "#d7c800", dark: "#efe14a" },
  { name: "preempted", light: "#c8472b", dark: "#e2633f" },
  { name: "blocked", light: "#dfe4ea", dark: "#2c3641" },
  { name: "nested", light: "#009e73", dark: "#2bb58c" },
  { name: "idle", light: "#f0f2f5", dark: "#1f262e" },
  { name: "function, span, call", light: "#8fb7d9", dark: "#44769f" },
  { name: "waits for lock", light: "#f0b27f", dark: "#8f5a2e", hatch: "falling" },
  { name: "has lock", light: "#5aa469", dark: "#6dbb7d" },
  { name: "event", light: "#1b222b", dark: "#e4e9ef" },
];

export const UNKNOWN = 0;
export const BLOCKED = 7;
/** Events of programs: each is a nanosecond of it. */
export const EVENT = 13;
/** Calls of functions; spans. */
export const CALL = 10;
/** Classes of parts of threads: functions, spans and locks. */
export const PARTS = [10, 11, 12];
/** The colours of a counter: below the least value of a column, and from there to the greatest. */
export const [FILL, RANGE] = [10, 1];
/** Classes of threads on a CPU. */
export const RUNNING = [1, 2, 3, 4];
/** Classes from the bottom of a column to its top. */
export const ORDER = [13, 10, 12, 11, 1, 2, 3, 4, 8, 6, 5, 7, 9, 0];
/** Of these groups at least one pixel is drawn where any of their time lies. */
export const SEEN = [[0], RUNNING, [5, 6], [10], [11], [12], [13]];

/** Colours of events by name, for light and dark pages. @type {[string, string][]} */
const MARKS = [
  ["#0072b2", "#56b4e9"], ["#b34700", "#f0a060"], ["#00795a", "#3ecfa4"], ["#a0357a", "#e79ac8"], ["#8a6d00", "#f0e442"], ["#4b4b4b", "#c8c8c8"],
];

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** Calls when the page changes between light and dark. @param {() => void} changed */
export function onScheme(changed) {
  dark.addEventListener("change", changed);
}

/** @param {number} number */
export function color(number) {
  return dark.matches ? CLASSES[number].dark : CLASSES[number].light;
}

/** The names that are chosen, each with the number of its colour: then events of other names have none. @type {Map<string, number>} */
let chosen = new Map();

/** Only events of these names have colours, in this order; all if there are none. @param {string[]} names */
export function chooseMarks(names) {
  chosen = new Map(names.map((name, at) => [name, at]));
}

/** Colours of chosen names, for light and dark pages: they are seen on every state. @type {[string, string][]} */
const CHOSEN = [
  ["#111111", "#ffffff"], ["#c2185b", "#ff6fae"], ["#00604f", "#2fe0b8"], ["#6a1bb3", "#c9a0ff"], ["#8f4100", "#ffb066"], ["#0046c7", "#7fb2ff"],
];

/** The colour of events of other names, once some are chosen. */
const OTHER = ["#d9dee5", "#313a45"];

/** The colour of a chosen name. @param {number} at its number among these */
export function chosenColor(at) {
  return CHOSEN[at % CHOSEN.length][dark.matches ? 1 : 0];
}

/** Names of events in the order of their colours, which are those of all recordings of the page. @type {Map<string, number>} */
const named = new Map();
/** Names of events by the numbers of their states. @type {Map<number, string>} */
const names = new Map();

/** These states are events of these names. @param {[number, string][]} states */
export function nameMarks(states) {
  for (const [state, name] of states) {
    if (!named.has(name)) named.set(name, named.size);
    names.set(state, name);
  }
}

/** The name of events, if the page knows it. @param {number} state its number */
export function markName(state) {
  return names.get(state) ?? null;
}

/** The colour of the events of a name: in both of two recordings the same. @param {number} state the name's number */
export function markColor(state) {
  const name = names.get(state) ?? "";
  const at = chosen.get(name);
  if (at !== undefined) return chosenColor(at);
  return chosen.size > 0 ? OTHER[dark.matches ? 1 : 0] : MARKS[(named.get(name) ?? state) % MARKS.length][dark.matches ? 1 : 0];
}

/** A colour as a pixel (little-endian RGBA). @param {string} hex */
export function pixel(hex) {
  const part = (/** @type {number} */ at) => parseInt(hex.slice(at, at + 2), 16);
  return (0xff000000 | (part(5) << 16) | (part(3) << 8) | part(1)) >>> 0;
}

/** A colour of the page's style. @param {string} name */
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** How light a colour is, as WCAG 2 defines it: from 0 to 1. @param {string} hex */
function luminance(hex) {
  const part = (/** @type {number} */ at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** How well a colour is read on another one, as WCAG 2 defines it: from 1 to 21; texts need 4.5. @param {string} one @param {string} other */
export function contrast(one, other) {
  const [least, most] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (most + 0.05) / (least + 0.05);
}

/** Black or white, whichever is read better on a class. @param {number} number */
export function textOn(number) {
  const ground = color(number);
  const [dark, light] = ["#10161d", "#ffffff"];
  return contrast(dark, ground) > contrast(light, ground) ? dark : light;
}

/** Two colours of pixels (little-endian RGBA): plain, and of the hatching. @param {number} number */
function pixels(number) {
  const hex = color(number);
  const part = (/** @type {number} */ at) => parseInt(hex.slice(at, at + 2), 16);
  const [r, g, b] = [part(1), part(3), part(5)];
  const shade = dark.matches ? 1.75 : 0.55;
  const mixed = (/** @type {number} */ value) => Math.min(255, Math.round(value * shade));
  const pixel = (/** @type {number} */ r, /** @type {number} */ g, /** @type {number} */ b) =>
    (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  return [pixel(r, g, b), pixel(mixed(r), mixed(g), mixed(b))];
}

/** The patterns of a light page and of a dark one. @type {(Uint32Array[] | undefined)[]} */
const made = [];

/**
 * The colours of a class at 16 places: of pixel (x, y) that is number `(y & 3) * 4 + (x & 3)`.
 * @returns {Uint32Array[]}
 */
export function patterns() {
  return (made[Number(dark.matches)] ??= CLASSES.map(({ hatch }, number) => {
    const [plain, other] = pixels(number);
    return Uint32Array.from({ length: 16 }, (_, place) => {
      const [x, y] = [place & 3, place >> 2];
      const isOther = hatch === "rising" ? ((x + y) & 3) === 0 : hatch === "falling" ? ((x - y) & 3) === 0 : hatch === "dots" ? x === 1 && y === 1 : false;
      return isOther ? other : plain;
    });
  }));
}
