// @ts-check
// Why something took as long as it did: the critical path of a thread or task, in words by cause and step by step.

import { result } from "./job.js";
import { element, head, link } from "./selection.js";
import { duration, exact } from "./time.js";

/** Steps (the last ones) and causes that are listed at most. */
const [STEPS, CAUSES] = [300, 12];

/** @typedef {{name: string, row: number | null, is_interrupt: boolean}} Subject */
/** @typedef {{kind: string, name: string, about: string | null}} Activity */
/** @typedef {{actor: Subject, activity: Activity, why: string, via: string | null, time: number, count: number}} Cause */
/** @typedef {{from: number, to: number, cpu: number | null, actor: Subject, activity: Activity, reason: string, waiter: Subject | null}} Step */
/** @typedef {{from: number, to: number, causes: Cause[], causes_left_out: number, steps: Step[], steps_left_out: number}} Path */

/**
 * @param {HTMLElement} place @param {{row: number, from: number, to: number}} asked
 * @param {{named: (row: number) => string, close: () => void, lost: (error: unknown) => void,
 *   select: (row: number, time: number) => void, found: (path: Path) => void}} page
 */
export async function showWhy(place, asked, page) {
  const { row, from, to } = asked;
  const whole = element("div", undefined, "why");
  whole.append(head(`Why ${page.named(row)} took ${duration(to - from)}`, `from ${exact(from)} to ${exact(to)}`, page.close));
  place.className = "wide";
  place.replaceChildren(whole);
  try {
    /** @type {Path | null} */
    const path = await result(whole, "why", asked);
    if (!path) return;
    page.found(path);
    if (path.from > from || path.to < to) whole.append(element("p", `Only ${duration(path.to - path.from)} of this time are known.`));
    whole.append(causes(path, page), steps(path, page));
  } catch (error) {
    page.lost(error);
    whole.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** @param {Subject} subject @param {number} time @param {{select: (row: number, time: number) => void}} page */
function subject({ name, row }, time, page) {
  return row === null ? name : link(name, () => page.select(row, time), "What it did then");
}

/** What caused how much of the time, in words. @param {Path} path @param {{select: (row: number, time: number) => void}} page */
function causes(path, page) {
  const list = element("ol", undefined, "causes");
  list.setAttribute("aria-label", "What took the time, the longest first");
  const whole = Math.max(1, path.to - path.from);
  for (const cause of path.causes.slice(0, CAUSES)) {
    const line = element("li");
    const step = path.steps.find((step) => step.actor.row === cause.actor.row && step.actor.name === cause.actor.name && step.activity.name === cause.activity.name);
    const time = element("b", duration(cause.time));
    time.dataset.ns = String(cause.time);
    line.append(time, ` ${((cause.time / whole) * 100).toFixed(1)} % `);
    line.append(...words(cause, subject(cause.actor, step?.from ?? path.from, page)));
    if (cause.count > 1) line.append(`, ${cause.count.toLocaleString("en")} times`);
    list.append(line);
  }
  const left = path.causes.length - CAUSES + path.causes_left_out;
  if (left > 0) list.append(element("li", left === 1 ? "1 more cause took less time." : `${left.toLocaleString("en")} more causes took less time each.`));
  return list;
}

/** A cause as a sentence. @param {Cause} cause @param {string | Node} who @returns {(string | Node)[]} */
function words({ actor, activity, why, via }, who) {
  const { kind, about } = activity;
  /** @type {Record<string, string>} */
  const did = {
    user: "ran its program", system: `was in the system call ${about}`, running: "ran", interrupt: "ran", ready: "waited for a CPU",
    blocked: about ? `waited for ${about}` : "was blocked", unknown: "did something that no event shows",
  };
  /** @type {Record<string, string>} */
  const itself = {
    ...did, interrupt: "was interrupted", ready: "waited for a CPU, and no event shows which thread ran there",
    blocked: `${did.blocked}, and no event shows what ended the wait`,
  };
  if (why === "itself") return ["It ", itself[kind], ": ", who];
  if (why === "wakes" && actor.is_interrupt) return [`It waited${about ? ` for ${about}` : ""} until a timer or a device woke it: `, who];
  if (why === "wakes") return ["It waited for ", who, `, which ${did[kind]}`, via ? `, and woke it through ${via}` : ""];
  if (why === "creates") return [who, " had not created it yet, and ", did[kind]];
  if (why === "cpu" && actor.name === "unknown") return ["It waited for a CPU, and no event shows which thread ran there"];
  if (why === "cpu") return ["It waited for a CPU, which ", who, " had"];
  if (why === "thread") return ["Its thread was running ", who, `, which ${did[kind]}`];
  return ["It was interrupted by ", who];
}

/** @param {Path} path @param {{select: (row: number, time: number) => void}} page */
function steps(path, page) {
  const table = element("table");
  table.setAttribute("aria-label", "The critical path, step by step");
  const [top, body, line] = [element("thead"), element("tbody"), element("tr")];
  for (const name of ["at", "time", "thread or task", "did", "reason", "waiter"]) {
    const cell = element("th", name);
    cell.setAttribute("scope", "col");
    line.append(cell);
  }
  for (const step of path.steps.slice(-STEPS)) {
    const made = element("tr");
    const [who, waiter] = [element("td"), element("td")];
    who.append(subject(step.actor, step.from, page));
    if (step.waiter) waiter.append(subject(step.waiter, step.from, page));
    made.append(element("th", `+${duration(step.from - path.from)}`), element("td", duration(step.to - step.from)), who);
    made.append(element("td", step.activity.name), element("td", step.reason), waiter);
    made.dataset.ns = String(step.to - step.from);
    body.append(made);
  }
  top.append(line);
  table.append(top, body);
  const whole = element("div");
  const left = path.steps_left_out + Math.max(0, path.steps.length - STEPS);
  if (left > 0) whole.append(element("p", left === 1 ? "1 step before these is not listed." : `${left.toLocaleString("en")} steps before these are not listed.`));
  whole.append(table);
  return whole;
}
