// @ts-check
// The tree of tracks: all CPUs; processes with their threads and tasks, the busiest first; last the processes
// that the recording does not follow. And its labels, of which only those that are seen exist.

import { duration } from "./time.js";

/** Height of a track, in pixels. */
export const HEIGHT = 24;
/** The row that stands for all CPUs. */
export const ALL_CPUS = 0xffffffff;
/** Tracks that are unfolded at first, at most. */
const UNFOLDED = 60;

/**
 * A track as the server has it.
 * @typedef {{id: number, kind: string, number: string, name: string, parent: number | null, begin: number,
 *   end: number, is_followed: boolean, used: number}} Row
 */
/**
 * A track of the page.
 * @typedef {object} Node
 * @property {number | null} id the row that is drawn; null if it is a heading
 * @property {string} name
 * @property {string} number
 * @property {string} kind
 * @property {number | null} parent the row of its group
 * @property {number} used
 * @property {number} begin of its first state
 * @property {number} end of its last state
 * @property {Node[]} children
 * @property {boolean} folded
 * @property {number} level
 */

/** Whether a row is a part of a thread or task. @param {{kind: string}} row */
export function isPart({ kind }) {
  return kind === "functions" || kind === "locks";
}

/** Whether a track stands for others, which its picture sums up. @param {{kind: string}} track */
export function isGroup({ kind }) {
  return kind === "process" || kind === "heading";
}

/** @param {Row} row @returns {Node} */
function node(row) {
  const names = { cpu: `CPU ${row.number}`, process: "process", thread: "thread", task: "task", functions: "functions", locks: "locks" };
  const unnamed = row.kind === "process" && row.number === "" ? "process unknown" : names[/** @type {"cpu"} */ (row.kind)];
  const name = row.kind === "cpu" ? unnamed : row.name || unnamed;
  // Functions by the number of those around them; rows of several locks at the same time.
  const isFirst = isPart(row) && row.number === "0";
  const number = row.kind === "cpu" || isFirst ? "" : isPart(row) ? String(Number(row.number) + 1) : row.number;
  return { id: row.id, name, number, kind: row.kind, parent: row.kind === "cpu" ? ALL_CPUS : row.parent, used: row.used, begin: row.begin, end: row.end, children: [], folded: false, level: 0 };
}

/** @param {string} name @param {number | null} id @param {Node[]} children @param {boolean} folded @returns {Node} */
function heading(name, id, children, folded) {
  const used = children.reduce((sum, child) => sum + child.used, 0);
  return { id, name, number: "", kind: "heading", parent: null, used, begin: 0, end: Infinity, children, folded, level: 0 };
}

/** @param {Row[]} rows @returns {Node[]} */
export function tree(rows) {
  const busiest = (/** @type {Node} */ a, /** @type {Node} */ b) => b.used - a.used;
  const nodes = new Map(rows.map((row) => [row.id, node(row)]));
  const all = rows.map((row) => ({ row, node: /** @type {Node} */ (nodes.get(row.id)) }));
  const cpus = all.filter(({ row }) => row.kind === "cpu").map(({ node }) => node);
  cpus.sort((a, b) => Number(a.name.slice(4)) - Number(b.name.slice(4)));
  /** @type {Map<Node, Node[]>} */
  const tasks = new Map();
  for (const { row, node } of all) {
    const parent = row.parent === null ? undefined : nodes.get(row.parent);
    if (!parent) continue;
    if (row.kind !== "task") parent.children.push(node);
    else if (!tasks.get(parent)?.push(node)) tasks.set(parent, [node]);
  }
  // Functions by depth, then locks.
  for (const { node } of all) {
    if (!isGroup(node) && node.children.length) {
      node.children.sort((a, b) => a.kind.localeCompare(b.kind) || Number(a.id) - Number(b.id));
      node.folded = true;
    }
  }
  const processes = all.filter(({ row }) => row.kind === "process");
  for (const { node } of processes) {
    node.children.sort(busiest);
    const own = tasks.get(node)?.sort(busiest);
    if (own) node.children.push(heading(own.length === 1 ? "1 task" : `${own.length} tasks`, null, own, own.length > 20));
  }
  const followed = processes.filter(({ row }) => row.is_followed).map(({ node }) => node).sort(busiest);
  const others = processes.filter(({ row }) => !row.is_followed).map(({ node }) => node).sort(busiest);
  const roots = cpus.length ? [heading("CPUs", ALL_CPUS, cpus, cpus.length > 16)] : [];
  let left = UNFOLDED - cpus.length;
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
  if (others.length) roots.push(heading(`${others.length === 1 ? "1 process" : `${others.length} processes`}, not followed`, null, others, followed.length > 0));
  /** @param {Node[]} nodes @param {number} level */
  const deepen = (nodes, level) => {
    for (const node of nodes) {
      node.level = level;
      deepen(node.children, level + 1);
    }
  };
  deepen(roots, 0);
  return roots;
}

