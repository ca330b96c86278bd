/** Holders: arrays and sections by name, from the file at hand, or from the server when somebody looks at them. */

import { fromBytes, fromPlanes, sizeOf } from "./arrays.js";

/** @typedef {import("./arrays.js").Entry} Entry */
/** @typedef {import("./arrays.js").Numbers} Numbers */

/** values of an array that is fetched whole; of a larger one only the heads that are looked at */
const WHOLE = 2 ** 20;

/** Where numbers come from. */
export class Source {
  /**
   * @param {Uint8Array | null} bytes  a file's arrays; null when live
   * @param {() => void} arrived  is called when something fetched has come
   * @param {(text: string) => void} failed
   */
  constructor(bytes, arrived, failed) {
    this.bytes = bytes;
    this.arrived = arrived;
    this.failed = failed;
    this.live = bytes === null;
    this.open = 0;
  }

  /** @param {string} path @param {object} [body] @returns {Promise<Response>} */
  async ask(path, body) {
    this.open++;
    try {
      const answer = await fetch(
        path,
        body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {},
      );
      if (answer.ok) return answer;
      const told = await answer.json().catch(() => null);
      throw new Refused(told?.error ?? `the server answered ${answer.status}`, answer.status);
    } finally {
      this.open--;
    }
  }
}

/** The server's no, with its reason. */
export class Refused extends Error {
  /** @param {string} text @param {number} status */
  constructor(text, status) {
    super(text);
    this.status = status;
  }
}

/** A run, an item, a map, a history or an ablation. */
export class Holder {
  /**
   * @param {Source} source
   * @param {{id: string, arrays: Record<string, Entry>, sections: Record<string, any>}} raw
   */
  constructor(source, raw) {
    this.source = source;
    this.id = raw.id;
    this.entries = { ...raw.arrays };
    this.sections = { ...raw.sections };
    /** @type {Map<string, Numbers | null>} */
    this.numbers = new Map();
    /** @type {Set<string>} */
    this.asked = new Set();
    this.lost = false;
  }

  /**
   * A whole array; null if it is not there, or not yet.
   * @param {string} name
   * @returns {Numbers | null}
   */
  array(name) {
    const entry = this.entries[name];
    const found = this.numbers.get(name);
    if (found || !entry) return found ?? null;
    if (this.source.bytes) {
      const made = fromPlanes(this.source.bytes, entry);
      this.numbers.set(name, made);
      return made;
    }
    this.fetchArray(name, entry, "");
    return null;
  }

  /**
   * One head of an array whose first axis is the head: rows × keys. A large array comes head by head.
   * @param {string} name
   * @param {number} head
   * @returns {Numbers | null}
   */
  head(name, head) {
    const key = `${name} ${head}`;
    const found = this.numbers.get(key);
    const entry = this.entries[name];
    if (found || !entry) return found ?? null;
    if (this.source.bytes === null && sizeOf(entry.shape) > WHOLE) {
      this.fetchArray(name, { ...entry, shape: entry.shape.slice(1), axes: entry.axes.slice(1) }, `?heads=${head}`, key);
      return null;
    }
    const whole = this.array(name);
    const place = entry.heads ? entry.heads.indexOf(head) : head;
    if (!whole || place < 0 || place >= entry.shape[0]) return null;
    const shape = whole.shape.slice(1);
    const size = sizeOf(shape);
    const made = { ...whole, shape, axes: whole.axes.slice(1), values: whole.values.subarray(place * size, (place + 1) * size) };
    this.numbers.set(key, made);
    return made;
  }

  /**
   * An array of which one head and one row are looked at; when live, of a large one only these come.
   * @param {string} name
   * @param {number} head
   * @param {number} row
   * @returns {Numbers | null}
   */
  part(name, head, row) {
    const entry = this.entries[name];
    if (!entry || this.source.bytes || sizeOf(entry.shape) <= WHOLE) return this.array(name);
    /** @type {Record<string, number>} */
    const wanted = { head, row };
    const axes = entry.axes.filter((axis) => axis in wanted);
    if (!axes.length) return this.array(name);
    const key = `${name} ${axes.map((axis) => wanted[axis]).join(" ")}`;
    const found = this.numbers.get(key);
    if (found) return found;
    const shape = entry.shape.map((size, axis) => (entry.axes[axis] in wanted ? 1 : size));
    const only = { ...entry, shape, heads: axes.includes("head") ? [head] : undefined, rows: axes.includes("row") ? [row] : undefined };
    this.fetchArray(name, only, `?${axes.map((axis) => `${axis}s=${wanted[axis]}`).join("&")}`, key);
    return null;
  }

  /** Whether an array can be had at all. @param {string} name */
  has(name) {
    return this.entries[name] !== undefined;
  }

  /**
   * A section; null if it does not apply, or cannot be had from a file; undefined if it has not come yet.
   * @param {string} name
   * @returns {any}
   */
  section(name) {
    if (name in this.sections) return this.sections[name];
    if (!this.source.live || this.lost) return null;
    if (!this.asked.has(name)) {
      this.asked.add(name);
      this.source
        .ask(`/api/section/${encodeURIComponent(this.id)}/${encodeURIComponent(name)}`)
        .then((answer) => answer.json())
        .then((told) => {
          Object.assign(this.entries, told.arrays);
          this.sections[name] = told.section;
          this.source.arrived();
        })
        .catch((reason) => this.fail(name, reason));
    }
    return undefined;
  }

  /** @param {string} name @param {Entry} entry @param {string} query @param {string} [key] */
  fetchArray(name, entry, query, key = name) {
    if (this.asked.has(key) || this.lost) return;
    this.asked.add(key);
    this.source
      .ask(`/api/array/${encodeURIComponent(this.id)}/${encodeURIComponent(name)}${query}`)
      .then((answer) => answer.arrayBuffer())
      .then((buffer) => {
        this.numbers.set(key, fromBytes(buffer, entry));
        this.source.arrived();
      })
      .catch((reason) => this.fail(key, reason));
  }

  /** @param {string} key @param {Error} reason what is forgotten by the server is looked at anew; the rest is told */
  fail(key, reason) {
    if (reason instanceof Refused && reason.status === 404) {
      this.lost = true;
      this.source.arrived();
      return;
    }
    this.sections[key] = null;
    this.source.failed(reason.message);
    this.source.arrived();
  }
}
