"""How fast the explorer is: to its first picture, and at a hover; and how large a file is.

    python benchmarks/explorer_speed.py

Weights are random, which does not change the times. The browser is this machine's Chromium, without a graphics card,
in a window of 1280 by 900. The pointer comes to another token at each frame: of such a hover the page's own work is
told, and the time from frame to frame, which is 16.7 ms where the browser keeps up with 60 a second.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from regard.config import recipe_from
from regard.explorer.live import listening, server_of
from regard.explorer.looks import Question
from regard.explorer.pages import write_page
from regard.models import build_model
from regard.runs import save_run
from regard.tasks.run import Run, load
from regard.text import train_tokenizer

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
           "--disable-background-networking", "--disable-component-update")  # fmt: skip
PARTS = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
WORDS = [one + two + three for one in PARTS[:20] for two in PARTS[20:40] for three in PARTS[40:]]
MOVES, WARM = 80, 20
SHARPER = 3
"""queries and keys are so many times as large: of even weights, as of no training, no lines would be drawn"""

WATCH = """
const ask = window.requestAnimationFrame.bind(window);
window.work = 0;  // milliseconds of this page's own work since it was last asked
window.frame = () => new Promise((done) => ask(() => done(performance.now())));
window.requestAnimationFrame = (draw) => ask((now) => {
  const began = performance.now();
  draw(now);
  window.work += performance.now() - began;
});
"""
HOVER = """async ([moves]) => {
  const scroller = document.querySelector(".links");
  const box = scroller.getBoundingClientRect();
  const times = [];
  let before = await window.frame();
  for (let number = 0; number < moves; number++) {
    const clientY = box.top + 12 + ((number * 89) % (box.height - 24));
    const began = performance.now();
    scroller.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 30, clientY, bubbles: true }));
    window.work = performance.now() - began;
    const now = await window.frame();
    times.push([window.work, now - before]);
    before = now;
  }
  return times;
}"""


def base_run(folder: Path) -> Run:
    """A run of the paper's base shape, whose pieces are words."""
    recipe = recipe_from({
        "task": "translate", "data": {"train": ["a", "b"]}, "tokens": {"kind": "word", "size": 8000},
        "model": {"preset": "base", "max_length": 2100}, "decoding": {"beam": 4, "max_length": 30},
    })  # fmt: skip
    tokenizer = train_tokenizer(iter(WORDS * 2), recipe.tokens, [], lambda line: None)
    recipe = replace(recipe, model=replace(recipe.model, vocabulary=tokenizer.size))
    torch.manual_seed(1)
    model = build_model(recipe.model)
    for name, parameter in model.named_parameters():
        if name.endswith("attention.project.weight"):
            parameter.data *= SHARPER
    save_run(folder, recipe, tokenizer, model)
    return load(folder)


def text_of(tokens: int) -> str:
    """A text of so many tokens, the end counted."""
    return " ".join(WORDS[place * 7 % len(WORDS)] for place in range(tokens - 1))


@contextmanager
def served(run: Run, question: Question) -> Iterator[str]:
    """The live page's address."""
    listener = listening(0)
    server = server_of(listener, [run], [question], state={})
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def browser() -> Iterator[Browser]:
    """This machine's Chromium."""
    path = shutil.which("chromium") or sys.exit("no chromium: install it")
    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=path, args=list(OPTIONS))


def first_picture(shown: Browser, address: str) -> float:
    """Seconds from asking for the page until its first view is drawn, in a fresh window."""
    page = shown.new_page(viewport={"width": 1280, "height": 900})
    began = time.perf_counter()
    ready(page, address)
    seconds = time.perf_counter() - began
    page.close()
    return seconds


def ready(page: Page, address: str) -> None:
    """Go there, and wait until it is drawn."""
    page.goto(address)
    page.wait_for_selector("#regard[data-ready=true]", timeout=120_000)


def hovers(shown: Browser, run: Run, tokens: int) -> dict[str, float]:
    """Milliseconds of a hover in a text of so many tokens, one head of encoder self-attention."""
    with served(run, Question(text=text_of(tokens), target=WORDS[0])) as address:
        page = shown.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(WATCH)
        ready(page, f"{address}#part=encoder.self&layer=2&heads=1&head=1&row=-1")
        page.wait_for_function("() => document.querySelector('.links-stage').getAttribute('aria-busy') === 'false'")
        page.wait_for_timeout(500)
        times: list[list[float]] = page.evaluate(HOVER, [MOVES + WARM])
        page.close()
    work, frame = (sorted(pair[place] for pair in times[WARM:]) for place in (0, 1))
    return {
        "work": statistics.median(work), "work, 95 of 100": work[int(0.95 * MOVES)],
        "from frame to frame": statistics.median(frame), "from frame to frame, 95 of 100": frame[int(0.95 * MOVES)],
    }  # fmt: skip


def measure(shown: Browser, home: Path, lengths: Sequence[int]) -> dict[str, Any]:
    """All of it."""
    run = base_run(home / "run")
    text = text_of(30)
    pictures = {}
    asked = {"target given": Question(text=text, target=text), "target searched": Question(text=text)}
    for name, question in asked.items():
        with served(run, question) as address:
            first_picture(shown, address)  # once to warm up: what a model needs once is not the page's
            pictures[name] = sorted(first_picture(shown, address) for _ in range(5))[2]
    path = write_page(run, [Question(text=text, target=text)], home / "page.html")
    from_file = sorted(first_picture(shown, path.as_uri()) for _ in range(5))[2]
    return {
        "first picture, seconds": {**pictures, "from a file": from_file},
        "file of 30 tokens, bytes": path.stat().st_size,
        "hover, milliseconds": {str(tokens): hovers(shown, run, tokens) for tokens in lengths},
    }


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[30, 200, 2000], help="tokens of the texts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, browser() as shown:
        found = measure(shown, Path(home), arguments.lengths)
        found["browser"] = shown.version
    for name, seconds in found["first picture, seconds"].items():
        print(f"first picture, {name:<16} {seconds:8.2f} s")
    print(f"file of 30 tokens               {found['file of 30 tokens, bytes'] / 1e6:8.2f} MB")
    for tokens, times in found["hover, milliseconds"].items():
        told = ", ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in times.items())
        print(f"hover at {tokens:>5} tokens            {told}")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
