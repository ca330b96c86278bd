/** The view of heads: queries on the left, keys on the right, a line for each weight, in the colours of the heads. */

import { colOf, received, rowOf, strongest } from "./attention.js";
import { FONT, link, onResize, picture, prepare } from "./canvas.js";
import { css, headColour, strength } from "./colour.js";
import { el, say, shortened } from "./dom.js";
import { largest, weightText } from "./numbers.js";
import { looking, partNames, pointed } from "./selection.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./selection.js").Looking} Looking */
/** @typedef {import("./attention.js").Matrix} Matrix */
/** @typedef {ArrayLike<number>} Bars */

/** links drawn at once, at most: more would be felt and not a picture */
const MOST_LINKS = 6000;
const LEVELS = 8;
/** of a column, where its number stands: no bar goes there */
const AMOUNT = 38;

/** The view. */
export class HeadsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const { canvas, pen } = picture("links-canvas");
    this.canvas = canvas;
    this.pen = pen;
    this.columns = { row: new Column(app, "row"), col: new Column(app, "col") };
    this.heading = { row: el("p", { class: "column-title left" }), col: el("p", { class: "column-title right" }) };
    this.spacer = el("div", { class: "links-spacer" });
    this.stage = el("div", { class: "links-stage" }, canvas, this.columns.row.element, this.columns.col.element);
    this.scroller = el("div", { class: "links", onscroll: () => this.draw() }, this.spacer, this.stage);
    this.overview = picture("overview");
    this.note = el("p", { class: "note" });
    this.element = el(
      "div", { class: "heads-view" },
      el("div", { class: "column-titles" }, this.heading.row, this.heading.col),
      el("div", { class: "links-frame" }, this.scroller, this.overview.canvas),
      this.note,
    );
    /** @type {Looking | null} */
    this.seen = null;
    this.width = 0;
    this.rowHeight = 26;
    this.column = 120;
    this.long = false;
    /** @type {{head: number, matrix: Matrix}[]} */
    this.heads = [];
    this.scroller.addEventListener("pointermove", (event) => this.point(event));
    this.scroller.addEventListener("pointerleave", () => app.store.hover({ row: -1, col: -1 }));
    this.scroller.addEventListener("click", (event) => this.hold(event));
    this.overview.canvas.addEventListener("click", (event) => {
      const box = this.overview.canvas.getBoundingClientRect();
      const share = (event.clientY - box.top) / box.height;
      this.scroller.scrollTop = share * this.scroller.scrollHeight - this.scroller.clientHeight / 2;
    });
    onResize(this.scroller, () => this.show());
    for (const column of Object.values(this.columns)) column.reveal = (index) => this.reveal(index);
  }

  show() {
    const { item, store } = this.app;
    const seen = looking(item, store.state);
    this.seen = seen;
    this.width = this.scroller.clientWidth;
    const count = Math.max(seen.rows.length, seen.cols.length);
    this.rowHeight = count <= 26 ? 28 : count <= 60 ? 24 : 21;
    const whole = count * this.rowHeight + 8;
    const height = Math.min(whole, Math.max(320, window.innerHeight - 210));
    this.scroller.style.height = `${height}px`;
    this.spacer.style.height = `${whole}px`;
    this.stage.style.height = `${height}px`;
    this.stage.style.marginTop = `${-whole}px`;
    this.long = whole > height + 1;
    this.column = this.columnWidth(seen);
    this.overview.canvas.hidden = !this.long;
    const names = partNames(seen.part.part);
    say(this.heading.row, names.rows);
    say(this.heading.col, names.cols);
    const matrices = seen.heads.map((head) => ({ head, matrix: seen.matrix(head) }));
    this.heads = matrices.flatMap(({ head, matrix }) => (matrix ? [{ head, matrix }] : []));
    const waiting = this.heads.length < matrices.length;
    const most = Math.ceil(MOST_LINKS / Math.max(1, this.heads.length));
    const least = this.heads.reduce((best, { matrix }) => Math.max(best, strongest(matrix, most).least), 0);
    say(
      this.note,
      waiting
        ? "The weights are on their way…"
        : least > 0.005
          ? `Weights from ${weightText(least, 3)} on are drawn; point at a token to see all of its own.`
          : "Point at a token on the left to see only what it looks at, on the right to see who looks at it; click holds it.",
    );
    this.stage.setAttribute("aria-busy", String(waiting));
    this.draw();
  }

  hover() {
    this.draw();
  }

  /** As wide as the texts, with room for a number; on a narrow page less. @param {Looking} seen */
  columnWidth(seen) {
    this.pen.font = `15px ${FONT}`;
    const some = [...seen.rows.slice(0, 200), ...seen.cols.slice(0, 200)];
    const longest = Math.max(...some.map((text) => this.pen.measureText(text.slice(0, 40)).width), 20);
    return Math.round(Math.min(longest + 72, Math.max(98, this.width * 0.27)));
  }

  /** Draw the part that is in sight. */
  draw() {
    const { seen, width, rowHeight } = this;
    if (!seen || width < 10) return;
    const height = this.scroller.clientHeight;
    const scroll = this.scroller.scrollTop;
    const place = pointed(this.app, seen);
    const scene = { seen, width, height, scroll, column: this.column, rowHeight, ...place };
    const bars = this.bars(scene);
    prepare(this.canvas, this.pen, width, height);
    this.drawBars(scene, bars);
    if (place.row >= 0 || place.col >= 0) this.drawOne(scene);
    else this.drawAll(scene);
    this.columns.row.draw(seen.rows, scene, bars.row);
    this.columns.col.draw(seen.cols, scene, bars.col);
    if (this.long) this.drawOverview(scene, bars);
  }

  /**
   * What stands as bars behind the tokens: of a query its row, of a key its column, of none what each key gets.
   * @param {Scene} scene
   * @returns {{row: Bars[], col: Bars[]}}
   */
  bars({ row, col }) {
    if (row >= 0) return { row: [], col: this.heads.map(({ matrix }) => rowOf(matrix, row)) };
    if (col >= 0) return { row: this.heads.map(({ matrix }) => colOf(matrix, col)), col: [] };
    return { row: [], col: this.heads.map(({ matrix }) => received(matrix)) };
  }

  /** @param {Scene} scene @param {{row: Bars[], col: Bars[]}} bars */
  drawBars(scene, bars) {
    const { width, height, scroll, column, rowHeight } = scene;
    const theme = this.app.theme();
    for (const side of /** @type {const} */ (["row", "col"])) {
      const all = bars[side];
      if (!all.length) continue;
      const thick = (rowHeight - 4) / all.length;
      const first = Math.max(0, Math.floor(scroll / rowHeight));
      const last = Math.min(all[0].length, Math.ceil((scroll + height) / rowHeight));
      all.forEach((values, place) => {
        this.pen.fillStyle = css(headColour(theme, this.heads[place].head), theme.dark ? 0.42 : 0.3);
        this.pen.beginPath();
        for (let token = first; token < last; token++) {
          const long = values[token] * (column - AMOUNT);
          if (long < 0.4) continue;
          const y = token * rowHeight - scroll + 2 + place * thick;
          const x = side === "col" ? width - column : column - long;
          this.pen.roundRect(x, y, long, Math.max(1, thick - (thick > 4 ? 1 : 0)), Math.min(3, thick / 3));
        }
        this.pen.fill();
      });
    }
  }

  /** @param {Scene} scene every weight that is strong enough, the weak ones below */
  drawAll(scene) {
    const { height, scroll, rowHeight } = scene;
    const theme = this.app.theme();
    const crowd = Math.min(1, 2.2 / Math.sqrt(this.heads.length));
    const top = scroll / rowHeight - 0.5;
    const bottom = (scroll + height) / rowHeight - 0.5;
    const most = Math.ceil(MOST_LINKS / Math.max(1, this.heads.length));
    for (const { head, matrix } of this.heads) {
      const colour = headColour(theme, head);
      let drawn = -1;
      for (const place of strongest(matrix, most).places) {
        const weight = matrix.values[place];
        if (weight < this.app.store.state.threshold) continue;
        const row = Math.floor(place / matrix.cols);
        const col = place - row * matrix.cols;
        if ((row < top && col < top) || (row > bottom && col > bottom)) continue;
        const level = Math.min(LEVELS - 1, Math.floor(strength(weight) * LEVELS));
        if (level !== drawn) {
          if (drawn >= 0) this.pen.stroke();
          drawn = level;
          const share = (level + 0.6) / LEVELS;
          this.pen.strokeStyle = css(colour, (0.07 + 0.8 * share * share) * crowd);
          this.pen.lineWidth = 0.7 + 3.2 * share * share;
          this.pen.beginPath();
        }
        this.link(row, col, head, scene);
      }
      if (drawn >= 0) this.pen.stroke();
    }
  }

  /** @param {Scene} scene one token's weights only */
  drawOne(scene) {
    const { row, col, height } = scene;
    const theme = this.app.theme();
    const least = Math.max(this.app.store.state.threshold, 0.002);
    for (const { head, matrix } of this.heads) {
      const colour = headColour(theme, head);
      const values = row >= 0 ? rowOf(matrix, row) : colOf(matrix, col);
      for (let other = 0; other < values.length; other++) {
        const weight = values[other];
        if (weight < least) continue;
        const far = (other + 0.5) * scene.rowHeight - scene.scroll;
        if (far < -4 * height || far > 5 * height) continue;
        const share = strength(weight);
        this.pen.strokeStyle = css(colour, 0.12 + 0.8 * share);
        this.pen.lineWidth = 0.8 + 4.4 * weight;
        this.pen.beginPath();
        if (row >= 0) this.link(row, other, head, scene);
        else this.link(other, col, head, scene);
        this.pen.stroke();
      }
    }
  }

  /** @param {number} row @param {number} col @param {number} head @param {Scene} scene */
  link(row, col, head, { seen, width, scroll, column, rowHeight }) {
    const place = seen.heads.indexOf(head);
    const shift = seen.heads.length > 1 ? ((place + 0.5) / seen.heads.length - 0.5) * Math.min(10, rowHeight * 0.4) : 0;
    link(
      this.pen, column + 6, (row + 0.5) * rowHeight - scroll + shift,
      width - column - 6, (col + 0.5) * rowHeight - scroll + shift,
    );
  }

  /** @param {Scene} scene @param {{row: Bars[], col: Bars[]}} bars the whole length beside the window */
  drawOverview(scene, bars) {
    const { canvas, pen } = this.overview;
    const { height, seen, scroll, rowHeight } = scene;
    const wide = 26;
    prepare(canvas, pen, wide, height);
    const theme = this.app.theme();
    const all = bars.row.length ? bars.row : bars.col;
    const whole = Math.max(seen.rows.length, seen.cols.length);
    const lane = (wide - 6) / Math.max(1, all.length);
    all.forEach((values, place) => {
      const most = Math.max(0.02, largest(values));
      for (let y = 0; y < height; y++) {
        const from = Math.floor((y / height) * whole);
        const to = Math.max(from + 1, Math.floor(((y + 1) / height) * whole));
        let strongest = 0;
        for (let token = from; token < to && token < values.length; token++) strongest = Math.max(strongest, values[token]);
        if (strongest < 0.001) continue;
        pen.fillStyle = css(headColour(theme, this.heads[place].head), strength(strongest / most));
        pen.fillRect(3 + place * lane, y, Math.max(1, lane - 0.5), 1);
      }
    });
    pen.strokeStyle = css(theme.soft);
    pen.lineWidth = 1;
    const full = whole * rowHeight;
    pen.strokeRect(0.5, (scroll / full) * height + 0.5, wide - 1, Math.max(6, (height / full) * height) - 1);
  }

  /** @param {PointerEvent | MouseEvent} event */
  placeOf(event) {
    const seen = this.seen;
    if (!seen) return { row: -1, col: -1 };
    const box = this.scroller.getBoundingClientRect();
    const token = Math.floor((event.clientY - box.top + this.scroller.scrollTop) / this.rowHeight);
    const x = event.clientX - box.left;
    if (x < this.column + 24) return { row: token < seen.rows.length ? token : -1, col: -1 };
    if (x > this.width - this.column - 24) return { row: -1, col: token < seen.cols.length ? token : -1 };
    return { row: -1, col: -1 };
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (event.pointerType !== "touch") this.app.store.hover(this.placeOf(event));
  }

  /** @param {MouseEvent} event */
  hold(event) {
    const { row, col } = this.placeOf(event);
    const state = this.app.store.state;
    const same = row === state.row && (row >= 0 || col === state.col);
    this.app.store.set(same ? { row: -1, col: -1 } : { row, col });
  }

  /** @param {number} index scroll so that the token is in sight */
  reveal(index) {
    const y = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.scroller;
    if (y < scrollTop) this.scroller.scrollTop = y - this.rowHeight;
    else if (y + this.rowHeight > scrollTop + clientHeight) this.scroller.scrollTop = y + 2 * this.rowHeight - clientHeight;
  }
}

