/** Controls that several views share: kinds of attention, layers, heads in their colours, pieces or words, threshold. */

import { css, headColour } from "./colour.js";
import { el, fill, roving } from "./dom.js";
import { weightText } from "./numbers.js";
import { looking, partNames } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./selection.js").Looking} Looking */

/**
 * @typedef {object} Choice
 * @property {string} value
 * @property {string} text
 * @property {string} [says]
 */

/** One of a few: a group of radio buttons as one strip. */
export class Strip {
  /** @param {string} label @param {(value: string) => void} chosen */
  constructor(label, chosen) {
    this.chosen = chosen;
    this.buttons = el("span", { class: "strip", role: "radiogroup", "aria-label": label });
    this.element = el("span", { class: "control" }, el("span", { class: "control-label", "aria-hidden": "true" }, label), this.buttons);
    this.key = "";
    roving(this.buttons, () => this.all(), { chosen: (place) => chosen(this.all()[place].dataset.value ?? "") });
  }

  /** @returns {HTMLElement[]} */
  all() {
    return /** @type {HTMLElement[]} */ ([...this.buttons.children]);
  }

  /** @param {Choice[]} choices @param {string} value */
  show(choices, value) {
    const key = choices.map((choice) => `${choice.value}=${choice.text}`).join("|");
    if (key !== this.key) {
      this.key = key;
      fill(
        this.buttons,
        choices.map((choice) =>
          el(
            "button",
            {
              type: "button", role: "radio", "data-value": choice.value, title: choice.says,
              onclick: () => this.chosen(choice.value),
            },
            choice.text,
          ),
        ),
      );
    }
    for (const button of this.all()) {
      const on = button.dataset.value === value;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    }
    this.element.hidden = choices.length < 2;
  }
}

/** Heads as chips in their colours: any of them together, or one, as the view asks. */
export class HeadChips {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.group = el("span", { class: "chips", role: "group", "aria-label": "Heads" });
    this.all = el("button", { type: "button", class: "quiet", onclick: () => app.store.set({ heads: [] }) }, "all");
    this.element = el(
      "span", { class: "control" }, el("span", { class: "control-label", "aria-hidden": "true" }, "Heads"), this.group, this.all,
    );
    this.key = "";
    roving(this.group, () => this.buttons());
  }

  buttons() {
    return /** @type {HTMLElement[]} */ ([...this.group.children]);
  }

  /** @param {Looking} seen @param {boolean} single */
  show(seen, single) {
    const theme = this.app.theme();
    const key = `${seen.part.heads} ${theme.dark}`;
    if (key !== this.key) {
      this.key = key;
      fill(
        this.group,
        Array.from({ length: seen.part.heads }, (_, head) => {
          const chip = el("button", { type: "button", class: "chip", onclick: () => this.choose(head) }, String(head));
          chip.style.setProperty("--head", css(headColour(theme, head)));
          return chip;
        }),
      );
    }
    const off = new Set(seen.item.headsOff.filter((one) => one[0] === seen.part.part && one[1] === seen.layer).map((one) => one[2]));
    this.single = single;
    this.buttons().forEach((chip, head) => {
      const on = single ? head === seen.head : seen.heads.includes(head);
      chip.setAttribute("aria-pressed", String(on));
      chip.setAttribute("aria-label", `head ${head}${off.has(head) ? ", switched off" : ""}`);
      chip.classList.toggle("off", off.has(head));
      chip.tabIndex = -1;
    });
    const first = this.buttons().find((chip) => chip.getAttribute("aria-pressed") === "true") ?? this.buttons()[0];
    if (first) first.tabIndex = 0;
    this.all.hidden = single || seen.part.heads < 2;
    this.all.setAttribute("aria-pressed", String(seen.heads.length === seen.part.heads));
  }

  /** One of all that are drawn: only it. One of some: in or out. @param {number} head */
  choose(head) {
    const { item, store } = this.app;
    const { heads, part } = looking(item, store.state);
    if (this.single) store.set({ head, heads: [head] });
    else if (heads.length === part.heads && part.heads > 1) store.set({ heads: [head], head });
    else {
      const others = heads.filter((one) => one !== head);
      const now = others.length < heads.length ? others : [...heads, head].sort((a, b) => a - b);
      store.set({ heads: now.length === part.heads ? [] : now, head: now.includes(head) ? head : (now[0] ?? head) });
    }
  }
}

/** The strip of controls. */
export class Controls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const { store } = app;
    this.part = new Strip("Attention", (part) => store.set({ part, row: -1, col: -1, group: "", step: 0 }));
    this.layer = new Strip("Layer", (layer) => store.set({ layer: Number(layer), group: "", step: 0 }));
    this.heads = new HeadChips(app);
    this.units = new Strip("Tokens", (units) => store.set({ units, row: -1, col: -1 }));
    this.of = new Strip("Numbers", (of) => store.set({ of }));
    this.threshold = el("input", {
      id: "threshold", type: "range", min: "0", max: "0.5", step: "0.01",
      oninput: () => store.set({ threshold: Number(this.threshold.value) }),
    });
    this.amount = el("output", { for: "threshold" });
    this.slider = el(
      "span", { class: "control" }, el("label", { class: "control-label", for: "threshold" }, "From weight"), this.threshold, this.amount,
    );
    this.element = el(
      "div", { class: "controls", role: "group", "aria-label": "What is shown" }, this.part.element, this.layer.element, this.heads.element,
      this.units.element, this.of.element, this.slider,
    );
  }

  /** @param {string} view */
  show(view) {
    const { item, store } = this.app;
    const seen = looking(item, store.state);
    const shown = {
      part: ["heads", "matrix", "calculation", "whatif"], layer: ["heads", "matrix", "calculation", "whatif"],
      heads: ["heads", "matrix", "calculation", "whatif"], units: ["heads", "all", "matrix", "whatif"], of: ["matrix"],
      slider: ["heads"],
    };
    this.part.show(item.parts.map((one) => ({ value: one.part, text: partNames(one.part).tab })), seen.part.part);
    this.layer.show(
      Array.from({ length: seen.part.layers }, (_, layer) => ({ value: String(layer), text: String(layer) })), String(seen.layer),
    );
    this.heads.show(seen, view !== "heads");
    const { rows, keys } = seen.part;
    const same = [rows, keys].every((side) => item.sides[side].pieces.length === item.sides[side].word_texts.length);
    this.units.show(same ? [] : [{ value: "pieces", text: "pieces" }, { value: "words", text: "words" }], store.state.units);
    this.of.show(
      [{ value: "weights", text: "weights" }, { value: "scores", text: "scores", says: "before mask and softmax" }], store.state.of,
    );
    this.threshold.value = String(store.state.threshold);
    this.amount.textContent = weightText(store.state.threshold);
    if (!shown.part.includes(view)) this.part.element.hidden = true;
    if (!shown.layer.includes(view)) this.layer.element.hidden = true;
    this.heads.element.hidden = !shown.heads.includes(view);
    if (!shown.units.includes(view)) this.units.element.hidden = true;
    if (!shown.of.includes(view)) this.of.element.hidden = true;
    this.slider.hidden = !shown.slider.includes(view);
    this.element.hidden = [...this.element.children].every((one) => /** @type {HTMLElement} */ (one).hidden);
  }
}

