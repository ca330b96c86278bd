/** Arrays: from the bytes of a file or of the server to numbers, whole or head by head. */

/**
 * @typedef {object} Entry  what the payload's table says of an array
 * @property {"f4" | "u1" | "i2" | "i4"} dtype
 * @property {number[]} shape
 * @property {string[]} axes
 * @property {number} [offset]
 * @property {number} [decimals]
 * @property {number[]} [rows]
 * @property {number[]} [heads]
 */

/**
 * @typedef {object} Numbers
 * @property {Float32Array | Float64Array | Uint8Array} values
 * @property {number[]} shape
 * @property {string[]} axes
 * @property {number[]} [rows]  which rows are there, when not all are
 * @property {number[]} [heads]  which heads are there
 * @property {number} digits  after the point, that may be printed
 */

const WIDTHS = { f4: 4, u1: 1, i2: 2, i4: 4 };
/** digits printed of a float32 */
const DIGITS = 4;

/**
 * The unpacked bytes of a file's arrays.
 * @param {string} base64
 */
export async function unpacked(base64) {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {number[]} shape */
export function sizeOf(shape) {
  return shape.reduce((product, one) => product * one, 1);
}

/**
 * An array of a file: its bytes lie in planes, the lowest bytes of all values first.
 * @param {Uint8Array} bytes
 * @param {Entry} entry
 */
export function fromPlanes(bytes, entry) {
  const count = sizeOf(entry.shape);
  const width = WIDTHS[entry.dtype];
  const start = entry.offset ?? 0;
  const plain = new Uint8Array(count * width);
  for (let plane = 0; plane < width; plane++) {
    const from = start + plane * count;
    for (let i = 0; i < count; i++) plain[i * width + plane] = bytes[from + i];
  }
  return fromBytes(plain.buffer, entry);
}

/**
 * An array as the server gives it.
 * @param {ArrayBuffer} buffer
 * @param {Entry} entry
 * @returns {Numbers}
 */
export function fromBytes(buffer, entry) {
  const { dtype, shape, axes, rows, heads, decimals } = entry;
  const about = { shape, axes, rows, heads, digits: decimals ?? DIGITS };
  if (dtype === "f4") return { ...about, values: new Float32Array(buffer) };
  if (dtype === "u1") return { ...about, values: new Uint8Array(buffer) };
  const whole = dtype === "i2" ? new Int16Array(buffer) : new Int32Array(buffer);
  const values = new Float64Array(whole.length);
  const unit = 10 ** (decimals ?? 0);
  for (let i = 0; i < whole.length; i++) values[i] = whole[i] / unit;
  return { ...about, values };
}

/**
 * The values at one place of some axes; of the others all, as one run. Null where that head or row is not there.
 * @param {Numbers} numbers
 * @param {Record<string, number>} places  of the axes, by name: of the first ones, not of the last
 * @returns {ArrayLike<number> | null}
 */
export function pick(numbers, places) {
  let start = 0;
  let axis = 0;
  for (; axis < numbers.axes.length && numbers.axes[axis] in places; axis++) {
    const name = numbers.axes[axis];
    const which = name === "row" ? numbers.rows : name === "head" ? numbers.heads : undefined;
    const place = which ? which.indexOf(places[name]) : places[name];
    if (place < 0 || place >= numbers.shape[axis]) return null;
    start += place * sizeOf(numbers.shape.slice(axis + 1));
  }
  return numbers.values.subarray(start, start + sizeOf(numbers.shape.slice(axis)));
}
