/** The payload: the runs, the texts that were looked at, and the requests of a live page. */

import { unpacked } from "./arrays.js";
import { Holder, Source } from "./holder.js";

/** @typedef {import("./holder.js").Refused} Refusal */

/**
 * @typedef {object} Side  one text of an item
 * @property {string} kind
 * @property {string[]} pieces
 * @property {string[]} texts
 * @property {number[]} ids
 * @property {number[]} words
 * @property {string[]} word_texts
 * @property {boolean[]} special
 * @property {string[]} [next]
 * @property {string[]} shown  the pieces as people read them
 */

/**
 * @typedef {object} Part  a kind of attention that the item's model has
 * @property {string} part
 * @property {number} layers
 * @property {number} heads
 * @property {string} rows
 * @property {string} keys
 * @property {boolean} causal
 */

/** @typedef {[string, number, number]} HeadPlace */

/** One text in one model. */
export class Item extends Holder {
  /** @param {Source} source @param {any} raw */
  constructor(source, raw) {
    super(source, raw);
    /** @type {number} */
    this.run = raw.run;
    /** @type {string} */
    this.text = raw.text;
    /** @type {string | null} */
    this.target = raw.target;
    /** @type {string | null} */
    this.tag = raw.tag;
    /** @type {boolean} */
    this.written = raw.written;
    /** @type {string} */
    this.weights = raw.weights;
    /** @type {HeadPlace[]} */
    this.headsOff = raw.heads_off ?? [];
    /** @type {Part[]} */
    this.parts = raw.parts;
    /** How it was decoded, if not as its text asks: what of it stands in the address. */
    this.origin = { from: -1, prefix: /** @type {number[]} */ ([]), beam: 0 };
    /** @type {Record<string, Side>} */
    this.sides = {};
    for (const [name, side] of Object.entries(raw.sides ?? {})) {
      if (side) this.sides[name] = { ...side, shown: side.pieces.map((/** @type {string} */ piece) => readable(piece)) };
    }
  }
}

/**
 * A tokeniser's piece as people read it: its space is told by where the next begins. What is only space stays visible.
 * @param {string} piece
 */
export function readable(piece) {
  const text = piece.replaceAll("▁", " ").replaceAll("Ġ", " ");
  const shown = text.startsWith(" ") ? text.slice(1) : text;
  return shown === "" ? "␣" : shown.replaceAll("\n", "⏎");
}

/** Everything there is to look at. */
export class Data {
  /** @param {any} payload @param {Source} source */
  constructor(payload, source) {
    this.source = source;
    /** @type {boolean} */
    this.live = payload.live;
    /** @type {boolean} */
    this.embedded = payload.embedded;
    /** @type {string | null} */
    this.frame = payload.frame;
    /** @type {string} */
    this.title = payload.title;
    this.version = payload.regard;
    /** @type {any[]} */
    this.runs = payload.runs;
    this.runHolders = this.runs.map((run) => new Holder(source, run));
    /** @type {Item[]} */
    this.items = payload.items.map((/** @type {any} */ raw) => new Item(source, raw));
    /** @type {Holder | null} */
    this.map = payload.map ? new Holder(source, payload.map) : null;
    /** @type {{text: string, target: string | null, tag: string | null}[]} */
    this.asks = payload.asks ?? [];
    /** @type {Record<string, string>} */
    this.start = payload.state ?? {};
  }

  /** @param {string} path @param {object} body */
  async post(path, body) {
    return (await this.source.ask(path, body)).json();
  }

  /** @param {any} raw */
  itemOf(raw) {
    return new Item(this.source, raw);
  }

  /**
   * Search again for what a text becomes: behind these pieces, so wide.
   * @param {Item} item
   * @param {number[]} prefix
   * @param {number} beam  0 is as the recipe says
   */
  async decode(item, prefix, beam) {
    const made = this.itemOf(await this.post("/api/decode", { item: item.id, prefix, beam: beam || null }));
    made.origin = { from: item.origin.from < 0 ? this.items.indexOf(item) : item.origin.from, prefix, beam };
    return made;
  }

  /** @param {any} raw */
  holderOf(raw) {
    return new Holder(this.source, raw);
  }

  /**
   * Look at a text, live.
   * @param {{text: string, target?: string | null, tag?: string | null, run?: number, weights?: string, heads_off?: HeadPlace[]}} asked
   * @returns {Promise<Item>}
   */
  async look(asked) {
    return this.itemOf(await this.post("/api/look", { target: null, tag: null, run: 0, weights: "best", heads_off: [], ...asked }));
  }
}

/**
 * Read the payload of the page.
 * @param {Document} page
 * @param {() => void} arrived
 * @param {(text: string) => void} failed
 */
export async function readPayload(page, arrived, failed) {
  const payload = JSON.parse(page.getElementById("regard-payload")?.textContent ?? "null");
  if (!payload) throw new Error("this page came without its payload");
  if (payload.format > 1) throw new Error(`the payload has format ${payload.format}, this page reads 1: use a newer page`);
  const packed = page.getElementById("regard-arrays")?.textContent;
  const bytes = payload.live ? null : packed ? await unpacked(packed) : new Uint8Array(0);
  return new Data(payload, new Source(bytes, arrived, failed));
}
