// @ts-check
// What analyses say of an area, one tab each: how long system calls, functions, spans, waits and locks took; what
// tasks did. Every number leads to the states of which it is made.

import { BLOCKED, CALL } from "./classes.js";
import { showFlame } from "./flame.js";
import { result } from "./job.js";
import { showPolls } from "./polls.js";
import { showSamples } from "./samples.js";
import { element, head } from "./selection.js";
import { save, table } from "./tables.js";
import { duration, exact } from "./time.js";

/** Kind and name of each tab. @type {[string, string, string][]} */
const TABS = [
  ["", "States", "Time of each track by state"],
  ["events", "Events", "How many events there are of each name"],
  ["calls", "System calls", "How long system calls took"],
  ["waits", "Waits", "What threads and tasks waited for, and how long"],
  ["locks", "Locks", "How long locks were waited for and held"],
  ["functions", "Functions", "How long calls of functions took"],
  ["graph", "Call times", "Which function called which, by time, as a flame graph"],
  ["samples", "Samples", "The functions that were sampled, as a flame graph (G)"],
  ["spans", "Spans", "How long spans took"],
  ["tasks", "Tasks", "Polls of tasks, and the waits before them"],
];

/** Whether there is such a tab. @param {string} kind */
export function isTab(kind) {
  return TABS.some(([one]) => one === kind);
}

/** The title of a tab. @param {string} kind */
export function titleOf(kind) {
  return (TABS.find(([one]) => one === kind) ?? TABS[0])[1];
}

/** What a tab says if it has nothing. @type {Record<string, string>} */
const NOTHING = {
  events: "No event lies in this area.",
  calls: "No system call begins and ends in this area. They are recorded with the kernel's events, as root.",
  waits: "No wait of these threads and tasks begins and ends in this area.",
  locks: "No lock was acquired and released in this area. Record with --locks to see mutexes.",
  functions: "No call of a function begins and ends in this area. Record with --functions to see them. If only CPUs are marked, mark threads.",
  spans: "No span begins and ends in this area.",
  tasks: "No task exists in this area.",
};

/**
 * What the page does for a tab.
 * @typedef {object} Page
 * @property {() => void} close
 * @property {(error: unknown) => void} lost
 * @property {(row: number) => string} named
 * @property {(row: number, time: number) => void} select
 * @property {(part: import("./longest.js").Part) => void} longest lists the states of a number
 * @property {(tid: string, time: number) => Promise<number | undefined>} threadAt
 * @property {(tid: string, time: number) => Promise<number | undefined>} samplesOf the track of a thread's samples, or the thread's
 * @property {(kind: string) => void} tab
 * @property {(name: string) => boolean} isMarked whether events of a name are marked in the tracks
 * @property {(name: string) => void} mark marks them, or no longer
 * @property {(name: string, time: number, tid: string | null) => void} event shows an event
 */
/** @typedef {{from: number, to: number, rows: number[] | null}} Area */
/** @typedef {{count: number, min_ns: number, avg_ns: number, p50_ns: number, p90_ns: number, p99_ns: number, p999_ns: number, max_ns: number, quantile_error: number}} Took */
/** @typedef {Took & {name: string, class: number, total_ns: number}} Line */
/** A state, or a call, with the row that has it. @typedef {{row: number | undefined, from: number, to: number}} Span */

/** Buttons to all tabs. @param {string} chosen @param {(kind: string) => void} go */
export function tabs(chosen, go) {
  const made = element("nav", undefined, "tabs");
  made.setAttribute("aria-label", "Statistics of the area");
  for (const [kind, text, title] of TABS) {
    const button = element("button", text);
    [button.title, button.dataset.tab] = [title, kind];
    if (kind === chosen) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => go(kind));
    made.append(button);
  }
  return made;
}

/** What is asked for an area. @param {Area} area */
function asked({ from, to, rows }) {
  return rows ? { from, to, rows } : { from, to };
}

/** The address of a lock, the last word of its name. @param {{name: string}} line */
function addressOf({ name }) {
  return name.split(" ").at(-1) ?? "";
}

