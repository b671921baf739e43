// @ts-check
// Which tracks a loss of events can affect, and their hatching.

import { stripe } from "./axis.js";
import { ALL_CPUS, isPart } from "./tracks.js";
import { SECOND, isSeries } from "./sides.js";

/** @typedef {{scope: string, cpu: number | null, from: number, to: number, events: number | null, side?: number}} Loss */

/**
 * Whether a loss can affect a track. Kernel events: the CPU and every thread, since each may have run there.
 * Programs' events: every thread and task, with the parts of which they report. Samples: tracks of these. Fields of
 * events as counters: all but samples.
 * @param {import("./tracks.js").Node} track @param {Loss} loss
 */
export function touches(track, { scope, cpu, side }) {
  if ((track.side ?? 0) !== (side ?? 0)) return false;
  if (isSeries(track.id ?? 0)) return scope !== "samples";
  if (scope === "kernel") {
    if (track.kind === "cpu") return cpu === null || track.name === `CPU ${cpu}`;
    if (track.kind === "counter") return track.counter?.unit === "kHz";
    return !isPart(track) || track.kind === "locks" || track.kind === "system calls";
  }
  if (scope === "samples") return track.kind === "samples";
  return scope === "programs" && track.kind !== "counter" && track.kind !== "samples" && track.kind !== "system calls" && track.kind !== "cpu" && Number(track.id) % SECOND !== ALL_CPUS;
}

/**
 * Hatches a track where events are missing that touch it.
 * @param {CanvasRenderingContext2D} context @param {import("./tracks.js").Node} track @param {Loss[]} losses
 * @param {number} y @param {{from: number, to: number}} view @param {(time: number) => number} x
 */
export function hatch(context, track, losses, y, view, x) {
  // Losses of several CPUs at the same time are one stripe.
  let drawn = -1;
  for (const loss of losses) {
    if (loss.from >= view.to || loss.to <= view.from || !touches(track, loss)) continue;
    const [left, right] = [Math.max(x(loss.from), drawn), Math.max(x(loss.to), x(loss.from) + 1)];
    if (left < right) stripe(context, left, right - left, y + 1, 4);
    drawn = Math.max(drawn, right);
  }
}

/** What is said of a time of a track in which events are missing. @param {import("./tracks.js").Node} track @param {Loss[]} losses @param {number} time */
export function lossAt(track, losses, time) {
  const found = losses.find((loss) => loss.from <= time && time <= loss.to && touches(track, loss));
  if (!found) return null;
  const count = found.events === null ? "events" : `${found.events.toLocaleString("en")} ${found.events === 1 ? "event" : "events"}`;
  const whose = found.scope === "samples" ? "of the profile" : found.scope === "kernel" ? `of the kernel${found.cpu === null ? "" : ` on CPU ${found.cpu}`}` : "of programs";
  return `${count} ${whose} missing here`;
}
