/** The tree of a beam search: a column for each step, what was kept, what was dropped and why. */

import { el, fill, shortened } from "./dom.js";
import { readable } from "./data.js";
import { valueText } from "./numbers.js";
import { hideTip, showTip } from "./tip.js";

/**
 * @typedef {object} Node
 * @property {number} id
 * @property {number | null} parent
 * @property {number} step
 * @property {string} piece
 * @property {number} logp
 * @property {number} total
 * @property {number} score
 * @property {"kept" | "ended" | "dropped" | "cut"} state
 * @property {string} why
 */

const SPACE = "http://www.w3.org/2000/svg";
const NODE_WIDE = 118;
const NODE_HIGH = 30;

/** The tree as a drawing, and the current step's nodes as a table. */
export class BeamTree {
  /** @param {(step: number) => void} chosen */
  constructor(chosen) {
    this.chosen = chosen;
    this.svg = document.createElementNS(SPACE, "svg");
    this.svg.setAttribute("class", "tree");
    this.svg.setAttribute("role", "img");
    this.scroll = el("div", { class: "tree-scroll", tabindex: "0", role: "region", "aria-label": "Tree of the beam search" }, this.svg);
    this.rows = el("tbody");
    this.caption = el("caption");
    this.element = el(
      "div", {}, this.scroll,
      el(
        "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Hypotheses of this step" },
        el(
          "table", { class: "tree-table" }, this.caption,
          el("thead", {}, el("tr", {}, ["piece", "log-probability", "sum so far", "what became of it"].map((text) => el("th", { scope: "col" }, text)))),
          this.rows,
        ),
      ),
    );
    /** @type {any} */
    this.tree = null;
    /** @type {Map<number, SVGGElement>} */
    this.drawn = new Map();
  }

  /** @param {any} tree @param {number} step  nodes of the next depth are being chosen */
  show(tree, step) {
    if (tree !== this.tree) {
      this.tree = tree;
      this.build();
    }
    /** @type {Node[]} */
    const nodes = tree.nodes;
    for (const node of nodes) {
      const group = this.drawn.get(node.id);
      group?.classList.toggle("future", node.step > step + 1);
      group?.classList.toggle("now", node.step === step + 1);
    }
    const now = nodes.filter((node) => node.step === step + 1).sort((a, b) => b.total - a.total);
    fill(this.caption, `Step ${step}: what was weighed`);
    fill(
      this.rows,
      now.map((node) =>
        el(
          "tr", { class: node.state }, el("th", { scope: "row" }, el("bdi", {}, shortened(readable(node.piece), 30))),
          el("td", { class: "number" }, valueText(node.logp, 3)), el("td", { class: "number" }, valueText(node.total, 3)),
          el("td", {}, el("b", {}, node.state), node.why && node.why !== node.state ? ` — ${node.why}` : ""),
        ),
      ),
    );
    const left = (step + 1) * NODE_WIDE;
    if (left < this.scroll.scrollLeft || left + NODE_WIDE > this.scroll.scrollLeft + this.scroll.clientWidth) {
      this.scroll.scrollLeft = left - this.scroll.clientWidth / 2;
    }
  }

  build() {
    /** @type {Node[]} */
    const nodes = this.tree.nodes;
    /** @type {Map<number, Node[]>} */
    const columns = new Map();
    for (const node of nodes) columns.set(node.step, [...(columns.get(node.step) ?? []), node]);
    /** @type {Map<number, [number, number]>} */
    const places = new Map();
    const best = new Set(this.tree.best);
    const parentPlace = (/** @type {Node} */ node) => (node.parent === null ? 0 : (places.get(node.parent)?.[1] ?? 0));
    let deepest = 0;
    for (const step of [...columns.keys()].sort((a, b) => a - b)) {
      const column = /** @type {Node[]} */ (columns.get(step));
      column.sort((a, b) => Number(best.has(b.id)) - Number(best.has(a.id)) || Number(a.state === "dropped") - Number(b.state === "dropped") || parentPlace(a) - parentPlace(b) || b.total - a.total);
      column.forEach((node, row) => places.set(node.id, [step, row]));
      deepest = Math.max(deepest, column.length);
    }
    const width = columns.size * NODE_WIDE + 20;
    const height = deepest * NODE_HIGH + 16;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", String(width));
    this.svg.setAttribute("height", String(height));
    this.svg.setAttribute("aria-label", `Beam search: ${nodes.length} hypotheses in ${columns.size} steps; the table below tells those of this step`);
    const x = (/** @type {number} */ id) => (places.get(id)?.[0] ?? 0) * NODE_WIDE + 10;
    const y = (/** @type {number} */ id) => (places.get(id)?.[1] ?? 0) * NODE_HIGH + 20;
    this.drawn.clear();
    this.svg.replaceChildren(
      ...nodes.map((node) => {
        const group = svg("g", { class: `node ${node.state} ${best.has(node.id) ? "best" : ""}` });
        if (node.parent !== null) {
          const [x0, y0, x1, y1] = [x(node.parent) + NODE_WIDE - 34, y(node.parent), x(node.id), y(node.id)];
          group.append(svg("path", { class: "edge", d: `M${x0} ${y0} C ${x0 + 18} ${y0}, ${x1 - 18} ${y1}, ${x1} ${y1}` }));
        }
        group.append(svg("rect", { x: x(node.id), y: y(node.id) - 12, width: NODE_WIDE - 34, height: 24, rx: 6 }));
        const text = svg("text", { x: x(node.id) + (NODE_WIDE - 34) / 2, y: y(node.id) + 4.5 });
        text.textContent = shortened(readable(node.piece), 10);
        group.append(text);
        group.addEventListener("pointermove", (event) =>
          showTip(event, [readable(node.piece), `log-probability ${valueText(node.logp, 3)}, sum ${valueText(node.total, 3)}`, `${node.state}: ${node.why}`]),
        );
        group.addEventListener("pointerleave", hideTip);
        group.addEventListener("click", () => this.chosen(Math.max(0, node.step - 1)));
        this.drawn.set(node.id, group);
        return group;
      }),
    );
  }
}

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number>} stated
 */
function svg(name, stated) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(stated)) made.setAttribute(key, String(value));
  return made;
}
