/** The view of what-if: heads switched off, two runs or checkpoints side by side, and a head as it was in training. */

import { css, diverging, headColour, mix, strength } from "./colour.js";
import { readable } from "./data.js";
import { el, fill, roving, shortened } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { counted, largest, percentText, valueText, weightText } from "./numbers.js";
import { headName, looking, matrixOf, partNames, within } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./data.js").Item} Item */

/** The view. */
export class WhatIfView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.grid = el("div", { class: "off-grid" });
    this.offSays = el("p", { class: "note" });
    this.measure = el("button", { type: "button", class: "primary", onclick: () => this.ablate() }, "Measure");
    this.clear = el("button", { type: "button", onclick: () => app.store.set({ off: [] }) }, "All on again");
    this.result = el("div", { class: "result", "aria-live": "polite" });
    this.other = el("select", { id: "other-item", onchange: () => app.store.set({ other: Number(this.other.value) }) });
    this.lookButton = el("button", { type: "button", onclick: () => this.lookOther(this.weightsOf.value) }, "Look");
    this.weightsOf = el("select", { id: "other-weights", "aria-label": "Run and weights" });
    this.compareSays = el("p", { class: "note" });
    this.maps = [new HeatMap(app.theme), new HeatMap(app.theme), new HeatMap(app.theme)];
    this.captions = this.maps.map(() => el("figcaption"));
    this.history = new HeatMap(app.theme);
    this.historySays = el("p", { class: "note" });
    this.at = el("input", { type: "range", min: "0", id: "checkpoint", oninput: () => app.store.set({ at: Number(this.at.value) }) });
    this.fetch = el("button", { type: "button", onclick: () => this.askHistory() }, "Read the checkpoints");
    this.trained = el("section", { class: "card pane wide" }, el("h2", {}, "The head over the steps of training"), this.historySays, el("p", { class: "tools" }, el("label", { for: "checkpoint" }, "Checkpoint "), this.at, " ", this.fetch), this.history.element);
    this.element = el(
      "div", { class: "whatif-view" },
      el(
        "section", { class: "card pane wide" }, el("h2", {}, "Heads switched off"), this.offSays, this.grid,
        el("p", { class: "tools" }, this.measure, " ", this.clear), this.result,
      ),
      el(
        "section", { class: "card pane wide" }, el("h2", {}, "Two side by side"), this.compareSays,
        el("p", { class: "tools" }, el("label", { for: "other-item" }, "Beside it "), this.other, " ", app.data.live ? this.weightsOf : null, app.data.live ? this.lookButton : null),
        el("div", { class: "triptych" }, this.maps.map((map, place) => el("figure", {}, this.captions[place], map.element))),
      ),
      this.trained,
    );
    roving(this.grid, () => /** @type {HTMLElement[]} */ ([...this.grid.querySelectorAll("button")]), { columns: () => app.item.parts[0].heads });
    this.gridKey = "";
    /** @type {import("./holder.js").Holder | null} */
    this.past = null;
    if (app.data.live) this.again();
  }

  /** What the address tells, asked anew. */
  async again() {
    const { beside, off, at } = this.app.store.state;
    if (beside) await this.lookOther(beside);
    else if (off.length) await this.ablate();
    if (at >= 0) await this.askHistory();
  }

  show() {
    this.showGrid();
    this.showCompare();
    this.showHistory();
  }

  hover() {}

  /** The heads as a grid: each with what it alone is worth, where that was measured. */
  showGrid() {
    const { data, item, store } = this.app;
    const section = item.section("ablation");
    const worth = new Map((section?.heads ?? []).map((/** @type {any} */ one) => [`${one.part}.${one.layer}.${one.head}`, one]));
    const most = Math.max(1e-9, ...[...worth.values()].map((one) => Math.abs(one.change)));
    const theme = this.app.theme();
    const live = data.live;
    fill(
      this.offSays,
      section ? `Each number: by how much the log-probability of the target (${valueText(section.logp, 3)}, its end included) changes when this head alone is off.` : "",
      live ? " Choose heads, then measure them off together." : section ? " Choose a head to see what the model then writes." : "This file does not hold it: open it live.",
    );
    const off = new Set(store.state.off);
    fill(
      this.grid,
      item.parts.map((part) =>
        el(
          "div", { class: "off-part" }, el("h3", {}, partNames(part.part).tab),
          Array.from({ length: part.layers }, (_, layer) =>
            el(
              "div", { class: "off-row" }, el("span", { class: "note" }, String(layer)),
              Array.from({ length: part.heads }, (_, head) => {
                const name = `${part.part}.${layer}.${head}`;
                const one = worth.get(name);
                const button = el(
                  "button",
                  {
                    type: "button", class: "off-head", "aria-pressed": String(off.has(name)), tabindex: "-1",
                    "aria-label": `${partNames(part.part).title}, ${headName(layer, head)}${one ? `: ${valueText(one.change, 3)}` : ""}`,
                    onclick: () => this.toggle(name),
                  },
                  one ? valueText(one.change, 3) : String(head),
                );
                if (one) button.style.background = css(mix(theme.card, one.change < 0 ? theme.above : theme.below, 0.55 * Math.abs(one.change / most)));
                return button;
              }),
            ),
          ),
        ),
      ),
    );
    const first = this.grid.querySelector("button");
    if (first) first.tabIndex = 0;
    this.measure.hidden = this.clear.hidden = !live;
    this.measure.disabled = !off.size;
    this.measure.textContent = off.size ? `Measure with ${counted(off.size, "head")} off` : "Measure";
    const chosen = !live && store.state.off.length ? worth.get(store.state.off[0]) : null;
    if (chosen) {
      fill(
        this.result,
        el("p", {}, `Without ${partNames(chosen.part).title}, ${headName(chosen.layer, chosen.head)}, the target has log-probability ${valueText(chosen.logp, 3)} (${chosen.change > 0 ? "+" : ""}${valueText(chosen.change, 3)}), and the model writes:`),
        el("p", { class: "text" }, el("bdi", { class: "made" }, shortened(chosen.text, 300) || "(nothing)")),
      );
    } else if (!live) fill(this.result);
  }

  /** @param {string} name */
  toggle(name) {
    const { store, data } = this.app;
    const { off } = store.state;
    const on = off.includes(name);
    const next = data.live ? (on ? off.filter((one) => one !== name) : [...off, name]) : on ? [] : [name];
    const focused = document.activeElement?.getAttribute("aria-label");
    store.set({ off: next });
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const again = [...this.grid.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focused);
      if (again) again.focus();
    }));
  }

  async ablate() {
    const { data, item, store } = this.app;
    const off = store.state.off.map((name) => {
      const parts = name.split(".");
      return [parts.slice(0, 2).join("."), Number(parts[2]), Number(parts[3])];
    });
    this.element.classList.add("busy");
    try {
      const told = await data.post("/api/ablate", { item: item.id, heads_off: off });
      this.tellAblation(told);
      store.set({ beside: "", other: data.items.push(data.itemOf(told.item)) - 1 });
    } catch (reason) {
      fill(this.result, reason instanceof Error ? reason.message : String(reason));
    } finally {
      this.element.classList.remove("busy");
    }
  }

  /** @param {any} told */
  tellAblation(told) {
    const theme = this.app.theme();
    if (!told.pieces) {
      this.tellLabels(told.labels);
      return;
    }
    const changes = told.pieces.map((/** @type {any} */ one) => one.logp[1] - one.logp[0]);
    const most = largest(changes) || 1;
    fill(
      this.result,
      el("p", {}, "The target's log-probability goes from ", el("b", {}, valueText(told.logp[0], 4)), " to ", el("b", {}, valueText(told.logp[1], 4)), ": ", el("b", {}, `${told.change > 0 ? "+" : ""}${valueText(told.change, 4)}`), "."),
      el(
        "div", { class: "chip-line" },
        told.pieces.map((/** @type {any} */ one, /** @type {number} */ place) => {
          const chip = el("span", { class: "chip-token" }, el("bdi", {}, shortened(readable(one.piece), 30)), el("span", { class: "chip-amount" }, valueText(changes[place], 2)));
          chip.style.background = css(mix(theme.card, changes[place] < 0 ? theme.above : theme.below, 0.5 * Math.abs(changes[place] / most)));
          return chip;
        }),
      ),
      el("p", { class: "note" }, told.text[0] === told.text[1] ? "It writes the same as before:" : "It now writes:"),
      el("p", { class: "text" }, el("bdi", { class: "made" }, shortened(told.text[1], 300) || "(nothing)")),
    );
  }

  /** What an encoder concludes before and after. @param {({name: string, probability: number}[] | null)[]} labels */
  tellLabels([before, after]) {
    if (!before || !after) {
      fill(this.result, el("p", {}, "This model tells no labels; the weights with these heads off stand below."));
      return;
    }
    fill(
      this.result,
      before.map((one, place) =>
        el("p", {}, el("bdi", {}, one.name), " goes from ", el("b", {}, percentText(one.probability)), " to ", el("b", {}, percentText(after[place].probability)), "."),
      ),
    );
  }

  showCompare() {
    const { data, item, store } = this.app;
    const seen = looking(item, store.state);
    const others = data.items.flatMap((one, place) => (one !== item && one.parts.some((part) => part.part === seen.part.part) ? [{ one, place }] : []));
    fill(this.other, el("option", { value: -1 }, "nothing"), others.map(({ one, place }) => el("option", { value: place }, this.nameOf(one))));
    const found = others.find(({ place }) => place === store.state.other) ?? null;
    this.other.value = String(found ? found.place : -1);
    if (data.live && !this.weightsOf.options.length) {
      fill(
        this.weightsOf,
        data.runs.flatMap((run, place) =>
          ["best", ...(run.checkpoints ?? []).map((/** @type {any} */ one) => one.name)].map((weights) => el("option", { value: `${place}.${weights}` }, `${run.name}, ${weights}`)),
        ),
      );
    }
    const first = seen.matrix(seen.head);
    const theme = this.app.theme();
    const colour = headColour(theme, seen.head);
    const weight = { colour: (/** @type {number} */ value) => mix(theme.card, colour, strength(value)), text: (/** @type {number} */ value) => weightText(value, 4) };
    fill(this.captions[0], this.nameOf(item), el("span", { class: "note" }, ` ${headName(seen.layer, seen.head)}`));
    if (first) this.maps[0].show({ matrix: first, rows: seen.rows, cols: seen.cols, label: `Weights in ${this.nameOf(item)}`, ...weight });
    const figures = this.maps.map((map) => /** @type {HTMLElement} */ (map.element.parentElement));
    figures[1].hidden = figures[2].hidden = !found;
    fill(this.compareSays, found ? "" : data.live ? "Choose another run, another checkpoint or the text with heads off." : others.length ? "Choose what stands beside it." : "This file holds one text in one model: give regard look a second run, or another text.");
    if (!found) return;
    const there = found.one.parts.find((part) => part.part === seen.part.part);
    if (!there) return;
    const layer = within(seen.layer, there.layers);
    const head = within(seen.head, there.heads);
    const second = matrixOf(found.one, there, layer, head, seen.words);
    const side = (/** @type {string} */ name) => (seen.words ? found.one.sides[name].word_texts : found.one.sides[name].shown);
    fill(this.captions[1], this.nameOf(found.one), el("span", { class: "note" }, ` ${headName(layer, head)}`));
    if (second) this.maps[1].show({ matrix: second, rows: side(there.rows), cols: side(there.keys), label: `Weights in ${this.nameOf(found.one)}`, ...weight });
    const same = first && second && first.rows === second.rows && first.cols === second.cols;
    figures[2].hidden = !same;
    if (!same) return;
    const values = Float32Array.from({ length: first.values.length }, (_, place) => second.values[place] - first.values[place]);
    const most = largest(values) || 1;
    fill(this.captions[2], "the difference", el("span", { class: "note" }, ` at most ${valueText(most, 4)}`));
    this.maps[2].show({
      matrix: { ...first, values }, rows: seen.rows, cols: seen.cols, colour: (value) => diverging(theme, value, most), text: (value) => valueText(value, 4),
      label: "The second's weights less the first's",
    });
  }

  /** @param {Item} item */
  nameOf(item) {
    const run = this.app.data.runs[item.run];
    const off = item.headsOff.length ? `, ${counted(item.headsOff.length, "head")} off` : "";
    return `${run.name}${item.weights === "best" ? "" : `, ${item.weights}`}${off}: ${shortened(item.text, 90)}`;
  }

  /** @param {string} beside run and weights, as 1.best */
  async lookOther(beside) {
    const { data, item, store } = this.app;
    const [run, weights] = [parseInt(beside, 10) || 0, beside.slice(beside.indexOf(".") + 1)];
    this.element.classList.add("busy");
    try {
      const other = await data.look({ text: item.text, target: item.target, tag: item.tag, run, weights });
      store.set({ beside, other: data.items.push(other) - 1 });
    } catch (reason) {
      fill(this.compareSays, reason instanceof Error ? reason.message : String(reason));
    } finally {
      this.element.classList.remove("busy");
    }
  }

  async askHistory() {
    const { data, item, store } = this.app;
    const seen = looking(item, store.state);
    this.element.classList.add("busy");
    try {
      this.past = data.holderOf(await data.post("/api/history", { item: item.id, part: seen.part.part, layer: seen.layer, head: seen.head }));
      store.tell("state");
    } catch (reason) {
      fill(this.historySays, reason instanceof Error ? reason.message : String(reason));
    } finally {
      this.element.classList.remove("busy");
    }
  }

  showHistory() {
    const { data, item, store } = this.app;
    const holder = this.past ?? ("history" in item.sections ? item : null);
    const told = holder?.section("history");
    this.trained.hidden = !told && !data.live;
    this.fetch.hidden = !data.live;
    this.history.element.hidden = this.at.disabled = !told;
    if (!told || !holder) {
      fill(this.historySays, "How the head that is chosen above looked at each stored checkpoint of this run.");
      return;
    }
    const numbers = holder.array(told.weights);
    const count = told.checkpoints.length;
    const at = store.state.at < 0 ? count - 1 : within(store.state.at, count);
    this.at.max = String(count - 1);
    this.at.value = String(at);
    const part = item.parts.find((one) => one.part === told.part) ?? item.parts[0];
    fill(this.historySays, `${partNames(part.part).title}, ${headName(told.layer, told.head)}, at ${told.checkpoints[at].name} (${at + 1} of ${count}).`);
    if (!numbers) return;
    const [, rows, cols] = numbers.shape;
    const theme = this.app.theme();
    this.history.show({
      matrix: { rows, cols, values: numbers.values.subarray(at * rows * cols, (at + 1) * rows * cols), digits: numbers.digits },
      rows: item.sides[part.rows].shown, cols: item.sides[part.keys].shown, colour: (value) => mix(theme.card, headColour(theme, told.head), strength(value)),
      text: (value) => weightText(value, 4), label: `Weights at ${told.checkpoints[at].name}`,
    });
  }
}
