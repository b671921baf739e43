// @ts-check
// Steps from an event to the next or the previous one of its kind: with the same name, in any thread, in the order
// of `tracewing list`.

import { ask } from "./api.js";
import { EVENT } from "./classes.js";
import { result } from "./job.js";
import { $ } from "./opening.js";
import { SAMPLE } from "./selection.js";

/** Events of a time among which one is looked for, at most. */
const MOST = 500;

/** @typedef {import("./events.js").Event} Event */
/**
 * An event: its name, its time, and of those with both how many come before it; with `tid`, of this thread's only.
 * @typedef {{name: string, at: number, side: number, tid: string | null, nth: number}} Picked
 */

/** The event among some, or nothing. @param {Event[]} events @param {Picked} picked */
export function pick(events, { name, at, tid, nth }) {
  return events.filter((event) => event.name === name && event.at === at && (tid === null || event.tid === tid))[nth];
}

export class Kin {
  /** @param {import("./page.js").Page} page */
  constructor(page) {
    this.page = page;
    /** The event whose fields were shown last, and in which list. @type {{events: import("./events.js").Events, event: Event} | null} */
    this.opened = null;
    /** Ends when the list of the panel is there. @type {Promise<unknown> | null} */
    this.listed = null;
  }

  /** Nothing is selected. */
  forget() {
    [this.opened, this.listed] = [null, null];
  }

  /** Whether an event is selected, and no state. */
  get isThere() {
    const { found, view } = this.page;
    return view.state ? found?.state.class === EVENT : view.event !== null || this.opened !== null;
  }

  /** Steps from the event that is selected, as soon as it is known. @param {-1 | 1} step */
  async step(step) {
    const { listed } = this;
    await listed;
    const place = $("details").querySelector(".steps output");
    if (listed !== this.listed || !place) return;
    if (!this.opened) {
      place.textContent = "not found: its place among many events of one time is unknown";
      return;
    }
    await this.go(this.opened.events, this.opened.event, step, /** @type {HTMLElement} */ (place));
  }

  /**
   * Selects the next event with the name of one of a list, or the previous one.
   * @param {import("./events.js").Events} events @param {Event} event @param {-1 | 1} step
   * @param {HTMLElement} place where its progress is shown
   */
  async go(events, event, step, place) {
    const { page } = this;
    const turn = ++page.asked;
    place.textContent = "";
    try {
      const { name, at: time } = event;
      const { side } = events;
      const among = await events.among(event);
      if (turn !== page.asked) return;
      const answer = await result(place, "kin", { name, time, among, step, side });
      if (turn !== page.asked || !answer) return;
      if (!answer.event) place.textContent = step === 1 ? "no later one" : "no earlier one";
      else await this.select({ name, side, at: answer.event.at, tid: null, nth: answer.event.among }, turn);
    } catch (error) {
      if (turn === page.asked) page.lost(error);
    }
  }

  /** Selects an event: in its track, if it has one. @param {Picked} picked @param {number} turn */
  async select(picked, turn) {
    const { page } = this;
    const { name, at, side } = picked;
    const { events } = await ask("events", { from: at, to: at, most: MOST, side });
    const tid = pick(events, picked)?.tid ?? null;
    const row = tid === null ? undefined : await this.track(picked, tid);
    const found = row === undefined ? null : await ask("at", { row, time: at, step: 0 });
    if (turn !== page.asked) return;
    if (row === undefined || found?.from !== at || found.state.name !== name) return page.panels.event(picked, tid);
    const before = events.filter((/** @type {Event} */ event) => event.name === name).slice(0, picked.nth);
    page.choose(row);
    await page.select(row, at, 0, undefined, false, before.filter((/** @type {Event} */ event) => event.tid === tid).length);
  }

  /** The track of a thread that may have an event. @param {Picked} picked @param {string} tid */
  async track({ name, at, side }, tid) {
    const thread = await this.page.others.threadAt(tid, at, side);
    const has = (/** @type {import("./tracks.js").Row} */ { kind, name: provider }) =>
      (kind === "events" ? name.startsWith(`${provider}:`) : kind === "samples" && name === SAMPLE);
    return [...this.page.rows.values()].find((row) => thread !== undefined && row.parent === thread && has(row))?.id;
  }
}
