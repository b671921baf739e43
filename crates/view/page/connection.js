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
    const { begin_ns, length, events } = await opened(true);
    const isSame = begin_ns === page.facts.begin_ns && length === page.facts.length && events === page.facts.events;
    if (!isSame) location.reload();
  } catch (error) {
    fail(error);
    return;
  }
  page.isLost = false;
  page.tiles.refused.clear();
  $("cover").hidden = true;
  page.redraw();
}
