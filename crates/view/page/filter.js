// @ts-check
// What the filter of tracks chooses: names and numbers with a text, and `--process`, `--tid`, `--task` and `--cpu` as
// in the command line. The server chooses the same among tracks that only it has.

/** @typedef {import("./tracks.js").Node} Node */
/** @typedef {(text: string) => boolean} Matches */
/**
 * `wrong`: what is wrong with the text; then nothing is hidden for it.
 * @typedef {{text: string, processes: Matches[], tids: Set<string>, tasks: {process: string | null, number: string | null, matches: Matches}[],
 *   cpus: [number, number][], wrong: string | null}} Filter
 */

/** A pattern as the command line has them: `*`, `?`, `[a-z]`, `[!a-z]`, and `\\` before a character that stands for itself. @param {string} pattern @returns {Matches} */
export function glob(pattern) {
  const literal = (/** @type {string} */ text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const inClass = (/** @type {string} */ text) => text.replace(/[\\\]^-]/g, "\\$&");
  let made = "";
  const signs = [...pattern];
  for (let at = 0; at < signs.length; at++) {
    const sign = signs[at];
    // A bracket right after the first one is a character of the class.
    const end = sign === "[" ? signs.indexOf("]", at + (/[!^]/.test(signs[at + 1] ?? "") ? 3 : 2)) : -1;
    if (sign === "*") made += "[^]*";
    else if (sign === "?") made += "[^]";
    else if (sign === "\\" && at + 1 < signs.length) made += literal(signs[++at]);
    else if (end > 0) {
      const isNot = /[!^]/.test(signs[at + 1]);
      const inner = signs.slice(at + (isNot ? 2 : 1), end);
      const parts = inner.map((one, place) => (one === "-" && place > 0 && place + 1 < inner.length ? "-" : inClass(one)));
      made += `[${isNot ? "^" : ""}${parts.join("")}]`;
      at = end;
    } else made += literal(sign);
  }
  try {
    const expression = new RegExp(`^${made}$`, "u");
    return (text) => expression.test(text);
  } catch {
    // A range that ends before it begins has no character.
    return () => false;
  }
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
    else if (option === "tid") for (const one of value.split(",")) found.tids.add(one.trim());
    else if (option === "task") {
      const number = /^(?:(\d+)\/)?(\d+)$/.exec(value);
      found.tasks.push({ process: number?.[1] ?? null, number: number?.[2] ?? null, matches: glob(value) });
    } else if (option === "cpu") {
      for (const one of value.split(",")) {
        const range = /^(\d+)(?:-(\d+))?$/.exec(one.trim());
        if (range) found.cpus.push([Number(range[1]), Number(range[2] ?? range[1])]);
        else found.wrong ??= "Give CPUs as in 0,2-3.";
      }
    }
  }
  found.text = words.join(" ").trim().toLowerCase();
  return found;
}

/** A number is that of a process, anything else a pattern for names. @param {string} value @returns {Matches} */
function either(value) {
  const matches = glob(value);
  return /^\d+$/.test(value) ? (text) => text === value : matches;
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
  const isOf = processes.length === 0 || (process !== null && processes.some((matches) => matches(process.number) || matches(process.name)));
  if (node.kind === "process") return isOf && tids.size === 0 && tasks.length === 0;
  if (node.kind === "thread") return isOf && (tids.size > 0 ? tids.has(node.number) : tasks.length === 0);
  if (node.kind !== "task") return false;
  const isTask = tasks.some(({ process: of, number, matches }) => (number === null ? matches(node.name) : node.number === number && (of === null || of === process?.number)));
  return isOf && (tasks.length > 0 ? isTask : tids.size === 0);
}
