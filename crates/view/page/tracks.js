// @ts-check
// The tree of tracks: all CPUs; processes with their threads and tasks, the busiest first; last the processes
// that the recording does not follow. And its labels, of which only those that are seen exist.

import { hasOptions, isChosen, parsed } from "./filter.js";
import { named } from "./names.js";
import { ALL_CPUS, SECOND, isSeries, sideOf } from "./sides.js";
import { duration, quantity } from "./time.js";

/** Height of a track, in pixels. */
export const HEIGHT = 24;
/** Tracks that stay at the top, at most. */
export const MOST_PINS = 12;
/** Tracks that are unfolded at first, at most. */
const UNFOLDED = 60;

/**
 * A track as the server has it.
 * @typedef {{id: number, kind: string, number: string, name: string, parent: number | null, begin: number,
 *   end: number, is_followed: boolean, used: number, counter: Counter | null, group?: number | null, members?: number | null}} Row
 * @typedef {{unit: string, least: number, most: number}} Counter
 */
/**
 * A track of the page.
 * @typedef {object} Node
 * @property {number | null} id the row that is drawn; null if it is a heading
 * @property {string} key what distinguishes it from all others, also when rows get other numbers and tracks other places
 * @property {string} name
 * @property {string} number
 * @property {string} kind
 * @property {number | null} parent the row of its group
 * @property {number | null} [group] of a task, the row of the tasks of its name
 * @property {number | null} [whole] of tasks, the row of all tasks of their process
 * @property {number} used
 * @property {number} begin of its first state
 * @property {number} end of its last state
 * @property {Node[]} children
 * @property {boolean} folded
 * @property {boolean} [wasFolded] whether it is when the tree is made
 * @property {number} level
 * @property {number} [weight] what it is ordered by instead of what it used: tracks of a recording that is made stay where they are
 * @property {boolean} [isPinned] whether it stays at the top
 * @property {number} side to which recording it belongs
 * @property {Counter | null} [counter] of a counter: its unit, its least and its greatest value
 * @property {string} [extent] of a recording that is compared: how long it is, in words
 */

/** How many rows of the recording are among these. @param {Row[]} rows */
export function counted(rows) {
  return rows.filter(({ kind }) => kind !== "all").length;
}

/** Whether a row is a part of a thread or task, or a counter. @param {{kind: string}} row */
export function isPart({ kind }) {
  return ["functions", "locks", "spans", "events", "samples", "system calls", "counter"].includes(kind);
}

/** Whether a track has events, which are drawn as marks. @param {{kind: string}} track */
export function isMarks({ kind }) {
  return kind === "events" || kind === "samples";
}

/** Whether a track stands for others, which its picture sums up. @param {{kind: string}} track */
export function isGroup({ kind }) {
  return ["process", "tasks", "all", "heading", "recording"].includes(kind);
}

/** @param {Row} row @param {string} key @returns {Node} */
function node(row, key) {
  const names = { cpu: `CPU ${row.number}`, process: "process", thread: "thread", task: "task", functions: "functions", locks: "locks", spans: "spans", events: "events", samples: "samples", "system calls": "system calls", counter: "counter" };
  if (row.kind === "tasks") return tasksOf(row, key);
  if (row.kind === "all") return { ...tasksOf(row, key), number: "" };
  const unnamed = row.kind === "process" && row.number === "" ? "process unknown" : names[/** @type {"cpu"} */ (row.kind)];
  const name = row.kind === "cpu" ? unnamed : row.name || unnamed;
  // Functions and spans by the number of those around them; events by provider; rows of several locks at the same time.
  const isFirst = isPart(row) && row.number === "0";
  const number = row.kind === "events" ? "events" : row.kind === "cpu" || row.kind === "counter" || isFirst ? "" : isPart(row) ? String(Number(row.number) + 1) : row.number;
  return { id: row.id, key, name, number, kind: row.kind, parent: row.kind === "cpu" ? ALL_CPUS + sideOf(row.id) * SECOND : row.parent, group: row.group ?? null, used: row.used, begin: row.begin, end: row.end, children: [], folded: false, level: 0, side: sideOf(row.id), counter: row.counter };
}