/** Shows a tab. @param {HTMLElement} place @param {string} kind @param {Area} area @param {Page} page */
export async function showTab(place, kind, area, page) {
  if (kind === "samples" || kind === "graph") {
    const list = (/** @type {string[]} */ chain) =>
      void (kind === "samples" ? showSamples(place, area, chain, page) : showNamed(place, area, "functions", { class: CALL, name: chain[chain.length - 1] }, page));
    return showFlame(place, kind, area, asked(area), page, list);
  }
  const { from, to } = area;
  const [, text] = TABS.find(([one]) => one === kind) ?? TABS[0];
  const title = head(text, `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close);
  const [whole, inner] = [element("div"), element("div")];
  whole.append(title, tabs(kind, page.tab), inner);
  place.className = "wide";
  place.replaceChildren(whole);
  /** @param {import("./tables.js").Column<any>[]} columns @param {any[]} rows @param {string} by title of the column that orders them */
  const fill = (columns, rows, by) => {
    if (rows.length === 0) return inner.append(element("p", NOTHING[kind]));
    inner.append(table(text, columns, rows, columns.findIndex(({ title }) => title === by)));
    title.insertBefore(save(columns, rows, kind), title.lastElementChild);
  };
  try {
    if (kind === "tasks") {
      const answer = await result(inner, "tasks", asked(area));
      if (!answer) return;
      fill(ofTasks(place, page, area), answer.tasks, "busy");
      const left = answer.left_out;
      if (left > 0) inner.append(element("p", `${left.toLocaleString("en")} more tasks were polled for less time. The CSV file lacks them, too.`));
    } else if (kind === "events") {
      const answer = await result(inner, "classes", asked(area));
      if (!answer) return;
      const show = () => {
        inner.replaceChildren();
        title.querySelector("a")?.remove();
        if (answer.failure) inner.append(element("p", answer.failure, "lost"));
        fill(ofNames(place, area, page, show), answer.names, "count");
        if (answer.left_out) inner.append(element("p", `${answer.left_out.toLocaleString("en")} more names have fewer events.`));
      };
      show();
    } else if (kind === "calls") {
      const answer = await result(inner, "calls", asked(area));
      if (!answer) return;
      const longest = (/** @type {Line} */ line) => void showCalls(place, area, line.name, page);
      fill(ofLines("system call", longest), answer.calls, "total");
      if (answer.unmatched > 0) inner.append(element("p", `${answer.unmatched.toLocaleString("en")} calls begin or end outside of the area, and are not counted.`));
    } else {
      const answer = await result(inner, "durations", { ...asked(area), what: kind });
      if (!answer) return;
      const longest = (/** @type {Line} */ line) => void showNamed(place, area, kind, line, page);
      const show = (/** @type {Record<string, string[]>} */ places) => {
        inner.replaceChildren();
        title.querySelector("a")?.remove();
        fill(ofLines(kind.replace(/s$/, ""), longest, kind, places), answer.names, "total");
        const left = answer.left_out;
        if (left > 0) inner.append(element("p", `${left.toLocaleString("en")} more names took less time.`));
      };
      show({});
      // The index has no places: the events do.
      const places = kind === "locks" && answer.names.length > 0 && (await result(inner, "held", { ...asked(area), locks: answer.names.map(addressOf) }));
      if (places && Object.keys(places).length > 0) show(places);
    }
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** @param {HTMLElement} place @param {Area} area @param {Page} page @param {() => void} again shows the table again @returns {import("./tables.js").Column<{name: string, count: number}>[]} */
function ofNames(place, area, page, again) {
  const go = (/** @type {{name: string}} */ { name }) => () => void showEvents(place, area, name, page);
  return [
    { title: "event", unit: "text", value: ({ name }) => name, act: go },
    { title: "count", unit: "count", value: ({ count }) => count, hint: "The events", act: go },
    { title: "in the tracks", unit: "text", value: ({ name }) => (page.isMarked(name) ? "do not mark" : "mark"), hint: "Marks these events in the tracks, and counts those in the visible part (U)", act: ({ name }) => () => [page.mark(name), again()], isSaved: false },
  ];
}

/** The first events of a name in an area. @param {HTMLElement} place @param {Area} area @param {string} name @param {Page} page */
async function showEvents(place, area, name, page) {
  const inner = frame(place, `First ${name}`, area, "events", page);
  try {
    const answer = await result(inner, "classes", { ...asked(area), name });
    if (!answer) return;
    const count = answer.names[0]?.count ?? 0;
    const some = answer.events.length < count ? `; the first ${answer.events.length.toLocaleString("en")}` : "";
    inner.append(element("p", `${count.toLocaleString("en")} ${count === 1 ? "event" : "events"}${some}`));
    if (answer.failure) inner.append(element("p", answer.failure, "lost"));
    /** @type {import("./tables.js").Column<{at: number, cpu: string | null, tid: string | null}>[]} */
    const columns = [
      { title: "time", unit: "text", value: ({ at }) => exact(at), hint: "The event, and those around it", act: ({ at, tid }) => () => page.event(name, at, tid) },
      { title: "CPU", unit: "text", value: ({ cpu }) => cpu },
      ...(answer.events.some((/** @type {{tid: string | null}} */ { tid }) => tid !== null) ? [{ title: "thread", unit: /** @type {const} */ ("text"), value: (/** @type {{tid: string | null}} */ { tid }) => tid }] : []),
    ];
    inner.append(table(`Events ${name}`, columns, answer.events, 0));
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** What is done with what has a name, by class. @type {Record<number, string>} */
const DONE = { 5: "ready", 6: "preempted", 7: "blocked", 11: "waits", 12: "holds" };

/**
 * @param {string} what a row is of @param {(line: Line) => void} go lists the longest ones @param {string} [kind]
 * @param {Record<string, string[]>} [places] of locks, where they were taken
 * @returns {import("./tables.js").Column<Line>[]}
 */
function ofLines(what, go, kind, places = {}) {
  const hasPlaces = Object.keys(places).length > 0;
  const place = (/** @type {Line} */ line) => places[addressOf(line)]?.join(", ") ?? null;
  const hint = "The longest ones";
  const time = (/** @type {string} */ title, /** @type {(line: Line) => number} */ value) => ({ title, unit: /** @type {const} */ ("ns"), value, hint, act: (/** @type {Line} */ line) => () => go(line) });
  const isOne = kind !== "waits" && kind !== "locks";
  /** @type {import("./tables.js").Column<Line>[]} */
  const columns = [
    { title: what, unit: "text", value: ({ name }) => name, act: (line) => () => go(line) },
    { title: hasPlaces ? "taken at" : "", unit: "text", value: place, hint: "Where the longest of its holds began, as tracewing locks prints it", act: (line) => () => go(line) },
    { title: isOne ? "" : "state", unit: "text", value: (line) => (isOne ? "" : (DONE[line.class] ?? "")) },
    { title: "count", unit: "count", value: ({ count }) => count, hint, act: (line) => () => go(line) },
    time("total", ({ total_ns }) => total_ns),
    time("mean", ({ avg_ns }) => Math.round(avg_ns)),
    time("min", ({ min_ns }) => min_ns),
    time("p50", ({ p50_ns }) => p50_ns),
    time("p90", ({ p90_ns }) => p90_ns),
    time("p99", ({ p99_ns }) => p99_ns),
    time("max", ({ max_ns }) => max_ns),
  ];
  return columns.filter(({ title }) => title !== "");
}

/** @param {HTMLElement} place @param {Page} page @param {Area} area @returns {import("./tables.js").Column<any>[]} */
function ofTasks(place, page, area) {
  const at = (/** @type {any} */ task, /** @type {number | null} */ time) => (task.row === null ? null : () => page.select(task.row, time ?? area.from));
  /** @typedef {(task: any) => (() => void) | null} Act */
  /** @type {(by: import("./polls.js").By) => Act} */
  const polls = (by) => (task) => (task.row === null ? null : () => void showPolls(place, area, task.row, by, page));
  /** @type {Act} */
  const waits = (task) => (task.row === null ? null : () => page.longest({ row: task.row, classes: [BLOCKED], state: null }));
  const number = (/** @type {string} */ title, /** @type {"ns" | "count"} */ unit, /** @type {string} */ name, /** @type {Act} */ act, /** @type {string} */ hint) =>
    ({ title, unit, hint, act, value: (/** @type {any} */ task) => task[name] });
  return [
    { title: "task", unit: "text", value: (task) => `${task.name || "task"} ${task.task ?? ""}`, act: (task) => at(task, null) },
    { title: "process", unit: "text", value: ({ process }) => process },
    number("polls", "count", "polls", polls("duration"), "The longest polls"),
    number("busy", "ns", "busy_ns", polls("duration"), "The longest polls"),
    number("scheduled", "ns", "scheduled_ns", polls("delay"), "The polls that it waited for a thread before"),
    number("idle", "ns", "idle_ns", waits, "What the task waited for; also what its worker did in polls"),
    number("longest poll", "ns", "longest_poll_ns", (task) => at(task, task.longest_poll_begin), "What the task did then"),
    number("mean delay", "ns", "avg_delay_ns", polls("delay"), "The polls with the longest delays"),
    number("max delay", "ns", "max_delay_ns", (task) => at(task, task.max_delay_end), "The poll after the longest delay"),
    number("slept", "ns", "slept_ns", polls("slept"), "Time in polls in which the worker slept; leads to these polls"),
    number("long", "count", "long_polls", polls("long"), "Polls that ran for 10 ms or longer"),
    number("blocking", "count", "blocking_polls", polls("blocking"), "Polls in which the worker slept for 1 ms or longer"),
  ];
}

/** Lists the longest system calls of a name. @param {HTMLElement} place @param {Area} area @param {string} name @param {Page} page */
async function showCalls(place, area, name, page) {
  const inner = frame(place, `Longest ${name}`, area, "calls", page);
  try {
    const answer = await result(inner, "calls", { ...asked(area), name });
    if (!answer) return;
    /** @type {Span[]} */
    const spans = [];
    for (const { tid, from, to } of answer.longest) spans.push({ row: tid === null ? undefined : await page.threadAt(tid, from), from, to });
    inner.append(list(spans, page));
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** Lists the longest states of a name. @param {HTMLElement} place @param {Area} area @param {string} kind @param {{class: number, name: string}} line @param {Page} page */
async function showNamed(place, area, kind, line, page) {
  const inner = frame(place, `Longest ${line.name}`, area, kind, page);
  try {
    const answer = await result(inner, "durations", { ...asked(area), what: kind, longest: { class: line.class, name: line.name } });
    if (!answer) return;
    inner.append(list(answer.longest.map((/** @type {number[]} */ [row, from, to]) => ({ row, from, to })), page));
  } catch (error) {
    page.lost(error);
    inner.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** A panel with tabs. @param {HTMLElement} place @param {string} text @param {Area} area @param {string} kind @param {Page} page */
export function frame(place, text, { from, to }, kind, page) {
  const [whole, inner] = [element("div"), element("div")];
  whole.append(head(text, `from ${exact(from)} to ${exact(to)}`, page.close), tabs(kind, page.tab), inner);
  place.className = "wide";
  place.replaceChildren(whole);
  return inner;
}

/** Each leads to its events. @param {Span[]} spans @param {Page} page */
function list(spans, page) {
  const go = (/** @type {Span} */ { row, from }) => (row === undefined ? null : () => page.select(row, from));
  /** @type {import("./tables.js").Column<Span>[]} */
  const columns = [
    { title: "begin", unit: "text", value: ({ from }) => exact(from), act: go },
    { title: "duration", unit: "ns", value: ({ from, to }) => to - from, act: go, hint: "Select it: its events" },
    { title: "track", unit: "text", value: ({ row }) => (row === undefined ? null : page.named(row)), act: go },
  ];
  return table("The longest ones", columns, spans, 1);
}
