// @ts-check
// Opening: sends the token, waits for the index, reports failures.

import { Unknown, Unreachable, ask, enter } from "./api.js";

/** How long the page waits before it looks again how far the index is, in milliseconds. */
const AGAIN = 250;

/** And how often for the outline of a recording whose index is being made: without it, its length is unknown. */
const OUTLINE = 8;

/** @template {HTMLElement} E @param {string} id @returns {E} */
export const $ = (id) => /** @type {E} */ (document.getElementById(id));

export const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ ($(id));

/** Gives the token in the address to the server, and takes it out of the address. */
export async function present() {
  const link = new URLSearchParams(location.hash.slice(1));
  const token = link.get("token");
  if (token === null) return;
  link.delete("token");
  history.replaceState(null, "", `#${link}`);
  await enter(token);
}

/** The last parts of a recording's paths. @param {any} state */
export function nameOf(state) {
  return (state.inputs ?? [state.name]).map((/** @type {string} */ path) => path.replace(/^.*\/(?=[^/])/, "")).join(" ");
}

/**
 * Waits for the index.
 * @param {boolean} [again] whether it waits for the server, too @param {number} [side] of which recording
 * @returns {Promise<any>}
 */
export async function opened(again = false, side = 0) {
  for (let looks = 0; ; ) {
    let state;
    try {
      state = await ask("state", { side });
    } catch (error) {
      if (!(again && error instanceof Unreachable)) throw error;
      await new Promise((done) => setTimeout(done, AGAIN));
      continue;
    }
    // The command to share a view has its whole paths.
    const name = nameOf(state);
    if (side === 0) {
      [$("name").textContent, $("name").title] = [name, state.name];
      document.title = `${name} – tracewing`;
    }
    if (state.phase === "ready" && (!state.filling || state.filling.has_outline || ++looks > OUTLINE)) return state;
    if (state.phase === "failed") throw new Error(state.why);
    const bar = /** @type {HTMLProgressElement} */ ($("progress"));
    bar.hidden = false;
    if (state.total > 0) [bar.max, bar.value] = [state.total, state.done];
    $("phase").textContent = state.is_live ? "Reading what has been recorded so far" : "Reading the recording";
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

/** Shows an error over the page until it is closed, or until the next one. @param {unknown} error */
export function notice(error) {
  const place = $("notice");
  const [text, button] = [place.querySelector("span"), place.querySelector("button")];
  if (!text || !button) return;
  text.textContent = String(error instanceof Error ? error.message : error).trimEnd();
  button.onclick = () => (place.hidden = true);
  place.hidden = false;
}

/** @param {unknown} error */
export function fail(error) {
  const isUnknown = error instanceof Unknown;
  $("phase").textContent = isUnknown ? "This browser has no access" : "The recording cannot be shown";
  $("why").textContent = isUnknown
    ? "Open the address that tracewing view has printed; it contains a token."
    : String(error instanceof Error ? error.message : error);
  $("progress").hidden = true;
  $("cover").hidden = false;
}