/** The tasks of a name. @param {Row} row @param {string} key @returns {Node} */
function tasksOf({ id, name, number, kind, parent, used, begin, end, members }, key) {
  const count = members === 1 ? "1 task" : `${(members ?? 0).toLocaleString("en")} tasks`;
  return { id, key, name: number === "others" ? "other names" : name || "unnamed", number: count, kind, parent, used, begin, end, children: [], folded: false, level: 0, side: sideOf(id) };
}

/**
 * A track that is none of the recording. Its key begins with a sign that those of rows have not.
 * @param {string} key @param {string} name @param {number | null} id @param {Node[]} children @param {boolean} folded
 * @returns {Node}
 */
function heading(key, name, id, children, folded) {
  const side = children[0]?.side ?? 0;
  const used = children.reduce((sum, child) => sum + child.used, 0);
  return { id, key, name, number: "", kind: "heading", parent: null, used, begin: 0, end: Infinity, children, folded, level: 0, side };
}

/** @param {Row[]} rows of one recording @param {number} [unfolded] tracks that are unfolded at most @returns {Node[]} */
export function tree(rows, unfolded = UNFOLDED) {
  const busiest = (/** @type {Node} */ a, /** @type {Node} */ b) => b.used - a.used;
  const keys = named(rows);
  const nodes = new Map(rows.map((row) => [row.id, node(row, keys.get(row.id) ?? "")]));
  const all = rows.map((row) => ({ row, node: /** @type {Node} */ (nodes.get(row.id)) }));
  const cpus = all.filter(({ row }) => row.kind === "cpu").map(({ node }) => node);
  cpus.sort((a, b) => Number(a.name.slice(4)) - Number(b.name.slice(4)));
  // A task that is the only one of its name stands for itself, if the page has it.
  const single = new Set(rows.flatMap(({ kind, id, members }) => (kind === "tasks" && members === 1 ? [id] : [])));
  const alone = new Set(rows.flatMap(({ group }) => (group !== null && group !== undefined && single.has(group) ? [group] : [])));
  const membersOf = new Map(rows.map(({ id, members }) => [id, members ?? 0]));
  for (const { row, node } of all) {
    const group = row.group === null || row.group === undefined || alone.has(row.group) ? undefined : nodes.get(row.group);
    const parent = group ?? (row.parent === null ? undefined : nodes.get(row.parent));
    if (parent && !alone.has(row.id) && row.kind !== "all") parent.children.push(node);
  }
  // Events by provider, functions by depth, locks, spans by depth.
  for (const { node } of all) {
    if (!isGroup(node) && node.children.length) {
      node.children.sort((a, b) => a.kind.localeCompare(b.kind) || Number(a.id) - Number(b.id));
      node.folded = true;
    }
  }
  /** By process, the track of all its tasks. */
  const wholes = new Map(all.filter(({ row }) => row.kind === "all").map(({ row, node }) => [row.parent, node]));
  const processes = all.filter(({ row }) => row.kind === "process");
  for (const { node } of processes) {
    node.children.sort((a, b) => rank(a) - rank(b) || busiest(a, b));
    const of = node.children.filter((child) => rank(child) > 0);
    const count = of.reduce((sum, { kind, id }) => sum + (kind === "tasks" ? membersOf.get(Number(id)) ?? 0 : 1), 0);
    for (const group of of.filter(({ kind }) => kind === "tasks")) {
      group.children.sort(busiest);
      group.folded = count > Math.min(20, unfolded);
    }
    // Tasks of several names are together.
    if (of.length < 2) continue;
    const whole = wholes.get(node.id) ?? heading(`+tasks ${node.key}`, "", null, of, false);
    [whole.name, whole.children, whole.folded] = [`${count.toLocaleString("en")} tasks`, of, of.length > Math.min(20, unfolded)];
    each(of, (child) => (child.whole = whole.id));
    node.children = [...node.children.filter((child) => rank(child) === 0), whole];
  }
  const followed = processes.filter(({ row }) => row.is_followed).map(({ node }) => node).sort(busiest);
  const others = processes.filter(({ row }) => !row.is_followed).map(({ node }) => node).sort(busiest);
  const roots = cpus.length ? [heading(`+cpus ${cpus[0].side}`, "CPUs", ALL_CPUS + cpus[0].side * SECOND, cpus, cpus.length > Math.min(16, unfolded))] : [];
  const counters = all.filter(({ row }) => row.kind === "counter" && row.parent === null).map(({ node }) => node);
  if (counters.length) roots.push(heading(`+counters ${counters[0].side}`, "Counters", null, counters, false));
  let left = unfolded - cpus.length - counters.length;
  for (const process of followed) {
    process.folded = process.children.length > left;
    left -= process.children.length + 1;
    for (const thread of process.folded ? [] : process.children.filter(({ kind }) => kind === "thread")) {
      thread.folded = thread.children.length > left;
      if (!thread.folded) left -= thread.children.length;
    }
  }
  for (const process of others) process.folded = true;
  roots.push(...followed);
  if (others.length) roots.push(heading(`+others ${others[0].side}`, `${others.length === 1 ? "1 process" : `${others.length} processes`}, not followed`, null, others, followed.length > 0));
  deepen(roots, 0);
  return roots;
}

