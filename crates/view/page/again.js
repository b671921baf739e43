// @ts-check
// What links do not have, but a page that is loaded again in its tab still shows: which tracks are folded, how far
// they are scrolled, and which one is chosen.

import { $ } from "./opening.js";
import { each } from "./tracks.js";

/** Its name in the storage of the tab: a port may be another recording's later. @param {import("./page.js").Page} page */
const nameOf = (page) => `tracewing ${JSON.stringify(page.all.map(({ identity }) => identity))}`;

/** Tracks that are folded in one tree and not in the other. @param {import("./tracks.js").Node[]} one @param {import("./tracks.js").Node[]} other @returns {string[]} */
function toggled(one, other) {
  const folded = new Map();
  each(one, ({ key, folded: is }) => folded.set(key, is));
  /** @type {string[]} */
  const found = [];
  each(other, ({ key, children, folded: is }) => children.length > 0 && folded.get(key) !== is && found.push(key));
  return found;
}

/** Keeps it when the page ends. @param {import("./page.js").Page} page */
export function keepsPlace(page) {
  window.addEventListener("pagehide", () => {
    const { id, isPinned } = page.chosen ?? {};
    const kept = { link: location.hash, top: $("scroll").scrollTop, toggled: toggled(page.tree(), page.roots), id, isPinned };
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
      if (keys.has(node.key)) node.folded = !node.folded;
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
