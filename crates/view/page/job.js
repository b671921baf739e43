// @ts-check
// An analysis that runs in the server: how far it is, a button to stop it, its result.

import { ask } from "./api.js";
import { element } from "./selection.js";
import { sideAsked } from "./sides.js";

/** How often one that runs is asked how far it is, in milliseconds. */
const AGAIN = 120;

/** The one that runs, and of which recording: a further one ends it. @type {{job: number, side: number} | null} */
let running = null;
/** Takes back the question how far it is: one that has ended is not known any more. @type {AbortController} */
let question = new AbortController();
/** How often one was asked for or ended: an answer that comes after the next time is of no use. */
let turn = 0;

/** Ends the analysis that runs, or is being asked for. */
export function endJob() {
  turn++;
  question.abort();
  if (running !== null) end(running);
  running = null;
}

/** @param {{job: number, side: number}} running */
function end(running) {
  ask("end", running).catch(() => {});
}

/**
 * The result of an analysis; null if it was ended.
 * @param {HTMLElement} place where its progress is shown @param {string} path @param {any} asked
 * @returns {Promise<any>}
 */
export async function result(place, path, asked) {
  endJob();
  const [mine, side] = [turn, sideAsked(asked)];
  const [line, bar, stop] = [element("p", "Reading the recording "), document.createElement("progress"), element("button", "Stop")];
  line.append(bar, " ", stop);
  const started = await ask(path, asked).catch((error) => {
    if (turn === mine) throw error;
  });
  if (turn !== mine) {
    if (started) end({ job: started.job, side });
    return null;
  }
  const { job } = started;
  running = { job, side };
  question = new AbortController();
  const { signal } = question;
  stop.addEventListener("click", () => {
    endJob();
    line.textContent = "Stopped.";
  });
  place.append(line);
  for (;;) {
    const state = await ask("job", { job, side }, signal).catch((error) => {
      if (turn === mine) throw error;
    });
    if (turn !== mine) return null;
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
