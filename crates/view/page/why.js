// @ts-check
// Why something took as long as it did: the critical path of a thread or task, in words by cause and step by step.

import { result } from "./job.js";
import { element, head, link } from "./selection.js";
import { save, table } from "./tables.js";
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
  const title = head(`Why ${page.named(row)} took ${duration(to - from)}`, `from ${exact(from)} to ${exact(to)}`, page.close);
  whole.append(title);
  place.className = "wide";
  place.replaceChildren(whole);
  try {
    /** @type {Path | null} */
    const path = await result(whole, "why", asked);
    if (!path) return;
    page.found(path);
    if (path.from > from || path.to < to) whole.append(element("p", `Only ${duration(path.to - path.from)} of this time are known.`));
    whole.append(causes(path, page), steps(path, page));
    title.insertBefore(save(columns(path, page), path.steps, "critical-path"), title.lastElementChild);
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

/** @param {Path} path @param {{select: (row: number, time: number) => void}} page @returns {import("./tables.js").Column<Step>[]} */
function columns(path, page) {
  const go = (/** @type {Subject | null} */ subject, /** @type {Step} */ { from }) => {
    const row = subject?.row ?? null;
    return row === null ? null : () => page.select(row, from);
  };
  const hint = "What it did then";
  return [
    { title: "at", unit: "ns", isSigned: true, value: (step) => step.from - path.from },
    { title: "time", unit: "ns", value: (step) => step.to - step.from },
    { title: "thread or task", unit: "text", value: ({ actor }) => actor.name, act: (step) => go(step.actor, step), hint },
    { title: "did", unit: "text", value: ({ activity }) => activity.name },
    { title: "reason", unit: "text", value: ({ reason }) => reason },
    { title: "waiter", unit: "text", value: ({ waiter }) => waiter?.name ?? "", act: (step) => go(step.waiter, step), hint },
  ];
}

/** The last ones. @param {Path} path @param {{select: (row: number, time: number) => void}} page */
function steps(path, page) {
  const whole = element("div");
  const listed = path.steps.slice(-STEPS);
  const [more, lacking] = [path.steps.length - listed.length, path.steps_left_out];
  const count = (/** @type {number} */ one) => (one === 1 ? "1 step" : `${one.toLocaleString("en")} steps`);
  if (more > 0) whole.append(element("p", `${count(more)} before these ${more === 1 ? "is" : "are"} in the CSV file only.`));
  if (lacking > 0) whole.append(element("p", `${count(lacking)} at the beginning ${lacking === 1 ? "is" : "are"} not listed, and not in the CSV file.`));
  whole.append(table("The critical path, step by step", columns(path, page), listed, 0, { className: "path", isRising: true }));
  return whole;
}
