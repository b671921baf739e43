// @ts-check
// The tooltip: what is under the pointer.

import { CLASSES } from "./classes.js";
import { lossAt } from "./losses.js";
import { $, canvas } from "./opening.js";
import { beginOf } from "./sides.js";
import { duration, quantity } from "./time.js";
import { HEIGHT, isMarks, isPart } from "./tracks.js";

/** How far from an event the pointer may be, in pixels. */
const NEAR = 4;

/** @param {import("./page.js").Page} page */
export function tip(page) {
  const tip = $("tip");
  const { at, picture } = page;
  const track = at && at.y >= 0 ? page.track(at.y) : undefined;
  const drawn = track && track.id !== null ? picture.drawn.get(track.id) : undefined;
  tip.hidden = !at || !drawn || !track || track.id === null;
  if (!at || !drawn || !track || track.id === null) return;
  const time = /** @type {number} */ (page.pointer());
  const isWithin = time < beginOf(track.side) + page.all[track.side].length;
  const isUnread = isWithin && page.fillings.get(track.side)?.isUnread(time);
  const lines = [track.number ? `${track.name} ${track.number}` : track.name, ...(isUnread ? ["not read yet"] : content(page, track, track.id, drawn))];
  const lost = lossAt(track, picture.losses, /** @type {number} */ (page.pointer()));
  if (lost) lines.push(lost);
  tip.replaceChildren(...lines.map((text, at) => {
    const line = document.createElement("div");
    line.textContent = text;
    if (at > 0) line.className = "dim";
    return line;
  }));
  const box = canvas("overlay").getBoundingClientRect();
  const [x, y] = [box.left + at.x, box.top + at.y];
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${x + 16 + width > innerWidth ? x - 12 - width : x + 16}px`;
  tip.style.top = `${y + 18 + height > innerHeight ? y - 10 - height : y + 18}px`;
}

/** @param {import("./page.js").Page} page @param {import("./tracks.js").Node} track @param {number} row @param {Uint8Array} drawn */
function content(page, track, row, drawn) {
  const time = /** @type {number} */ (page.pointer());
  const spans = page.picture.spans.get(row);
  if (isMarks(track)) return events(page, row, time);
  if (track.counter) return counter(page, row, track.counter.unit, time);
  const span = spans?.find(([, from, to]) => from <= time && time < to);
  const state = span && page.picture.states.get(span[0]);
  if (!state || !span) return shares(page, drawn, track);
  const name = state.thread === null ? state.name : `${page.named(state.thread)}: ${CLASSES[state.class].name}`;
  return [name, `for ${duration(span[2] - span[1])}`];
}

/** The value of a counter at a time. @param {import("./page.js").Page} page @param {number} row @param {string} unit @param {number} time */
function counter(page, row, unit, time) {
  const value = page.picture.values.get(row)?.find(([, from, to]) => from <= time && time < to);
  if (value) return [quantity(value[0], unit), `for ${duration(value[2] - value[1])}`];
  const values = page.picture.valued.get(row) ?? new Float32Array(3).fill(NaN);
  const column = Math.floor(((page.at?.x ?? 0) / canvas("overlay").clientWidth) * (values.length / 3));
  const [least, most] = values.slice(3 * column, 3 * column + 2);
  // Columns have single precision.
  const few = (/** @type {number} */ value) => quantity(Number(value.toPrecision(7)), unit);
  if (Number.isNaN(least)) return ["unknown"];
  return [least === most ? few(least) : `${few(least)} to ${few(most)}`];
}

/** The events at a time. @param {import("./page.js").Page} page @param {number} row @param {number} time */
function events(page, row, time) {
  const { from, to } = page.view;
  const near = (NEAR * (to - from)) / canvas("overlay").clientWidth;
  const found = (page.picture.spans.get(row) ?? []).filter(([, at]) => Math.abs(at - time) <= near);
  const names = new Set(found.map(([state]) => page.picture.states.get(state)?.name ?? "event"));
  if (found.length > 0) return [...[...names].slice(0, 4), ...(found.length > 1 ? [`${found.length.toLocaleString("en")} events`] : [])];
  const counted = page.picture.counted.get(row) ?? new Uint32Array(1);
  const column = Math.floor(((page.at?.x ?? 0) / canvas("overlay").clientWidth) * counted.length);
  const wide = Math.round((NEAR * canvas("picture").width) / canvas("overlay").clientWidth);
  const sum = counted.slice(Math.max(0, column - wide), column + wide + 1).reduce((sum, count) => sum + count, 0);
  return [sum === 0 ? "no event" : `${sum.toLocaleString("en")} ${sum === 1 ? "event" : "events"}, within ${duration(2 * near)}`];
}

/** What a column of the picture shows, in words. @param {import("./page.js").Page} page @param {Uint8Array} drawn @param {import("./tracks.js").Node} track */
function shares(page, drawn, track) {
  const width = canvas("picture").width;
  const column = Math.min(width - 1, Math.floor(((page.at?.x ?? 0) / canvas("overlay").clientWidth) * width));
  const heights = [...drawn.slice(column * CLASSES.length, (column + 1) * CLASSES.length)].map((height, of) => ({ height, of }));
  const some = heights.filter(({ height }) => height > 0).sort((a, b) => b.height - a.height);
  const whole = Math.max(1, Math.round((HEIGHT - 6) * (devicePixelRatio || 1)));
  if (some.length === 0) return [isPart(track) ? "none" : "nothing is known"];
  const per = duration((page.view.to - page.view.from) / width);
  const parts = some.map(({ height, of }) => `${CLASSES[of].name} ${Math.round((height / whole) * 100)} %`);
  return [`within ${per}, about`, ...parts.slice(0, 4)];
}
