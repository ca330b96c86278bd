"""The report of a run: all on one page, nothing of it from elsewhere, and no text of the data taken for markup."""

import json
import re
from html.parser import HTMLParser

import pytest

from regard.cli import main
from regard.config import recipe_from
from regard.errors import InputError
from regard.explorer.curves import Line, chart, thinned, ticks
from regard.explorer.heatmap import heat_map
from regard.explorer.history import read_history
from regard.explorer.markup import Html, duration, element, large, table
from regard.explorer.report import write_report
from regard.tasks.start import train

EVIL = '<script>alert("x")</script> & <img src=x>'
PARTS = ["curves", "scores", "samples", "attention", "data", "cost", "environment", "recipe"]


class Page(HTMLParser):
    """The page as a browser reads it: its elements are closed in order, and are kept with their attributes."""

    EMPTY = ("meta", "circle", "path")

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def values(folder, *, valid=True, steps=4):
    """A recipe of a very small model on text that would like to be markup."""
    rows = [(f"{EVIL} un {number}", f"{EVIL} one {number}") for number in range(12)]
    for side, name in enumerate(("fr", "en")):
        (folder / f"t.{name}").write_text("".join(row[side] + "\n" for row in rows), encoding="utf-8")
    files = [str(folder / "t.fr"), str(folder / "t.en")]
    size = {"d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 2, "max_length": 100}
    training = {"steps": steps, "valid_every": 2, "tokens_per_batch": 300, "warmup": 2, "precision": "float32"}
    return {
        "task": "translate", "data": {"train": files, **({"valid": files} if valid else {})},
        "tokens": {"kind": "char"}, "model": size, "training": training, "decoding": {"beam": 2},
    }  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("report")
    train(recipe_from(values(folder)), folder / "run <b>")
    return folder / "run <b>"


def test_it_has_all_parts_and_needs_nothing_else(run):
    path = write_report(run)
    assert path == run / "report.html"
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert [part["id"] for part in page.all("section")] == PARTS
    for tag in ("script", "link", "img", "iframe", "object", "base", "form"):
        assert not page.all(tag), tag
    assert not re.search(r"https?:|@import|url\(", text)
    assert not any(name in {"src", "href"} or name.startswith("on") for _, held in page.elements for name in held)
    assert len(text) < 1_000_000
    assert EVIL in "".join(page.words)
    assert "run <b>" in page.words


def test_it_can_be_read_without_seeing_it(run):
    page = Page(write_report(run).read_text(encoding="utf-8"))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("table")) == len(page.all("caption")) > 3
    assert all("scope" in cell for cell in page.all("th"))
    assert len(page.all("svg")) == 4 + 2 * 2
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.all("svg"))
    headings = {held["id"] for held in page.all("h2")}
    assert {part["aria-labelledby"] for part in page.all("section")} == headings


