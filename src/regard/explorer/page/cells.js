/** Cells of a picture that arrow keys walk: what the pointer tells of one, the keyboard tells too. */

/**
 * @typedef {object} Cells
 * @property {() => number} rows
 * @property {(row: number) => number} cols
 * @property {(row: number, col: number) => void} tell  says what is there
 * @property {() => void} leave
 */

/**
 * Make an element a stop of the keyboard, and walk its cells with the arrows.
 * @param {HTMLElement} element
 * @param {Cells} cells
 */
export function walkCells(element, { rows, cols, tell, leave }) {
  let row = -1;
  let col = -1;
  element.tabIndex = 0;
  element.setAttribute("role", "application");
  element.addEventListener("keydown", (event) => {
    /** @type {Record<string, [number, number]>} */
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
    const move = moves[event.key];
    if (!move || !rows() || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const first = row < 0;
    row = first ? 0 : Math.max(0, Math.min(rows() - 1, row + move[0]));
    col = first ? 0 : Math.max(0, Math.min(cols(row) - 1, col + move[1]));
    tell(row, col);
  });
  element.addEventListener("blur", () => {
    row = col = -1;
    leave();
  });
}