/** Calls with each track, those above first. @param {Node[]} nodes @param {(node: Node) => void} call */
export function each(nodes, call) {
  for (const node of nodes) {
    call(node);
    each(node.children, call);
  }
}

/** Tasks come after the threads of a process. @param {Node} node */
function rank({ kind }) {
  return Number(["task", "tasks", "all"].includes(kind));
}

/** @param {Node[]} nodes @param {number} level */
function deepen(nodes, level) {
  for (const node of nodes) {
    node.level = level;
    deepen(node.children, level + 1);
  }
}

/** The tracks of a recording below one that stands for all of them. @param {string} name @param {Node[]} roots @param {number} side @returns {Node} */
export function recording(name, roots, side) {
  const made = { ...heading(`+recording ${side}`, name, null, roots, false), kind: "recording", side, used: 0 };
  deepen([made], 0);
  return made;
}

/** Orders of tracks within their group: by time used, name, number, and first time. @type {Record<string, (a: Node, b: Node) => number>} */
export const ORDERS = {
  used: (a, b) => (b.weight ?? b.used) - (a.weight ?? a.used),
  name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }),
  number: (a, b) => a.number.localeCompare(b.number, "en", { numeric: true }),
  begin: (a, b) => a.begin - b.begin,
};

/** Orders processes, threads and tasks; all else keeps its place. @param {Node[]} roots @param {string} order */
export function reorder(roots, order) {
  const by = ORDERS[order] ?? ORDERS.used;
  const place = (/** @type {Node} */ { kind }) => ["cpu", "process", "thread", "task", "tasks", "all"].indexOf(kind);
  const sort = (/** @type {Node[]} */ nodes) => {
    // Headings stay where they are: CPUs first, others last.
    const at = nodes.flatMap((node, at) => (place(node) > 0 ? [at] : []));
    const sorted = at.map((at) => nodes[at]).sort((a, b) => rank(a) - rank(b) || by(a, b) || Number(a.id) - Number(b.id));
    for (const [number, node] of sorted.entries()) nodes[at[number]] = node;
    for (const node of nodes) if (isGroup(node)) sort(node.children);
  };
  sort(roots);
}

/**
 * The tracks that are shown, in order; last, how many do not match.
 * @param {Node[]} roots @param {string} filter @param {import("./others.js").Hidden | null} [others] what is known of those that only the server has
 * @returns {Node[]}
 */
