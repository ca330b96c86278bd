/** The page's whole state, and its place in the URL: whoever opens the address sees the same. */

/**
 * @typedef {object} State
 * @property {string} view  heads, all, matrix, calculation, decoding, positions, map, whatif or classes
 * @property {number} item  which text
 * @property {number} other  the text beside it; -1 is none
 * @property {string} part  encoder.self, decoder.self or decoder.cross; empty is the first there is
 * @property {number} layer
 * @property {number[]} heads  the heads that are drawn; none means all
 * @property {number} head  the one head that matrix and calculation show
 * @property {number} row  the query that is held; -1 is none
 * @property {number} col  the key that is held
 * @property {string} units  pieces or words
 * @property {number} threshold  weights below are not drawn
 * @property {string} of  weights or scores
 * @property {string} sort  a measure of heads, or place
 * @property {string} group  of the calculation
 * @property {number} step  of the group
 * @property {number} t  of the decoding
 * @property {number} depth  of the map: 0 is static, then in context, after each layer
 * @property {string} find  a word that is followed on the map
 * @property {string[]} off  heads switched off, as part.layer.head
 * @property {number} at  of the checkpoints; -1 is the last
 * @property {string} theme  auto, light or dark
 * @property {string} text  live: what is read; empty is what the command was given
 * @property {string} target  live: what is written; empty is the model's own
 * @property {string} tag  live: the direction
 * @property {number} from  live: the text that was decoded on, or with another beam; -1 is none
 * @property {number[]} prefix  live: the pieces behind which it was
 * @property {number} beam  live: how wide; 0 is as the recipe says
 * @property {string} beside  live: run and weights that stand beside, as 1.best
 * @property {string} also  live: another text on the map
 */

/** @type {State} */
const START = {
  view: "heads", item: 0, other: -1, part: "", layer: 0, heads: [], head: 0, row: -1, col: -1, units: "pieces",
  threshold: 0, of: "weights", sort: "place", group: "", step: 0, t: 0, depth: 0, find: "", off: [], at: -1,
  theme: "auto", text: "", target: "", tag: "", from: -1, prefix: [], beam: 0, beside: "", also: "",
};

/** who says one of these has said where to begin */
const PLACES = /** @type {const} */ (["part", "layer", "heads", "head", "row", "col"]);

/**
 * The state that a URL's hash tells; what it does not tell, or tells wrongly, is as `defaults` say.
 * @param {string} hash
 * @param {Partial<State>} [defaults]
 * @returns {State}
 */
export function readState(hash, defaults = {}) {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {any} */
  const state = { ...START, ...defaults };
  for (const [name, usual] of Object.entries(START)) {
    const text = told.get(name);
    if (text === null) continue;
    if (typeof usual === "number") {
      if (text !== "" && Number.isFinite(Number(text))) state[name] = Number(text);
    } else if (name === "heads" || name === "prefix") state[name] = text.split(",").filter(Boolean).map(Number).filter(Number.isInteger);
    else if (Array.isArray(usual)) state[name] = text.split(",").filter(Boolean);
    else state[name] = text;
  }
  return state;
}

/**
 * The hash that tells a state: only what differs from `defaults`.
 * @param {State} state
 * @param {Partial<State>} [defaults]
 */
export function writeState(state, defaults = {}) {
  const told = new URLSearchParams();
  /** @type {any} */
  const usual = { ...START, ...defaults };
  for (const [name, value] of Object.entries(state)) {
    const text = written(value);
    if (text !== written(usual[name])) told.set(name, text);
  }
  const query = told.toString().replaceAll("%2C", ",");
  return query ? `#${query}` : "";
}

/** @param {any} value */
function written(value) {
  return Array.isArray(value) ? value.join(",") : String(value);
}

/**
 * A state's beginnings as the payload tells them, text by text.
 * @param {Record<string, string>} told
 * @returns {State}
 */
export function startState(told) {
  return readState(new URLSearchParams(told).toString());
}

/**
 * @typedef {object} Hover  what the pointer or the keyboard is on, in any view: a query, a key, a head
 * @property {number} row
 * @property {number} col
 * @property {string} head  as part.layer.head; empty is none
 */

/** The state's keeper: changes go in, listeners hear of them once a frame. */
export class Store {
  /** @param {Partial<State>} defaults */
  constructor(defaults) {
    this.defaults = defaults;
    this.state = readState(location.hash, defaults);
    /** @type {Hover} */
    this.hovered = { row: -1, col: -1, head: "" };
    /** @type {Set<() => void>} */
    this.onState = new Set();
    /** @type {Set<() => void>} */
    this.onHover = new Set();
    this.due = { state: false, hover: false };
    this.opened = false;
    window.addEventListener("hashchange", () => {
      this.state = readState(location.hash, this.defaults);
      this.tell("state");
    });
  }

  /**
   * Begin there, if neither the address nor the payload says where.
   * @param {{part: string, layer: number, head: number, row: number} | null | undefined} place
   */
  open(place) {
    const said = PLACES.some((name) => written(this.state[name]) !== written(START[name]));
    if (!place || said || this.opened) return;
    this.defaults = { ...this.defaults, ...place, heads: [place.head] };
    this.state = readState(location.hash, this.defaults);
    this.opened = true;
  }

  /**
   * Change some of the state. A step back in the browser's history leads over changes of the view only.
   * @param {Partial<State>} changes
   */
  set(changes) {
    const before = this.state;
    this.state = { ...before, ...changes };
    const hash = writeState(this.state, this.defaults);
    if (hash !== location.hash) {
      const address = hash || location.pathname + location.search;
      try {
        if (changes.view !== undefined && changes.view !== before.view) history.pushState(null, "", address);
        else history.replaceState(null, "", address);
      } catch {
        // a page within a page (a notebook's cell) may have no history of its own: the state holds all the same
      }
    }
    this.tell("state");
  }

  /** @param {Partial<Hover>} changes */
  hover(changes) {
    const before = this.hovered;
    const now = { ...before, ...changes };
    if (now.row === before.row && now.col === before.col && now.head === before.head) return;
    this.hovered = now;
    this.tell("hover");
  }

  /** @param {"state" | "hover"} kind */
  tell(kind) {
    if (this.due[kind]) return;
    this.due[kind] = true;
    requestAnimationFrame(() => {
      this.due[kind] = false;
      for (const listener of kind === "state" ? this.onState : this.onHover) listener();
    });
  }
}
