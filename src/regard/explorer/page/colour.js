/** Colours: eight for heads that are told apart in every common colour blindness, and the scales of weights and values. */

/** By hue and by lightness, so that neighbours differ in both. */
const HEADS = {
  light: ["#1f6fc0", "#d2540f", "#0c8a63", "#b93a8c", "#a97b00", "#0b93ab", "#6b4bc8", "#7d5534"],
  dark: ["#6cb2fa", "#ff9858", "#45cf9d", "#f28ac8", "#e9c84e", "#62dbe8", "#b7a1ff", "#d3ab85"],
};

/** @typedef {[number, number, number]} Rgb */

/**
 * @typedef {object} Theme
 * @property {boolean} dark
 * @property {Rgb} paper
 * @property {Rgb} card
 * @property {Rgb} ink
 * @property {Rgb} soft
 * @property {Rgb} rule
 * @property {Rgb} below  of negative values
 * @property {Rgb} above  of positive values
 * @property {Rgb[]} heads
 */

/** @param {string} code @returns {Rgb} */
export function rgbOf(code) {
  const number = parseInt(code.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** @param {boolean} dark @returns {Theme} */
export function themeOf(dark) {
  const [paper, card, ink, soft, rule, below, above] = dark
    ? ["#11141a", "#1a1e25", "#e9ebee", "#a3acb9", "#323945", "#6cb2fa", "#ff9858"]
    : ["#f8f6f1", "#ffffff", "#1c2330", "#5a6372", "#dcd8ce", "#1f6fc0", "#d2540f"];
  const heads = (dark ? HEADS.dark : HEADS.light).map(rgbOf);
  return {
    dark, paper: rgbOf(paper), card: rgbOf(card), ink: rgbOf(ink), soft: rgbOf(soft), rule: rgbOf(rule), below: rgbOf(below),
    above: rgbOf(above), heads,
  };
}

/** @param {Theme} theme @param {number} head @returns {Rgb} */
export function headColour(theme, head) {
  return theme.heads[head % theme.heads.length];
}

/** @param {Rgb} colour @param {number} [alpha] */
export function css(colour, alpha = 1) {
  return alpha >= 1
    ? `rgb(${colour[0]} ${colour[1]} ${colour[2]})`
    : `rgb(${colour[0]} ${colour[1]} ${colour[2]} / ${Math.max(0, alpha).toFixed(3)})`;
}

/** @param {Rgb} from @param {Rgb} to @param {number} share @returns {Rgb} */
export function mix(from, to, share) {
  const s = Math.min(1, Math.max(0, share));
  return [
    Math.round(from[0] + (to[0] - from[0]) * s),
    Math.round(from[1] + (to[1] - from[1]) * s),
    Math.round(from[2] + (to[2] - from[2]) * s),
  ];
}

/**
 * How strongly a weight is coloured: small ones must be seen beside large ones, so by its power of 0.7.
 * @param {number} weight
 */
export function strength(weight) {
  return weight <= 0 ? 0 : Math.min(1, weight ** 0.7);
}

/**
 * The colour of a value that may be negative, within -most to most.
 * @param {Theme} theme
 * @param {number} value
 * @param {number} most
 * @returns {Rgb}
 */
export function diverging(theme, value, most) {
  return mix(theme.card, value < 0 ? theme.below : theme.above, most ? Math.abs(value / most) ** 0.8 : 0);
}

/**
 * Black or white, whichever is read better on the colour.
 * @param {Rgb} colour
 */
export function inkOn(colour) {
  const [r, g, b] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#10141b" : "#ffffff";
}
