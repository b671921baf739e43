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
  { name: "function, span, call", light: "#8fb7d9", dark: "#4b7ea8" },
  { name: "waits for lock", light: "#f0b27f", dark: "#8f5a2e", hatch: "falling" },
  { name: "has lock", light: "#5aa469", dark: "#6dbb7d" },
  { name: "event", light: "#1b222b", dark: "#e4e9ef" },
];

export const UNKNOWN = 0;
/** Events of programs: each is a nanosecond of it. */
export const EVENT = 13;
/** Classes of parts of threads: functions, spans and locks. */
export const PARTS = [10, 11, 12];
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

/** The colour of the events of a name. @param {number} state the name's number */
export function markColor(state) {
  return MARKS[state % MARKS.length][dark.matches ? 1 : 0];
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

/** Black or white, whichever is read better on a class. @param {number} number */
export function textOn(number) {
  const hex = color(number);
  const part = (/** @type {number} */ at) => parseInt(hex.slice(at, at + 2), 16);
  return 0.3 * part(1) + 0.59 * part(3) + 0.11 * part(5) > 140 ? "#10161d" : "#ffffff";
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

/**
 * The colours of a class at 16 places: of pixel (x, y) that is number `(y & 3) * 4 + (x & 3)`.
 * @returns {Uint32Array[]}
 */
export function patterns() {
  return CLASSES.map(({ hatch }, number) => {
    const [plain, other] = pixels(number);
    return Uint32Array.from({ length: 16 }, (_, place) => {
      const [x, y] = [place & 3, place >> 2];
      const isOther = hatch === "rising" ? ((x + y) & 3) === 0 : hatch === "falling" ? ((x - y) & 3) === 0 : hatch === "dots" ? x === 1 && y === 1 : false;
      return isOther ? other : plain;
    });
  });
}
