// @ts-check
// The server has ended: the page waits for it.

import { $, fail, opened } from "./opening.js";

/** Waits until the server is there again. @param {import("./page.js").Page} page */
export async function reconnect(page) {
  if (page.isLost) return;
  page.isLost = true;
  $("phase").textContent = "The server has ended";
  $("why").textContent = "This page continues when tracewing view runs again at the same port.";
  $("progress").hidden = true;
  $("cover").hidden = false;
  try {
    for (const [side, known] of page.all.entries()) {
      const { begin_ns, length, events, is_compared } = await opened(true, side);
      const isSame = begin_ns === known.begin_ns && length === known.length && events === known.events;
      if (!isSame || is_compared !== known.is_compared) location.reload();
    }
  } catch (error) {
    fail(error);
    return;
  }
  page.isLost = false;
  page.tiles.refused.clear();
  $("cover").hidden = true;
  page.redraw();
}
