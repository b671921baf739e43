// @ts-check
// Mouse, touchpad and keyboard.

/** Pixels that a pointer moves before it drags. */
const DRAG = 4;
/** How much a frame of a held key zooms and moves. */
const [ZOOM, MOVE] = [0.965, 0.018];

/**
 * What a page can do.
 * @typedef {object} Page
 * @property {import("./window.js").View} view
 * @property {(x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {(x: number, y: number) => void} click
 * @property {(x: number, y: number, endX: number, endY: number, all: boolean) => void} mark
 * @property {(name: string) => boolean} key does what a key means; false if it means nothing
 * @property {() => Promise<void>} fit zooms to what a click selects, as soon as it is known
 * @property {() => number | null} pointer the pointer's time
 * @property {(y: number) => number | null} moved where the second recording is, if dragging at this place moves it
 * @property {import("./compare.js").Compare | null} compare
 */

/** @param {HTMLCanvasElement} canvas @param {Page} page @param {boolean} all whether areas are of all tracks */
export function drags(canvas, page, all) {
  /** `offset`: where the second recording was that is moved. @type {{x: number, y: number, from: number, isPan: boolean, moved: boolean, offset: number | null} | null} */
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 1) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    held = { x: event.offsetX, y: event.offsetY, from: page.view.from, isPan: event.shiftKey || event.button === 1, moved: false, offset: all ? null : page.moved(event.offsetY) };
  });
  canvas.addEventListener("pointermove", (event) => {
    page.hover(event.offsetX, all ? -1 : event.offsetY);
    if (!all && held === null) canvas.style.cursor = page.moved(event.offsetY) === null ? "" : "ew-resize";
    if (!held) return;
    held.moved ||= Math.hypot(event.offsetX - held.x, event.offsetY - held.y) > DRAG;
    if (!held.moved) return;
    if (held.offset !== null) page.compare?.drag(held.offset + ((event.offsetX - held.x) / canvas.clientWidth) * (page.view.to - page.view.from));
    else if (held.isPan) {
      const { view } = page;
      const from = held.from - ((event.offsetX - held.x) / canvas.clientWidth) * (view.to - view.from);
      const begin = Math.min(Math.max(from, 0), view.length - (view.to - view.from));
      view.set(begin, begin + view.to - view.from);
    } else page.mark(held.x, held.y, event.offsetX, event.offsetY, all);
  });
  const end = (/** @type {PointerEvent} */ event) => {
    if (held && !held.moved && event.type === "pointerup" && !all) page.click(event.offsetX, event.offsetY);
    page.compare?.drop();
    held = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => page.leave());
  canvas.addEventListener("dblclick", () => void page.fit());
  canvas.addEventListener("wheel", (event) => wheel(event, canvas, page, all), { passive: false });
}

/** @param {WheelEvent} event @param {HTMLCanvasElement} canvas @param {Page} page @param {boolean} all */
function wheel(event, canvas, page, all) {
  const { view } = page;
  const pixels = event.deltaMode === 1 ? 16 : 1;
  const sideways = event.deltaX + (event.shiftKey ? event.deltaY : 0);
  if (event.ctrlKey || (all && !event.shiftKey)) {
    event.preventDefault();
    const time = view.from + (event.offsetX / canvas.clientWidth) * (view.to - view.from);
    view.zoom(1.0018 ** (Math.max(-300, Math.min(300, event.deltaY * pixels))), time);
  } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
    event.preventDefault();
    view.pan((sideways * pixels) / canvas.clientWidth);
  }
}

/** The minimap: where it is pressed is what is seen. @param {HTMLCanvasElement} canvas @param {Page} page */
export function map(canvas, page) {
  const go = (/** @type {PointerEvent} */ event) => {
    const { view } = page;
    const half = (view.to - view.from) / 2;
    const time = (event.offsetX / canvas.clientWidth) * view.length;
    const middle = Math.min(Math.max(time, half), view.length - half);
    view.set(middle - half, middle + half);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    go(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) go(event);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    page.view.zoom(1.0018 ** event.deltaY, (page.view.from + page.view.to) / 2);
  }, { passive: false });
}

/** Keys that act as long as they are held. @type {Record<string, [number, number]>} */
const HELD = {
  w: [1, 0], "+": [1, 0], "=": [1, 0], s: [-1, 0], "-": [-1, 0], a: [0, -1], arrowleft: [0, -1], d: [0, 1], arrowright: [0, 1],
};

/** @param {Page} page */
export function keys(page) {
  /** @type {Set<string>} */
  const held = new Set();
  let frame = 0;
  const move = () => {
    frame = 0;
    if (held.size === 0) return;
    const { view } = page;
    let [zoom, pan] = [0, 0];
    for (const key of held) [zoom, pan] = [zoom + HELD[key][0], pan + HELD[key][1]];
    if (zoom) view.zoom(ZOOM ** zoom, page.pointer() ?? (view.from + view.to) / 2);
    if (pan) view.pan(MOVE * pan);
    frame = requestAnimationFrame(move);
  };
  const typing = (/** @type {KeyboardEvent} */ event) => event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement || document.querySelector("dialog[open]");
  // These scroll the details.
  const scrolls = (/** @type {KeyboardEvent} */ event) =>
    event.target instanceof Element && event.target.closest("#details") && ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key);
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event) || scrolls(event)) return;
    const name = event.key.toLowerCase();
    if (name === "escape" && event.target instanceof Element && event.target.closest("#details")) {
      event.preventDefault();
      document.getElementById("labels")?.focus();
    } else if (HELD[name]) {
      event.preventDefault();
      held.add(name);
      if (!frame) move();
    } else if (event.target instanceof HTMLButtonElement && (name === "enter" || name === " ")) return;
    else if (page.key(name)) event.preventDefault();
  });
  window.addEventListener("keyup", (event) => held.delete(event.key.toLowerCase()));
  window.addEventListener("blur", () => held.clear());
}
