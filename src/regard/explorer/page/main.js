/** The page: its heading, its views, and what the keyboard does. It mounts in the element with the id "regard". */

import { CalculationView } from "./calculation.js";
import { ClassesView } from "./classes.js";
import { themeOf } from "./colour.js";
import { Controls } from "./controls.js";
import { readPayload } from "./data.js";
import { DecodingView } from "./decoding.js";
import { el, fill, focusOne, roving, say } from "./dom.js";
import { GalleryView } from "./gallery.js";
import { Heading } from "./heading.js";
import { HeadsView } from "./heads.js";
import { helpDialog } from "./help.js";
import { MapView } from "./map.js";
import { MatrixView } from "./matrix.js";
import { PositionsView } from "./positions.js";
import { Reading } from "./reading.js";
import { looking, pointed } from "./selection.js";
import { Store, startState } from "./state.js";
import { WhatIfView } from "./whatif.js";

/** @typedef {import("./selection.js").App} App */
/** @typedef {import("./selection.js").View} View */
/** @typedef {import("./data.js").Item} Item */

const VIEWS = {
  heads: { title: "Heads", make: (/** @type {App} */ app) => new HeadsView(app) },
  all: { title: "All heads", make: (/** @type {App} */ app) => new GalleryView(app) },
  matrix: { title: "Matrix", make: (/** @type {App} */ app) => new MatrixView(app) },
  calculation: { title: "Calculation", make: (/** @type {App} */ app) => new CalculationView(app) },
  decoding: { title: "Decoding", make: (/** @type {App} */ app) => new DecodingView(app) },
  classes: { title: "Classes", make: (/** @type {App} */ app) => new ClassesView(app) },
  positions: { title: "Positions", make: (/** @type {App} */ app) => new PositionsView(app) },
  map: { title: "Embeddings", make: (/** @type {App} */ app) => new MapView(app) },
  whatif: { title: "What if", make: (/** @type {App} */ app) => new WhatIfView(app) },
};
/** views that have the panel beside them */
const BESIDE = ["heads", "matrix"];

/** The page. */
class Page {
  /** @param {HTMLElement} root @param {import("./data.js").Data} data @param {Store} store */
  constructor(root, data, store) {
    this.root = root;
    this.data = data;
    this.store = store;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.live = el("p", { class: "unseen", role: "status", "aria-live": "polite" });
    /** @type {App} */
    this.app = {
      store, data, item: data.items[0], theme: () => themeOf(this.dark()), announce: (text) => this.announce(text),
      show: (item) => this.take(item),
    };
    this.heading = new Heading(this.app, () => this.help());
    this.controls = new Controls(this.app);
    this.reading = new Reading(this.app);
    /** @type {Partial<Record<keyof typeof VIEWS, View>>} */
    this.views = {};
    /** @type {View | undefined} */
    this.current = undefined;
    this.beside = false;
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    this.place = el("div", { class: "place", role: "tabpanel", id: "view" });
    this.main = el("main", {}, this.controls.element, el("div", { class: "stage" }, this.place, this.reading.element));
    this.dialog = helpDialog();
    this.nav = el("nav", { "aria-label": "Views" }, this.tabs);
    fill(root, this.heading.element, this.nav, this.main, this.live, this.dialog);
    roving(this.tabs, () => this.tabButtons(), { chosen: (index) => this.open(this.tabButtons()[index].dataset.view ?? "") });
    store.onState.add(() => this.draw());
    store.onHover.add(() => this.drawHover());
    this.system.addEventListener("change", () => this.draw());
    document.addEventListener("keydown", (event) => this.key(event));
    if (data.embedded) this.tellHeight();
  }

  dark() {
    const { theme } = this.store.state;
    return theme === "dark" || (theme !== "light" && this.system.matches);
  }

  tabButtons() {
    return /** @type {HTMLElement[]} */ ([...this.tabs.children]);
  }

  /** Which views apply to what is looked at. */
  known() {
    const { item } = this.app;
    const family = this.data.runs[item.run].family;
    const all = /** @type {(keyof typeof VIEWS)[]} */ (Object.keys(VIEWS));
    return all.filter((name) => (name === "decoding" ? family !== "encoder-only" : name === "classes" ? family === "encoder-only" : true));
  }

  /** @param {Item} item look at another text, which came from the server */
  take(item) {
    let place = this.data.items.findIndex((one) => one.id === item.id);
    if (place < 0) place = this.data.items.push(item) - 1;
    else this.data.items[place] = item;
    this.store.set({ item: place, row: -1, col: -1, t: 0, group: "", step: 0, ...item.origin });
    this.store.hover({ row: -1, col: -1, head: "" });
  }