export function shown(roots, filter, others = null) {
  const chosen = parsed(filter);
  const { text } = chosen;
  const isFiltered = text !== "" || hasOptions(chosen);
  /** @type {Node[]} */
  const found = [];
  let left = 0;
  const fits = (/** @type {Node} */ node) => node.kind !== "recording" && (node.number === text || node.name.toLowerCase().includes(text));
  /**
   * @param {Node} node @param {boolean} whole whether the text is in the name of one above it
   * @param {Node | null} process @param {boolean} above whether the options choose the thread or task of which it is a part
   * @returns {boolean}
   */
  const visit = (node, whole, process, above) => {
    const [at, leftBefore] = [found.length, left];
    const isWhole = whole || (text !== "" && fits(node));
    const of = node.kind === "process" ? node : process;
    const is = isPart(node) ? above : isChosen(node, of, chosen);
    found.push(node);
    let any = is && (isWhole || text === "");
    if (isFiltered || !node.folded) {
      for (const child of node.children) any = visit(child, isWhole, of, is) || any;
    }
    if (!any) [found.length, left] = [at, (isPart(node) ? leftBefore : left) + Number(!isPart(node) && !["heading", "recording", "tasks", "all"].includes(node.kind))];
    return any;
  };
  // Of each recording.
  const hidden = [0, 0];
  for (const root of roots) {
    left = 0;
    visit(root, false, null, false);
    hidden[root.side] += left;
  }
  if (!isFiltered) return found;
  const sum = hidden.reduce((sum, own, side) => sum + (others?.hidden[side] ?? own), 0);
  const note = (/** @type {string} */ text) => found.push({ ...heading("+note", text, null, [], false), kind: "note" });
  const count = `${others?.isLeast ? "at least " : ""}${sum.toLocaleString("en")}`;
  if (sum > 0) note(`${count} ${sum === 1 ? "track does" : "tracks do"} not match the filter`);
  if (others?.more) note(`${others.more.toLocaleString("en")} more ${others.more === 1 ? "track matches" : "tracks match"}: the filter finds too many to show`);
  return found;
}

/** Where tracks are: those that are pinned stay at the top, the others scroll below them. */
export class Layout {
  /** @param {Node[]} tracks the pinned ones first @param {number} pinned how many of them are pinned */
  constructor(tracks, pinned) {
    this.tracks = tracks;
    this.pinned = pinned;
    /** First pixel that is seen of those that scroll. */
    this.top = 0;
    /** Pixels for all. */
    this.height = 0;
  }

  /** Where a track begins in what is seen. @param {number} at its number */
  y(at) {
    return at * HEIGHT - (at < this.pinned ? 0 : this.top);
  }

  /** The number of the track at a pixel. @param {number} y */
  at(y) {
    return Math.floor((y < this.pinned * HEIGHT ? y : y + this.top) / HEIGHT);
  }

  /** The tracks that are seen, and where. */
  seen() {
    const found = [];
    const numbers = Array.from({ length: Math.min(this.pinned, this.tracks.length) }, (_, at) => at);
    const last = Math.min(this.tracks.length, Math.ceil((this.top + this.height) / HEIGHT));
    for (let at = Math.floor(this.top / HEIGHT) + this.pinned; at < last; at++) numbers.push(at);
    for (const at of numbers) found.push({ track: this.tracks[at], at, y: this.y(at) });
    // Those that scroll are drawn first: pinned ones hide them.
    return found.reverse();
  }

  /** Where the middles of two rows are; null of one that is not shown. @param {number[]} rows */
  places(rows) {
    const place = (/** @type {number} */ row) => this.tracks.findIndex(({ id }) => id === row);
    return rows.map(place).map((at) => (at < 0 ? null : this.y(at) + HEIGHT / 2));
  }
}

/** The labels that a place has, by what they say. @type {WeakMap<HTMLElement, Map<string, HTMLElement>>} */
const shownIn = new WeakMap();

/**
 * Puts labels into the page. Those that say the same as in the picture before stay: elements that are made for each
 * picture are left to a garbage collector, which comes late.
 * @param {HTMLElement} place @param {Layout} layout @param {Node | null} chosen @param {Map<number, [number, number]>} edges of counters
 */
