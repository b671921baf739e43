// @ts-check
// The time axis, and the minimap: the whole recording with a frame around what is seen.

import { color, ink, patterns } from "./classes.js";
import { Sheet, columns, paint } from "./pixels.js";
import { beginOf, sideOf } from "./sides.js";
import { duration, exact, marks } from "./time.js";

/** Fits a canvas to its place; gives its context in CSS pixels and its size. @param {HTMLCanvasElement} canvas */
export function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  const [wide, high] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}

/**
 * @param {HTMLCanvasElement} canvas @param {HTMLElement} base takes what is common to all marks
 * @param {import("./window.js").View} view @param {number | null} pointer the pointer's time
 * @param {import("./search.js").Marks} found where matches of the search are
 * @returns {number[]} where the marks are, in CSS pixels
 */
export function axis(canvas, base, view, pointer, found) {
  const { context, width, height } = fit(canvas);
  context.clearRect(0, 0, width, height);
  const scale = width / (view.to - view.from);
  const grid = marks(view.from, view.to, 110 / scale);
  base.textContent = grid.base > 0 ? `${exact(grid.base)} +` : "";
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = ink("--faint");
  const places = grid.marks.map(({ time, text }) => {
    const x = Math.round((time - view.from) * scale);
    context.fillRect(x, height - 7, 1, 7);
    if (x + 6 + context.measureText(text).width < width) context.fillText(text, x + 5, height / 2 - 1);
    return x;
  });
  if (view.area) {
    const [left, right] = [view.area.from, view.area.to].map((time) => (time - view.from) * scale);
    context.fillStyle = ink("--accent");
    context.fillRect(left, height - 4, Math.max(2, right - left), 4);
  }
  matches(context, height, found, view.from, scale);
  if (pointer !== null) flag(context, width, height, (pointer - view.from) * scale, exact(pointer));
  return places;
}

/**
 * Matches of the search: the more of them in a place, the higher.
 * @param {CanvasRenderingContext2D} context @param {number} height @param {import("./search.js").Marks} found
 * @param {number} from @param {number} scale
 */
function matches(context, height, found, from, scale) {
  context.fillStyle = ink("--found");
  for (const [part, count] of found.parts) {
    const time = found.from + ((part + 0.5) / found.count) * (found.to - found.from);
    const high = Math.min(height - 8, 5 + 2 * Math.log2(count));
    context.fillRect(Math.round((time - from) * scale) - 1, height - high, 2, high);
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {number} x
 * @param {string} text
 */
function flag(context, width, height, x, text) {
  const wide = context.measureText(text).width + 12;
  const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
  context.fillStyle = ink("--tip");
  context.beginPath();
  context.roundRect(left, 5, wide, height - 12, 4);
  context.fill();
  context.fillStyle = ink("--tip-ink");
  context.fillText(text, left + 6, height / 2 - 1);
}

/** The image of the minimap. */
const map = new Sheet();

/**
 * @param {HTMLCanvasElement} canvas @param {HTMLElement} span takes the length of what is seen
 * @param {import("./window.js").View} view @param {import("./tiles.js").Tiles} tiles
 * @param {number[]} rows what it shows, one above the other @param {import("./losses.js").Loss[]} losses
 * @param {Map<number, import("./filling.js").Filling>} fillings while indexes are made
 */
export function minimap(canvas, span, view, tiles, rows, losses, fillings) {
  const { context, width, height, ratio } = fit(canvas);
  const [wide, high] = [canvas.width, canvas.height];
  const { image, target, sums, heights } = map.blank(context, wide, high);
  const shift = Math.max(0, Math.floor(Math.log2(view.length / wide)));
  const [margin, part] = [Math.round(4 * ratio), high / rows.length];
  for (const [at, row] of rows.entries()) {
    const begin = beginOf(sideOf(row));
    columns(tiles.get(row, -begin, view.length - begin, shift), -begin, view.length - begin, wide, sums);
    const [top, bottom] = [Math.round(at * part) + (at ? 1 : margin), Math.round((at + 1) * part) - (at + 1 < rows.length ? 1 : margin)];
    paint(target, wide, top, bottom - top, wide, sums, patterns(), heights);
  }
  context.putImageData(image, 0, 0);
  const scale = width / view.length;
  for (const { from, to, side } of losses) stripe(context, from * scale, Math.max(1, (to - from) * scale), side ? height / 2 : 0, 4);
  for (const filling of fillings.values()) filling.map(context, scale, width, height);
  const [left, right] = [view.from * scale, view.to * scale];
  context.globalAlpha = 0.6;
  context.fillStyle = ink("--sheet");
  context.fillRect(0, 0, left, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  context.strokeStyle = ink("--accent");
  context.lineWidth = 2;
  const frame = Math.max(3, right - left - 2);
  context.strokeRect(Math.min(left + 1, width - frame - 1), 1, frame, height - 2);
  const texts = [duration(view.to - view.from), `of ${duration(view.length)}`];
  if (span.textContent === texts.join("")) return;
  const seen = document.createElement("b");
  seen.textContent = texts[0];
  span.replaceChildren(seen, texts[1]);
}

/**
 * Hatching where events are missing.
 * @param {CanvasRenderingContext2D} context @param {number} x @param {number} width @param {number} y
 * @param {number} height
 */
export function stripe(context, x, width, y, height) {
  context.fillStyle = color(6);
  context.fillRect(x, y, width, height);
  context.fillStyle = ink("--paper");
  // A narrow one has no gaps: it would be hidden by them.
  for (let at = x - (x % 6) + 2; at + 2 <= x + width; at += 6) {
    if (at >= x + 1) context.fillRect(at, y, 2, height);
  }
}
