// @ts-check
// What a link has of the tracks as they are seen: which groups are folded or unfolded by hand, and the first one that
// is seen. And areas of very many tracks, which a link names by the groups that have them.

import { ofLink, toLink } from "./names.js";
import { $ } from "./opening.js";
import { HEIGHT } from "./tracks.js";

/** @typedef {import("./tracks.js").Node} Node */
/** @typedef {Map<number, import("./tracks.js").Row>} Rows */
/** `top`: the first one that is seen. @typedef {{fold: string[], open: string[], top: string | null}} Place */

/** Groups in a link that are folded, and as many that are unfolded, at most. */
const MOST = 100;
/** Headings at the top of the tree, by the kind of what they have. @type {Record<string, string>} */
const HEADINGS = { counter: "counters", process: "others" };

/** A track in a link; null if it has no name. @param {Node} node @param {Node | null} above the one that has it @param {(row: number) => string} inLink @returns {string | null} */
function named(node, above, inLink) {
  if (node.id !== null) return inLink(node.id);
  if (node.kind === "recording") return `recording-${node.side}`;
  const heading = HEADINGS[node.children[0]?.kind];
  if (heading) return `${heading}-${node.side}`;
  return above && above.id !== null ? `in-${inLink(above.id)}` : null;
}

/** All nodes, each with the one that has it. @param {Node[]} nodes @param {(node: Node, above: Node | null) => void} call @param {Node | null} [above] */
function walk(nodes, call, above = null) {
  for (const node of nodes) {
    call(node, above);
    walk(node.children, call, node);
  }
}

/** Finds nodes by their names in links. @param {Node[]} roots @param {Rows} rows @returns {(text: string) => Node | null} */
function finder(roots, rows) {
  /** @type {Map<number, Node>} */
  const byId = new Map();
  /** @type {Map<string, Node>} */
  const headings = new Map();
  walk(roots, (node) => {
    if (node.id !== null) byId.set(node.id, node);
    else headings.set(named(node, null, String) ?? "", node);
  });
  const row = (/** @type {string} */ text) => {
    const id = ofLink(rows, text);
    return id === null ? null : (byId.get(id) ?? null);
  };
  return (text) => {
    if (!text.startsWith("in-")) return headings.get(text) ?? row(text);
    return row(text.slice(3))?.children.find(({ id }) => id === null) ?? null;
  };
}

/** The tree as it is made: what differs from it later was folded or unfolded by hand. @param {Node[]} roots */
export function begins(roots) {
  walk(roots, (node) => (node.wasFolded = node.folded));
  return roots;
}

/** The parts of a link. @param {import("./page.js").Page} page @returns {[string, string][]} */
export function placeOf(page) {
  const { roots, layout } = page;
  const inLink = (/** @type {number} */ row) => page.inLink(row);
  /** @type {[string[], string[]]} */
  const changed = [[], []];
  walk(roots, (node, above) => {
    if (node.children.length === 0 || node.folded === node.wasFolded) return;
    const [text, of] = [named(node, above, inLink), changed[Number(!node.folded)]];
    if (text !== null && of.length < MOST) of.push(text);
  });
  const at = Math.floor($("scroll").scrollTop / HEIGHT) + layout.pinned;
  const first = layout.tracks[at];
  const above = layout.tracks.slice(layout.pinned, at).findLast(({ level }) => level < (first?.level ?? 0)) ?? null;
  const top = at > layout.pinned && first && first.kind !== "note" ? named(first, above, inLink) : null;
  const [fold, open] = changed.map((texts) => texts.join("."));
  /** @type {[string, string][]} */
  const parts = [["fold", fold], ["open", open], ["top", top ?? ""]];
  return parts.filter(([, text]) => text !== "");
}

/** What a link says. @param {URLSearchParams} link @returns {Place} */
export function ofParts(link) {
  const texts = (/** @type {string} */ key) => (link.get(key) ?? "").split(".").filter(Boolean).slice(0, MOST);
  return { fold: texts("fold"), open: texts("open"), top: link.get("top") };
}

/** Folds and unfolds what a link says. @param {import("./page.js").Page} page @param {Place} place */
export function refold({ roots, rows }, { fold, open }) {
  if (fold.length + open.length === 0) return;
  const find = finder(roots, rows);
  for (const [isFolded, texts] of /** @type {[boolean, string[]][]} */ ([[true, fold], [false, open]])) {
    for (const text of texts) {
      const node = find(text);
      if (node) node.folded = isFolded;
    }
  }
}

/** Scrolls to the track that a link says. @param {import("./page.js").Page} page @param {Place} place */
export function scroll({ roots, rows, layout }, { top }) {
  const node = top ? finder(roots, rows)(top) : null;
  const at = node ? layout.tracks.findIndex((track, at) => at >= layout.pinned && track === node) : -1;
  if (at >= 0) $("scroll").scrollTop = (at - layout.pinned) * HEIGHT;
}

/** Rows in a link, where groups stand for their members if all of these are there. @param {Node[]} roots @param {Rows} rows @param {number[]} wanted @param {(row: number) => string} [inLink] */
export function grouped(roots, rows, wanted, inLink = (row) => toLink(rows, row)) {
  const left = new Set(wanted);
  /** @type {string[]} */
  const names = [];
  walk(roots, (node, above) => {
    const members = membersOf(node);
    const text = members.length > 1 && members.every((id) => left.has(id)) ? named(node, above, inLink) : null;
    if (text === null) return;
    names.push(`all-${text}`);
    for (const id of members) left.delete(id);
  });
  return [...names, ...[...left].map(inLink)];
}

/** The rows of a group in a link. @param {Node[]} roots @param {Rows} rows @param {string} text */
export function members(roots, rows, text) {
  const node = finder(roots, rows)(text);
  return node ? membersOf(node) : [];
}

/** @param {Node} node */
function membersOf({ children }) {
  return children.flatMap(({ id }) => (id === null ? [] : [id]));
}
