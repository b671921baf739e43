// @ts-check
// What is seen for others: a command that shows the same view, and a picture as SVG or PNG.

import { CLASSES, EVENT, ORDER, chosenColor, color, ink, markColor, textOn } from "./classes.js";
import { touches } from "./losses.js";
import { $, canvas } from "./opening.js";
import { download } from "./tables.js";
import { duration, exact, marks } from "./time.js";
import { HEIGHT, isMarks } from "./tracks.js";

/** Width of labels, height of the axis, and space around states, in pixels. */
const [LABELS, AXIS, MARGIN] = [270, 30, 3];
/** Shortest state with a name in it, in pixels. */
const NAMED = 34;

/** A text as one word of a shell. @param {string} text */
function quoted(text) {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that shows what is seen. @param {import("./page.js").Page} page */
export function command(page) {
  const { compare, facts, view } = page;
  const inputs = compare ? compare.facts.flatMap(({ inputs }) => inputs) : facts.inputs;
  const together = !compare && inputs.length > 1 ? "--together " : "";
  return `tracewing view ${together}${inputs.map(quoted).join(" ")} --at '${view.link()}'`;
}

/** Connects the dialog. @param {import("./page.js").Page} page */
export function connectShare(page) {
  const [dialog, text, copy] = [/** @type {HTMLDialogElement} */ ($("sharing")), /** @type {HTMLInputElement} */ ($("command")), $("copy")];
  $("share").addEventListener("click", () => {
    text.value = command(page);
    $("lacks").hidden = page.view.inArea() !== null;
    copy.textContent = "Copy";
    dialog.showModal();
    // Its begin is seen.
    text.setSelectionRange(0, text.value.length, "backward");
    text.scrollLeft = 0;
  });
  copy.addEventListener("click", async () => {
    text.select();
    await navigator.clipboard.writeText(text.value).then(() => (copy.textContent = "Copied"), () => (copy.textContent = "Press Ctrl C"));
  });
  $("svg").addEventListener("click", () => download(new Blob([svg(page)], { type: "image/svg+xml" }), "tracewing.svg"));
  $("png").addEventListener("click", () => void png(page).then((blob) => blob && download(blob, "tracewing.png")));
}

/** A track's label as text. @param {import("./tracks.js").Node} track */
const titled = ({ name, number }) => (number ? `${name} ${number}` : name);

/**
 * The picture as SVG: the same columns as the pixels, one path for each class of a track.
 * @param {import("./page.js").Page} page
 */
export function svg(page) {
  const { layout, picture, view } = page;
  const [width, wide] = [canvas("picture").clientWidth, canvas("picture").width];
  const height = layout.height + AXIS;
  const made = (/** @type {string} */ name, /** @type {Record<string, string | number>} */ attributes, /** @type {string} */ text = "") => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, String(value));
    // Some characters of names cannot be in XML.
    one.textContent = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
    return one;
  };
  const whole = made("svg", { width: LABELS + width, height, viewBox: `0 0 ${LABELS + width} ${height}`, "font-family": "sans-serif", "font-size": 12 });
  whole.append(made("title", {}, `${page.facts.name}, ${exact(view.from)} to ${exact(view.to)}`));
  whole.append(made("rect", { width: "100%", height: "100%", fill: ink("--paper") }));
  const x = (/** @type {number} */ time) => LABELS + ((time - view.from) / (view.to - view.from)) * width;
  whole.append(made("text", { x: 10, y: 19, fill: ink("--faint") }, duration(view.to - view.from)));
  const grid = marks(view.from, view.to, (110 / width) * (view.to - view.from));
  if (grid.base > 0) whole.append(made("text", { x: LABELS - 8, y: 19, fill: ink("--faint"), "text-anchor": "end" }, `${exact(grid.base)} +`));
  for (const { time, text } of grid.marks) {
    const at = Math.round(x(time) * 10) / 10;
    whole.append(made("rect", { x: at, y: 22, width: 1, height: height - 22, fill: ink("--line") }));
    if (at + 60 < LABELS + width) whole.append(made("text", { x: at + 4, y: 19, fill: ink("--faint") }, text));
  }
  for (const { track, y } of layout.seen()) {
    const top = y + AXIS;
    if (top < AXIS - HEIGHT / 2) continue;
    const group = made("g", { "data-row": track.id ?? "" });
    group.append(made("title", {}, titled(track)));
    group.append(made("text", { x: 10 + track.level * 14, y: top + 16, fill: ink("--ink") }, cut(titled(track), 30 - track.level * 2)));
    const heights = track.id === null ? undefined : picture.drawn.get(track.id);
    if (heights && track.id !== null) {
      group.append(...(isMarks(track) ? ticks(page, track.id, top, width / wide, made) : areas(heights, top, width / wide, made)));
      group.append(...names(page, track, top, x, width, made));
    }
    group.append(...chosen(page, track, top, width, made));
    for (const loss of picture.losses) {
      if (loss.from >= view.to || loss.to <= view.from || !touches(track, loss)) continue;
      const [left, right] = [Math.max(LABELS, x(loss.from)), Math.min(LABELS + width, x(loss.to))];
      group.append(made("rect", { x: left, y: top, width: Math.max(1, right - left), height: 3, fill: color(6) }));
    }
    whole.append(group);
  }
  for (const filling of page.fillings.values()) {
    const [[left, right], bands] = [filling.edges((time) => x(time) - LABELS, width), filling.bands(layout)];
    if (left >= right || bands.length === 0) continue;
    for (const [top, bottom] of bands) whole.append(made("rect", { x: LABELS + left, y: AXIS + top, width: right - left, height: bottom - top, fill: ink("--line"), "fill-opacity": 0.5 }));
    const top = Math.min(...bands.map(([top]) => top));
    whole.append(made("text", { x: LABELS + (left + right) / 2, y: AXIS + top + 2 * HEIGHT - 7, fill: ink("--ink"), "text-anchor": "middle" }, "not read yet"));
  }
  return new XMLSerializer().serializeToString(whole);
}

