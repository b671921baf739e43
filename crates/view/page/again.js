// @ts-check
// What links do not have, but a page that is loaded again in its tab still shows: all that is folded or unfolded by
// hand, where tracks are scrolled to the pixel, and which one is chosen.

import { $ } from "./opening.js";
import { each } from "./tracks.js";

/** Its name in the storage of the tab: a port may be another recording's later. @param {import("./page.js").Page} page */
const nameOf = (page) => `tracewing ${JSON.stringify(page.all.map(({ identity }) => identity))}`;

/** Tracks that were folded or unfolded by hand. @param {import("./tracks.js").Node[]} roots @returns {string[]} */
function toggled(roots) {
  /** @type {string[]} */
  const found = [];
  each(roots, ({ key, children, folded, wasFolded }) => children.length > 0 && wasFolded !== folded && found.push(key));
  return found;
}

/** Keeps it when the page ends. @param {import("./page.js").Page} page */
export function keepsPlace(page) {
  window.addEventListener("pagehide", () => {
    const { id, isPinned } = page.chosen ?? {};
    const kept = { link: location.hash, top: $("scroll").scrollTop, toggled: toggled(page.roots), id, isPinned };
    try {
      sessionStorage.setItem(nameOf(page), JSON.stringify(kept));
    } catch {
      // There is no storage, or no room in it.
    }
  });
}

/** Shows it again, if the page has the same address. @param {import("./page.js").Page} page */
export function restorePlace(page) {
  try {
    const kept = JSON.parse(sessionStorage.getItem(nameOf(page)) ?? "null");
    if (kept?.link !== location.hash) return;
    const keys = new Set(kept.toggled);
    each(page.roots, (node) => {
      node.folded = keys.has(node.key) !== Boolean(node.wasFolded);
    });
    page.fold();
    const own = page.tracks.find(({ id, isPinned }) => id === kept.id && isPinned === kept.isPinned);
    // Headings have no id, and none of them is chosen.
    page.chosen = (kept.id !== null && own) || null;
    $("scroll").scrollTop = Number(kept.top);
  } catch {
    // There is no storage.
  }
}
