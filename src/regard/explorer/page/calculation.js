/** The view of the calculation: one token's way through the layers, step by step, with every number. */

import { pick } from "./arrays.js";
import { css, headColour, mix } from "./colour.js";
import { el, fill, shortened } from "./dom.js";
import { Displacement } from "./displacement.js";
import { largest, lengthOf, top, valueText, weightText } from "./numbers.js";
import { headName, looking, short } from "./selection.js";
import { VectorTable } from "./vectors.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./vectors.js").VectorLine} VectorLine */

/**
 * @typedef {object} CalculationStep
 * @property {"vector" | "heads" | "keys" | "row" | "mask" | "pieces"} kind
 * @property {string} name
 * @property {string} title
 * @property {string} [array]
 * @property {string} says
 * @property {string} formula
 */

/** tokens in a list of numbers, at most: of a longer text the largest */
const MOST_TOKENS = 40;

/** The view. */
export class CalculationView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.tokens = el("div", { class: "token-row", role: "group", "aria-label": "Token" });
    this.line = el("ol", { class: "subway" });
    this.title = el("h2", { class: "calculation-title" });
    this.count = el("span", { class: "note" });
    this.back = el("button", { type: "button", "aria-label": "One step back", onclick: () => this.move(-1) }, "←");
    this.forward = el("button", { type: "button", class: "primary", onclick: () => this.move(1) }, "Next step →");
    this.steps = el("ol", { class: "steps", "aria-live": "off" });
    this.displacement = new Displacement(app);
    this.element = el(
      "div",
      {
        class: "calculation-view",
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const target = /** @type {HTMLElement} */ (event.target);
          const moves = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
          if (!moves || target.closest("[role=radiogroup], [role=tablist], input, select")) return;
          event.preventDefault();
          this.move(moves);
        },
      },
      this.tokens,
      el(
        "div", { class: "calculation-body" },
        el("nav", { class: "way", "aria-label": "Layers" }, this.line),
        el(
          "div", { class: "calculation-main" },
          el("div", { class: "transport" }, this.title, el("span", { class: "spring" }), this.count, this.back, this.forward),
          this.steps,
        ),
      ),
      this.displacement.element,
    );
    /** @type {any} */
    this.stack = null;
    /** @type {any} */
    this.group = null;
    this.at = 0;
    /** @type {string | undefined} */
    this.shownStep = undefined;
    this.row = 0;
    this.head = 0;
    /** @type {import("./selection.js").Looking | null} */
    this.seen = null;
  }

  show() {
    const { item, store } = this.app;
    const seen = looking(item, store.state);
    const calculation = item.section("calculation");
    const name = seen.part.part.startsWith("encoder") ? "encoder" : "decoder";
    this.stack = calculation?.stacks?.[name] ?? null;
    if (!this.stack) {
      fill(this.title, calculation === undefined ? "The numbers are on their way…" : "This file does not hold the calculation: open it live.");
      fill(this.steps);
      fill(this.line);
      fill(this.tokens);
      this.displacement.show("", -1);
      return;
    }
    const side = item.sides[this.stack.side];
    /** @type {number[]} */
    const rows = this.stack.rows;
    const usual = rows.find((row) => !side.special[row]) ?? rows[0];
    const held = seen.words ? side.words.findIndex((word) => word === store.state.row) : store.state.row;
    this.row = rows.includes(held) ? held : usual;
    this.head = seen.head;
    this.seen = seen;
    /** @type {any[]} */
    const groups = this.stack.groups;
    this.group = groups.find((one) => one.name === store.state.group) ?? groups.find((one) => one.name === `${seen.part.part}.${seen.layer}`) ?? groups[0];
    this.at = Math.max(0, Math.min(this.group.steps.length - 1, store.state.step));
    this.showTokens(rows, side);
    this.showLine(groups);
    fill(this.title, this.group.title, el("span", { class: "of" }, " of ", el("bdi", {}, `“${short(side.shown[this.row])}”`)));
    fill(this.count, `step ${this.at + 1} of ${this.group.steps.length}`);
    const last = groups.at(-1) === this.group && this.at === this.group.steps.length - 1;
    const first = groups[0] === this.group && this.at === 0;
    this.forward.disabled = last;
    this.back.disabled = first;
    this.showSteps();
    const key = `${this.group.name} ${this.at}`;
    if (this.shownStep !== undefined && this.shownStep !== key) this.steps.children[this.at]?.scrollIntoView({ block: "nearest" });
    this.shownStep = key;
    this.displacement.show(name, this.row, this.group.name);
  }

  hover() {}

  /** @param {number} by */
  move(by) {
    if (!this.group) return;
    const { store } = this.app;
    const groups = this.stack.groups;
    const place = groups.indexOf(this.group);
    const step = this.at + by;
    if (step >= 0 && step < this.group.steps.length) store.set({ group: this.group.name, step });
    else if (groups[place + by]) {
      const group = groups[place + by];
      store.set({ ...this.layerOf(group), group: group.name, step: by > 0 ? 0 : group.steps.length - 1 });
    }
  }

  /** @param {any} group a group of one kind of attention brings its controls along */
  layerOf(group) {
    return group.part ? { part: group.part, layer: group.layer } : {};
  }

  /** @param {number[]} rows @param {import("./data.js").Side} side */
  showTokens(rows, side) {
    const key = `${this.app.item.id} ${this.stack.side} ${rows.length}`;
    if (this.tokens.dataset.key !== key) {
      this.tokens.dataset.key = key;
      fill(
        this.tokens,
        rows.map((row) =>
          el(
            "button", { type: "button", class: "token-chip", "data-row": row, onclick: () => this.app.store.set({ row, col: -1 }) },
            el("bdi", {}, shortened(side.shown[row], 24)),
          ),
        ),
      );
    }
    for (const chip of this.tokens.children) chip.setAttribute("aria-pressed", String(Number(/** @type {HTMLElement} */ (chip).dataset.row) === this.row));
  }

  /** @param {any[]} groups */
  showLine(groups) {
    const key = `${this.app.item.id} ${groups.map((one) => one.name).join()}`;
    if (this.line.dataset.key !== key) {
      this.line.dataset.key = key;
      fill(
        this.line,
        groups.map((group) =>
          el(
            "li", {},
            el(
              "button",
              { type: "button", "data-name": group.name, onclick: () => this.app.store.set({ ...this.layerOf(group), group: group.name, step: 0 }) },
              group.title,
            ),
          ),
        ),
      );
    }
    for (const item of this.line.children) {
      const button = /** @type {HTMLElement} */ (item.firstElementChild);
      const on = button.dataset.name === this.group.name;
      if (on) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
  }

  showSteps() {
    /** @type {CalculationStep[]} */
    const steps = this.group.steps;
    fill(
      this.steps,
      steps.map((step, place) => {
        const later = place > this.at;
        const card = el(
          "li", { class: `step card ${place === this.at ? "now" : ""} ${later ? "later" : ""}`, "aria-current": place === this.at ? "step" : null },
          el(
            "button", { type: "button", class: "step-head", onclick: () => this.app.store.set({ group: this.group.name, step: place }) },
            el("span", { class: "step-number", "aria-hidden": "true" }, String(place + 1)),
            el("span", { class: "step-title" }, step.title),
            step.formula ? el("code", {}, step.formula) : null,
          ),
          later ? null : el("p", { class: "note" }, step.says),
          later ? null : place < this.at ? this.brief(step) : this.body(step),
        );
        return card;
      }),
    );
  }

  /** @param {CalculationStep} step */
  body(step) {
    if (step.kind === "pieces") return this.pieces();
    const numbers = step.array ? this.app.item.part(step.array, this.head, this.row) : null;
    if (!numbers) {
      const there = step.array && this.app.item.has(step.array);
      return el("p", { class: "note" }, there ? "The numbers are on their way…" : "This file leaves these numbers out; live they are there.");
    }
    if (step.kind === "vector") return this.vector(numbers);
    if (step.name === "mixed") return this.mixed(numbers);
    if (step.kind === "heads") return this.heads(numbers);
    if (step.kind === "keys") return this.keys(numbers);
    return this.numbersOf(step, numbers);
  }

  /** A step that is done, in little: what comes now needs the room. @param {CalculationStep} step */
  brief(step) {
    if (step.kind === "keys" || step.kind === "mask" || step.kind === "pieces") return null;
    const numbers = step.array ? this.app.item.part(step.array, this.head, this.row) : null;
    if (!numbers || !this.seen) return null;
    if (step.kind !== "row") return this.body(step);
    const values = pick(numbers, { head: this.head, row: this.row });
    if (!values) return null;
    const cols = this.seen.item.sides[this.seen.part.keys].shown;
    const most = largest(values) || 1;
    const theme = this.app.theme();
    return el(
      "p", { class: "brief" },
      top(values, 12).sort((a, b) => a - b).map((place) => {
        const chip = el("span", {}, el("bdi", {}, shortened(cols[place], 14)), " ", el("b", {}, valueText(values[place], 2)));
        chip.style.background = css(mix(theme.card, values[place] < 0 ? theme.below : theme.above, 0.45 * Math.abs(values[place] / most)));
        return chip;
      }),
    );
  }

  /** The weighted sum, with the values that give most of it. @param {import("./arrays.js").Numbers} numbers */
  mixed(numbers) {
    const found = this.parts();
    const all = this.heads(numbers);
    if (!found) return all;
    const { weights, values, cols } = found;
    const most = largest(values(top(weights, 1)[0]));
    const lines = top(weights, 5).filter((key) => weights[key] > 0.005).map((key) => ({
      label: cols[key], note: `× ${weightText(weights[key], 3)}`, values: Array.from(values(key), (value) => value * weights[key]),
    }));
    return el("div", {}, el("p", { class: "note" }, "The largest shares, each a value times its weight:"), this.table(lines, 3, most), el("p", { class: "note" }, "and the sum of all, beside that of the other heads:"), all);
  }

  /** Weights and values of this group's steps, if they are there. */
  parts() {
    /** @type {CalculationStep[]} */
    const steps = this.group.steps;
    const array = (/** @type {string} */ name) => {
      const step = steps.find((one) => one.name === name);
      return step?.array ? this.app.item.part(step.array, this.head, this.row) : null;
    };
    const weights = array("weights");
    const values = array("values");
    const row = weights ? pick(weights, { head: this.head, row: this.row }) : null;
    if (!row || !values || !this.seen) return null;
    const place = values.heads ? values.heads.indexOf(this.head) : this.head;
    if (place < 0) return null;
    const [, heads, wide] = values.shape;
    return {
      weights: row, cols: this.seen.item.sides[this.seen.part.keys].shown,
      values: (/** @type {number} */ key) => values.values.subarray((key * heads + place) * wide, (key * heads + place + 1) * wide),
    };
  }

  /** @param {VectorLine[]} lines @param {number} digits @param {number} [most] */
  table(lines, digits, most) {
    const table = new VectorTable(this.app.theme);
    table.show(lines, digits, most);
    return table.element;
  }

  /** @param {import("./arrays.js").Numbers} numbers */
  vector(numbers) {
    const values = pick(numbers, { row: this.row });
    if (!values) return el("p", { class: "note" }, "Not of this token.");
    return el(
      "div", {}, this.table([{ label: "", values }], numbers.digits),
      el("p", { class: "note" }, `${values.length} values within ±${valueText(largest(values), numbers.digits)}, length ${valueText(lengthOf(values), 2)}`),
    );
  }

  /** @param {import("./arrays.js").Numbers} numbers */
  heads(numbers) {
    const theme = this.app.theme();
    const all = pick(numbers, { row: this.row });
    if (!all) return el("p", { class: "note" }, "Not of this token.");
    const count = numbers.shape[1];
    const wide = numbers.shape[2];
    const numbersOf = numbers.heads ?? Array.from({ length: count }, (_, head) => head);
    const lines = numbersOf.map((head, place) => ({
      label: `head ${head}`, values: Array.from(all).slice(place * wide, (place + 1) * wide), mark: headColour(theme, head), faint: head !== this.head,
    }));
    return this.table(lines, numbers.digits);
  }

  /** @param {import("./arrays.js").Numbers} numbers */
  keys(numbers) {
    const { seen } = this;
    const cols = seen ? seen.item.sides[seen.part.keys].shown : [];
    const place = numbers.heads ? numbers.heads.indexOf(this.head) : (this.head);
    if (place < 0) return el("p", { class: "note" }, `This file leaves head ${this.head} out; live it is there.`);
    const [count, heads, wide] = numbers.shape;
    const values = Array.from({ length: Math.min(count, MOST_TOKENS) }, (_, key) => ({
      label: cols[key] ?? String(key),
      values: numbers.values.subarray((key * heads + place) * wide, (key * heads + place + 1) * wide),
    }));
    return this.table(values, numbers.digits, largest(numbers.values));
  }

  /** @param {CalculationStep} step @param {import("./arrays.js").Numbers} numbers */
  numbersOf(step, numbers) {
    const { seen } = this;
    const values = pick(numbers, step.kind === "mask" ? { row: this.row } : { head: this.head, row: this.row });
    if (!values || !seen) return el("p", { class: "note" }, `Not of this token in ${headName(seen?.layer ?? 0, this.head)}: this file leaves it out.`);
    const cols = seen.item.sides[seen.part.keys].shown;
    if (step.kind === "mask") {
      return el(
        "p", { class: "mask-line" },
        Array.from(values).slice(0, 200).map((value, key) =>
          el("span", { class: value ? "seen" : "hidden-token", title: value ? "may be looked at" : "hidden" }, el("bdi", {}, shortened(cols[key], 20))),
        ),
      );
    }
    return numberList(cols, values, {
      digits: numbers.digits, colour: css(headColour(this.app.theme(), this.head)), weights: step.name === "weights",
    });
  }

  pieces() {
    const decoding = this.app.item.section("decoding");
    const step = decoding?.steps?.[this.row];
    if (!step) return el("p", { class: "note" }, decoding === undefined ? "On their way…" : "This file leaves the likeliest pieces out.");
    const candidates = /** @type {any[]} */ (step.candidates);
    return numberList(
      candidates.map((one) => one.piece.replaceAll("▁", " ").trim() || "␣"), candidates.map((one) => one.probability),
      { digits: 4, colour: css(this.app.theme().heads[0]), weights: true },
    );
  }
}

/**
 * Numbers with their tokens, as bars from a middle line where some are negative.
 * @param {string[]} texts
 * @param {ArrayLike<number>} values
 * @param {{digits: number, colour: string, weights: boolean}} options
 */
function numberList(texts, values, { digits, colour, weights }) {
  const most = weights ? 1 : largest(values) || 1;
  const all = Array.from(values);
  const negative = all.some((value) => value < 0 && Number.isFinite(value));
  const shown = all.length <= MOST_TOKENS ? all.map((_, place) => place) : top(values, MOST_TOKENS);
  return el(
    "ol", { class: `numbers ${negative ? "signed" : ""}` },
    shown.map((place) => {
      const value = all[place];
      const bar = el("i", { class: value < 0 ? "below" : "above" });
      const share = Number.isFinite(value) ? Math.min(1, Math.abs(value) / most) : 0;
      bar.style.width = `${(negative ? 50 : 100) * share}%`;
      bar.style.background = colour;
      return el(
        "li", {}, el("bdi", { class: "bar-text" }, shortened(texts[place] ?? "", 30)), el("span", { class: "number-bar" }, bar),
        el("span", { class: "bar-amount" }, weights ? weightText(value, digits) : valueText(value, digits)),
      );
    }),
  );
}