def test_the_run_is_told(run):
    text = write_report(run).read_text(encoding="utf-8")
    page = Page(text)
    last = json.loads((run / "journal.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert last["event"] == "finished"
    words = [word for word in page.words if word.strip()]
    assert "finished" in words
    assert words[words.index("kept") + 1 :].count("12") == 2  # pairs: of the set, and of the whole
    assert "Layer 1, head 1" in words
    assert "float32" in words


def test_a_run_without_validation_text(tmp_path):
    train(recipe_from(values(tmp_path, valid=False)), tmp_path / "run")
    text = write_report(tmp_path / "run").read_text(encoding="utf-8")
    page = Page(text)
    assert [part["id"] for part in page.all("section")] == PARTS
    assert "There is no validation text" in text
    assert "all over the training text" in text
    assert len(page.all("svg")) == 3 + 2 * 2


def test_an_unfinished_run_and_one_whose_text_has_gone(tmp_path):
    folder = tmp_path / "run"
    train(recipe_from(values(tmp_path)), folder)
    journal = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(journal[:2]) + journal[2][:9], encoding="utf-8")
    (tmp_path / "t.fr").unlink()
    text = write_report(folder).read_text(encoding="utf-8")
    assert "There are none: " in text
    assert "There has been no validation yet." in text
    (folder / "model.safetensors").unlink()
    (folder / "journal.jsonl").unlink()
    for path in (folder / "data").glob("*/manifest.json"):
        path.unlink()
    text = write_report(folder).read_text(encoding="utf-8")
    assert "No weights are kept yet" in text
    assert "nothing is counted" in text
    assert "no journal" in text
    (folder / "recipe.toml").unlink()
    with pytest.raises(InputError, match="not a run folder"):
        write_report(folder)


def test_training_writes_it(tmp_path, capsys):
    recipe = tmp_path / "r.toml"
    recipe.write_text(recipe_from(values(tmp_path, steps=1)).to_toml(), encoding="utf-8")
    assert main(["train", str(recipe), "--out", str(tmp_path / "run")]) == 0
    assert f"report: {tmp_path / 'run' / 'report.html'}" in capsys.readouterr().err
    assert (tmp_path / "run" / "report.html").is_file()


def test_what_a_resumed_run_did_again_counts_once(tmp_path):
    """A run that crashed after update 4 and went on from 2: what came after 2 is told by the second session alone."""
    rows = [{"event": "started", "step": 0, "time": 10.0}]
    rows += [{"event": "step", "step": step, "time": 10.0 + step, "loss": 9.0, "tokens": 5} for step in (1, 2, 3, 4)]
    rows += [{"event": "validated", "step": 4, "time": 15.0, "bleu": 1.0, "better": True}]
    rows += [{"event": "resumed", "step": 2, "time": 100.0}]
    rows += [{"event": "step", "step": 3, "time": 102.0, "loss": 7.0, "tokens": 6}]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    history = read_history(tmp_path)
    assert [(row["step"], row["loss"]) for row in history.steps] == [(1, 9.0), (2, 9.0), (3, 7.0)]
    assert history.best is None
    assert (history.status, history.updates, history.tokens) == ("unfinished", 3, 16)
    assert history.seconds == pytest.approx(5.0 + 2.0)


def test_curves():
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert ticks(3, 3)[0] < 3 < ticks(3, 3)[-1]
    points = [(float(x), float(x)) for x in range(1000)]
    assert len(thinned(points, 100)) == 100
    assert thinned(points, 100)[0] == points[0]
    assert thinned(points, 100)[-1] == points[-1]
    assert thinned(points[:50], 100) == points[:50]
    picture = chart("Loss", [Line(name="a <b>", points=[(1, 2.0), (2, float("nan")), (3, 1.5)], dots=True)]).code
    assert picture.count("<circle") == 2
    assert "nan" not in picture
    assert "a &lt;b&gt; from 2 at update 1 to 1.5 at update 3" in picture
    assert "<svg" in chart("one point", [Line(name="a", points=[(5, 0.0)])]).code
    assert chart("nothing", [Line(name="a", points=[])]).code == ""


def test_heat_maps():
    picture = heat_map("head", [[0.96, 0.04], [0.5, 0.5]], ["<s>", "ab\n"], ["▁un", "</s>"]).code
    assert picture.count("h16v16") == 3  # 0.04 stays empty, and 0.5 is one path of two cells
    assert picture.count('class="cell"') == 2
    assert "&lt;s&gt; looks most at ▁un (96%)" in picture
    assert ">ab·<" in picture


def test_markup():
    assert element("p", "<", Html("<b>x</b>"), class_="a", aria_label='"').code == (
        '<p class="a" aria-label="&quot;">&lt;<b>x</b></p>'
    )
    assert 'scope="row" class="words">&amp;' in table("t", ("a", "b"), [("&", 1)]).code
    assert (duration(5), duration(600), duration(7200)) == ("5 s", "10.0 min", "2.0 h")
    assert (large(1234), large(2.5e6), large(3e16)) == ("1,234", "2.50 million", "3.00e+16")
