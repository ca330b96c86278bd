"""A real Chromium for the tests of the page: what a person does with it, and what then stands on the screen."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
WATCH = """
const pen = CanvasRenderingContext2D.prototype;
const { fillText, bezierCurveTo, clearRect } = pen;
window.drawn = new Map();
const of = (canvas) => {
  if (!window.drawn.has(canvas)) window.drawn.set(canvas, { texts: [], curves: 0 });
  return window.drawn.get(canvas);
};
pen.clearRect = function (...box) { window.drawn.delete(this.canvas); return clearRect.apply(this, box); };
pen.fillText = function (text, ...at) { of(this.canvas).texts.push(text); return fillText.call(this, text, ...at); };
pen.bezierCurveTo = function (...way) { of(this.canvas).curves++; return bezierCurveTo.apply(this, way); };
"""
"""What was drawn on each canvas since it was last cleared: the numbers of a matrix are nowhere else."""


@contextmanager
def launched():
    """The browser of this machine. Where there is none a test is skipped, but in the CI it fails."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        said = f"no browser: none of {', '.join(NAMES)} is installed"
        pytest.fail(said) if os.environ.get("CI") == "true" else pytest.skip(said)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield browser
        browser.close()


class Screen:
    """One page of the browser, what it said on its console and what it asked for."""

    def __init__(self, browser, *, width=1280, dark=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", reduced_motion="reduce"
        )
        self.context.add_init_script(WATCH)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address, **state):
        """Open a page at a state, and wait until it stands."""
        self.page.goto("about:blank")  # or only the address's end would change
        self.page.goto(f"{address}#{urlencode(state)}")
        self.ready()
        return self

    def ready(self):
        """Wait until nothing is on its way, and what was changed is drawn."""
        self.page.wait_for_selector("#regard[data-ready=true]")
        self.settle()

    def settle(self):
        """Let two frames pass."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def texts(self, selector):
        """What stands in these elements, those that are hidden left out."""
        return [one.strip() for one in self.page.locator(selector).filter(visible=True).all_inner_texts()]

    def text(self, selector):
        """What stands in this one element."""
        (found,) = self.texts(selector)
        return found

    def click(self, selector, **options):
        """Click, and see what came of it."""
        self.page.locator(selector).click(**options)
        self.settle()

    def press(self, *keys):
        """Press keys one after another."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settle()

    def drawn(self, selector):
        """The texts on a canvas, and how many curves."""
        told = self.page.locator(selector).evaluate("(canvas) => window.drawn.get(canvas) ?? { texts: [], curves: 0 }")
        return told["texts"], told["curves"]

    def choose(self, group, value):
        """Choose in one of the strips of controls."""
        self.click(f'[role=radiogroup][aria-label="{group}"] [data-value="{value}"]')

    @property
    def state(self):
        """What the address tells."""
        return self.page.evaluate("() => Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")

    def beyond(self):
        """By how many pixels the page is wider than its window."""
        return self.page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
