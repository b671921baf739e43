// @ts-check
// Tiles to pixels: for each column of pixels the time in each class, and from these a stacked column, into the
// memory of an image. The cost depends on the size of the picture, not on what happened.

import { RUN } from "./api.js";
import { CLASSES, EVENT, FILL, ORDER, RANGE, SEEN, markColor, pixel } from "./classes.js";

/** @typedef {import("./tiles.js").Tile} Tile */

const COUNT = CLASSES.length;
/** The classes of a column, from below. */
const UPWARDS = Uint8Array.from(ORDER);

/** An image whose memory is used again while its size is the same: a picture is drawn up to 60 times a second. */
export class Sheet {
  constructor() {
    /** @type {ImageData | null} */
    this.image = null;
    this.target = new Uint32Array(0);
    this.sums = new Float32Array(0);
    this.heights = new Uint8Array(0);
  }

  /** An empty image, and memory for the shares and heights of its columns. @param {CanvasRenderingContext2D} context @param {number} wide @param {number} high */
  blank(context, wide, high) {
    if (this.image?.width === wide && this.image.height === high) this.target.fill(0);
    else {
      this.image = context.createImageData(wide, high);
      this.target = new Uint32Array(this.image.data.buffer);
      this.sums = new Float32Array(wide * COUNT);
      this.heights = new Uint8Array(wide * COUNT);
    }
    return { image: this.image, target: this.target, sums: this.sums, heights: this.heights };
  }
}

/** Arrays of rows, which are used again for the next picture. @template {Uint8Array | Uint32Array | Float32Array} A */
export class Rows {
  /** @param {new (length: number) => A} kind */
  constructor(kind) {
    this.kind = kind;
    /** Those of the picture. @type {Map<number, A>} */
    this.used = new Map();
    /** Those of the one before. @type {A[]} */
    this.free = [];
  }

  /** A picture begins: nothing of the one before is left. */
  begin() {
    this.free = [...this.used.values()];
    this.used.clear();
  }

  /** An array of zeros for a row, or the one that it has. @param {number} row @param {number} length @returns {A} */
  of(row, length) {
    const before = this.used.get(row);
    if (before) return before;
    let array = this.free.pop();
    if (array?.length === length) array.fill(0);
    else array = new this.kind(length);
    this.used.set(row, array);
    return array;
  }
}

/**
 * The share of each column's time in each class, from 0 to 1: `width` times the number of classes.
 * @param {Tile[]} tiles @param {number} from @param {number} to @param {number} width @param {Float32Array} sums
 */
export function columns(tiles, from, to, width, sums) {
  sums.fill(0);
  const scale = width / (to - from);
  for (const { runs, shift, first } of tiles) {
    const length = 2 ** shift;
    for (let run = 0; run < runs.count; run++) {
      const word = runs.at + run * RUN;
      const begin = (first + runs.words[word]) * length;
      const left = Math.max(0, (begin - from) * scale);
      const right = Math.min(width, (begin + runs.words[word + 1] * length - from) * scale);
      if (left < right) add(runs.bytes, word * 4 + 12, left, right, sums);
    }
  }
}

/**
 * @param {Uint8Array} shares @param {number} at @param {number} left @param {number} right in columns
 * @param {Float32Array} sums
 */
function add(shares, at, left, right, sums) {
  const last = Math.ceil(right);
  for (let of = 0; of < COUNT; of++) {
    const share = shares[at + of] / 255;
    if (share === 0) continue;
    for (let column = Math.floor(left); column < last; column++) {
      const part = Math.min(right, column + 1) - Math.max(left, column);
      sums[column * COUNT + of] += share * part;
    }
  }
}

/**
 * How many pixels of a column each class has. Together they are within a pixel of the shares; what is unknown,
 * on a CPU, or ready has at least one where there is any of it.
 * @param {Float32Array} sums @param {number} column @param {number} height @param {Uint8Array} heights takes them
 * @param {number} to where the column's begin
 */
export function stack(sums, column, height, heights, to) {
  const at = column * COUNT;
  let [share, drawn, lacks] = [0, 0, false];
  for (let place = 0; place < COUNT; place++) {
    const of = UPWARDS[place];
    const part = sums[at + of];
    if (part === 0) {
      heights[to + of] = 0;
      continue;
    }
    share += part;
    const top = Math.min(height, Math.round(share * height));
    heights[to + of] = top - drawn;
    lacks ||= top === drawn;
    drawn = top;
  }
  if (lacks) show(sums.subarray(at, at + COUNT), drawn === height, heights.subarray(to, to + COUNT));
}

/** Gives a pixel to each group that must be seen and has none. @param {Float32Array} sums @param {boolean} isFull @param {Uint8Array} heights */
function show(sums, isFull, heights) {
  for (const group of SEEN) {
    let [most, some] = [0, -1];
    let isDrawn = false;
    for (const of of group) {
      isDrawn ||= heights[of] > 0;
      if (sums[of] > most) [most, some] = [sums[of], of];
    }
    if (isDrawn || some < 0) continue;
    if (isFull) heights[heights.indexOf(Math.max(...heights))] -= 1;
    heights[some] = 1;
  }
}

/**
 * Paints a row of columns; lines outside of the image are left out. Columns that are alike are painted together.
 * @param {Uint32Array} image @param {number} stride pixels of a line @param {number} top first line
 * @param {number} height @param {number} width @param {Float32Array} sums @param {Uint32Array[]} patterns
 * @param {Uint8Array} kept takes the heights of all columns
 */