/**
 * @typedef {object} Scene
 * @property {Looking} seen
 * @property {number} width
 * @property {number} height
 * @property {number} scroll
 * @property {number} column  width of a column of tokens
 * @property {number} rowHeight
 * @property {number} row
 * @property {number} col
 * @property {boolean} held
 */

/** A column of tokens: only those in sight are elements. It is one stop of the keyboard; arrows move the held token. */
class Column {
  /** @param {App} app @param {"row" | "col"} side */
  constructor(app, side) {
    this.app = app;
    this.side = side;
    this.name = `tokens-${side}`;
    /** @type {(index: number) => void} */
    this.reveal = () => {};
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    this.element = el("div", {
      class: `tokens ${side}`, role: "listbox", tabindex: "0", "aria-label": side === "row" ? "Queries" : "Keys",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.count = 0;
  }

  /** @param {string[]} texts @param {Scene} scene @param {Bars[]} bars */
  draw(texts, scene, bars) {
    this.count = texts.length;
    const { scroll, height, rowHeight, column, seen } = scene;
    const chosen = this.side === "row" ? scene.row : scene.col;
    const other = this.side === "row" ? scene.col : scene.row;
    const first = Math.max(0, Math.floor(scroll / rowHeight) - 1);
    const last = Math.min(texts.length, Math.ceil((scroll + height) / rowHeight) + 1);
    this.element.style.width = `${column}px`;
    for (const [token, node] of this.shown) {
      if (token < first || token >= last) {
        node.remove();
        this.shown.delete(token);
      }
    }
    const numbered = other >= 0 && seen.heads.length <= 2;
    for (let token = first; token < last; token++) {
      let node = this.shown.get(token);
      if (!node) {
        node = el("div", { class: "token", role: "option", id: `${this.name}-${token}` }, el("bdi", { class: "text" }), el("span", { class: "amount" }));
        this.shown.set(token, node);
        this.element.append(node);
      }
      const weights = numbered ? bars.map((values) => values[token]) : [];
      const strong = weights.some((weight) => weight >= 0.005);
      say(node.children[0], shortened(texts[token], 90) || " ");
      say(node.children[1], strong ? weights.map((weight) => weightText(weight)).join(" ") : "");
      node.title = texts[token].length > 14 ? shortened(texts[token], 400) : "";
      node.style.transform = `translateY(${token * rowHeight - scroll}px)`;
      node.style.height = `${rowHeight}px`;
      node.classList.toggle("chosen", token === chosen);
      node.classList.toggle("faint", other >= 0 ? !bars.some((values) => values[token] >= 0.02) : chosen >= 0 && token !== chosen);
      node.setAttribute("aria-selected", String(token === chosen));
    }
    const held = this.app.store.state[this.side];
    if (this.shown.has(held)) this.element.setAttribute("aria-activedescendant", `${this.name}-${held}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const held = this.app.store.state[this.side];
    /** @type {Record<string, number>} */
    const places = {
      ArrowDown: held + 1, ArrowUp: held < 0 ? this.count - 1 : held - 1, Home: 0, End: this.count - 1,
      PageDown: held + 10, PageUp: held - 10, Escape: -1,
    };
    let next = places[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (event.key !== "Escape") next = Math.max(0, Math.min(this.count - 1, next));
    this.app.store.hover({ row: -1, col: -1 });
    this.app.store.set(this.side === "row" ? { row: next, col: -1 } : { row: -1, col: next });
    if (next >= 0) this.reveal(next);
  }
}