/** @typedef {(name: string, attributes: Record<string, string | number>, text?: string) => Element} Made */

/** The columns of a track. @param {Uint8Array} heights @param {number} top @param {number} pixel @param {Made} made */
function areas(heights, top, pixel, made) {
  const columns = heights.length / CLASSES.length;
  const scale = (HEIGHT - 2 * MARGIN) / Math.round((HEIGHT - 2 * MARGIN) * (devicePixelRatio || 1));
  /** @type {string[][]} */
  const paths = CLASSES.map(() => []);
  const same = (/** @type {number} */ a, /** @type {number} */ b) => CLASSES.every((_, of) => heights[a * CLASSES.length + of] === heights[b * CLASSES.length + of]);
  for (let first = 0; first < columns; ) {
    let next = first + 1;
    while (next < columns && same(first, next)) next++;
    let base = top + HEIGHT - MARGIN;
    for (const of of ORDER) {
      const high = heights[first * CLASSES.length + of] * scale;
      if (high > 0) paths[of].push(`M${+(LABELS + first * pixel).toFixed(2)} ${+base.toFixed(2)}v${-high.toFixed(2)}h${+((next - first) * pixel).toFixed(2)}v${+high.toFixed(2)}z`);
      base -= high;
    }
    first = next;
  }
  return paths.flatMap((parts, of) => (parts.length ? [made("path", { d: parts.join(""), fill: color(of), "data-class": CLASSES[of].name })] : []));
}

/** Marks of events with chosen names. @param {import("./page.js").Page} page @param {import("./tracks.js").Node} track @param {number} top @param {number} width @param {Made} made */
function chosen({ marks }, track, top, width, made) {
  if (track.id === null) return [];
  return marks.runs(track.id).map(([name, left, right]) => {
    const [below, high] = marks.slot(name);
    return made("rect", { x: (LABELS + left * width).toFixed(2), y: top + below, width: Math.max(2, (right - left) * width).toFixed(2), height: high, fill: chosenColor(name), "data-name": marks.names[name] });
  });
}

/** Marks of events. @param {import("./page.js").Page} page @param {number} row @param {number} top @param {number} pixel @param {Made} made */
function ticks(page, row, top, pixel, made) {
  const [heights, counted, named] = [page.picture.drawn.get(row), page.picture.counted.get(row), page.picture.marked.get(row)];
  if (!heights || !counted || !named) return [];
  const found = [];
  for (const [column, count] of counted.entries()) {
    if (count === 0) continue;
    const high = heights[column * CLASSES.length + EVENT] / (devicePixelRatio || 1);
    found.push(made("rect", { x: (LABELS + column * pixel).toFixed(2), y: (top + HEIGHT - MARGIN - high).toFixed(2), width: 2, height: high.toFixed(2), fill: markColor(named[column]), "data-count": count }));
  }
  return found;
}

/** Names in states, where there is room. @param {import("./page.js").Page} page @param {import("./tracks.js").Node} track @param {number} top @param {(time: number) => number} x @param {number} width @param {Made} made */
function names(page, track, top, x, width, made) {
  if (track.id === null || isMarks(track)) return [];
  return (page.picture.spans.get(track.id) ?? []).flatMap(([number, from, to]) => {
    const [left, right] = [Math.max(LABELS, x(from)), Math.min(LABELS + width, x(to))];
    const state = page.picture.states.get(number);
    if (right - left < NAMED || !state) return [];
    const text = cut(state.thread === null ? state.name : page.named(state.thread), Math.floor((right - left - 6) / 6.5));
    return text ? [made("text", { x: (left + 4).toFixed(1), y: top + 16, "font-size": 11, fill: textOn(state.class) }, text)] : [];
  });
}

/** @param {string} text @param {number} most characters */
function cut(text, most) {
  return text.length <= most ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}

/** The picture as PNG: the pixels that are seen. @param {import("./page.js").Page} page @returns {Promise<Blob | null>} */
function png(page) {
  const [picture, overlay, axis] = ["picture", "overlay", "axis"].map(canvas);
  const ratio = devicePixelRatio || 1;
  const made = document.createElement("canvas");
  made.width = Math.round(LABELS * ratio) + picture.width;
  made.height = axis.height + picture.height;
  const context = /** @type {CanvasRenderingContext2D} */ (made.getContext("2d"));
  context.fillStyle = ink("--paper");
  context.fillRect(0, 0, made.width, made.height);
  context.drawImage(axis, LABELS * ratio, 0);
  context.drawImage(picture, LABELS * ratio, axis.height);
  context.drawImage(overlay, LABELS * ratio, axis.height);
  context.scale(ratio, ratio);
  context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = ink("--ink");
  context.fillText(duration(page.view.to - page.view.from), 10, axis.height / ratio / 2);
  for (const { track, y } of page.layout.seen()) {
    context.fillText(cut(titled(track), 30 - track.level * 2), 10 + track.level * 14, axis.height / ratio + y + HEIGHT / 2);
  }
  return new Promise((done) => made.toBlob(done, "image/png"));
}
