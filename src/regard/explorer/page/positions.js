/** The view of positions: their encoding as a picture, how alike two steps are, and the five requirements' verdicts. */

import { FONT, onResize, picture, prepare } from "./canvas.js";
import { css, diverging } from "./colour.js";
import { el, fill } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { dot, largest, lengthOf, valueText } from "./numbers.js";

/** @typedef {import("./selection.js").App} App */

const CURVE = 200;

/** The view. */
export class PositionsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.title = el("h2");
    this.says = el("p", { class: "note" });
    this.heat = new HeatMap(app.theme, { largest: 14, hover: (row) => this.over(row) });
    this.curve = picture("curve");
    this.curveSays = el("p", { class: "note" });
    this.range = el("input", { type: "range", min: "0", id: "position-step", oninput: () => app.store.set({ t: Number(this.range.value) }) });
    this.frame = el("div", { class: "curve-frame" }, this.curve.canvas);
    this.verdicts = el("ul", { class: "verdicts" });
    this.element = el(
      "div", { class: "positions-view" },
      el("section", { class: "card pane wide" }, this.title, this.says, this.heat.element),
      el(
        "section", { class: "card pane wide" }, el("h2", {}, "How alike two steps are"), this.curveSays,
        el("p", {}, el("label", { for: "position-step" }, "Step "), this.range), this.frame,
      ),
      el("section", { class: "requirements" }, el("h2", {}, "What one asks of positions"), this.verdicts),
    );
    onResize(this.frame, () => this.drawCurve());
    this.hovered = -1;
  }

  show() {
    const { data, item } = this.app;
    const holder = data.runHolders[item.run];
    const told = holder.section("positions");
    this.numbers = told?.picture ? holder.array(told.picture) : null;
    if (!told) {
      fill(this.title, "Positions");
      fill(this.says, told === undefined ? "On their way…" : "This model has no positions to show.");
      fill(this.verdicts);
      return;
    }
    fill(this.title, "Positions: ", el("span", { class: "made" }, told.kind));
    const { numbers } = this;
    fill(this.says, `${told.says[0].toUpperCase()}${told.says.slice(1)}. A row for each of ${told.steps} steps, a column for each value: blue is negative, orange positive.`);
    const theme = this.app.theme();
    if (numbers) {
      const [rows, cols] = numbers.shape;
      const most = largest(numbers.values) || 1;
      this.heat.show({
        matrix: { rows, cols, values: numbers.values, digits: numbers.digits },
        rows: Array.from({ length: rows }, (_, row) => `step ${row}`), cols: Array.from({ length: cols }, (_, col) => `value ${col}`),
        colour: (value) => diverging(theme, value, most), text: (value) => valueText(value, numbers.digits), high: Math.max(3, Math.min(8, 400 / rows)), every: 10,
        label: `The encoding of ${rows} positions, ${cols} values each`,
      });
      this.range.max = String(rows - 1);
      this.range.value = String(Math.min(rows - 1, this.app.store.state.t));
    }
    fill(
      this.verdicts,
      told.requirements.map((/** @type {any} */ one) =>
        el(
          "li", { class: `card verdict ${one.met ? "met" : "failed"}` },
          el("p", { class: "verdict-line" }, el("b", {}, one.met ? "✓ met" : "✗ not met"), el("span", {}, one.name)), el("p", {}, one.asks),
          el("p", { class: "note" }, `${one.measures}: ${Number(one.number.toPrecision(3))} (met by ${one.met_by})`),
        ),
      ),
    );
    this.drawCurve();
  }

  hover() {}

  /** @param {number} row */
  over(row) {
    if (row === this.hovered) return;
    this.hovered = row;
    this.drawCurve();
  }

  drawCurve() {
    const { numbers } = this;
    const width = this.frame.clientWidth;
    if (!numbers || width < 20) return;
    const [rows, cols] = numbers.shape;
    const step = this.hovered >= 0 ? this.hovered : Math.min(rows - 1, this.app.store.state.t);
    const of = (/** @type {number} */ row) => numbers.values.subarray(row * cols, (row + 1) * cols);
    const own = of(step);
    const alike = Array.from({ length: rows }, (_, row) => dot(own, of(row)) / (lengthOf(own) * lengthOf(of(row)) || 1));
    fill(this.curveSays, `The cosine between the encoding of step ${step} and that of every step.`);
    const { canvas, pen } = this.curve;
    prepare(canvas, pen, width, CURVE);
    const theme = this.app.theme();
    const low = Math.min(0, ...alike);
    const x = (/** @type {number} */ row) => 40 + ((width - 60) * row) / Math.max(1, rows - 1);
    const y = (/** @type {number} */ value) => CURVE - 26 - ((CURVE - 40) * (value - low)) / (1 - low || 1);
    pen.font = `12px ${FONT}`;
    pen.fillStyle = css(theme.soft);
    pen.strokeStyle = css(theme.rule);
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const value of new Set([low, 0, 0.5, 1])) {
      pen.beginPath();
      pen.moveTo(40, y(value));
      pen.lineTo(width - 20, y(value));
      pen.stroke();
      pen.fillText(valueText(value, 1), 34, y(value));
    }
    pen.textAlign = "center";
    for (let row = 0; row < rows; row += Math.max(1, Math.ceil(rows / 10))) pen.fillText(String(row), x(row), CURVE - 8);
    pen.strokeStyle = css(theme.heads[0]);
    pen.lineWidth = 2;
    pen.beginPath();
    alike.forEach((value, row) => (row ? pen.lineTo(x(row), y(value)) : pen.moveTo(x(row), y(value))));
    pen.stroke();
    pen.fillStyle = css(theme.heads[1]);
    pen.beginPath();
    pen.arc(x(step), y(alike[step]), 5, 0, 7);
    pen.fill();
  }
}
