// @ts-check
// The flame graph of an area: which functions the samples in it hit, and what called them. A click on a function
// shows only what it called.

import { result } from "./job.js";
import { element, head, link } from "./selection.js";
import { duration, exact } from "./time.js";

/** Functions that are narrower than this part of the whole are not drawn. */
const NARROW = 0.002;

/** @typedef {{depth: number, name: string, samples: number, own: number}} Node */

/**
 * @param {HTMLElement} place @param {{from: number, to: number, rows: number[] | null}} area
 * @param {{close: () => void, lost: (error: unknown) => void, statistics: () => void}} page
 */
export async function showFlame(place, { from, to, rows }, page) {
  const title = head("Samples", `${duration(to - from)}, from ${exact(from)} to ${exact(to)}`, page.close);
  title.insertBefore(link("Statistics", page.statistics, "The table of this area"), title.lastElementChild);
  const whole = element("div");
  whole.append(title);
  place.className = "wide";
  place.replaceChildren(whole);
  try {
    const answer = await result(whole, "flame", rows ? { from, to, rows } : { from, to });
    if (!answer) return;
    if (answer.samples === 0) {
      whole.append(element("p", "These tracks have no samples in this time. Record with --profile to take samples."));
      return;
    }
    const graph = element("div", undefined, "flame");
    graph.dataset.samples = String(answer.samples);
    graph.setAttribute("role", "tree");
    graph.setAttribute("aria-label", "Samples by call chain");
    whole.append(graph);
    draw(graph, answer, null);
    for (const path of answer.replaced) whole.append(element("p", `${path} was replaced after the recording, so its functions have no names.`, "lost"));
  } catch (error) {
    page.lost(error);
    whole.append(element("p", /** @type {Error} */ (error).message, "lost"));
  }
}

/** The end of what is below a node. @param {Node[]} nodes @param {number} at */
function end(nodes, at) {
  let next = at + 1;
  while (next < nodes.length && nodes[next].depth > nodes[at].depth) next++;
  return next;
}

/**
 * @param {HTMLElement} place @param {{samples: number, nodes: Node[]}} answer @param {number | null} root the function
 * that is as wide as the picture; null for all
 */
function draw(place, answer, root) {
  const { nodes } = answer;
  const [first, last] = root === null ? [0, nodes.length] : [root, end(nodes, root)];
  const whole = root === null ? answer.samples : nodes[root].samples;
  /** @type {HTMLElement[]} */
  const made = [box({ depth: 0, name: "all", samples: answer.samples, own: 0 }, 0, 1, 0, answer.samples, () => draw(place, answer, null))];
  // Those around the chosen one are as wide as it is.
  const around = [];
  for (let at = root ?? -1; at > 0; ) {
    const { depth } = nodes[at];
    do at--; while (at >= 0 && nodes[at].depth >= depth);
    if (at >= 0) around.unshift(at);
  }
  for (const at of around) made.push(box(nodes[at], 0, 1, nodes[at].depth + 1, answer.samples, () => draw(place, answer, at)));
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
    made.push(box(node, begin, width, node.depth + 1, answer.samples, () => draw(place, answer, at)));
  }
  place.style.height = `${(deepest + 1) * 19}px`;
  place.replaceChildren(...made);
}

/** @param {Node} node @param {number} left @param {number} width @param {number} level @param {number} all samples @param {() => void} zoom */
function box({ name, samples, own }, left, width, level, all, zoom) {
  const made = element("button", name);
  const text = `${name}: ${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"}, ${((samples / all) * 100).toFixed(1)} %${own ? `, ${own.toLocaleString("en")} in itself` : ""}`;
  made.title = text;
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
