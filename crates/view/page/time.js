// @ts-check
// Times and durations as text: from days to nanoseconds.

/** @type {[number, string][]} */
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** A duration for people: four figures and a unit, from 1000 s on `h:mm:ss`. @param {number} ns */
export function duration(ns) {
  if (ns >= 1e12) return clock(ns, 0);
  const [size, unit] = UNITS.find(([size]) => ns >= size) ?? [1, "ns"];
  const value = ns / size;
  const figures = size === 1 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  return `${value.toFixed(figures)} ${unit}`;
}

/** A value of a counter with its unit. @param {number} value @param {string} unit */
export function quantity(value, unit) {
  // Time on CPUs per time.
  if (unit === "") return value.toLocaleString("en", { maximumFractionDigits: 20, maximumSignificantDigits: 15 });
  if (unit === "ns/s") return `${(value / 1e7).toFixed(1)} %`;
  const [plain, name] = unit === "kHz" ? [value * 1e3, "Hz"] : [value, unit];
  const [size, prefix] = /** @type {[number, string][]} */ ([[1e9, "G"], [1e6, "M"], [1e3, "k"]]).find(([size]) => plain >= size) ?? [1, ""];
  return `${(plain / size).toFixed(size === 1 ? 0 : 2)} ${prefix}${name}`;
}

/** A time since the beginning, to the nanosecond. @param {number} ns */
export function exact(ns) {
  const whole = Math.floor(ns / 1e9);
  const rest = String(Math.floor(ns - whole * 1e9)).padStart(9, "0");
  const grouped = `${rest.slice(0, 3)} ${rest.slice(3, 6)} ${rest.slice(6)}`;
  return `${whole >= 60 ? clock(whole * 1e9, 0) : whole}.${grouped} s`.replace(/^(.*:.*) s$/, "$1");
}

/** @param {number} ns @param {number} figures after the second */
function clock(ns, figures) {
  // Rounded first, so that 59.9 s carry over.
  const seconds = Math.round((ns / 1e9) * 10 ** figures) / 10 ** figures;
  const days = Math.floor(seconds / 86400);
  const two = (/** @type {number} */ value) => String(Math.floor(value)).padStart(2, "0");
  const rest = (seconds % 60).toFixed(figures).padStart(figures ? figures + 3 : 2, "0");
  const hours = Math.floor((seconds % 86400) / 3600);
  return `${days ? `${days} d ` : ""}${hours}:${two((seconds % 3600) / 60)}:${rest}`;
}

const STEPS = [1, 2, 5];
const LONG = [60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400].map((seconds) => seconds * 1e9);

/** The least step of marks on an axis that is at least this long. @param {number} least */
export function step(least) {
  if (least > 3e10) return LONG.find((step) => step >= least) ?? Math.ceil(least / 864e11) * 864e11;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(least, 1))));
  for (const of of [power, power * 10]) {
    for (const step of STEPS) if (step * of >= least) return step * of;
  }
  return power * 10;
}

/**
 * Marks of an axis: a base, which is said once, and times after it.
 * @param {number} from @param {number} to @param {number} least shortest step
 */
export function marks(from, to, least) {
  const by = step(least);
  // The base hides figures that all marks share.
  const size = 10 ** Math.ceil(Math.log10(Math.max(to - from, 1)));
  const base = size <= 1e9 && from >= size * 10 ? Math.floor(from / size) * size : 0;
  const found = [];
  for (let time = Math.ceil(from / by) * by; time <= to; time += by) {
    found.push({ time, text: label(time - base, by, to - base, base > 0) });
  }
  return { base, by, marks: found };
}

/** @param {number} ns @param {number} by @param {number} most the largest of all marks @param {boolean} isAfter */
function label(ns, by, most, isAfter) {
  if (by >= 6e10 || most >= 6e11) return clock(ns, Math.max(0, Math.ceil(9 - Math.log10(by) - 1e-9)));
  const [size, unit] = UNITS.find(([size]) => by >= size / 100 && most >= size) ?? UNITS[3];
  const figures = Math.max(0, Math.ceil(Math.log10(size / by) - 1e-9));
  return `${isAfter ? "+" : ""}${(ns / size).toFixed(figures)} ${unit}`;
}