export function paint(image, stride, top, height, width, sums, patterns, kept) {
  const lines = image.length / stride;
  for (let column = 0, end = 0; column < width; column = end) {
    const from = column * COUNT;
    stack(sums, column, height, kept, from);
    end = column + 1;
    for (; end < width && isAlike(sums, from, end * COUNT); end++) kept.copyWithin(end * COUNT, from, from + COUNT);
    let line = top + height - 1;
    for (let place = 0; place < COUNT; place++) {
      const of = UPWARDS[place];
      const pattern = patterns[of];
      for (let pixels = kept[from + of]; pixels > 0; pixels--, line--) {
        if (line < 0 || line >= lines) continue;
        const [row, begin] = [(line & 3) << 2, line * stride];
        for (let at = column; at < end; at++) image[begin + at] = pattern[row | (at & 3)];
      }
    }
  }
}

/** Whether two columns have the same shares. @param {Float32Array} sums @param {number} one @param {number} other */
function isAlike(sums, one, other) {
  for (let of = 0; of < COUNT; of++) if (sums[one + of] !== sums[other + of]) return false;
  return true;
}

/**
 * How many events lie in each column, and the name of one of them.
 * @param {Tile[]} tiles @param {number} from @param {number} to @param {number} width @param {Uint32Array} found
 * @param {Uint32Array} names
 */
export function counts(tiles, from, to, width, found, names) {
  found.fill(0);
  const scale = width / (to - from);
  for (const { runs, shift, first } of tiles) {
    const length = 2 ** shift;
    for (let run = 0; run < runs.count; run++) {
      const word = runs.at + run * RUN;
      const changes = runs.bytes[word * 4 + 26] | (runs.bytes[word * 4 + 27] << 8);
      for (let bucket = 0; bucket < runs.words[word + 1] && changes > 0; bucket++) {
        const begin = (first + runs.words[word] + bucket) * length;
        if (begin + length <= from || begin >= to) continue;
        const column = Math.max(0, Math.min(width - 1, Math.floor((begin - from) * scale)));
        found[column] += changes;
        names[column] = runs.words[word + 2];
      }
    }
  }
}

/**
 * The least, the greatest and the last value of a counter in each column, NaN where none is known; and as shares
 * of the greatest of all: up to the least, and from there to the greatest of the column.
 * @param {Tile[]} tiles @param {number} from @param {number} to @param {number} width @param {{least: number, most: number}} range of all values
 * @param {boolean} isFitted whether the track is only as high as what is seen: then it changes by powers of two
 * @param {Float32Array} sums @param {Float32Array} values @returns {[number, number]} the values at the lower and the upper edge
 */
export function levels(tiles, from, to, width, range, isFitted, sums, values) {
  values.fill(NaN);
  sums.fill(0);
  const scale = width / (to - from);
  for (const { runs, shift, first } of tiles) {
    const [length, numbers] = [2 ** shift, runs.floats];
    for (let run = 0; run < runs.count; run++) {
      const word = runs.at + run * RUN;
      const begin = (first + runs.words[word]) * length;
      const left = Math.max(0, Math.floor((begin - from) * scale));
      const right = Math.min(width, Math.ceil((begin + runs.words[word + 1] * length - from) * scale));
      for (let at = left * 3; at < right * 3; at += 3) {
        values[at] = Number.isNaN(values[at]) ? numbers[word + 3] : Math.min(values[at], numbers[word + 3]);
        values[at + 1] = Number.isNaN(values[at + 1]) ? numbers[word + 4] : Math.max(values[at + 1], numbers[word + 4]);
        values[at + 2] = numbers[word + 5];
      }
    }
  }
  // Below 0, the track begins at the least value.
  const base = Math.min(0, range.least);
  let high = Math.max(range.most, base) - base || 1;
  let seen = 0;
  for (let at = 1; isFitted && at < width * 3; at += 3) if (values[at] - base > seen) seen = values[at] - base;
  while (seen > 0 && seen <= high / 2) high /= 2;
  for (let column = 0; column < width; column++) {
    const [least, greatest] = [values[column * 3], values[column * 3 + 1]];
    if (Number.isNaN(least)) continue;
    // A pixel says that the value is 0, and not unknown.
    sums[column * COUNT + FILL] = Math.max(1e-6, (least - base) / high);
    sums[column * COUNT + RANGE] = (greatest - least) / high;
  }
  return [base, base + high];
}

/**
 * Paints events: a mark in each column that has any, the higher the more there are.
 * @param {Uint32Array} image @param {number} stride pixels of a line @param {number} top first line
 * @param {number} height @param {number} wide how many pixels a mark is wide @param {Uint32Array} found
 * @param {Uint32Array} names @param {Uint8Array} kept takes the heights
 */
export function marks(image, stride, top, height, wide, found, names, kept) {
  const lines = image.length / stride;
  for (let column = 0; column < found.length; column++) {
    if (found[column] === 0) continue;
    const high = Math.min(height, Math.round(height * (0.4 + 0.1 * Math.log2(found[column]))));
    const color = pixel(markColor(names[column]));
    kept[column * COUNT + EVENT] = high;
    for (let at = column; at < Math.min(column + wide, found.length) && (at === column || found[at] === 0); at++) {
      for (let line = Math.max(0, top + height - high); line < Math.min(lines, top + height); line++) image[line * stride + at] = color;
    }
  }
}
