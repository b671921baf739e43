// @ts-check
// The page: opens the recording, and connects what is seen with mouse and keyboard.

import { about } from "./about.js";
import { keepsPlace, restorePlace } from "./again.js";
import { ask } from "./api.js";
import { fit } from "./axis.js";
import { CLASSES, EVENT, color, onScheme, patterns } from "./classes.js";
import { drags, keys, map } from "./input.js";
import { Live } from "./live.js";
import { $, canvas, fail, opened, present } from "./opening.js";
import { Page } from "./page.js";
import { command, connectShare, svg } from "./share.js";
import { beginOf } from "./sides.js";
import { exact } from "./time.js";

/** Colours with their names. */
function legend() {
  // Events have a colour for each name.
  $("legend").replaceChildren(...CLASSES.slice(0, EVENT).map(({ name }, of) => {
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
  $("scroll").addEventListener("scroll", () => [page.redraw(), page.marks.moved(), page.view.moved()]);
  new ResizeObserver(() => [page.redraw(), page.marks.moved()]).observe($("scroll"));
  onScheme(() => [legend(), page.redraw()]);
  $("labels").addEventListener("click", (event) => {
    const label = /** @type {HTMLElement} */ (event.target).closest(".track");
    const track = page.tracks[Number(/** @type {HTMLElement | null} */ (label)?.dataset.at ?? -1)];
    if (!track) return;
    if (/** @type {HTMLElement} */ (event.target).classList.contains("remove")) return page.series.remove(track.id ?? 0);
    if (/** @type {HTMLElement} */ (event.target).classList.contains("pin")) return page.pin(track);
    page.chosen = track;
    if (track.children.length) page.toggle(track);
    else page.redraw();
  });
  const filter = /** @type {HTMLInputElement} */ ($("filter"));
  filter.addEventListener("input", () => page.filter(filter.value));
  const order = /** @type {HTMLSelectElement} */ ($("order"));
  order.addEventListener("change", () => page.order(order.value));
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Enter") $("labels").focus();
  });
  connectShare(page);
  $("back").addEventListener("click", () => page.view.back());
  $("notes").addEventListener("click", () => page.notes.show());
  $("fit").addEventListener("click", () => page.key("f"));
  $("mark").addEventListener("click", () => page.key("m"));
  $("help").addEventListener("click", () => page.key("?"));
  // Errors that nothing else handles are shown, too.
  window.addEventListener("unhandledrejection", ({ reason }) => page.lost(reason));
  window.addEventListener("popstate", () => page.view.restore());
}

async function start() {
  await present();
  const facts = await opened();
  const second = facts.is_compared ? { facts: await opened(false, 1), tracks: await ask("tracks", { side: 1 }) } : null;
  const page = new Page(facts, await ask("tracks"), second);
  about(page);
  legend();
  connect(page);
  const isLinked = location.hash.includes("from=");
  page.view.restore();
  await page.others.learned;
  if (facts.is_live || page.fillings.size > 0) page.live = new Live(page, facts.is_live && !isLinked);
  if (!location.hash.includes("v=")) history.replaceState(null, "", `#${page.view.link()}`);
  restorePlace(page);
  keepsPlace(page);
  $("cover").hidden = true;
  // For tests, and for scripts that read the numbers of the picture.
  Object.assign(window, {
    tracewing: {
      view: page.view,
      found: () => page.found,
      search: page.search,
      select: (/** @type {number} */ row, /** @type {number} */ time) => page.select(row, time, 0),
      isIdle: () => page.tiles.isIdle && page.losses.isIdle && page.frame === 0,
      counted: () => Object.fromEntries([...page.picture.counted].map(([row, counts]) => [row, [...counts]])),
      valued: () => Object.fromEntries([...page.picture.valued].map(([row, values]) => [row, [...values]])),
      shown: () => page.tracks.map(({ id, name, number, kind, side, isPinned }) => ({ id, name, number, kind, side, isPinned: Boolean(isPinned) })),
      losses: () => page.picture.losses,
      path: () => page.path,
      live: () => page.live && { isLive: page.live.isLive, follows: page.live.follows, version: page.live.sides[0].version, certain: Object.fromEntries(page.live.certain) },
      filling: (side = 0) => {
        const filling = page.fillings.get(side);
        return filling ? { known: filling.known, share: filling.share, why: filling.why, outline: filling.outline } : null;
      },
      command: () => command(page),
      svg: () => svg(page),
      chosen: () => page.chosen?.id ?? null,
      choose: (/** @type {number} */ row) => page.choose(row),
      arrows: () => page.picture.shownArrows,
      compare: () => page.compare && { offset: page.compare.offset, begins: [0, 1].map(beginOf), lengths: page.compare.facts.map(({ length }) => length) },
      marks: () => ({ names: page.marks.names, isDone: page.marks.answers.length > 0 && page.marks.answers.every((answer) => answer.is_done), of: page.marks.answers[0]?.of, answers: page.marks.answers, runs: (/** @type {number} */ row) => page.marks.runs(row) }),
      series: () => page.series.all.map((one) => one && { row: one.row, ...one.of, isDone: Boolean(one.state?.is_done), count: one.state?.count ?? 0 }),
      notes: () => page.notes.boxes.map(([left, top, , , note]) => ({ left, top, ...note })),
      drawn: () => Object.fromEntries([...page.picture.drawn].map(([row, heights]) => [row, [...heights]])),
      exact,
    },
  });
  fit(canvas("overlay"));
}

start().catch(fail);