export function label(place, layout, chosen, edges) {
  const before = shownIn.get(place) ?? new Map();
  /** @type {Map<string, HTMLElement>} */
  const labels = new Map();
  for (const { track, at, y } of layout.seen()) {
    const scale = track.counter ? edges.get(track.id ?? -1) : undefined;
    const says = said(track, at, track === chosen, scale);
    const label = before.get(says) ?? one(track, at, track === chosen, scale);
    const top = `${y}px`;
    if (label.style.top !== top) label.style.top = top;
    labels.set(says, label);
  }
  shownIn.set(place, labels);
  const ordered = [...labels.values()].reverse();
  const isThere = ordered.length === place.children.length && ordered.every((label, at) => label === place.children[at]);
  if (!isThere) place.replaceChildren(...ordered);
  const active = ordered.find((label) => label.classList.contains("chosen"));
  if (active) place.setAttribute("aria-activedescendant", active.id);
  else place.removeAttribute("aria-activedescendant");
}

/**
 * All that a label shows of its track, except its place.
 * @param {Node} track @param {number} at @param {boolean} isChosen @param {[number, number] | undefined} edges of a counter
 */
function said(track, at, isChosen, edges) {
  const { id, name, number, kind, level, used, folded, counter } = track;
  const is = [isGroup(track), isPart(track), track.isPinned, isChosen, track.children.length > 0, folded];
  return JSON.stringify([at, id, name, number, kind, level, used, ...is, counter?.unit, edges]);
}

/** @param {Node} track @param {number} at @param {boolean} isChosen @param {[number, number] | undefined} edges of a counter */
function one(track, at, isChosen, edges) {
  const label = document.createElement("div");
  const hasParts = track.children.length > 0;
  const classes = { group: isGroup(track), part: isPart(track), note: track.kind === "note", pinned: Boolean(track.isPinned), chosen: isChosen };
  label.className = ["track", ...Object.entries(classes).flatMap(([name, is]) => (is ? [name] : []))].join(" ");
  label.id = `track-${at}`;
  label.dataset.at = String(at);
  label.setAttribute("role", "treeitem");
  label.setAttribute("aria-level", String(track.level + 1));
  label.setAttribute("aria-selected", String(isChosen));
  if (hasParts) label.setAttribute("aria-expanded", String(!track.folded));
  label.style.paddingLeft = `${8 + track.level * 14}px`;
  const part = (/** @type {string} */ name, /** @type {string} */ text) => {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = text;
    return part;
  };
  const what = part("what", track.name);
  if (track.number) what.append(part("number", track.number));
  const isNumbered = track.number && track.kind !== "events" && track.kind !== "tasks";
  label.title = isNumbered ? `${track.name}, ${track.kind} ${track.number}` : track.name;
  label.append(part("fold", hasParts ? (track.folded ? "▸" : "▾") : ""), what);
  if (track.kind === "note") return label;
  const scale = track.counter && edges ? scaled(edges, track.counter.unit) : "";
  label.append(part("used", track.used > 0 ? duration(track.used) : scale));
  if (scale) label.title = `${track.name}: the track is as high as ${scale}`;
  if (track.id !== null) {
    const pin = part("pin", track.isPinned ? "unpin" : "pin");
    pin.title = track.isPinned ? "Back to its place (I)" : "Keep it at the top (I)";
    label.append(pin);
    if (isSeries(track.id)) label.append(Object.assign(part("pin remove", "remove"), { title: "Remove this counter (Delete)" }));
  }
  return label;
}

/** The values at the edges of a counter. @param {[number, number]} edges @param {string} unit */
function scaled([low, high], unit) {
  const short = (/** @type {number} */ value) => value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  const [from, to] = [low, high].map((value) => (unit === "" ? short(value) : quantity(Number(value.toPrecision(3)), unit)));
  return low === 0 ? to : `${from} to ${to}`;
}

/**
 * The rows of a track, of a folded one those in it: a group stands for its members.
 * @param {Node} node @returns {number[]}
 */
export function ids(node) {
  if (node.children.length === 0) return node.id === null ? [] : [node.id];
  // The members of a group are marked one by one; a thread has states of its own, too.
  if (!node.folded) return isGroup(node) || node.id === null ? [] : [node.id];
  return node.id === null ? all(node) : [node.id];
}

/** The rows in a heading. @param {Node} node */
export function all(node) {
  return node.children.flatMap(({ id }) => (id === null ? [] : [id]));
}
