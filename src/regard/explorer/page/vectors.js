/** Vectors as strips of colour, one below another in one picture; the pointer tells each value. */

import { FONT, fitted, onResize, picture, prepare, strip } from "./canvas.js";
import { walkCells } from "./cells.js";
import { css, diverging } from "./colour.js";
import { el } from "./dom.js";
import { largest, lengthOf, valueText } from "./numbers.js";
import { hideTip, showTip } from "./tip.js";

/** @typedef {import("./colour.js").Theme} Theme */

/**
 * @typedef {object} VectorLine
 * @property {string} label
 * @property {ArrayLike<number>} values
 * @property {string} [note]  at the end of the line
 * @property {import("./colour.js").Rgb} [mark]  colour of a mark before the label
 * @property {boolean} [faint]
 */

/** values side by side, at most: a longer vector goes on below */
const WIDE = 128;
const LINE = 18;

/** Some vectors, drawn as wide as there is room. */
export class VectorTable {
  /** @param {() => Theme} theme */
  constructor(theme) {
    this.theme = theme;
    const { canvas, pen } = picture("vectors");
    this.canvas = canvas;
    this.pen = pen;
    this.element = el("div", { class: "vector-table" }, canvas);
    /** @type {(VectorLine & {from: number})[]} */
    this.lines = [];
    this.digits = 3;
    this.most = 1;
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", hideTip);
    walkCells(this.element, {
      rows: () => this.lines.length, cols: (row) => this.lines[row].values.length, leave: hideTip,
      tell: (row, col) => this.tell(row, col),
    });
    onResize(this.element, () => this.draw());
  }

  /**
   * @param {VectorLine[]} lines
   * @param {number} digits  that may be printed
   * @param {number} [most]  the magnitude of the strongest colour
   */
  show(lines, digits, most) {
    this.digits = digits;
    this.most = most ?? (Math.max(...lines.map((line) => largest(line.values))) || 1);
    this.lines = lines.flatMap((line) => {
      if (line.values.length <= WIDE) return [{ ...line, from: 0 }];
      const values = Array.from(line.values);
      return Array.from({ length: Math.ceil(values.length / WIDE) }, (_, part) => ({
        ...line, label: part ? "" : line.label, note: part ? "" : line.note, from: part * WIDE, values: values.slice(part * WIDE, (part + 1) * WIDE),
      }));
    });
    const first = lines[0];
    const what =
      lines.length === 1
        ? `${first.label || "vector"}: ${first.values.length} values, length ${valueText(lengthOf(first.values), 2)}`
        : `${lines.length} vectors of ${first?.values.length ?? 0} values: ${lines.slice(0, 12).map((line) => line.label).join(", ")}`;
    this.element.setAttribute("aria-label", `${what}. Arrow keys go from value to value.`);
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    if (width < 20 || !this.lines.length) return;
    const { pen } = this;
    const theme = this.theme();
    pen.font = `13px ${FONT}`;
    const labels = Math.min(width * 0.3, Math.max(0, ...this.lines.map((line) => Math.min(150, pen.measureText(line.label.slice(0, 40)).width + (line.mark ? 16 : 8)))));
    const notes = Math.max(0, ...this.lines.map((line) => (line.note ? pen.measureText(line.note).width + 10 : 0)));
    prepare(this.canvas, pen, width, this.lines.length * (LINE + 3));
    const left = labels ? labels + 6 : 0;
    const wide = width - left - notes;
    const cells = Math.max(...this.lines.map((line) => line.values.length));
    this.shape = { left, wide, cells };
    this.lines.forEach((line, place) => {
      const y = place * (LINE + 3);
      pen.globalAlpha = line.faint ? 0.35 : 1;
      pen.font = `13px ${FONT}`;
      pen.textBaseline = "middle";
      pen.textAlign = "right";
      pen.fillStyle = css(theme.ink);
      if (line.label) pen.fillText(fitted(pen, line.label, labels - (line.mark ? 14 : 4)), labels, y + LINE / 2 + 1);
      if (line.mark) {
        pen.fillStyle = css(line.mark);
        pen.fillRect(0, y + 3, 5, LINE - 6);
      }
      const own = (wide * line.values.length) / cells;
      strip(pen, line.values, (value) => diverging(theme, value, this.most), left, y, own, LINE);
      pen.strokeStyle = css(theme.rule);
      pen.lineWidth = 1;
      pen.strokeRect(left + 0.5, y + 0.5, own - 1, LINE - 1);
      if (line.note) {
        pen.textAlign = "right";
        pen.fillStyle = css(theme.soft);
        pen.fillText(line.note, width - 1, y + LINE / 2 + 1);
      }
    });
    pen.globalAlpha = 1;
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.shape) return;
    const box = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / (LINE + 3));
    const place = Math.floor(((event.clientX - box.left - this.shape.left) / this.shape.wide) * this.shape.cells);
    if (!this.lines[row] || place < 0 || place >= this.lines[row].values.length) hideTip();
    else this.tell(row, place, event);
  }

  /** @param {number} row @param {number} place @param {{clientX: number, clientY: number}} [at] none: at the value */
  tell(row, place, at) {
    if (!this.shape) return;
    const { left, wide, cells } = this.shape;
    const { values, from, label } = this.lines[row];
    const box = this.canvas.getBoundingClientRect();
    const cell = { clientX: box.left + left + ((place + 0.5) * wide) / cells, clientY: box.top + (row + 0.5) * (LINE + 3) };
    showTip(at ?? cell, [valueText(values[place], this.digits), `value ${from + place}${label ? ` of ${label}` : ""}`]);
  }
}
