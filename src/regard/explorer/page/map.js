/** The view of embeddings: where tokens lie, static and in context by layer, and who their neighbours are. */

import { FONT, fitted, onResize, picture, prepare } from "./canvas.js";
import { css, headColour } from "./colour.js";
import { Strip } from "./controls.js";
import { readable } from "./data.js";
import { el, fill, shortened } from "./dom.js";
import { percentText, top, valueText } from "./numbers.js";
import { within } from "./selection.js";

/** @typedef {import("./selection.js").App} App */

/** @typedef {{text: number, place: number, number: number, piece: string}} Dot */

const MAP_HEIGHT = 520;
const MOVE = 450;

/** The view. */
export class MapView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.depth = new Strip("Layer", (depth) => app.store.set({ depth: Number(depth) }));
    this.says = el("p", { class: "note" });
    this.same = el("div", { class: "same" });
    this.picture = picture("map");
    this.frame = el(
      "div", {
        class: "map-frame card", tabindex: "0", role: "application", "aria-label": "Map of tokens. Arrow keys go from token to token.",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      },
      this.picture.canvas,
    );
    this.title = el("h2", { class: "reading-title" });
    this.near = el("ol", { class: "neighbours" });
    this.context = el("ol", { class: "neighbours" });
    this.legend = el("ul", { class: "map-legend" });
    this.ask = app.data.live ? this.askForm() : null;
    this.side = el(
      "aside", { class: "card reading", "aria-live": "polite", "aria-label": "Neighbours" }, this.title,
      el("h3", {}, "Nearest pieces of the vocabulary"), this.near, el("h3", {}, "Nearest tokens on this map"), this.context,
    );
    this.element = el(
      "div", { class: "map-view" }, el("p", { class: "tools" }, this.depth.element), this.says, this.ask,
      el("div", { class: "stage inner" }, el("div", {}, this.frame, this.legend, this.same), this.side),
    );
    this.frame.addEventListener("pointermove", (event) => this.point(event));
    this.frame.addEventListener("pointerleave", () => this.over(-1));
    this.frame.addEventListener("click", () => this.hold(this.hovered));
    onResize(this.frame, () => this.draw());
    /** @type {Dot[]} */
    this.dots = [];
    this.hovered = -1;
    this.held = -1;
    this.from = 0;
    this.share = 1;
    /** @type {any} */
    this.told = null;
    this.asked = "";
    /** @type {number | undefined} */
    this.at = undefined;
    /** @type {number[][] | undefined} */
    this.places = undefined;
  }

  askForm() {
    const field = el("input", { id: "map-text", autocomplete: "off", placeholder: "another sentence with the same word" });
    return el(
      "form",
      {
        class: "ask",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.app.store.set({ also: field.value });
        },
      },
      el("span", { class: "field wide" }, el("label", { for: "map-text" }, "Beside it"), field), el("button", { class: "primary" }, "Map both"),
    );
  }

  /** @param {Error} reason */
  fail(reason) {
    fill(this.says, reason.message);
    return null;
  }

  /** The map of the text at hand and, if one is named, of another beside it. */
  async request() {
    const { data, item, store } = this.app;
    const { also } = store.state;
    try {
      const other = also ? await data.look({ text: also, tag: item.tag, run: item.run, weights: item.weights }) : null;
      if (other) data.items.push(other);
      data.map = data.holderOf(await data.post("/api/map", { items: [item.id, ...(other ? [other.id] : [])] }));
      this.told = null;
      this.held = -1;
      this.app.store.tell("state");
    } catch (reason) {
      this.fail(/** @type {Error} */ (reason));
    }
  }

  show() {
    const { data, item, store } = this.app;
    const asked = `${item.id} ${store.state.also}`;
    if (data.live && this.asked !== asked) {
      this.asked = asked;
      this.request();
    }
    const told = data.map?.section("map");
    if (!told) {
      fill(this.says, data.live ? "The map is on its way…" : "This file does not hold the map: open it live.");
      this.frame.hidden = true;
      this.side.hidden = true;
      return;
    }
    this.frame.hidden = false;
    this.side.hidden = false;
    const depth = within(store.state.depth, told.layers.length);
    if (told !== this.told) {
      this.told = told;
      this.dots = told.texts.flatMap((/** @type {any} */ text, /** @type {number} */ number) =>
        text.pieces.map((/** @type {string} */ piece, /** @type {number} */ place) => ({ text: number, place, number: told.first[number] + place, piece: readable(piece) })),
      );
      this.from = depth;
      this.share = 1;
    } else if (depth !== this.at) this.travel(this.at ?? depth);
    this.at = depth;
    this.depth.show(told.layers.map((/** @type {string} */ name, /** @type {number} */ place) => ({ value: String(place), text: place ? name : "static" })), String(depth));
    const [x, y] = told.explained[depth];
    fill(
      this.says,
      (depth ? `The states after ${told.layers[depth]}, in context: ` : "The embeddings, the same in every context: ") +
        `the two directions in which they differ most hold ${percentText(x)} and ${percentText(y)} of the variance.`,
    );
    const theme = this.app.theme();
    fill(
      this.legend,
      told.texts.map((/** @type {any} */ text, /** @type {number} */ number) => {
        const dot = el("i");
        dot.style.background = css(headColour(theme, number));
        return el("li", {}, dot, el("bdi", {}, shortened(text.text, 120)), el("span", { class: "note" }, text.side));
      }),
    );
    this.showSame(told, depth);
    const found = this.dots.findIndex((dot) => `${dot.text}.${dot.place}` === store.state.find);
    this.held = found >= 0 ? found : this.dots.findIndex((dot) => dot.text === this.own() && dot.place === store.state.row);
    this.draw();
    this.tell();
  }

  hover() {}

  /** Which text of the map is the one at hand. */
  own() {
    const { data, item } = this.app;
    return data.live ? 0 : data.items.filter((one) => one.run === 0).indexOf(item);
  }

  /** Words that stand at several places: how alike their states are, layer by layer. @param {any} told @param {number} depth */
  showSame(told, depth) {
    fill(
      this.same,
      told.same.length ? el("h3", {}, "The same word at several places") : null,
      told.same.length
        ? el("p", { class: "note" }, "How alike its vectors are, from embedding to last layer: 1 is the same, and less the more the context has moved them apart.")
        : null,
      told.same.map((/** @type {any} */ word) => {
        const cosines = /** @type {import("./holder.js").Holder} */ (this.app.data.map).array(word.cosines);
        return el(
          "p", { class: "same-word" }, el("bdi", { class: "made" }, word.text), ` at ${word.places.length} places `,
          cosines
            ? el("span", { class: "path" }, Array.from(cosines.values, (value, place) => el("span", { class: place === depth ? "now" : "", title: told.layers[place] }, value.toFixed(2))))
            : "…",
        );
      }),
    );
  }

  /** @param {number} from go over to another layer, so that the eye can follow */
  travel(from) {
    this.from = from;
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.share = 1;
      return;
    }
    this.share = 0;
    const started = performance.now();
    const frame = (/** @type {number} */ now) => {
      const share = Math.min(1, (now - started) / MOVE);
      this.share = share * share * (3 - 2 * share);
      this.draw();
      if (share < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** @param {Dot} dot @param {number} depth @returns {[number, number]} */
  spot(dot, depth) {
    const points = /** @type {import("./holder.js").Holder} */ (this.app.data.map).array(this.told.texts[dot.text].points);
    if (!points) return [0, 0];
    const start = (depth * points.shape[1] + dot.place) * 2;
    return [points.values[start], points.values[start + 1]];
  }

  draw() {
    const width = this.frame.clientWidth;
    if (!this.told || width < 20 || this.at === undefined) return;
    const height = Math.min(MAP_HEIGHT, width * 0.9);
    const { canvas, pen } = this.picture;
    prepare(canvas, pen, width, height);
    const theme = this.app.theme();
    const frame = (/** @type {number} */ depth) => {
      const all = this.dots.map((dot) => this.spot(dot, depth));
      const xs = all.map((one) => one[0]);
      const ys = all.map((one) => one[1]);
      const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      const scale = Math.min((width - 130) / (right - left || 1), (height - 70) / (high - low || 1));
      return (/** @type {[number, number]} */ point) => [
        width / 2 + (point[0] - (left + right) / 2) * scale - 20, height / 2 - (point[1] - (low + high) / 2) * scale,
      ];
    };
    const before = frame(this.from);
    const after = frame(this.at);
    this.background(theme, after);
    this.places = this.dots.map((dot) => {
      const a = before(this.spot(dot, this.from));
      const b = after(this.spot(dot, /** @type {number} */ (this.at)));
      return [a[0] + (b[0] - a[0]) * this.share, a[1] + (b[1] - a[1]) * this.share];
    });
    const chosen = this.hovered >= 0 ? this.hovered : this.held;
    this.twins(theme, chosen);
    pen.font = `13px ${FONT}`;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    /** @type {number[][]} */
    const taken = [];
    const order = this.dots.map((_, place) => place).sort((a, b) => Number(b === chosen) - Number(a === chosen));
    for (const place of order) {
      const [x, y] = this.places[place];
      const dot = this.dots[place];
      pen.fillStyle = css(headColour(theme, dot.text));
      pen.beginPath();
      pen.arc(x, y, place === chosen ? 7 : 4.5, 0, 7);
      pen.fill();
      const text = fitted(pen, dot.piece, 90);
      const wide = pen.measureText(text).width;
      if (place !== chosen && taken.some(([l, t, r]) => x + 9 < r && x + 9 + wide > l && Math.abs(y - t) < 13)) continue;
      taken.push([x + 9, y, x + 9 + wide]);
      pen.font = `${place === chosen ? "650 " : ""}13px ${FONT}`;
      pen.fillStyle = css(theme.ink);
      pen.fillText(text, x + 9, y);
    }
  }

  /** @param {import("./colour.js").Theme} theme @param {(point: [number, number]) => number[]} at the vocabulary, behind the static map */
  background(theme, at) {
    const { vocabulary } = this.told;
    const points = this.at === 0 && this.share === 1 && vocabulary ? this.app.data.map?.array(vocabulary.points) : null;
    if (!points) return;
    const { pen } = this.picture;
    pen.fillStyle = css(theme.soft, 0.28);
    for (let place = 0; place < points.shape[0]; place++) {
      const [x, y] = at([points.values[2 * place], points.values[2 * place + 1]]);
      pen.fillRect(x - 1, y - 1, 2, 2);
    }
  }

  /** @param {import("./colour.js").Theme} theme @param {number} chosen lines to the same word elsewhere */
  twins(theme, chosen) {
    if (chosen < 0 || !this.places) return;
    const { pen } = this.picture;
    const dot = this.dots[chosen];
    pen.strokeStyle = css(theme.ink, 0.5);
    pen.setLineDash([3, 4]);
    this.dots.forEach((other, place) => {
      if (place === chosen || other.piece !== dot.piece || !this.places) return;
      pen.beginPath();
      pen.moveTo(this.places[chosen][0], this.places[chosen][1]);
      pen.lineTo(this.places[place][0], this.places[place][1]);
      pen.stroke();
    });
    pen.setLineDash([]);
  }

  tell() {
    const chosen = this.hovered >= 0 ? this.hovered : this.held >= 0 ? this.held : 0;
    const dot = this.dots[chosen];
    if (!dot || !this.told) return;
    fill(this.title, el("bdi", {}, `“${shortened(dot.piece, 40)}”`));
    /** @type {{piece: string, cosine: number}[]} */
    const near = this.told.neighbours[dot.number] ?? [];
    fill(this.near, near.map((one) => el("li", {}, el("bdi", {}, shortened(readable(one.piece), 30)), el("span", { class: "bar-amount" }, valueText(one.cosine, 3)))));
    const cosines = this.app.data.map?.array(this.told.cosines);
    if (!cosines) return;
    const [, rows, cols] = cosines.shape;
    const start = ((this.at ?? 0) * rows + dot.number) * cols;
    const row = Array.from(cosines.values.subarray(start, start + cols));
    row[dot.number] = -2;
    fill(
      this.context,
      top(row, 8).filter((place) => row[place] > -2).map((place) => {
        const other = this.dots.find((one) => one.number === place);
        const text = other ? other.piece : String(place);
        const from = other && other.text !== dot.text ? ` (text ${other.text + 1})` : "";
        return el("li", {}, el("span", {}, el("bdi", {}, shortened(text, 30)), el("span", { class: "note" }, from)), el("span", { class: "bar-amount" }, valueText(row[place], 3)));
      }),
    );
  }

  /** @param {number} place */
  over(place) {
    if (place === this.hovered) return;
    this.hovered = place;
    this.draw();
    this.tell();
  }

  /** @param {number} place */
  hold(place) {
    const dot = this.dots[place];
    const same = dot && dot.text === this.own() && this.app.store.state.units === "pieces";
    this.app.store.set({ find: dot ? `${dot.text}.${dot.place}` : "", ...(same ? { row: dot.place, col: -1 } : {}) });
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (!this.places) return;
    const box = this.picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    let best = -1;
    let least = 24;
    this.places.forEach(([px, py], place) => {
      const far = Math.hypot(px - x, py - y);
      if (far < least) [best, least] = [place, far];
    });
    this.over(best);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !this.dots.length) return;
    event.preventDefault();
    this.hovered = -1;
    this.hold((this.held + by + this.dots.length) % this.dots.length);
  }
}
