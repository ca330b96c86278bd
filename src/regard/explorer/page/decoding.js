/** The view of decoding: at each time step the tokens known, what the one being made looks at, and what it might be. */

import { onResize, picture, prepare } from "./canvas.js";
import { css, headColour, mix, strength } from "./colour.js";
import { readable } from "./data.js";
import { el, fill, say, shortened } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { percentText, valueText, weightText } from "./numbers.js";
import { matrixOf, within } from "./selection.js";
import { BeamTree } from "./tree.js";

/** @typedef {import("./selection.js").App} App */

const PACE = 1100;

/** The view. */
export class DecodingView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.play = el("button", { type: "button", class: "primary", onclick: () => this.toggle() }, "Play");
    this.slider = el("input", { type: "range", min: "0", step: "1", id: "time", oninput: () => this.go(Number(this.slider.value)) });
    this.when = el("output", { for: "time", class: "note" });
    this.source = el("div", { class: "chip-line", "aria-label": "What was read", role: "group" });
    this.target = el("div", { class: "chip-line", "aria-label": "What is written", role: "group" });
    this.links = picture("chip-links");
    this.stage = el("div", { class: "decoding-stage card" }, this.links.canvas, this.source, this.target);
    this.sentence = el("p", { class: "sentence" });
    this.candidates = el("ol", { class: "candidates" });
    this.candidatesNote = el("p", { class: "note" });
    this.alignment = new HeatMap(app.theme, { largest: 26 });
    this.alignmentNote = el("p", { class: "note" });
    this.tree = new BeamTree((step) => this.go(step));
    this.answers = el("ol", { class: "answers" });
    this.wide = el("input", {
      id: "beam-wide", type: "number", min: "1", max: "16", required: true,
      onchange: () => this.wide.checkValidity() && this.decode([], Number(this.wide.value)),
    });
    const wide = app.data.live ? el("p", { class: "tools" }, el("label", { for: "beam-wide" }, "Wide "), this.wide) : null;
    this.aligned = el("section", { class: "card pane" }, el("h2", {}, "Alignment so far"), this.alignmentNote, this.alignment.element);
    this.beam = el("section", { class: "card pane wide" }, el("h2", {}, "Beam"), wide, this.tree.element, el("h3", {}, "Answers"), this.answers);
    this.element = el(
      "div",
      { class: "decoding-view", onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      el(
        "div", { class: "transport" }, this.play,
        el("button", { type: "button", "aria-label": "One step back", onclick: () => this.go(this.app.store.state.t - 1) }, "←"),
        el("button", { type: "button", "aria-label": "One step forward", onclick: () => this.go(this.app.store.state.t + 1) }, "→"),
        el("label", { class: "unseen", for: "time" }, "Time step"), this.slider, this.when,
      ),
      this.sentence, this.stage,
      el(
        "div", { class: "panes" },
        el("section", { class: "card pane" }, el("h2", {}, "What comes next"), this.candidatesNote, this.candidates), this.aligned,
      ),
      this.beam,
    );
    /** @type {any} */
    this.decoding = null;
    this.timer = 0;
    onResize(this.stage, () => this.drawLinks());
  }

  hide() {
    window.clearInterval(this.timer);
    this.timer = 0;
    say(this.play, "Play");
  }

  toggle() {
    if (this.timer) {
      this.hide();
      return;
    }
    const count = this.decoding?.steps.length ?? 0;
    if (this.app.store.state.t >= count - 1) this.go(0);
    say(this.play, "Pause");
    this.timer = window.setInterval(() => {
      const { t } = this.app.store.state;
      if (t >= count - 1) this.hide();
      else this.app.store.set({ t: t + 1 });
    }, PACE);
  }

  /** @param {number} step */
  go(step) {
    this.app.store.set({ t: within(step, this.decoding?.steps.length ?? 1) });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === " " && !target.closest("button")) this.toggle();
    else if (event.key === "ArrowRight" && target !== this.slider) this.go(this.app.store.state.t + 1);
    else if (event.key === "ArrowLeft" && target !== this.slider) this.go(this.app.store.state.t - 1);
    else return;
    event.preventDefault();
  }

  show() {
    const { item, store } = this.app;
    this.decoding = item.section("decoding");
    const side = item.sides.target;
    if (!this.decoding || !side) {
      fill(this.sentence, this.decoding === undefined ? "The search is on its way…" : "This file does not hold the search: open it live.");
      return;
    }
    const { steps } = this.decoding;
    this.t = within(store.state.t, steps.length);
    const step = steps[this.t];
    this.slider.max = String(steps.length - 1);
    this.slider.value = String(this.t);
    say(this.when, `step ${this.t} of ${steps.length - 1}`);
    this.fillChips();
    const made = readable(step.chosen.piece);
    const known = side.shown.slice(0, step.known);
    fill(
      this.sentence, "The decoder has read ", el("b", {}, known.length === 1 ? "only the beginning" : `${known.length} pieces`), " and writes ",
      el("bdi", { class: "made" }, `“${shortened(made, 40)}”`), `, to which it gives ${percentText(step.chosen.probability)}.`,
    );
    this.showCandidates(step);
    this.showAlignment();
    this.beam.hidden = !this.decoding.tree;
    if (this.decoding.tree) this.tree.show(this.decoding.tree, this.t);
    if (document.activeElement !== this.wide) this.wide.value = String(this.decoding.beam);
    fill(
      this.answers,
      (this.decoding.answers ?? []).map((/** @type {any} */ answer) =>
        el("li", {}, el("bdi", {}, shortened(answer.text, 200) || "(nothing)"), " ", el("span", { class: "note" }, `score ${valueText(answer.score, 3)}, log-probability ${valueText(answer.logp, 3)}${answer.ended ? "" : ", cut at the limit"}`)),
      ),
    );
    this.drawLinks();
  }

  hover() {
    this.drawLinks();
  }

  /** Each head's weights of this step, of the layer in which the alignment is read. */
  weights() {
    const { item, store } = this.app;
    const cross = item.parts.find((one) => one.part === "decoder.cross");
    const part = cross ?? item.parts[0];
    const layer = cross ? (this.decoding.alignment?.layer ?? part.layers - 1) : part.layers - 1;
    const row = this.decoding.steps[this.t ?? 0].known - 1;
    const chosen = store.state.part === part.part ? store.state.heads : []; // those of another kind of attention are others
    const heads = Array.from({ length: part.heads }, (_, head) => head).filter((head) => !chosen.length || chosen.includes(head));
    const found = heads.flatMap((head) => {
      const matrix = matrixOf(item, part, layer, head, false);
      return matrix ? [{ head, values: matrix.values.subarray(row * matrix.cols, (row + 1) * matrix.cols) }] : [];
    });
    return { cross: Boolean(cross), layer, row, found };
  }

  fillChips() {
    const { item } = this.app;
    const { source, target } = item.sides;
    const step = this.decoding.steps[this.t ?? 0];
    const chip = (/** @type {string} */ text, /** @type {number} */ place, /** @type {string} */ kind) =>
      el("span", { class: `chip-token ${kind}`, "data-place": place }, el("bdi", {}, shortened(text, 30)), el("span", { class: "chip-amount" }));
    this.source.hidden = !source;
    if (source && this.source.dataset.key !== item.id) {
      this.source.dataset.key = item.id;
      fill(this.source, source.shown.map((text, place) => chip(text, place, "")));
    }
    fill(
      this.target,
      target.shown.map((text, place) => chip(text, place, place < step.known ? (place === step.known - 1 ? "last" : "") : "later")).slice(0, step.known),
      el("span", { class: "chip-token making" }, el("bdi", {}, shortened(readable(step.chosen.piece), 30))),
    );
  }

  drawLinks() {
    if (!this.decoding) return;
    const width = this.stage.clientWidth;
    const height = this.stage.clientHeight;
    if (width < 20) return;
    const { canvas, pen } = this.links;
    prepare(canvas, pen, width, height);
    const theme = this.app.theme();
    const { cross, found } = this.weights();
    const box = this.stage.getBoundingClientRect();
    const making = this.target.querySelector(".making");
    const looked = /** @type {HTMLElement[]} */ ([...(cross ? this.source : this.target).querySelectorAll("[data-place]")]);
    if (!making || !found.length) return;
    const from = making.getBoundingClientRect();
    const mean = new Float32Array(looked.length);
    for (const { head, values } of found) {
      const colour = headColour(theme, head);
      looked.forEach((node, place) => {
        const weight = values[place] ?? 0;
        mean[place] += weight / found.length;
        if (weight < 0.01) return;
        const to = node.getBoundingClientRect();
        const down = to.top < from.top - 4;
        pen.strokeStyle = css(colour, 0.12 + 0.75 * strength(weight));
        pen.lineWidth = 0.8 + 4.5 * weight;
        pen.beginPath();
        const x0 = from.left + from.width / 2 - box.left;
        const x1 = to.left + to.width / 2 - box.left;
        const y0 = from.top - box.top;
        const y1 = (down ? to.bottom : to.top) - box.top;
        pen.moveTo(x0, y0);
        const bend = down ? (y0 - y1) * 0.55 : 26;
        pen.bezierCurveTo(x0, y0 - bend, x1, down ? y1 + bend : y1 - bend, x1, y1);
        pen.stroke();
      });
    }
    looked.forEach((node, place) => {
      const amount = /** @type {Element} */ (node.querySelector(".chip-amount"));
      say(amount, mean[place] >= 0.005 ? weightText(mean[place]) : "");
      node.style.background = css(mix(theme.card, theme.heads[0], 0.5 * strength(mean[place])));
    });
  }

  /** @param {any} step */
  showCandidates(step) {
    const { data } = this.app;
    const live = data.live;
    fill(
      this.candidatesNote,
      `Entropy ${step.entropy.toFixed(2)} bits. ` + (live ? "Choose another to decode on from there." : "Open it live to decode on from another."),
    );
    const colour = css(this.app.theme().heads[0]);
    fill(
      this.candidates,
      step.candidates.map((/** @type {any} */ one) => {
        const chosen = one.id === step.chosen.id;
        const bar = el("i");
        bar.style.width = `${100 * one.probability}%`;
        bar.style.background = colour;
        const inside = [
          el("bdi", { class: "bar-text" }, shortened(readable(one.piece), 30)), el("span", { class: "number-bar" }, bar),
          el("span", { class: "bar-amount" }, percentText(one.probability)), el("span", { class: "bar-amount soft" }, valueText(one.logp, 3)),
        ];
        return el(
          "li", { class: chosen ? "chosen" : "" },
          live ? el("button", { type: "button", class: "candidate", onclick: () => this.decodeOn(one.id), "aria-label": `decode on with ${readable(one.piece)}` }, inside) : el("span", { class: "candidate" }, inside),
        );
      }),
    );
  }

  /** @param {number} id decode on from another piece at this step */
  async decodeOn(id) {
    const step = this.decoding.steps[this.t ?? 0];
    await this.decode([...this.app.item.sides.target.ids.slice(1, step.known), id], this.decoding.beam);
  }

  /** @param {number[]} prefix @param {number} beam search again, behind these pieces */
  async decode(prefix, beam) {
    const { data, item } = this.app;
    this.element.classList.add("busy");
    try {
      const made = await data.decode(item, prefix, beam);
      const at = this.t ?? 0;
      this.app.show(made);
      this.app.store.set({ t: at });
    } catch (reason) {
      fill(this.candidatesNote, reason instanceof Error ? reason.message : String(reason));
    } finally {
      this.element.classList.remove("busy");
    }
  }

  showAlignment() {
    const { item } = this.app;
    const told = this.decoding.alignment;
    const numbers = told ? item.array(told.array) : null;
    this.aligned.hidden = !told;
    if (!told || !numbers) return;
    fill(this.alignmentNote, `The mean of the heads of cross-attention in layer ${told.layer}; each row is the step that writes the piece beside it.`);
    const theme = this.app.theme();
    const { steps } = this.decoding;
    this.alignment.show({
      matrix: { rows: numbers.shape[0], cols: numbers.shape[1], values: numbers.values, digits: numbers.digits },
      rows: steps.map((/** @type {any} */ step) => readable(step.chosen.piece)), cols: item.sides.source.shown,
      colour: (value) => mix(theme.card, theme.heads[0], strength(value)), text: (value) => weightText(value, 4),
      label: "Alignment of the pieces written so far with those read", now: this.t, until: (this.t ?? 0) + 1,
    });
  }
}
