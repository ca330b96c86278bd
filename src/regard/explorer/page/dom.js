/** Making elements. Whatever is text goes in as text: nothing here, or elsewhere on the page, reads markup from data. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element. Names with "on" are listeners, "class" and the rest attributes; true stands for an empty attribute, and
 * false, null and undefined for none.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, any>} [stated]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function el(name, stated = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(stated)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  fill(made, ...children);
  return made;
}

/**
 * Put these children, and only these, into an element.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function fill(parent, ...children) {
  const kept = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  parent.replaceChildren(...kept.map((child) => (child instanceof Node ? child : String(child))));
}

/**
 * Text, only if it changed: most frames change little.
 * @param {Element} node
 * @param {string} text
 */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * A piece or word of some text, isolated from what stands around it, whatever direction it is written in.
 * @param {string} text
 * @param {string} [kind]
 */
export function word(text, kind = "") {
  return el("bdi", { class: `word ${kind}`.trim(), title: text.length > 40 ? shortened(text, 300) : null }, shortened(text, 80));
}

/**
 * The text, or its beginning; letters of two code units stay whole.
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  if (text.length <= most) return text;
  const cut = text.slice(0, most - 1);
  const last = cut.charCodeAt(cut.length - 1);
  return `${last >= 0xd800 && last < 0xdc00 ? cut.slice(0, -1) : cut}…`;
}

/**
 * Arrow keys move along a group of elements of which one is in the tab order ("roving tabindex").
 * @param {HTMLElement} group
 * @param {() => HTMLElement[]} members
 * @param {{columns?: () => number, chosen?: (index: number) => void}} [options] columns of a grid, and what a move does
 */
export function roving(group, members, options = {}) {
  group.addEventListener("keydown", (event) => {
    const all = members();
    const here = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (here < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const wide = options.columns?.() ?? 1;
    const grid = options.columns !== undefined;
    /** @type {Record<string, number>} */
    const places = {
      ArrowRight: here + 1, ArrowLeft: here - 1, ArrowDown: here + (grid ? wide : 1), ArrowUp: here - (grid ? wide : 1),
      Home: 0, End: all.length - 1,
    };
    const next = places[event.key];
    if (next === undefined || !all[next]) return;
    event.preventDefault();
    event.stopPropagation();
    focusOne(all, next);
    options.chosen?.(next);
  });
}

/**
 * Focus one of a group, and leave only it in the tab order.
 * @param {HTMLElement[]} all
 * @param {number} index
 */
export function focusOne(all, index) {
  all.forEach((member, place) => (member.tabIndex = place === index ? 0 : -1));
  all[index].focus();
}
