// @ts-check
// The flame graph of an area: which functions the samples in it hit, or how long calls of functions took, and
// what called them. A click on a function, or Enter, shows only what it called, and a link to its samples or calls;
// arrow keys go from one to the next.

import { tabs } from "./analyses.js";
import { result } from "./job.js";
import { element, head, link } from "./selection.js";
import { duration, exact } from "./time.js";

/** Functions that are narrower than this part of the whole are not drawn. */
const NARROW = 0.002;

/** `samples` are nanoseconds in a graph of calls. @typedef {{depth: number, name: string, samples: number, own: number}} Node */

/** What a flame graph is of; `listed`: what a function leads to. @type {Record<string, {title: string, label: string, nothing: string, listed: string, text: (count: number) => string}>} */
const KINDS = {
  samples: {
    title: "Samples", label: "Samples by call chain",
    nothing: "These tracks have no samples in this time. Record with --profile to take samples.",
    listed: "List these samples",
    text: (count) => `${count.toLocaleString("en")} ${count === 1 ? "sample" : "samples"}`,
  },
  graph: {
    title: "Call times", label: "Time of functions by call chain",
    nothing: "These tracks have no calls of functions in this time. Record with --functions to see them.",
    listed: "List its longest calls in this area, whatever called it",
    text: duration,
  },
};

/**
 * @param {HTMLElement} place @param {string} kind @param {{from: number, to: number}} area @param {unknown} asked
 * @param {{close: () => void, lost: (error: unknown) => void, tab: (kind: string) => void}} page
 * @param {(chain: string[]) => void} list shows the samples, or calls, of a function: of its process or callers, too
 */
