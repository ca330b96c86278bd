/** The view of classes, for an encoder alone: how likely each label is, and of what the text's one vector is made. */

import { css, mix, strength } from "./colour.js";
import { el, fill, shortened } from "./dom.js";
import { percentText, valueText, weightText } from "./numbers.js";

/** @typedef {import("./selection.js").App} App */

const POOLED = {
  first: "The text's vector is the state of its first token.",
  mean: "The text's vector is the mean of all states: each token has the same share.",
  attention: "The text's vector is a mean of the states, weighted by a learned attention.",
};

/** The view. */
export class ClassesView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.labels = el("ol", { class: "numbers" });
    this.labelled = el("section", { class: "card pane" }, el("h2", {}, "How likely each label is"), this.labels);
    this.says = el("p", { class: "note" });
    this.tokens = el("div", { class: "chip-line" });
    this.element = el(
      "div", { class: "classes-view" }, this.labelled,
      el("section", { class: "card pane wide" }, el("h2", {}, "What the text's vector is made of"), this.says, this.tokens),
    );
  }

  show() {
    const { item } = this.app;
    const told = item.section("classes");
    this.labelled.hidden = !told?.labels;
    if (!told) {
      fill(this.says, told === undefined ? "On their way…" : "This file does not hold them.");
      return;
    }
    const theme = this.app.theme();
    fill(
      this.labels,
      (told.labels ?? []).map((/** @type {any} */ one) => {
        const bar = el("i", { class: "above" });
        bar.style.width = `${100 * one.probability}%`;
        bar.style.background = css(theme.heads[0]);
        return el(
          "li", {}, el("bdi", { class: "bar-text" }, one.name), el("span", { class: "number-bar" }, bar),
          el("span", { class: "bar-amount" }, percentText(one.probability)), el("span", { class: "bar-amount soft" }, valueText(one.logit, 3)),
        );
      }),
    );
    const { pooled } = told;
    const kind = /** @type {keyof typeof POOLED} */ (pooled.kind);
    fill(this.says, POOLED[kind] ?? "", " Choose a token to see in Heads what it looks at itself.");
    const shares = pooled.weights ? item.array(pooled.weights) : null;
    const side = item.sides[item.parts[0].rows];
    fill(
      this.tokens,
      side.shown.map((text, place) => {
        const share = shares?.values[place] ?? 0;
        const chip = el(
          "button", { type: "button", class: "chip-token", onclick: () => this.app.store.set({ view: "heads", row: place, col: -1 }) },
          el("bdi", {}, shortened(text, 30)), el("span", { class: "chip-amount" }, share >= 0.0005 ? weightText(share, 3) : ""),
        );
        chip.style.background = css(mix(theme.card, theme.heads[0], 0.5 * strength(share)));
        return chip;
      }),
    );
  }

  hover() {}
}