  draw() {
    const { store, data, app } = this;
    document.documentElement.dataset.theme = this.dark() ? "dark" : "light";
    app.item = data.items[store.state.item] ?? data.items[0];
    this.nav.hidden = this.main.hidden = !app.item;
    if (!app.item) {
      this.root.dataset.ready = "true";
      return;
    }
    const known = this.known();
    const name = known.find((one) => one === store.state.view) ?? "heads";
    this.heading.show();
    if (this.tabs.dataset.known !== known.join(" ")) {
      this.tabs.dataset.known = known.join(" ");
      fill(
        this.tabs,
        known.map((one, place) =>
          el(
            "button",
            {
              type: "button", role: "tab", id: `tab-${one}`, "data-view": one, "aria-controls": "view", title: `key ${place + 1}`,
              onclick: () => this.open(one),
            },
            VIEWS[one].title,
          ),
        ),
      );
    }
    for (const tab of this.tabButtons()) {
      const on = tab.dataset.view === name;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    }
    this.controls.show(name);
    const view = (this.views[name] ??= VIEWS[name].make(app));
    if (this.current !== view) {
      this.current?.hide?.();
      this.current = view;
      fill(this.place, view.element);
      this.place.setAttribute("aria-labelledby", `tab-${name}`);
      this.tabs.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.root.dataset.view = name;
    this.beside = BESIDE.includes(name);
    this.reading.element.hidden = !this.beside;
    view.show();
    this.read();
    this.root.dataset.ready = String(this.data.source.open === 0);
  }

  drawHover() {
    this.current?.hover();
    this.read();
  }

  read() {
    if (!this.beside) return;
    const { item, store } = this.app;
    const seen = looking(item, store.state);
    this.reading.update(seen, pointed(this.app, seen), this.root.dataset.view === "heads" ? seen.heads : [seen.head]);
  }

  /** @param {string} view */
  open(view) {
    this.store.hover({ row: -1, col: -1, head: "" });
    this.store.set({ view });
  }

  /** @param {string} text what was asked for cannot be looked at: the page says so where another is asked for */
  refuse(text) {
    this.draw();
    this.heading.tell(text);
  }

  /** @param {string} text */
  announce(text) {
    say(this.live, text);
  }

  help() {
    if (this.dialog.open) this.dialog.close();
    else this.dialog.showModal();
  }

  /** @param {KeyboardEvent} event shortcuts, where nobody types */
  key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (target.closest?.("input:not([type=range]), textarea, select")) return;
    if ((this.dialog.open && event.key !== "?") || !this.app.item) return;
    const { store, app } = this;
    const seen = looking(app.item, store.state);
    const turn = (/** @type {number} */ value, /** @type {number} */ count) => (value + count) % count;
    /** @type {Record<string, () => void>} */
    const keys = {
      "?": () => this.help(),
      "[": () => store.set({ layer: turn(seen.layer - 1, seen.part.layers), group: "", step: 0 }),
      "]": () => store.set({ layer: turn(seen.layer + 1, seen.part.layers), group: "", step: 0 }),
      h: () => this.chooseHead(turn(seen.head + 1, seen.part.heads)),
      H: () => this.chooseHead(turn(seen.head - 1, seen.part.heads)),
      a: () => store.set({ heads: [] }),
      p: () => this.nextPart(seen),
      w: () => store.set({ units: store.state.units === "words" ? "pieces" : "words", row: -1, col: -1 }),
      t: () => store.set({ theme: this.dark() ? "light" : "dark" }),
      Escape: () => store.set({ row: -1, col: -1 }),
    };
    const view = /^[1-9]$/.test(event.key) ? this.known()[Number(event.key) - 1] : undefined;
    if (view) {
      this.open(view);
      focusOne(this.tabButtons(), this.known().indexOf(view));
    } else if (keys[event.key]) keys[event.key]();
    else return;
    event.preventDefault();
  }

  /** @param {number} head */
  chooseHead(head) {
    this.store.set({ head, heads: [head] });
  }

  /** @param {import("./selection.js").Looking} seen */
  nextPart(seen) {
    const { parts } = this.app.item;
    const next = parts[(parts.indexOf(seen.part) + 1) % parts.length];
    this.store.set({ part: next.part, row: -1, col: -1, group: "", step: 0 });
  }

  /** In a notebook the page is as high as it wants, and says so. */
  tellHeight() {
    const tell = () => parent.postMessage({ regard: this.data.frame, height: Math.ceil(this.root.getBoundingClientRect().height) }, "*");
    new ResizeObserver(tell).observe(this.root);
  }
}

/** Read the payload and show it; what goes wrong is told in words. */
async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById("regard"));
  /** @type {Page | undefined} */
  let page;
  /** @type {Store | undefined} */
  let store;
  try {
    const data = await readPayload(document, () => store?.tell("state"), (text) => page?.announce(text));
    store = new Store(startState(data.start));
    const { text, target, tag } = store.state;
    const asked = data.live ? (text ? [{ text, target: target || null, tag: tag || null }] : data.asks) : [];
    page = new Page(root, data, store);
    if (!asked.length) {
      store.open(data.items[0]?.section("measures")?.opening);
      page.draw();
    }
    for (const one of asked) {
      data.items.push(await data.look(one));
      store.open(data.items[0].section("measures")?.opening);
      page.draw();
    }
    const { from, prefix, beam } = store.state;
    if (data.live && from >= 0 && from < data.items.length) {
      store.set({ item: data.items.push(await data.decode(data.items[from], prefix, beam)) - 1 });
    }
  } catch (reason) {
    const told = reason instanceof Error ? reason.message : String(reason);
    if (page) page.refuse(told);
    else fill(root, el("p", { class: "failure", role: "alert" }, `This cannot be shown: ${told}`));
  }
}

start();
