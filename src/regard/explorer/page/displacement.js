/** Where each sub-layer moves a token: its way in a projection, and how far and in which direction each step goes. */

import { pick } from "./arrays.js";
import { FONT, fitted, onResize, picture, prepare } from "./canvas.js";
import { css } from "./colour.js";
import { el, fill } from "./dom.js";
import { percentText } from "./numbers.js";

/** @typedef {import("./selection.js").App} App */

const HEIGHT = 320;

/** The picture and its table. */
export class Displacement {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.picture = picture("displacement");
    this.says = el("p", { class: "note" });
    this.table = el("tbody");
    this.frame = el("div", { class: "displacement-frame" }, this.picture.canvas);
    this.element = el(
      "section", { class: "displacement-view", "aria-labelledby": "displacement-title" },
      el("h2", { id: "displacement-title" }, "Where each sub-layer moves it"), this.says,
      el(
        "div", { class: "displacement-body" }, this.frame,
        el(
          "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lengths of the moves" },
          el(
            "table", {},
            el("thead", {}, el("tr", {}, ["after", "moved by", "cosine to before"].map((text) => el("th", { scope: "col" }, text)))), this.table,
          ),
        ),
      ),
    );
    onResize(this.frame, () => this.draw());
    this.name = "";
    this.row = -1;
  }

  /** @param {string} name @param {number} row @param {string} [group] */
  show(name, row, group = "") {
    this.name = name;
    this.row = row;
    this.group = group;
    const section = name ? this.app.item.section("displacement") : null;
    this.told = section?.[name] ?? null;
    this.element.hidden = !this.told;
    if (!this.told) return;
    const { item } = this.app;
    const lengths = item.array(this.told.lengths);
    const cosines = item.array(this.told.cosines);
    this.points = item.array(this.told.points);
    const [x, y] = this.told.explained;
    fill(
      this.says,
      `The token's state after each sub-layer, on the two directions in which the states of this text differ most (${percentText(x)} and ${percentText(y)} of the variance). The other tokens' ways are faint.`,
    );
    if (lengths && cosines) {
      fill(
        this.table,
        this.told.places.map((/** @type {any} */ place, /** @type {number} */ number) => {
          const length = pick(lengths, { place: number, row })?.[0];
          const cosine = pick(cosines, { place: number, row })?.[0];
          return el(
            "tr", { class: place.name === group ? "now" : "" }, el("th", { scope: "row" }, title(place)),
            el("td", { class: "number" }, number && length !== undefined ? length.toFixed(2) : ""),
            el("td", { class: "number" }, number && cosine !== undefined ? cosine.toFixed(3) : ""),
          );
        }),
      );
    }
    this.draw();
  }

  draw() {
    const width = this.frame.clientWidth;
    if (!this.told || !this.points || width < 20) return;
    const { canvas, pen } = this.picture;
    prepare(canvas, pen, width, HEIGHT);
    const { values, shape } = this.points;
    const [places, rows] = shape;
    const of = (/** @type {number} */ place, /** @type {number} */ row) => {
      const start = (place * rows + row) * 2;
      return [values[start], values[start + 1]];
    };
    const which = this.points.rows ? this.points.rows.indexOf(this.row) : this.row;
    const own = Array.from({ length: places }, (_, place) => of(place, Math.max(0, which)));
    const [left, right] = [Math.min(...own.map((one) => one[0])), Math.max(...own.map((one) => one[0]))];
    const [low, high] = [Math.min(...own.map((one) => one[1])), Math.max(...own.map((one) => one[1]))];
    const scale = Math.min((width - 260) / (right - left || 1), (HEIGHT - 90) / (high - low || 1));
    const at = (/** @type {number[]} */ point) => [
      width / 2 + (point[0] - (left + right) / 2) * scale, HEIGHT / 2 - (point[1] - (low + high) / 2) * scale,
    ];
    const theme = this.app.theme();
    for (let row = 0; row < Math.min(rows, 80); row++) {
      if (row !== which) this.way(Array.from({ length: places }, (_, place) => at(of(place, row))), css(theme.soft, 0.22), 1);
    }
    if (which < 0 || which >= rows) return;
    const way = Array.from({ length: places }, (_, place) => at(of(place, which)));
    this.way(way, css(theme.heads[0]), 2.2);
    pen.font = `12px ${FONT}`;
    pen.textBaseline = "middle";
    way.forEach(([x, y], place) => {
      const now = this.told.places[place].name === this.group;
      pen.fillStyle = css(now ? theme.heads[1] : theme.heads[0]);
      pen.beginPath();
      pen.arc(x, y, now ? 6 : 3.5, 0, 7);
      pen.fill();
      if (place && place < places - 1 && !now) return;
      pen.fillStyle = css(theme.ink);
      pen.textAlign = x > width - 120 ? "right" : "left";
      pen.fillText(fitted(pen, title(this.told.places[place]), 170), x + (x > width - 120 ? -10 : 10), y);
    });
  }

  /** @param {number[][]} points @param {string} colour @param {number} wide */
  way(points, colour, wide) {
    const { pen } = this.picture;
    pen.strokeStyle = colour;
    pen.lineWidth = wide;
    pen.beginPath();
    points.forEach(([x, y], place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  }
}

/** @param {any} place */
function title(place) {
  if (place.layer === null || place.layer === undefined) return place.name.split(".").at(-1).replaceAll("_", " ");
  const kind = place.name.includes("feed_forward") ? "feed-forward" : place.name.includes("cross") ? "cross-attention" : "self-attention";
  return `layer ${place.layer} ${kind}`;
}
