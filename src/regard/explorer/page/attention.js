/** One head's attention as numbers, queries × keys, by pieces or by words, and what is counted of it. */

/**
 * @typedef {object} Matrix
 * @property {number} rows  queries
 * @property {number} cols  keys
 * @property {ArrayLike<number> & {subarray: (from: number, to: number) => any}} values  row by row
 * @property {number} digits  after the point, that may be printed
 */

/**
 * One row, a view and no copy.
 * @param {Matrix} matrix
 * @param {number} row
 * @returns {ArrayLike<number>}
 */
export function rowOf(matrix, row) {
  return matrix.values.subarray(row * matrix.cols, (row + 1) * matrix.cols);
}

/**
 * One column, copied.
 * @param {Matrix} matrix
 * @param {number} col
 * @returns {ArrayLike<number>}
 */
export function colOf(matrix, col) {
  const found = new Float32Array(matrix.rows);
  for (let row = 0; row < matrix.rows; row++) found[row] = matrix.values[row * matrix.cols + col];
  return found;
}

/**
 * Attention between words: what goes to the pieces of a word is summed, since it is the word that is looked at; what
 * comes from the pieces of a word is averaged, since each of them hands out a whole 1. A row then still adds up to 1.
 * @param {Matrix} matrix
 * @param {ArrayLike<number>} rowWords  the word of each query
 * @param {ArrayLike<number>} colWords  the word of each key
 * @returns {Matrix}
 */
export function wordMatrix(matrix, rowWords, colWords) {
  const rows = countWords(rowWords);
  const cols = countWords(colWords);
  const values = new Float64Array(rows * cols);
  const sizes = new Float64Array(rows);
  for (let row = 0; row < matrix.rows; row++) sizes[rowWords[row]]++;
  for (let place = 0, row = 0; row < matrix.rows; row++) {
    const to = rowWords[row] * cols;
    for (let col = 0; col < matrix.cols; col++) values[to + colWords[col]] += matrix.values[place++];
  }
  for (let place = 0; place < values.length; place++) values[place] /= sizes[Math.floor(place / cols)];
  return { rows, cols, values, digits: matrix.digits };
}

/** @param {ArrayLike<number>} words */
function countWords(words) {
  return words.length ? words[words.length - 1] + 1 : 0;
}

/** @type {WeakMap<Matrix, Float32Array>} */
const receipts = new WeakMap();

/**
 * What each key gets, on average of the queries.
 * @param {Matrix} matrix
 */
export function received(matrix) {
  const known = receipts.get(matrix);
  if (known) return known;
  const sums = new Float32Array(matrix.cols);
  for (let place = 0, row = 0; row < matrix.rows; row++) {
    for (let col = 0; col < matrix.cols; col++) sums[col] += matrix.values[place++];
  }
  for (let col = 0; col < matrix.cols; col++) sums[col] /= matrix.rows || 1;
  receipts.set(matrix, sums);
  return sums;
}

/** weights below this are no link */
const FAINT = 0.004;

/**
 * @typedef {object} Links  the strongest weights of a matrix, weakest first
 * @property {Int32Array} places
 * @property {number} least  the weight from which on they are there
 */

/** @type {WeakMap<Matrix, Links>} */
const links = new WeakMap();

/**
 * The strongest weights, at most about `most`, so that a long text stays a picture and no felt.
 * @param {Matrix} matrix
 * @param {number} most
 * @returns {Links}
 */
export function strongest(matrix, most) {
  const known = links.get(matrix);
  if (known) return known;
  const { values } = matrix;
  const counts = new Uint32Array(1001);
  for (let place = 0; place < values.length; place++) if (values[place] >= FAINT) counts[Math.min(1000, values[place] * 1000) | 0]++;
  let level = 1001;
  for (let left = 0; level > 0 && left + counts[level - 1] <= most; level--) left += counts[level - 1];
  const least = Math.max(FAINT, level / 1000);
  /** @type {number[]} */
  const kept = [];
  for (let place = 0; place < values.length; place++) if (values[place] >= least) kept.push(place);
  kept.sort((a, b) => values[a] - values[b]);
  const made = { places: Int32Array.from(kept), least };
  links.set(matrix, made);
  return made;
}

/**
 * The largest magnitude of each block, so that a matrix of thousands fits the pixels there are and no strong
 * weight is lost.
 * @param {Matrix} matrix
 * @param {number} rows
 * @param {number} cols
 */
export function pooled(matrix, rows, cols) {
  const most = new Float32Array(rows * cols);
  const columns = new Int32Array(matrix.cols);
  for (let col = 0; col < matrix.cols; col++) columns[col] = Math.floor((col * cols) / matrix.cols);
  for (let place = 0, row = 0; row < matrix.rows; row++) {
    const to = Math.floor((row * rows) / matrix.rows) * cols;
    for (let col = 0; col < matrix.cols; col++, place++) {
      const value = matrix.values[place];
      if (Math.abs(value) > Math.abs(most[to + columns[col]])) most[to + columns[col]] = value;
    }
  }
  return most;
}
