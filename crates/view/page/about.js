// @ts-check
// What the recording is, in a line.

import { $ } from "./opening.js";

/** How many events a recording has, and how much of it has been read. @param {any} facts @param {import("./filling.js").Filling | undefined} filling */
export function counted({ events }, filling) {
  return [...(filling ? [filling.words()] : []), `${events.toLocaleString("en")} events${filling ? " so far" : ""}`];
}

/** @param {import("./page.js").Page} page */
export function about(page) {
  const { facts, compare } = page;
  if (compare) return compare.about();
  const losses = facts.losses.length + facts.losses_left_out;
  $("about").textContent = [
    ...counted(facts, page.fillings.get(0)),
    ...(page.leftOut[0] ? [`the ${page.rows.size.toLocaleString("en")} busiest of ${facts.rows.toLocaleString("en")} tracks`] : []),
    ...(losses ? [`events missing in ${losses === 1 ? "1 place" : `${losses} places`}`] : []),
    ...(facts.is_cut_off ? ["a part could not be read"] : []),
    `from ${facts.begin.replace(/\.\d+/, "")}`,
  ].join(" · ");
  $("about").title = `${$("about").textContent}\nFirst event: ${facts.begin}`;
}