export async function showFlame(place, kind, { from, to }, asked, page, list) {
  const { title } = KINDS[kind];
  const whole = element("div");
  whole.append(head(title, `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close), tabs(kind, page.tab));
  place.className = "wide";
  place.replaceChildren(whole);
  try {
    await drawFlame(whole, kind, asked, list);
  } catch (error) {
    page.lost(error);
    whole.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** Draws a flame graph; false if its analysis was ended. @param {HTMLElement} whole @param {string} kind @param {any} asked @param {((chain: string[]) => void) | null} [list] */
export async function drawFlame(whole, kind, asked, list = null) {
  const { label, nothing, listed, text } = KINDS[kind];
  const answer = await result(whole, kind === "graph" ? "graph" : "flame", asked);
  if (!answer) return false;
  if (answer.samples === 0) {
    whole.append(element("p", answer.note ?? nothing));
    return true;
  }
  const graph = element("div", undefined, "flame");
  graph.dataset.samples = String(answer.samples);
  graph.setAttribute("role", "tree");
  graph.setAttribute("aria-label", `${label}: arrow keys go to callers, callees and neighbours, Enter enlarges`);
  graph.addEventListener("keydown", (event) => walk(graph, event));
  const leads = element("p");
  leads.hidden = true;
  whole.append(graph, leads);
  const chosen = (/** @type {number | null} */ at) => {
    leads.hidden = at === null || list === null;
    if (at === null || list === null) return;
    const { name, samples } = answer.nodes[at];
    leads.replaceChildren(`${name}: ${text(samples)}. `, link(listed, () => list(chainOf(answer.nodes, at))));
  };
  draw(graph, { samples: answer.samples, nodes: answer.nodes, text, chosen }, null, null);
  for (const path of answer.replaced ?? []) whole.append(element("p", `${path} was replaced after the recording, so its functions have no names.`, "lost"));
  if (answer.left_out > 0) whole.append(element("p", `${answer.left_out.toLocaleString("en")} smaller functions are left out.`));
  return true;
}

/** Arrow keys: to what calls the function, what it calls, and its neighbours. @param {HTMLElement} graph @param {KeyboardEvent} event */
function walk(graph, event) {
  const at = /** @type {HTMLElement | null} */ (event.target instanceof HTMLElement && event.target.closest("[role=treeitem]"));
  if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
  const boxes = /** @type {HTMLElement[]} */ ([...graph.querySelectorAll("[role=treeitem]")]);
  const [level, left, width] = place(at);
  const middle = left + width / 2;
  const of = (/** @type {number} */ wanted) => boxes.filter((box) => place(box)[0] === wanted);
  const within = (/** @type {HTMLElement} */ box) => place(box)[1] >= left - 1e-6 && place(box)[1] < left + width - 1e-6;
  const beside = of(level).sort((a, b) => place(a)[1] - place(b)[1]);
  /** @type {Record<string, () => HTMLElement | undefined>} */
  const to = {
    ArrowUp: () => of(level - 1).find((box) => place(box)[1] <= middle && middle <= place(box)[1] + place(box)[2]),
    ArrowDown: () => of(level + 1).filter(within)[0],
    ArrowLeft: () => beside[beside.indexOf(at) - 1],
    ArrowRight: () => beside[beside.indexOf(at) + 1],
    Home: () => boxes[0],
  };
  if (!Object.hasOwn(to, event.key)) return;
  // Otherwise they would move the picture.
  event.preventDefault();
  event.stopPropagation();
  const next = to[event.key]();
  if (!next) return;
  for (const box of boxes) box.tabIndex = box === next ? 0 : -1;
  next.focus();
}

/** Level, left side and width of a box. @param {HTMLElement} box @returns {[number, number, number]} */
function place(box) {
  return [Number(box.getAttribute("aria-level")), parseFloat(box.style.left), parseFloat(box.style.width)];
}

/** The end of what is below a node. @param {Node[]} nodes @param {number} at */
function end(nodes, at) {
  let next = at + 1;
  while (next < nodes.length && nodes[next].depth > nodes[at].depth) next++;
  return next;
}

/** The names of a node and of those above it, the outermost first. @param {Node[]} nodes @param {number} at */
function chainOf(nodes, at) {
  const chain = [nodes[at].name];
  for (let { depth } = nodes[at]; depth > 0; depth--) {
    do at--; while (nodes[at].depth >= depth);
    chain.unshift(nodes[at].name);
  }
  return chain;
}

/** `chosen`: a function is as wide as the picture, or all are. @typedef {{samples: number, nodes: Node[], text: (count: number) => string, chosen: (at: number | null) => void}} Graph */

/**
 * @param {HTMLElement} place @param {Graph} graph @param {number | null} root the function that is as wide as the
 * picture; null for all @param {number | null} focused the function that has the focus; null without one
 */
function draw(place, graph, root, focused) {
  const { nodes } = graph;
  const [first, last] = root === null ? [0, nodes.length] : [root, end(nodes, root)];
  const whole = root === null ? graph.samples : nodes[root].samples;
  const zoom = (/** @type {number | null} */ at) => () => draw(place, graph, at, at ?? -1);
  const made = [box({ depth: 0, name: "all", samples: graph.samples, own: 0 }, [0, 1, 0], graph, zoom(null))];
  /** The functions of the boxes; -1 for all. */
  const of = [-1];
  const add = (/** @type {number} */ at, /** @type {[number, number, number]} */ where) => {
    made.push(box(nodes[at], where, graph, zoom(at)));
    of.push(at);
  };
  // Those around the chosen one are as wide as it is.
  const around = [];
  for (let at = root ?? -1; at > 0; ) {
    const { depth } = nodes[at];
    do at--; while (at >= 0 && nodes[at].depth >= depth);
    if (at >= 0) around.unshift(at);
  }
  for (const at of around) add(at, [0, 1, nodes[at].depth + 1]);
  /** Where the next node of each depth begins. @type {number[]} */
  const left = [];
  const top = root === null ? 0 : nodes[root].depth;
  left[top] = 0;
  let deepest = 0;
  for (let at = first; at < last; at++) {
    const node = nodes[at];
    const [begin, width] = [left[node.depth], node.samples / whole];
    left[node.depth] = begin + width;
    left[node.depth + 1] = begin;
    if (width < NARROW) continue;
    deepest = Math.max(deepest, node.depth + 1);
    add(at, [begin, width, node.depth + 1]);
  }
  graph.chosen(root);
  place.style.height = `${(deepest + 1) * 19}px`;
  place.replaceChildren(...made);
  // One of them is reached by Tab; the arrow keys reach the others.
  const reached = made[Math.max(0, of.indexOf(focused ?? -1))];
  reached.tabIndex = 0;
  if (focused !== null) reached.focus();
}

/** @param {Node} node @param {[number, number, number]} where left side and width as parts of the whole, and level @param {Graph} graph @param {() => void} zoom */
function box({ name, samples, own }, [left, width, level], graph, zoom) {
  const made = element("button", name);
  const share = ((samples / graph.samples) * 100).toFixed(1);
  const text = `${name}: ${graph.text(samples)}, ${share} %${own ? `, ${graph.text(own).replace(/ samples?$/, "")} in itself` : ""}`;
  made.title = text;
  made.tabIndex = -1;
  made.setAttribute("role", "treeitem");
  made.setAttribute("aria-level", String(level + 1));
  made.setAttribute("aria-label", text);
  made.style.left = `${left * 100}%`;
  made.style.width = `${width * 100}%`;
  made.style.top = `${level * 19}px`;
  // A name has the same colour everywhere.
  let hash = 0;
  for (const one of name) hash = (hash * 31 + (one.codePointAt(0) ?? 0)) % 997;
  made.style.setProperty("--hue", String(20 + (hash % 34)));
  made.addEventListener("click", zoom);
  return made;
}
