/** The page's heading: the run, the text that is looked at, and where another is asked for. */

import { el, fill, say, shortened } from "./dom.js";
import { counted } from "./numbers.js";

/** @typedef {import("./selection.js").App} App */

const THEMES = { auto: "as the system", light: "light", dark: "dark" };

/** The heading. */
export class Heading {
  /** @param {App} app @param {() => void} help */
  constructor(app, help) {
    this.app = app;
    /** @type {import("./data.js").Item | null} */
    this.shown = null;
    this.about = el("p", { class: "about" });
    this.theme = el("button", {
      type: "button", class: "icon",
      onclick: () => {
        const order = /** @type {const} */ (["auto", "light", "dark"]);
        const here = order.indexOf(/** @type {any} */ (app.store.state.theme));
        app.store.set({ theme: order[(here + 1) % 3] });
      },
    });
    this.title = el("h1", {}, el("span", { class: "brand" }, "regard"), el("span", { class: "run" }, app.data.title));
    this.text = el("p", { class: "text" });
    this.items = el("select", {
      "aria-label": "Text", onchange: () => app.show(app.data.items[Number(this.items.value)]),
    });
    this.form = app.data.live ? this.askForm() : null;
    this.element = el(
      "header", {},
      el(
        "div", { class: "top" }, mark(), el("div", { class: "names" }, this.title, this.about),
        el("div", { class: "icons" }, this.theme, el("button", { type: "button", class: "icon", onclick: help, "aria-label": "Help", title: "Help (?)" }, "?")),
      ),
      el("div", { class: "sentence-card card" }, this.text, this.items, this.form),
    );
  }

  askForm() {
    const { data } = this.app;
    this.source = el("input", { id: "ask-text", name: "text", autocomplete: "off", placeholder: "a text to read", required: true });
    this.target = el("input", { id: "ask-target", name: "target", autocomplete: "off", placeholder: "the model's own" });
    this.tag = el("select", { id: "ask-tag" });
    this.told = el("p", { class: "told", role: "alert" });
    const family = data.runs[0].family;
    const tags = data.runs[0].tags ?? [];
    fill(this.tag, tags.map((/** @type {string} */ tag) => el("option", { value: tag }, tag)));
    return el(
      "form",
      {
        class: "ask",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.look();
        },
      },
      el("span", { class: "field wide" }, el("label", { for: "ask-text" }, "Text"), this.source),
      family === "encoder-decoder" ? el("span", { class: "field wide" }, el("label", { for: "ask-target" }, "Target"), this.target) : null,
      tags.length ? el("span", { class: "field" }, el("label", { for: "ask-tag" }, "Direction"), this.tag) : null,
      el("button", { class: "primary" }, "Look"),
      this.told,
    );
  }

  async look() {
    const { data, store } = this.app;
    const text = this.source?.value ?? "";
    const target = this.target?.value ?? "";
    const tag = data.runs[0].tags?.length ? (this.tag?.value ?? "") : "";
    this.element.classList.add("busy");
    try {
      const item = await data.look({ text, target: target || null, tag: tag || null });
      this.tell("");
      store.set({ text, target, tag });
      this.app.show(item);
    } catch (reason) {
      this.tell(reason instanceof Error ? reason.message : String(reason));
    } finally {
      this.element.classList.remove("busy");
    }
  }

  /** @param {string} text why a text cannot be looked at */
  tell(text) {
    if (this.told) say(this.told, text);
  }

  show() {
    const { data, item, store } = this.app;
    const run = data.runs[item.run];
    const { shape } = run;
    const layers = [
      shape.encoder_layers && run.family !== "decoder-only" ? `${shape.encoder_layers} encoder` : "",
      shape.decoder_layers && run.family !== "encoder-only" ? `${shape.decoder_layers} decoder` : "",
    ].filter(Boolean);
    say(
      this.about,
      `${run.family}, ${layers.join(" and ")} layers of ${counted(shape.heads, "head")}, d_model ${shape.d_model}, ` +
        `${run.parameters.toLocaleString("en")} parameters` + (item.weights === "best" ? "" : `, weights of ${item.weights}`),
    );
    const theme = /** @type {keyof typeof THEMES} */ (store.state.theme in THEMES ? store.state.theme : "auto");
    say(this.theme, theme === "auto" ? "◐" : theme === "light" ? "☀" : "☾");
    this.theme.setAttribute("aria-label", `Colours: ${THEMES[theme]}`);
    this.theme.title = `Colours: ${THEMES[theme]} (t)`;
    const off = item.headsOff.length ? ` — ${counted(item.headsOff.length, "head")} off` : "";
    fill(
      this.text,
      item.tag ? el("span", { class: "tag" }, item.tag) : null,
      el("bdi", { class: "read" }, shortened(item.text, 600)),
      item.target === null ? null : el("span", { class: "arrow", "aria-label": "becomes" }, "→"),
      item.target === null ? null : el("bdi", { class: "made" }, shortened(item.target, 600) || "(nothing)"),
      el("span", { class: "note" }, (item.target === null ? "" : item.written ? "written by the model" : "given") + off),
    );
    this.items.hidden = data.items.length < 2;
    fill(
      this.items,
      data.items.map((one, place) => el("option", { value: place }, `${place + 1}. ${shortened(one.text, 60)}${label(data, one)}`)),
    );
    this.items.value = String(data.items.indexOf(item));
    if (this.source && document.activeElement !== this.source && this.shown !== item) {
      this.source.value = item.text;
      if (this.target) this.target.value = item.written ? "" : (item.target ?? "");
      if (this.tag && item.tag) this.tag.value = item.tag;
    }
    this.shown = item;
  }
}

/** What tells items of one text apart. @param {import("./data.js").Data} data @param {import("./data.js").Item} item */
function label(data, item) {
  const parts = [data.runs.length > 1 ? data.runs[item.run].name : "", item.weights === "best" ? "" : item.weights].filter(Boolean);
  if (item.headsOff.length) parts.push(`${counted(item.headsOff.length, "head")} off`);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

/** The mark: three lines that leave one point, as a query's do. */
function mark() {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 40 40");
  svg.setAttribute("class", "mark");
  svg.setAttribute("aria-hidden", "true");
  for (const [end, kind] of /** @type {[number, string][]} */ ([[8, "one"], [20, "two"], [32, "three"]])) {
    const line = document.createElementNS(space, "path");
    line.setAttribute("d", `M6 20 C 20 20, 18 ${end}, 34 ${end}`);
    line.setAttribute("class", kind);
    svg.append(line);
  }
  const eye = document.createElementNS(space, "circle");
  for (const [name, value] of [["cx", "6"], ["cy", "20"], ["r", "4"]]) eye.setAttribute(name, value);
  svg.append(eye);
  return svg;
}
