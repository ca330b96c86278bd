/** The view of one head's matrix: weights or scores, with their numbers, and what the mask hides. */

import { pooled } from "./attention.js";
import { FONT, fitted, onResize, picture, prepare } from "./canvas.js";
import { css, diverging, headColour, inkOn, mix, strength } from "./colour.js";
import { el, say } from "./dom.js";
import { largest, valueText, weightText } from "./numbers.js";
import { headName, looking, occasion, pointed, short } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./selection.js").Looking} Looking */
/** @typedef {import("./attention.js").Matrix} Matrix */

const LARGEST_CELL = 52;
/** a cell this wide has room for its number */
const NUMBERED = 33;
const LABELLED = 9;

/** The view. */
export class MatrixView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.base = picture("matrix-base");
    this.over = picture("matrix-over");
    this.frame = el(
      "div", {
        class: "matrix-frame", tabindex: "0", role: "application", "aria-roledescription": "matrix",
        "aria-label": "One head's matrix: a row for each query, a column for each key. Arrow keys move.",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      },
      this.base.canvas, this.over.canvas,
    );
    this.sentence = el("p", { class: "sentence", "aria-live": "polite" });
    this.legend = picture("legend");
    this.legendText = el("span", { class: "note" });
    this.element = el(
      "div", { class: "matrix-view" }, this.sentence, this.frame,
      el("p", { class: "legend-line" }, this.legend.canvas, this.legendText),
    );
    this.frame.addEventListener("pointermove", (event) => {
      if (event.pointerType !== "touch") app.store.hover(this.placeOf(event));
    });
    this.frame.addEventListener("pointerleave", () => app.store.hover({ row: -1, col: -1 }));
    this.frame.addEventListener("click", (event) => {
      const place = this.placeOf(event);
      const { row, col } = app.store.state;
      app.store.set(place.row === row && place.col === col ? { row: -1, col: -1 } : place);
    });
    onResize(this.element, () => this.show());
    /** @type {Looking | null} */
    this.seen = null;
    /** @type {Matrix | null} */
    this.matrix = null;
    this.shape = { left: 0, top: 0, cell: 1, width: 0, height: 0, most: 1 };
  }

  show() {
    const { item, store } = this.app;
    const of = store.state.of === "scores" ? "scores" : "weights";
    const seen = looking(item, store.state, of);
    this.seen = seen;
    this.matrix = seen.matrix(seen.head);
    this.measure();
    this.paint();
    this.hover();
  }

  /** Sizes: as large as there is room, and one cell as wide as high. */
  measure() {
    const { seen } = this;
    if (!seen) return;
    const room = Math.max(120, this.element.clientWidth);
    const { pen } = this.base;
    pen.font = `13px ${FONT}`;
    const longest = (/** @type {string[]} */ texts) =>
      texts.length > 300 ? 40 : Math.max(...texts.map((text) => Math.min(150, pen.measureText(text.slice(0, 60)).width)), 12);
    const few = room < 500;
    const rowsWide = Math.min(few ? 84 : 150, longest(seen.rows) + 14);
    const colsHigh = Math.min(few ? 84 : 130, longest(seen.cols) + 14);
    const fit = (room - rowsWide - 2) / seen.cols.length;
    const high = Math.max(NUMBERED + 1, (window.innerHeight - 330) / seen.rows.length);
    const cell = Math.floor(Math.min(LARGEST_CELL, high, fit)) >= 4 ? Math.floor(Math.min(LARGEST_CELL, high, fit)) : fit;
    const labelled = cell >= LABELLED;
    const left = labelled ? rowsWide : 18;
    const top = labelled ? colsHigh : 18;
    const size = labelled ? cell : Math.min(LARGEST_CELL, (room - left - 2) / seen.cols.length);
    this.shape = { left, top, cell: size, width: size * seen.cols.length, height: size * seen.rows.length, most: 1 };
  }

  paint() {
    const { seen, matrix, shape } = this;
    if (!seen) return;
    const { canvas, pen } = this.base;
    const { left, top, cell, width, height } = shape;
    prepare(canvas, pen, left + width + 2, top + height + 2);
    this.frame.style.width = `${left + width + 2}px`;
    this.frame.style.height = `${top + height + 2}px`;
    const theme = this.app.theme();
    pen.strokeStyle = css(theme.rule);
    pen.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
    if (cell >= LABELLED) this.labels(pen, -1, -1);
    if (!matrix) return;
    const scores = this.app.store.state.of === "scores";
    shape.most = scores ? largest(matrix.values) || 1 : 1;
    const seesAll = !seen.item.has(`${seen.part.part}.mask`) || seen.words;
    const mask = seesAll ? null : seen.item.array(`${seen.part.part}.mask`);
    if (cell < 3) this.paintPooled(matrix, scores);
    else this.paintCells(matrix, scores, mask ? mask.values : null);
    this.paintLegend(scores);
  }

  /** @param {number} value @param {boolean} scores */
  colour(value, scores) {
    const theme = this.app.theme();
    const seen = /** @type {Looking} */ (this.seen);
    return scores
      ? diverging(theme, value, this.shape.most)
      : mix(theme.card, headColour(theme, seen.head), strength(value));
  }

  /** @param {Matrix} matrix @param {boolean} scores @param {ArrayLike<number> | null} mask */
  paintCells(matrix, scores, mask) {
    const { pen } = this.base;
    const { left, top, cell } = this.shape;
    const theme = this.app.theme();
    const gap = cell >= 14 ? 1 : 0;
    const numbered = cell >= NUMBERED;
    pen.font = `${cell >= 44 ? 12 : 10.5}px ${FONT}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let row = 0; row < matrix.rows; row++) {
      for (let col = 0; col < matrix.cols; col++) {
        const value = matrix.values[row * matrix.cols + col];
        const x = left + col * cell;
        const y = top + row * cell;
        const hidden = mask !== null && !mask[row * matrix.cols + col];
        const colour = this.colour(value, scores);
        if (!hidden || scores) {
          pen.fillStyle = css(colour);
          pen.fillRect(x, y, cell - gap, cell - gap);
        }
        if (numbered && (!hidden || scores)) {
          pen.fillStyle = value === 0 ? css(theme.soft) : inkOn(colour);
          pen.globalAlpha = !scores && value < 0.005 ? 0.55 : 1;
          pen.fillText(scores ? valueText(value, 1) : cellText(value), x + (cell - gap) / 2, y + (cell - gap) / 2 + 0.5);
          pen.globalAlpha = 1;
        }
        if (hidden) this.hatch(x, y, cell - gap);
      }
    }
  }

  /** What the mask hides: stroked across, so that it is told from a weight that is merely small. */
  hatch(/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ size) {
    const { pen } = this.base;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, size, size);
    pen.clip();
    pen.strokeStyle = css(this.app.theme().soft, 0.38);
    pen.lineWidth = 1;
    pen.beginPath();
    const step = Math.max(4, size / 5);
    for (let at = -size; at < size; at += step) {
      pen.moveTo(x + at, y + size);
      pen.lineTo(x + at + size, y);
    }
    pen.stroke();
    pen.restore();
  }

  /** @param {Matrix} matrix @param {boolean} scores more cells than pixels: the largest of each block */
  paintPooled(matrix, scores) {
    const { left, top, width, height } = this.shape;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const cols = Math.min(matrix.cols, Math.round(width * density));
    const rows = Math.min(matrix.rows, Math.round(height * density));
    const most = pooled(matrix, rows, cols);
    const image = new ImageData(cols, rows);
    for (let place = 0; place < most.length; place++) {
      const [r, g, b] = this.colour(most[place], scores);
      image.data.set([r, g, b, 255], place * 4);
    }
    const small = el("canvas", { width: cols, height: rows });
    small.getContext("2d")?.putImageData(image, 0, 0);
    this.base.pen.imageSmoothingEnabled = false;
    this.base.pen.drawImage(small, left, top, width, height);
  }

  /** @param {boolean} scores */
  paintLegend(scores) {
    const { canvas, pen } = this.legend;
    prepare(canvas, pen, 160, 12);
    const most = this.shape.most;
    for (let x = 0; x < 160; x++) {
      pen.fillStyle = css(this.colour(scores ? ((x - 80) / 80) * most : x / 160, scores));
      pen.fillRect(x, 0, 1, 12);
    }
    const masked = this.seen?.part.causal ? " Struck through: hidden by the mask, since it comes later." : "";
    say(
      this.legendText,
      (scores ? `scores from ${valueText(-most, 1)} to ${valueText(most, 1)}` : "weights from 0 to 1; each row adds up to 1.") + masked,
    );
  }

  hover() {
    const { seen, matrix } = this;
    if (!seen) return;
    const { left, top, cell, width, height } = this.shape;
    const { canvas, pen } = this.over;
    prepare(canvas, pen, left + width + 2, top + height + 2);
    const { row, col } = pointed(this.app, seen);
    const theme = this.app.theme();
    if (row >= 0 || col >= 0) {
      pen.strokeStyle = css(theme.ink, 0.9);
      pen.lineWidth = cell >= 8 ? 1.5 : 1;
      const thick = Math.max(cell, 2);
      if (row >= 0) pen.strokeRect(left - 1, top + row * cell - 0.75, width + 1.5, thick + 0.5);
      if (col >= 0) pen.strokeRect(left + col * cell - 0.75, top - 1, thick + 0.5, height + 1.5);
    }
    if (cell >= LABELLED) this.labels(pen, row, col);
    say(this.sentence, this.words(seen, matrix, row, col));
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} row @param {number} col only these, if there is one */
  labels(pen, row, col) {
    const { left, top, cell } = this.shape;
    const seen = /** @type {Looking} */ (this.seen);
    const theme = this.app.theme();
    const some = pen === this.over.pen;
    const size = Math.min(13, Math.max(8.5, cell * 0.62));
    pen.textBaseline = "middle";
    seen.rows.forEach((text, place) => {
      if (some && place !== row) return;
      pen.font = `${some ? "650 " : ""}${size}px ${FONT}`;
      pen.fillStyle = css(theme.ink);
      pen.textAlign = "right";
      if (some) {
        pen.fillStyle = css(theme.paper);
        pen.fillRect(0, top + place * cell, left - 3, cell);
        pen.fillStyle = css(theme.ink);
      }
      pen.fillText(fitted(pen, text, left - 12), left - 7, top + (place + 0.5) * cell);
    });
    seen.cols.forEach((text, place) => {
      if (some && place !== col) return;
      pen.save();
      pen.translate(left + (place + 0.5) * cell, top - 7);
      pen.rotate(-Math.PI / 2);
      if (some) {
        pen.fillStyle = css(theme.paper);
        pen.fillRect(-2, -cell / 2, top, cell);
      }
      pen.font = `${some ? "650 " : ""}${size}px ${FONT}`;
      pen.fillStyle = css(theme.ink);
      pen.textAlign = "left";
      pen.fillText(fitted(pen, text, top - 12), 0, 0);
      pen.restore();
    });
  }

  /** @param {Looking} seen @param {Matrix | null} matrix @param {number} row @param {number} col */
  words(seen, matrix, row, col) {
    if (!matrix) {
      const there = seen.item.has(`${seen.part.part}.${seen.layer}.${this.app.store.state.of}`);
      return there ? "The numbers are on their way…" : "This file holds no scores: open it live to see them.";
    }
    const name = headName(seen.layer, seen.head);
    if (row < 0 || col < 0) return `Row i, column j: how much of token i's attention in ${name} goes to token j. Point at a cell.`;
    const value = matrix.values[row * matrix.cols + col];
    const key = `“${short(seen.cols[col])}”`;
    const mask = seen.words ? null : seen.item.array(`${seen.part.part}.mask`);
    const hidden = mask !== null && !mask.values[row * matrix.cols + col];
    if (this.app.store.state.of === "scores") {
      const text = `${occasion(seen, row)}, ${name} scores ${key} with ${valueText(value, matrix.digits)}`;
      return hidden ? `${text}; the mask then hides it.` : `${text}. The softmax of the row makes weights of the scores.`;
    }
    if (hidden) return `${occasion(seen, row)}, ${name} may not look at ${key}: the mask hides it, and its weight is 0.`;
    return `${occasion(seen, row)}, ${name} gives ${key} the weight ${weightText(value, 4)}: that much of its value goes into the mix.`;
  }

  /** @param {PointerEvent | MouseEvent} event */
  placeOf(event) {
    const { left, top, cell } = this.shape;
    const box = this.frame.getBoundingClientRect();
    const seen = /** @type {Looking} */ (this.seen);
    const row = Math.floor((event.clientY - box.top - top) / cell);
    const col = Math.floor((event.clientX - box.left - left) / cell);
    return {
      row: row >= 0 && row < seen.rows.length ? row : -1,
      col: col >= 0 && col < seen.cols.length ? col : -1,
    };
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const seen = this.seen;
    if (!seen || event.ctrlKey || event.metaKey || event.altKey) return;
    const { row, col } = this.app.store.state;
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    const move = moves[event.key];
    if (event.key === "Escape") this.app.store.set({ row: -1, col: -1 });
    if (!move) return;
    event.preventDefault();
    this.app.store.hover({ row: -1, col: -1 });
    const none = row < 0 || col < 0;
    this.app.store.set({
      row: none ? 0 : Math.min(seen.rows.length - 1, Math.max(0, row + move[0])),
      col: none ? 0 : Math.min(seen.cols.length - 1, Math.max(0, col + move[1])),
    });
  }
}

/** A weight as short as a cell asks for: .43, 1, 0. @param {number} weight */
function cellText(weight) {
  if (weight === 0) return "0";
  const text = weight.toFixed(2);
  return text.startsWith("0.") ? text.slice(1) : text;
}
