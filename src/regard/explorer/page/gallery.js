/** The view of all heads: a small picture of each, in the order of layers or of a measure. */

import { pooled } from "./attention.js";
import { css, headColour, mix, strength } from "./colour.js";
import { el, fill, roving } from "./dom.js";
import { picture, prepare } from "./canvas.js";
import { measureText } from "./reading.js";
import { matrixOf, partNames, pointed, looking } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./data.js").Part} Part */
/** @typedef {import("./attention.js").Matrix} Matrix */

/** cells of the largest matrix that is drawn small: of a longer text the measures stay */
const MOST_CELLS = 2 ** 19;

/** @typedef {{part: Part, layer: number, head: number, key: string}} Place */

/** The view. */
export class GalleryView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.sort = el("select", {
      id: "sort-heads", onchange: () => app.store.set({ sort: this.sort.value }),
    });
    this.says = el("span", { class: "note" });
    this.body = el("div", { class: "gallery" });
    this.element = el(
      "div", { class: "gallery-view" },
      el("p", { class: "tools" }, el("label", { for: "sort-heads" }, "Order by "), this.sort, " ", this.says), this.body,
    );
    /** @type {Map<string, Thumb>} */
    this.thumbs = new Map();
    this.built = "";
    roving(this.body, () => [...this.body.querySelectorAll("button")], { columns: () => this.columns() });
  }

  /** How many pictures stand side by side: the arrows up and down go by lines. */
  columns() {
    const all = [...this.body.querySelectorAll("button")];
    const first = all.findIndex((one) => one.offsetTop > (all[0]?.offsetTop ?? 0));
    return first < 0 ? all.length : first;
  }

  show() {
    const { item, store } = this.app;
    const measures = item.section("measures");
    /** @type {any[]} */
    const names = measures?.names ?? [];
    const sort = names.some((one) => one.name === store.state.sort) ? store.state.sort : "place";
    const key = [item.id, sort, names.length, store.state.units, this.app.theme().dark].join(" ");
    if (key !== this.built) {
      this.built = key;
      fill(
        this.sort, el("option", { value: "place" }, "place in the model"),
        names.map((one) => el("option", { value: one.name }, one.title)),
      );
      this.sort.value = sort;
      this.build(sort, measures);
    }
    const chosen = names.find((one) => one.name === sort);
    fill(this.says, chosen ? chosen.says : "A square for each head: rows are queries, columns are keys. Choose one to see it large.");
    const { part, layer, heads } = looking(item, store.state);
    const all = [...this.thumbs.values()];
    const current = all.find((one) => one.place.part === part && one.place.layer === layer && heads.includes(one.place.head));
    for (const thumb of all) {
      thumb.button.tabIndex = thumb === (current ?? all[0]) ? 0 : -1;
      const { place } = thumb;
      const on = place.part === part && place.layer === layer && heads.includes(place.head);
      thumb.button.setAttribute("aria-pressed", String(on));
      if (!thumb.drawn) thumb.draw();
    }
    this.hover();
  }

  /** @param {string} sort @param {any} measures */
  build(sort, measures) {
    const { item } = this.app;
    this.thumbs.clear();
    /** @type {Place[]} */
    const places = item.parts.flatMap((part) =>
      Array.from({ length: part.layers * part.heads }, (_, place) => {
        const layer = Math.floor(place / part.heads);
        const head = place % part.heads;
        return { part, layer, head, key: `${part.part}.${layer}.${head}` };
      }),
    );
    const facts = new Map((measures?.heads ?? []).map((/** @type {any} */ one) => [`${one.part}.${one.layer}.${one.head}`, one]));
    const value = (/** @type {Place} */ place) => facts.get(place.key)?.[sort] ?? null;
    const unit = measures?.names.find((/** @type {any} */ one) => one.name === sort)?.unit ?? "";
    const make = (/** @type {Place} */ place, /** @type {number} */ most) => {
      const thumb = new Thumb(this.app, place, value(place), most, unit, sort !== "place");
      this.thumbs.set(place.key, thumb);
      return thumb.button;
    };
    if (sort === "place") {
      fill(
        this.body,
        item.parts.map((part) =>
          el(
            "section", { class: "gallery-part" },
            el("h2", {}, capital(partNames(part.part).title)),
            Array.from({ length: part.layers }, (_, layer) =>
              el(
                "div", { class: "gallery-row" },
                el("h3", {}, `Layer ${layer}`),
                el(
                  "div", { class: "thumbs" },
                  places.filter((one) => one.part === part && one.layer === layer).map((one) => make(one, 0)),
                ),
              ),
            ),
          ),
        ),
      );
      return;
    }
    const known = places.filter((one) => value(one) !== null).sort((a, b) => value(b) - value(a));
    const most = Math.max(...known.map((one) => Math.abs(value(one))), 1e-9);
    fill(this.body, el("div", { class: "thumbs sorted" }, known.map((one) => make(one, most))));
  }

  hover() {
    const seen = looking(this.app.item, this.app.store.state);
    const { row, col } = pointed(this.app, seen);
    for (const thumb of this.thumbs.values()) thumb.mark(thumb.place.part === seen.part ? row : -1, thumb.place.part === seen.part ? col : -1);
  }
}

