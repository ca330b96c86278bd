/** A small note beside the pointer: one for the page. */

import { el } from "./dom.js";

/** @type {HTMLElement | null} */
let tip = null;

/**
 * Show it; lines of text, the first of them bold.
 * @param {{clientX: number, clientY: number}} event
 * @param {string[]} lines
 */
export function showTip(event, lines) {
  if (!tip) {
    tip = el("div", { class: "tip", role: "status" }); // so that it is heard too, where the keyboard walks
    document.body.append(tip);
  }
  tip.replaceChildren(...lines.map((line, place) => el(place ? "span" : "b", { dir: "auto" }, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(window.innerWidth - width - 8, Math.max(8, event.clientX + 14));
  const above = event.clientY - height - 12;
  tip.style.transform = `translate(${left}px, ${above > 8 ? above : event.clientY + 18}px)`;
}

/** Take it away. */
export function hideTip() {
  if (tip) tip.hidden = true;
}
