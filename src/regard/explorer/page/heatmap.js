/** A labelled heat map for the views that show several: rows and columns of tokens, the pointer tells each value. */

import { pooled } from "./attention.js";
import { FONT, fitted, onResize, picture, prepare } from "./canvas.js";
import { walkCells } from "./cells.js";
import { css } from "./colour.js";
import { el } from "./dom.js";
import { hideTip, showTip } from "./tip.js";

/** @typedef {import("./colour.js").Rgb} Rgb */
/** @typedef {import("./colour.js").Theme} Theme */
/** @typedef {import("./attention.js").Matrix} Matrix */

/**
 * @typedef {object} Heat
 * @property {Matrix} matrix
 * @property {string[]} rows
 * @property {string[]} cols
 * @property {(value: number) => Rgb} colour
 * @property {(value: number) => string} text
 * @property {string} label  what it shows, for who does not see it
 * @property {number} [now]  a row that is marked
 * @property {number} [until]  rows from here on are left empty
 * @property {number} [high]  of a cell, where cells are not square
 * @property {number} [every]  which rows are named, where there is no room for all
 */

/** A heat map, as wide as its place. */
export class HeatMap {
  /** @param {() => Theme} theme @param {{hover?: (row: number, col: number) => void, largest?: number}} [options] */
  constructor(theme, options = {}) {
    this.theme = theme;
    this.options = options;
    const { canvas, pen } = picture("heat");
    this.canvas = canvas;
    this.pen = pen;
    this.element = el("div", { class: "heat-frame" }, canvas);
    /** @type {Heat | null} */
    this.heat = null;
    this.shape = { left: 0, top: 0, wide: 1, high: 1 };
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.leave());
    walkCells(this.element, {
      rows: () => Math.min(this.heat?.until ?? Infinity, this.heat?.matrix.rows ?? 0), cols: () => this.heat?.matrix.cols ?? 0,
      tell: (row, col) => this.tell(row, col), leave: () => this.leave(),
    });
    onResize(this.element, () => this.draw());
  }

  /** @param {Heat} heat */
  show(heat) {
    this.heat = heat;
    this.element.setAttribute("aria-label", `${heat.label}. Arrow keys go from cell to cell.`);
    this.draw();
  }

  draw() {
    const { heat, pen } = this;
    const room = this.element.clientWidth;
    if (!heat || room < 30) return;
    const { matrix, rows, cols, now = -1, until = matrix.rows } = heat;
    const theme = this.theme();
    pen.font = `12px ${FONT}`;
    const wideOf = (/** @type {string[]} */ texts, /** @type {number} */ most) =>
      texts.length > 120 ? 10 : Math.min(most, Math.max(10, ...texts.map((text) => pen.measureText(text.slice(0, 40)).width)) + 10);
    const left = wideOf(rows, room * 0.3);
    const top = wideOf(cols, 100);
    const wide = Math.min(this.options.largest ?? 34, (room - left - 2) / matrix.cols);
    const high = heat.high ?? wide;
    this.shape = { left, top, wide, high };
    prepare(this.canvas, pen, left + wide * matrix.cols + 2, top + high * matrix.rows + 2);
    pen.textBaseline = "middle";
    if (wide < 2 || high < 2) this.paintSmall(matrix, heat);
    else {
      const gap = Math.min(wide, high) >= 10 ? 1 : 0;
      for (let row = 0; row < Math.min(until, matrix.rows); row++) {
        for (let col = 0; col < matrix.cols; col++) {
          pen.fillStyle = css(heat.colour(matrix.values[row * matrix.cols + col]));
          pen.fillRect(left + col * wide, top + row * high, wide - gap, high - gap);
        }
      }
    }
    pen.strokeStyle = css(theme.rule);
    pen.lineWidth = 1;
    pen.strokeRect(left - 0.5, top - 0.5, wide * matrix.cols + 1, high * matrix.rows + 1);
    if (now >= 0) {
      pen.strokeStyle = css(theme.ink);
      pen.lineWidth = 1.5;
      pen.strokeRect(left - 0.5, top + now * high - 0.5, wide * matrix.cols + 1, high + 0.5);
    }
    const size = (/** @type {number} */ cell) => Math.min(12.5, Math.max(8, cell * 0.72));
    pen.textAlign = "right";
    const { every = 1 } = heat;
    if (high * every >= 9) {
      pen.font = `${size(high * every)}px ${FONT}`;
      rows.forEach((text, row) => {
        if (row % every) return;
        pen.fillStyle = css(row < until ? theme.ink : theme.soft);
        pen.fillText(fitted(pen, text, left - 8), left - 5, top + (row + 0.5) * high);
      });
    }
    pen.textAlign = "left";
    if (wide >= 9) {
      pen.font = `${size(wide)}px ${FONT}`;
      pen.fillStyle = css(theme.ink);
      cols.forEach((text, col) => {
        pen.save();
        pen.translate(left + (col + 0.5) * wide, top - 5);
        pen.rotate(-Math.PI / 2);
        pen.fillText(fitted(pen, text, top - 8), 0, 0);
        pen.restore();
      });
    }
  }

  /** @param {Matrix} matrix @param {Heat} heat */
  paintSmall(matrix, heat) {
    const { left, top, wide, high } = this.shape;
    const cols = Math.min(matrix.cols, Math.ceil(wide * matrix.cols * 2));
    const rows = Math.min(matrix.rows, Math.ceil(high * matrix.rows * 2));
    const values = pooled(matrix, rows, cols);
    const image = new ImageData(cols, rows);
    for (let place = 0; place < values.length; place++) image.data.set([...heat.colour(values[place]), 255], place * 4);
    const small = el("canvas", { width: cols, height: rows });
    small.getContext("2d")?.putImageData(image, 0, 0);
    this.pen.imageSmoothingEnabled = false;
    this.pen.drawImage(small, left, top, wide * matrix.cols, high * matrix.rows);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const { heat, shape } = this;
    if (!heat) return;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - shape.top) / shape.high);
    const col = Math.floor((event.clientX - box.left - shape.left) / shape.wide);
    const { matrix, until = matrix.rows } = heat;
    if (row < 0 || col < 0 || row >= until || col >= matrix.cols) this.leave();
    else this.tell(row, col, event);
  }

  /** @param {number} row @param {number} col @param {{clientX: number, clientY: number}} [place] none: at the cell */
  tell(row, col, place) {
    const { left, top, wide, high } = this.shape;
    const { matrix, rows, cols, text } = /** @type {Heat} */ (this.heat);
    const box = this.canvas.getBoundingClientRect();
    const cell = { clientX: box.left + left + (col + 0.5) * wide, clientY: box.top + top + (row + 0.5) * high };
    showTip(place ?? cell, [text(matrix.values[row * matrix.cols + col]), `${rows[row] ?? row} → ${cols[col] ?? col}`]);
    this.options.hover?.(row, col);
  }

  leave() {
    hideTip();
    this.options.hover?.(-1, -1);
  }
}
