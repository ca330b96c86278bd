/** The panel beside heads and matrix: what the token that is pointed at looks at, in words, bars and numbers. */

import { colOf, received, rowOf } from "./attention.js";
import { css, headColour } from "./colour.js";
import { el, fill, shortened } from "./dom.js";
import { top, weightText } from "./numbers.js";
import { headName, occasion, short } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./selection.js").Looking} Looking */

const LINES = 10;
const MOST_BARS = 8;

/** The panel. Its lines are made once; moving the pointer only changes them. */
export class Reading {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.title = el("h2", { class: "reading-title" });
    this.sentence = el("p", { class: "sentence" });
    this.lines = Array.from({ length: LINES }, () => new Line());
    this.list = el("ol", { class: "bars" }, this.lines.map((line) => line.element));
    this.rest = el("p", { class: "note" });
    this.facts = el("dl", { class: "facts" });
    this.element = el(
      "aside", { class: "reading card", "aria-label": "What is looked at" }, this.title, this.sentence, this.list,
      this.rest, this.facts,
    );
  }

  /**
   * @param {Looking} seen
   * @param {{row: number, col: number}} place
   * @param {number[]} heads
   */
  update(seen, place, heads) {
    const shown = heads.slice(0, MOST_BARS);
    const matrices = shown.flatMap((head) => {
      const matrix = seen.matrix(head);
      return matrix ? [{ head, matrix }] : [];
    });
    const one = shown.length === 1;
    const who = one ? headName(seen.layer, shown[0]) : `the ${heads.length} heads of layer ${seen.layer}`;
    fill(this.title, one ? `Layer ${seen.layer}, head ${shown[0]}` : `Layer ${seen.layer}, ${heads.length} heads`);
    const byRow = place.row >= 0;
    const byCol = !byRow && place.col >= 0;
    const values = matrices.map(({ matrix }) =>
      byRow ? rowOf(matrix, place.row) : byCol ? colOf(matrix, place.col) : received(matrix),
    );
    const texts = byCol ? seen.rows : seen.cols;
    const best = values.length ? this.best(values) : [];
    this.tell(seen, place, { who, byRow, byCol, best, values });
    const theme = this.app.theme();
    this.lines.forEach((line, number) => {
      const token = best[number];
      if (token === undefined) line.hide();
      else {
        const chosen = byRow ? token === place.col : byCol ? token === place.row : false;
        line.show(texts[token], values.map((one) => one[token]), shown.map((head) => css(headColour(theme, head))), chosen);
      }
    });
    const hidden = heads.length > MOST_BARS ? `Bars of the first ${MOST_BARS} of ${heads.length} heads. ` : "";
    const left = values.length === 1 && byRow ? 1 - best.reduce((sum, token) => sum + values[0][token], 0) : 0;
    const more = left >= 0.005 ? `The other ${seen.cols.length - best.length} get ${weightText(left)} together.` : "";
    fill(this.rest, hidden + more);
    this.measures(seen, one ? shown[0] : -1);
  }

  /** @param {ArrayLike<number>[]} values */
  best(values) {
    const most = new Float32Array(values[0].length);
    for (const one of values) for (let i = 0; i < most.length; i++) if (one[i] > most[i]) most[i] = one[i];
    return top(most, LINES).filter((token) => most[token] >= 0.0005);
  }

  /**
   * @param {Looking} seen
   * @param {{row: number, col: number}} place
   * @param {{who: string, byRow: boolean, byCol: boolean, best: number[], values: ArrayLike<number>[]}} found
   */
  tell(seen, place, { who, byRow, byCol, best, values }) {
    if (!values.length) fill(this.sentence, "The weights are on their way…");
    else if (byRow) {
      const most = best[0];
      fill(
        this.sentence,
        !best.length
          ? `${occasion(seen, place.row)}, ${who} may look at nothing.`
          : `${occasion(seen, place.row)}, ${who} ${values.length === 1 ? "looks" : "look"} most at “${short(seen.cols[most])}”` +
              (values.length === 1 ? `, with ${weightText(values[0][most])} of the weight.` : "."),
      );
    } else if (byCol) fill(this.sentence, `“${short(seen.cols[place.col])}” is looked at by these, in ${who}:`);
    else fill(this.sentence, `What is looked at most, on average of all ${seen.rows.length} ${seen.words ? "words" : "tokens"}:`);
  }

  /** @param {Looking} seen @param {number} head */
  measures(seen, head) {
    const section = head < 0 || seen.item.headsOff.length ? null : seen.item.section("measures");
    const found = section?.heads.find(
      (/** @type {any} */ one) => one.part === seen.part.part && one.layer === seen.layer && one.head === head,
    );
    const rows = !found
      ? []
      : section.names
          .filter((/** @type {any} */ name) => found[name.name] !== null && found[name.name] !== undefined)
          .map((/** @type {any} */ name) =>
            el("div", { title: name.says }, el("dt", {}, name.title), el("dd", {}, measureText(found[name.name], name.unit))),
          );
    fill(this.facts, rows);
  }
}

/** @param {number} value @param {string} unit */
export function measureText(value, unit) {
  const text = unit === "bits" || unit === "tokens" ? value.toFixed(2) : value.toFixed(3);
  return unit ? `${text} ${unit}` : text;
}

/** One key with a bar for each head. */
class Line {
  constructor() {
    this.text = el("bdi", { class: "bar-text" });
    this.bars = el("span", { class: "bar-set" });
    this.amount = el("span", { class: "bar-amount" });
    this.element = el("li", { class: "bar-line" }, this.text, this.bars, this.amount);
  }

  hide() {
    this.element.hidden = true;
  }

  /** @param {string} text @param {number[]} values @param {string[]} colours @param {boolean} chosen */
  show(text, values, colours, chosen) {
    this.element.hidden = false;
    this.element.classList.toggle("chosen", chosen);
    const shown = shortened(text, 40);
    if (this.text.textContent !== shown) this.text.textContent = shown;
    while (this.bars.children.length < values.length) this.bars.append(el("i"));
    while (this.bars.children.length > values.length) this.bars.lastChild?.remove();
    values.forEach((value, place) => {
      const bar = /** @type {HTMLElement} */ (this.bars.children[place]);
      bar.style.width = `${Math.min(100, 100 * value)}%`;
      bar.style.background = colours[place];
    });
    this.amount.textContent = values.length === 1 ? weightText(values[0], 3) : weightText(Math.max(...values), 2);
  }
}
