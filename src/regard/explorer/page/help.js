/** What the keyboard does, and how to read the page. */

import { el } from "./dom.js";

const KEYS = [
  ["1 – 9", "a view"],
  ["Tab, arrows", "from control to control, and within one: tokens, chips, cells, pictures"],
  ["[ and ]", "the layer below, above"],
  ["h and H", "the next head, the one before"],
  ["a", "all heads"],
  ["p", "the next kind of attention"],
  ["w", "words or pieces"],
  ["← and →", "in Calculation and Decoding: one step back, forward"],
  ["Space", "in Decoding: play, pause"],
  ["t", "light or dark"],
  ["Escape", "let go of the token that is held"],
  ["?", "this list"],
];

/** The dialog, closed. */
export function helpDialog() {
  const dialog = el(
    "dialog", { class: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Reading this page"),
    el(
      "p", {},
      "A head is one way of looking: for each token (a query) it hands out a weight of 1 over the tokens it may see (the keys). " +
        "Layers, heads and steps are counted from 0, as in the trace. What you hold or choose in one view shows in the others, " +
        "and the address of the page tells all of it: copy it to show somebody the same.",
    ),
    el("table", {}, el("tbody", {}, KEYS.map(([keys, does]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, keys)), el("td", {}, does))))),
    el("form", { method: "dialog" }, el("button", { class: "primary" }, "Close")),
  );
  return dialog;
}
