/** Numbers for people. */

/**
 * A weight: two digits after the point, more for those that would vanish; 0 only for nothing.
 * @param {number} weight
 * @param {number} [digits]
 */
export function weightText(weight, digits = 2) {
  if (weight === 0) return "0";
  const least = 10 ** -digits / 2;
  return weight < least ? `<${(2 * least).toFixed(digits)}` : weight.toFixed(digits);
}

/**
 * Any value, with its sign as a minus and not a hyphen.
 * @param {number} value
 * @param {number} [digits]
 */
export function valueText(value, digits = 3) {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : value === Infinity ? "∞" : "not a number";
  const size = Math.abs(value);
  const text = size >= 1e5 || (size > 0 && size < 10 ** -digits / 2) ? size.toExponential(1) : size.toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** @param {number} share */
export function percentText(share) {
  return share > 0 && share < 0.001 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** @param {ArrayLike<number>} values */
export function lengthOf(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return Math.sqrt(sum);
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** @param {ArrayLike<number>} values largest magnitude of those that are finite */
export function largest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]);
    if (size > most && size < Infinity) most = size;
  }
  return most;
}

/**
 * Places of the largest values, best first.
 * @param {ArrayLike<number>} values
 * @param {number} count
 */
export function top(values, count) {
  /** @type {number[]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === count && values[i] <= values[best[count - 1]]) continue;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < values[i]) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}
