/** What the state means for the text at hand: which matrix, which tokens, which heads, which row. */

import { wordMatrix } from "./attention.js";

/** @typedef {import("./attention.js").Matrix} Matrix */
/** @typedef {import("./data.js").Data} Data */
/** @typedef {import("./data.js").Item} Item */
/** @typedef {import("./data.js").Part} Part */
/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} App  what every view is given
 * @property {import("./state.js").Store} store
 * @property {Data} data
 * @property {Item} item  what is looked at
 * @property {() => import("./colour.js").Theme} theme
 * @property {(text: string) => void} announce  tells it to who listens to the page
 * @property {(item: Item) => void} show  shows another text
 */

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {() => void} show  draws the state
 * @property {() => void} hover  draws only what changes with the pointer
 * @property {() => void} [hide]
 */

/**
 * @typedef {object} Looking
 * @property {Item} item
 * @property {Part} part
 * @property {number} layer
 * @property {number} head  the one head of matrix and calculation
 * @property {number[]} heads  those that are drawn
 * @property {string[]} rows  texts of the queries
 * @property {string[]} cols  texts of the keys
 * @property {boolean} words
 * @property {(head: number) => Matrix | null} matrix  null until it has come
 */

/** What each kind of attention is called, and its sides. */
const NAMES = {
  "encoder.self": {
    title: "encoder self-attention", tab: "Encoder self", rows: "each token of what is read", cols: "looks at",
  },
  "decoder.self": {
    title: "decoder self-attention", tab: "Decoder self", rows: "each token that is written", cols: "looks back at",
  },
  "decoder.cross": {
    title: "cross-attention", tab: "Cross", rows: "the token just written", cols: "looks at what was read",
  },
};

/** @param {string} part */
export function partNames(part) {
  return NAMES[/** @type {keyof typeof NAMES} */ (part)];
}

/**
 * @param {Item} item
 * @param {State} state
 * @param {"weights" | "scores"} [of]
 * @returns {Looking}
 */
export function looking(item, state, of = "weights") {
  const part = item.parts.find((one) => one.part === state.part) ?? item.parts[0];
  const layer = within(state.layer, part.layers);
  const chosen = state.heads.filter((head) => head >= 0 && head < part.heads);
  const words = state.units === "words" && of === "weights";
  const rows = item.sides[part.rows];
  const cols = item.sides[part.keys];
  return {
    item, part, layer, words,
    head: within(state.head, part.heads),
    heads: chosen.length ? chosen : usualHeads(part, rows.pieces.length * cols.pieces.length),
    rows: words ? rows.word_texts : rows.shown,
    cols: words ? cols.word_texts : cols.shown,
    matrix: (head) => matrixOf(item, part, layer, head, words, of),
  };
}

/** All heads, unless the text is so long that each of them is megabytes. @param {Part} part @param {number} size */
function usualHeads(part, size) {
  return Array.from({ length: size > 2 ** 19 ? 1 : part.heads }, (_, head) => head);
}

/** @type {WeakMap<object, {pieces: Matrix, words?: Matrix}>} */
const matrices = new WeakMap();

/**
 * One head's matrix.
 * @param {Item} item
 * @param {Part} part
 * @param {number} layer
 * @param {number} head
 * @param {boolean} words
 * @param {"weights" | "scores"} [of]
 * @returns {Matrix | null}
 */
export function matrixOf(item, part, layer, head, words, of = "weights") {
  const numbers = item.head(`${part.part}.${layer}.${of}`, head);
  if (!numbers) return null;
  let made = matrices.get(numbers);
  if (!made) {
    const [rows, cols] = numbers.shape;
    made = { pieces: { rows, cols, values: numbers.values, digits: numbers.digits } };
    matrices.set(numbers, made);
  }
  if (!words) return made.pieces;
  made.words ??= wordMatrix(made.pieces, item.sides[part.rows].words, item.sides[part.keys].words);
  return made.words;
}

/** @param {number} number @param {number} count */
export function within(number, count) {
  return Math.max(0, Math.min(count - 1, Math.round(number) || 0));
}

/**
 * The query and the key that are looked at: the pointer's, else the held ones.
 * @param {App} app
 * @param {Looking} seen
 */
export function pointed(app, seen) {
  const { row, col } = app.store.hovered;
  const state = app.store.state;
  const over = row >= 0 || col >= 0;
  const chosen = over ? { row, col } : { row: state.row, col: state.col };
  return {
    row: chosen.row < seen.rows.length ? chosen.row : -1,
    col: chosen.col < seen.cols.length ? chosen.col : -1,
    held: !over,
  };
}

/**
 * When it is that a query looks, in words.
 * @param {Looking} seen
 * @param {number} row
 */
export function occasion(seen, row) {
  const text = `“${short(seen.rows[row])}”`;
  const { part, item } = seen;
  if (part.part === "encoder.self") return `Reading ${text}`;
  const next = item.sides.target?.next?.[row];
  return seen.words || next === undefined ? `At ${text}` : `At ${text}, about to write “${short(next.replaceAll("▁", ""))}”`;
}

/** @param {string} text */
export function short(text) {
  const letters = [...text.slice(0, 80)];
  return letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : text;
}

/** A head's name, as everywhere on the page. @param {number} layer @param {number} head */
export function headName(layer, head) {
  return `layer ${layer}, head ${head}`;
}
