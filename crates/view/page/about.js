// @ts-check
// What the recording is, in a line.

import { $ } from "./opening.js";

/** @param {import("./page.js").Page} page */
export function about(page) {
  const { facts, compare } = page;
  if (compare) return compare.about();
  const losses = facts.losses.length + facts.losses_left_out;
  $("about").textContent = [
    ...(page.filling ? [page.filling.words()] : []),
    `${facts.events.toLocaleString("en")} events${page.filling ? " so far" : ""}`,
    ...(page.leftOut[0] ? [`the ${page.rows.size.toLocaleString("en")} busiest of ${facts.rows.toLocaleString("en")} tracks`] : []),
    ...(losses ? [`events missing in ${losses === 1 ? "1 place" : `${losses} places`}`] : []),
    ...(facts.is_cut_off ? ["a part could not be read"] : []),
    `from ${facts.begin.replace(/\.\d+/, "")}`,
  ].join(" · ");
  $("about").title = `${$("about").textContent}\nFirst event: ${facts.begin}`;
}
