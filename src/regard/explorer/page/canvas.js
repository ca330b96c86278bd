/** Drawing: a canvas that is sharp on every screen and keeps the size of its place. */

import { css } from "./colour.js";
import { el } from "./dom.js";

/** @typedef {import("./colour.js").Rgb} Rgb */

export const FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/**
 * A canvas and its pen, in CSS pixels.
 * @param {string} [kind]
 */
export function picture(kind = "") {
  const canvas = el("canvas", { class: kind, "aria-hidden": "true" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  return { canvas, pen };
}

/**
 * Give a canvas a size; the pen then draws in CSS pixels on a cleared ground.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2D} pen
 * @param {number} width
 * @param {number} height
 */
export function prepare(canvas, pen, width, height) {
  const density = Math.min(window.devicePixelRatio || 1, 3);
  const w = Math.max(1, Math.round(width * density));
  const h = Math.max(1, Math.round(height * density));
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  pen.setTransform(density, 0, 0, density, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.lineCap = "round";
}

/**
 * A link between two columns: leaves and arrives level, so that the eye can follow it.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x0
 * @param {number} y0
 * @param {number} x1
 * @param {number} y1
 */
export function link(pen, x0, y0, x1, y1) {
  const bend = (x1 - x0) * 0.45;
  pen.moveTo(x0, y0);
  pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
}

/**
 * Text cut to a width; measured only when it might not fit.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} text
 * @param {number} width
 */
export function fitted(pen, text, width) {
  const most = Math.max(1, Math.floor(width / 3));
  let kept = text.length > most ? [...text].slice(0, most).join("") : text;
  if (kept === text && pen.measureText(text).width <= width) return text;
  let low = 0;
  const letters = [...kept];
  let high = letters.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(`${letters.slice(0, middle).join("")}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  kept = letters.slice(0, low).join("");
  return `${kept}…`;
}

/**
 * A vector as a strip: a cell for each dimension, blended where there are more than pixels.
 * @param {CanvasRenderingContext2D} pen
 * @param {ArrayLike<number>} values
 * @param {(value: number) => Rgb} colour
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
export function strip(pen, values, colour, x, y, width, height) {
  const cells = Math.min(values.length, Math.ceil(width));
  for (let cell = 0; cell < cells; cell++) {
    const first = Math.floor((cell * values.length) / cells);
    const last = Math.max(first + 1, Math.floor(((cell + 1) * values.length) / cells));
    let shown = values[first];
    for (let i = first + 1; i < last; i++) if (Math.abs(values[i]) > Math.abs(shown)) shown = values[i];
    const left = x + (cell * width) / cells;
    pen.fillStyle = css(colour(shown));
    pen.fillRect(left, y, width / cells + 0.5, height);
  }
}

/**
 * Call back when an element's width changes, and once at the start.
 * @param {Element} element
 * @param {() => void} changed
 */
export function onResize(element, changed) {
  let width = -1;
  const watcher = new ResizeObserver(() => {
    const now = Math.round(element.getBoundingClientRect().width);
    if (now !== width) {
      width = now;
      changed();
    }
  });
  watcher.observe(element);
  return watcher;
}