/** @param {string} text */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const SIZE = 104;

/** One head's picture. */
class Thumb {
  /**
   * @param {App} app
   * @param {Place} place
   * @param {number | null} value
   * @param {number} most
   * @param {string} unit
   * @param {boolean} named  with its part and layer, where they do not stand before it
   */
  constructor(app, place, value, most, unit, named) {
    this.app = app;
    this.place = place;
    this.drawn = false;
    this.base = picture("thumb-base");
    this.over = picture("thumb-over");
    const name = named ? `${partNames(place.part.part).tab} · ${place.layer} · ${place.head}` : `head ${place.head}`;
    const bar = el("span", { class: "thumb-bar" }, el("i"));
    this.button = el(
      "button", {
        type: "button", class: "thumb",
        "aria-label": `${partNames(place.part.part).title}, layer ${place.layer}, head ${place.head}` + (value === null ? "" : `: ${measureText(value, unit)}`),
        onclick: () =>
          app.store.set({ view: "heads", part: place.part.part, layer: place.layer, head: place.head, heads: [place.head] }),
        onpointermove: (/** @type {PointerEvent} */ event) => this.point(event),
        onpointerleave: () => app.store.hover({ row: -1, col: -1 }),
      },
      el("span", { class: "thumb-picture" }, this.base.canvas, this.over.canvas),
      el("span", { class: "thumb-name" }, el("span", {}, name), value === null ? null : el("b", {}, measureText(value, unit))),
      value === null || !named ? null : bar,
    );
    const colour = css(headColour(app.theme(), place.head));
    const filled = /** @type {HTMLElement} */ (bar.firstElementChild);
    filled.style.background = colour;
    filled.style.width = `${most ? (100 * Math.abs(value ?? 0)) / most : 0}%`;
  }

  get matrix() {
    const { item, store } = this.app;
    const { part, layer, head } = this.place;
    const cells = item.sides[part.rows].pieces.length * item.sides[part.keys].pieces.length;
    return cells > MOST_CELLS ? null : matrixOf(item, part, layer, head, store.state.units === "words");
  }

  draw() {
    const matrix = this.matrix;
    const { canvas, pen } = this.base;
    prepare(canvas, pen, SIZE, SIZE);
    if (!matrix) return;
    this.drawn = true;
    this.paint(matrix);
  }

  /** @param {Matrix} matrix */
  paint(matrix) {
    const theme = this.app.theme();
    const colour = headColour(theme, this.place.head);
    const cols = Math.min(matrix.cols, 2 * SIZE);
    const rows = Math.min(matrix.rows, 2 * SIZE);
    const values = matrix.cols > cols || matrix.rows > rows ? pooled(matrix, rows, cols) : matrix.values;
    const image = new ImageData(cols, rows);
    for (let place = 0; place < rows * cols; place++) {
      const [r, g, b] = mix(theme.card, colour, strength(values[place]));
      image.data.set([r, g, b, 255], place * 4);
    }
    const small = el("canvas", { width: cols, height: rows });
    small.getContext("2d")?.putImageData(image, 0, 0);
    this.base.pen.imageSmoothingEnabled = false;
    this.base.pen.drawImage(small, 0, 0, SIZE, SIZE);
  }

  /** @param {number} row @param {number} col the same query and key, marked in every picture */
  mark(row, col) {
    const { canvas, pen } = this.over;
    const matrix = this.matrix;
    if (!matrix || (row < 0 && col < 0 && !this.marked)) return;
    prepare(canvas, pen, SIZE, SIZE);
    this.marked = row >= 0 || col >= 0;
    pen.strokeStyle = css(this.app.theme().ink, 0.75);
    pen.lineWidth = 1;
    const high = SIZE / matrix.rows;
    const wide = SIZE / matrix.cols;
    if (row >= 0) pen.strokeRect(0.5, row * high + 0.5, SIZE - 1, Math.max(2, high - 1));
    if (col >= 0) pen.strokeRect(col * wide + 0.5, 0.5, Math.max(2, wide - 1), SIZE - 1);
  }

  /** @param {PointerEvent} event */
  point(event) {
    const matrix = this.matrix;
    const seen = looking(this.app.item, this.app.store.state);
    if (!matrix || this.place.part !== seen.part) return;
    const box = this.base.canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * matrix.rows);
    const col = Math.floor(((event.clientX - box.left) / box.width) * matrix.cols);
    if (row >= 0 && row < matrix.rows && col >= 0 && col < matrix.cols) this.app.store.hover({ row, col });
  }
}
