// @ts-check
// What the recording is, in a line. The number of places in which events are missing leads to a list of these.

import { $ } from "./opening.js";
import { link } from "./selection.js";

/** How many events a recording has, and how much of it has been read. @param {any} facts @param {import("./filling.js").Filling | undefined} filling */
export function counted({ events }, filling) {
  return [...(filling ? [filling.words()] : []), `${events.toLocaleString("en")} events${filling ? " so far" : ""}`];
}

/** What each line consists of: it changes often, and a button that has the focus keeps it. @type {WeakMap<HTMLElement, {first: Text, button: HTMLElement, last: Text, go: () => void}>} */
const lines = new WeakMap();

/**
 * Says facts in a line, with the number of losses among them.
 * @param {HTMLElement} place @param {[string[], string[]]} facts before the losses and after them @param {any} of the recording
 * @param {() => void} go lists the losses
 */
export function tell(place, [first, last], { losses, losses_left_out }, go) {
  let line = lines.get(place);
  if (!line) {
    const made = { first: new Text(), button: link("", () => made.go(), "List these places"), last: new Text(), go };
    place.replaceChildren(made.first, made.button, made.last);
    lines.set(place, (line = made));
  }
  const count = losses.length + losses_left_out;
  line.go = go;
  line.button.hidden = count === 0;
  const said = count === 0 ? "" : `events missing in ${count === 1 ? "1 place" : `${count.toLocaleString("en")} places`}`;
  const texts = count === 0 ? [[...first, ...last].join(" · "), ""] : [[...first, ""].join(" · "), ["", ...last].join(" · ")];
  if (line.button.textContent !== said) line.button.textContent = said;
  [line.first.data, line.last.data] = texts;
}

/** @param {import("./page.js").Page} page */
export function about(page) {
  const { facts, compare } = page;
  if (compare) return compare.about();
  const [listed, leftOut] = [page.listed[0], page.leftOut[0]];
  const first = [
    ...counted(facts, page.fillings.get(0)),
    ...(leftOut ? [`the ${listed.toLocaleString("en")} busiest of ${(listed + leftOut).toLocaleString("en")} tracks`] : []),
  ];
  const last = [...(facts.is_cut_off ? ["a part could not be read"] : []), `from ${facts.begin.replace(/\.\d+/, "")}`];
  tell($("about"), [first, last], facts, () => page.panels.missing(0));
  $("about").title = `${$("about").textContent}\nFirst event: ${facts.begin}`;
}
