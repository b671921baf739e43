// @ts-check
// What the filter of tracks chooses: names and numbers with a text, and `--process`, `--tid`, `--task` and `--cpu` as
// in the command line. The server chooses the same among tracks that only it has.

/** @typedef {import("./tracks.js").Node} Node */
/** @typedef {(text: string) => boolean} Matches */
/**
 * `wrong`: what is wrong with the text; then nothing is hidden for it.
 * @typedef {{text: string, processes: {number: string | null, matches: Matches}[], tids: Set<string>, tasks: {process: string | null, number: string | null, matches: Matches}[],
 *   cpus: [number, number][], wrong: string | null}} Filter
 */

/** A pattern as the command line has them: `*`, `?`, `[a-z]`, `[!a-z]`, and `\\` before a character that stands for itself. @param {string} pattern @returns {Matches} */
export function glob(pattern) {
  /** What each sign must be; null for any number of them. @type {(((sign: string) => boolean) | null)[]} */
  const steps = [];
  const signs = [...pattern];
  const is = (/** @type {string} */ one) => (/** @type {string} */ sign) => sign === one;
  for (let at = 0; at < signs.length; at++) {
    const sign = signs[at];
    // A bracket right after the first one is a character of the class.
    const end = sign === "[" ? signs.indexOf("]", at + (/[!^]/.test(signs[at + 1] ?? "") ? 3 : 2)) : -1;
    if (sign === "*") steps.push(null);
    else if (sign === "?") steps.push(() => true);
    else if (sign === "\\" && at + 1 < signs.length) steps.push(is(signs[++at]));
    else if (end > 0) {
      const isNot = /[!^]/.test(signs[at + 1]);
      const has = among(signs.slice(at + (isNot ? 2 : 1), end));
      steps.push(isNot ? (sign) => !has(sign) : has);
      at = end;
    } else steps.push(is(sign));
  }
  // Goes back to the last star only: a link may have any pattern, and there may be many tracks.
  return (text) => {
    const all = [...text];
    let [at, step, star, from] = [0, 0, -1, 0];
    while (at < all.length) {
      const one = steps[step];
      if (one === null) [star, from, step] = [step, at, step + 1];
      else if (one?.(all[at])) [step, at] = [step + 1, at + 1];
      else if (star >= 0) [step, at] = [star + 1, ++from];
      else return false;
    }
    while (steps[step] === null) step++;
    return step === steps.length;
  };
}

/** Whether a sign is among those of a class. @param {string[]} inner @returns {(sign: string) => boolean} */
function among(inner) {
  const code = (/** @type {string} */ sign) => sign.codePointAt(0) ?? 0;
  /** @type {[number, number][]} */
  const ranges = [];
  for (let at = 0; at < inner.length; at++) {
    const isRange = inner[at + 1] === "-" && at + 2 < inner.length;
    ranges.push([code(inner[at]), code(inner[isRange ? at + 2 : at])]);
    if (isRange) at += 2;
  }
  return (sign) => ranges.some(([first, last]) => first <= code(sign) && code(sign) <= last);
}

/** @param {string} text of the filter @returns {Filter} */
export function parsed(text) {
  /** @type {Filter} */
  const found = { text: "", processes: [], tids: new Set(), tasks: [], cpus: [], wrong: null };
  const words = [];
  const parts = text.match(/--[a-z]+(=|\s+|$)|"[^"]*"|'[^']*'|\S+/g) ?? [];
  for (let at = 0; at < parts.length; at++) {
    const option = /^--([a-z]+)(=|\s+|$)/.exec(parts[at])?.[1];
    if (option === undefined) {
      words.push(parts[at]);
      continue;
    }
    if (!["process", "tid", "task", "cpu"].includes(option)) found.wrong ??= `Tracks are filtered by --process, --tid, --task and --cpu; there is no --${option}.`;
    const value = (parts[++at] ?? "").replace(/^(["'])(.*)\1$/, "$2");
    if (value === "") found.wrong ??= `--${option} needs a value.`;
    else if (option === "process") found.processes.push(either(value));
    else if (option === "tid") {
      for (const one of value.split(",").map((one) => one.trim())) {
        if (/^\d+$/.test(one)) found.tids.add(one);
        else found.wrong ??= "Give threads by their numbers, as in 4711,4712.";
      }
    } else if (option === "task") {
      const number = /^(?:(\d+)\/)?(\d+)$/.exec(value);
      found.tasks.push({ process: number?.[1] ?? null, number: number?.[2] ?? null, matches: glob(value) });
    } else if (option === "cpu") {
      for (const one of value.split(",")) {
        const range = /^(\d+)(?:-(\d+))?$/.exec(one.trim());
        if (range && Number(range[1]) <= Number(range[2] ?? range[1])) found.cpus.push([Number(range[1]), Number(range[2] ?? range[1])]);
        else found.wrong ??= "Give CPUs as in 0,2-3.";
      }
    }
  }
  found.text = words.join(" ").trim().toLowerCase();
  return found;
}

/** A number is that of a process, anything else a pattern for names. @param {string} value */
function either(value) {
  return { number: /^(0|[1-9]\d*)$/.test(value) ? value : null, matches: glob(value) };
}

/** Whether a filter has options. @param {Filter} filter */
export function hasOptions({ processes, tids, tasks, cpus }) {
  return processes.length + tids.size + tasks.length + cpus.length > 0;
}

/**
 * Whether the options choose a track itself.
 * @param {Node} node @param {Node | null} process that it is of @param {Filter} filter
 */
export function isChosen(node, process, filter) {
  const { processes, tids, tasks, cpus } = filter;
  if (!hasOptions(filter)) return true;
  const choosesThreads = processes.length + tids.size + tasks.length > 0;
  if (node.kind === "cpu") {
    const number = Number(node.name.slice(4));
    return cpus.some(([first, last]) => first <= number && number <= last);
  }
  if (!choosesThreads) return false;
  const isOf = processes.length === 0 || (process !== null && processes.some(({ number, matches }) => (number === null ? matches(process.name) : number === process.number)));
  if (node.kind === "process") return isOf && tids.size === 0 && tasks.length === 0;
  if (node.kind === "thread") return isOf && (tids.size > 0 ? tids.has(node.number) : tasks.length === 0);
  if (node.kind === "tasks" || node.kind === "all") return isOf && tids.size === 0 && tasks.length === 0;
  if (node.kind !== "task") return false;
  const isTask = tasks.some(({ process: of, number, matches }) => (number === null ? matches(node.name) : node.number === number && (of === null || of === process?.number)));
  return isOf && (tasks.length > 0 ? isTask : tids.size === 0);
}
