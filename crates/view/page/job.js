// @ts-check
// An analysis that runs in the server: how far it is, a button to stop it, its result.

import { ask } from "./api.js";
import { element } from "./selection.js";

/** How often one that runs is asked how far it is, in milliseconds. */
const AGAIN = 120;

/** The one that runs: a further one ends it. @type {number | null} */
let running = null;

/** Ends the analysis that runs, if there is one. */
export function endJob() {
  if (running !== null) ask("end", { job: running }).catch(() => {});
  running = null;
}

/**
 * The result of an analysis; null if it was ended.
 * @param {HTMLElement} place where its progress is shown @param {string} path @param {unknown} asked
 * @returns {Promise<any>}
 */
export async function result(place, path, asked) {
  endJob();
  const [line, bar, stop] = [element("p", "Reading the recording "), document.createElement("progress"), element("button", "Stop")];
  line.append(bar, " ", stop);
  const { job } = await ask(path, asked);
  running = job;
  stop.addEventListener("click", () => {
    endJob();
    line.textContent = "It was stopped.";
  });
  place.append(line);
  for (;;) {
    const state = await ask("job", { job }).catch((error) => {
      if (running === job) throw error;
    });
    if (running !== job) return null;
    if (state.failure !== null || state.result !== null) {
      endJob();
      line.remove();
      if (state.failure !== null) throw new Error(state.failure);
      return state.result;
    }
    if (state.total > 0) [bar.max, bar.value] = [state.total, state.done];
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}