/** The tracks that are shown, in order. @param {Node[]} roots @param {string} filter @returns {Node[]} */
export function shown(roots, filter) {
  const text = filter.trim().toLowerCase();
  /** @type {Node[]} */
  const found = [];
  const fits = (/** @type {Node} */ node) => node.number === text || node.name.toLowerCase().includes(text);
  /** @param {Node} node @param {boolean} whole @returns {boolean} */
  const visit = (node, whole) => {
    const at = found.length;
    const isWhole = whole || (text !== "" && fits(node));
    found.push(node);
    let any = isWhole || text === "";
    if (text !== "" ? true : !node.folded) {
      for (const child of node.children) any = visit(child, isWhole) || any;
    }
    if (!any) found.length = at;
    return any;
  };
  for (const root of roots) visit(root, false);
  return found;
}

/**
 * Puts labels into the page.
 * @param {HTMLElement} place @param {Node[]} tracks @param {number} top first pixel that is seen
 * @param {number} height of what is seen @param {Node | null} chosen
 */
export function label(place, tracks, top, height, chosen) {
  const first = Math.max(0, Math.floor(top / HEIGHT));
  const last = Math.min(tracks.length, Math.ceil((top + height) / HEIGHT));
  const labels = [];
  for (let at = first; at < last; at++) labels.push(one(tracks[at], at, at * HEIGHT - top, tracks[at] === chosen));
  place.replaceChildren(...labels);
  const active = labels.find((label) => label.classList.contains("chosen"));
  if (active) place.setAttribute("aria-activedescendant", active.id);
  else place.removeAttribute("aria-activedescendant");
}

/** @param {Node} track @param {number} at @param {number} top @param {boolean} isChosen */
function one(track, at, top, isChosen) {
  const label = document.createElement("div");
  const hasParts = track.children.length > 0;
  label.className = `track${isGroup(track) ? " group" : ""}${isPart(track) ? " part" : ""}${isChosen ? " chosen" : ""}`;
  label.id = `track-${at}`;
  label.dataset.at = String(at);
  label.setAttribute("role", "treeitem");
  label.setAttribute("aria-level", String(track.level + 1));
  label.setAttribute("aria-selected", String(isChosen));
  if (hasParts) label.setAttribute("aria-expanded", String(!track.folded));
  label.style.top = `${top}px`;
  label.style.paddingLeft = `${8 + track.level * 14}px`;
  const part = (/** @type {string} */ name, /** @type {string} */ text) => {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = text;
    return part;
  };
  const what = part("what", track.name);
  if (track.number) what.append(part("number", track.number));
  label.title = track.number ? `${track.name}, ${track.kind} ${track.number}` : track.name;
  label.append(part("fold", hasParts ? (track.folded ? "▸" : "▾") : ""), what);
  label.append(part("used", track.used > 0 ? duration(track.used) : ""));
  return label;
}
