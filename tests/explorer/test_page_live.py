"""The live page in a real browser: it asks the model again, and its address tells a second browser the same."""

import pytest
import torch

from regard.config import recipe_from
from regard.explorer.looks import Question
from regard.explorer.studio import Studio
from regard.runs import read_weights
from regard.tasks.run import load
from regard.tasks.start import train

from .serving import served
from .tiny import LINES, TEXT

OFF = frozenset({("encoder.self", 1, 0), ("decoder.cross", 0, 3)})


@pytest.fixture(scope="module")
def address(run, other):
    with served(
        [run, other], [Question(text=TEXT, tag="<2fr>", beam=3), Question(text="a bank", tag="<2en>")]
    ) as found:
        yield found


def signed(value, digits):
    return f"{value:.{digits}f}".replace("-", "−")


def again(screen, shown):
    """What another browser shows at the address."""
    other = screen()
    other.page.goto(shown.page.url)
    other.ready()
    other.page.wait_for_load_state("networkidle")
    other.settle()
    return other


def test_decoding_on_from_another_candidate(screen, address, run):
    shown = screen().open(address, view="decoding", t=1)
    item = Studio([run]).look(Question(text=TEXT, tag="<2fr>", beam=3))
    first = item.facts["sides"]["target"]["ids"][1]
    third = item.section("decoding")[0]["steps"][1]["candidates"][2]
    shown.click("button.candidate >> nth=2")
    shown.page.wait_for_function(
        "() => document.querySelector('.chosen > .candidate') && location.hash.includes('prefix')"
    )
    shown.ready()
    further = Studio([run]).decode(Question(text=TEXT, tag="<2fr>"), prefix=[first, third["id"]], beam=3)
    assert shown.text("header .made") == further.facts["target"]
    assert shown.text(".chosen .bar-text") == (third["piece"].replace("▁", " ").removeprefix(" ") or "␣")
    assert shown.state["prefix"] == f"{first},{third['id']}"
    assert again(screen, shown).text("#regard") == shown.text("#regard")


def test_heads_off_together(screen, address, run):
    shown = screen().open(address, view="whatif")
    for part, layer, head in sorted(OFF):
        name = {"encoder.self": "encoder self-attention", "decoder.cross": "cross-attention"}[part]
        shown.click(f'.off-head[aria-label^="{name}, layer {layer}, head {head}"]')
    shown.click("text=Measure with 2 heads off")
    shown.page.wait_for_selector(".result p")
    studio = Studio([run])
    told = studio.ablate(studio.look(Question(text=TEXT, tag="<2fr>", beam=3)).id, OFF).facts
    before, after = told["logp"]
    sign = "+" if after > before else ""
    assert shown.texts(".result p")[0] == (
        f"The target's log-probability goes from {signed(before, 4)} to {signed(after, 4)}: "
        f"{sign}{signed(after - before, 4)}."
    )
    assert shown.text(".result .made") == (told["text"][1] or "(nothing)")
    weights = studio.look(Question(text=TEXT, target=told["item"]["target"], heads_off=OFF, tag="<2fr>"))
    assert weights.array("encoder.self.1.weights").values()[0].any()
    assert again(screen, shown).texts(".result p") == shown.texts(".result p")


def test_another_text_and_another_run(screen, address, run, other):
    shown = screen().open(address, view="whatif", part="encoder.self", layer=1, head=1)
    shown.page.locator("#ask-text").fill("the street")
    shown.page.locator("#ask-target").fill("je")
    shown.press("Enter")
    shown.page.wait_for_function("() => document.querySelector('.read').textContent === 'the street'")
    shown.page.locator("#other-weights").select_option("1.best")
    shown.click("button:text-is('Look') >> nth=1")
    shown.page.wait_for_function("() => document.querySelectorAll('figcaption')[2].textContent.includes('most')")
    one, two = (each.trace("the street", "je", tag="<2fr>")[0]["encoder.self.1.weights"][0, 1] for each in (run, other))
    assert shown.texts("figcaption")[2] == f"the difference at most {(one - two).abs().max():.4f}"
    assert again(screen, shown).texts("figcaption") == shown.texts("figcaption")


def test_a_second_sentence_on_the_map(screen, address):
    shown = screen().open(address, view="map")
    shown.page.locator("#map-text").fill("the street was wide")
    shown.click("text=Map both")
    shown.page.wait_for_function("() => document.querySelectorAll('.map-legend li').length === 2")
    assert shown.page.locator(".same-word").filter(has_text="street at 2 places").count() == 1
    assert again(screen, shown).texts(".same-word") == shown.texts(".same-word")


def test_what_cannot_be_is_told(screen, address):
    shown = screen().open(address)
    shown.page.locator("#ask-text").fill("street " * 5000)
    shown.press("Enter")
    shown.page.wait_for_selector(".told:not(:empty)")
    assert "the explorer takes 4,096" in shown.text(".told")
    assert shown.said.pop().startswith("error: Failed to load resource")  # what a browser says of every 400


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with weights of three moments."""
    home = tmp_path_factory.mktemp("trained")
    files = [str(home / "lines.a"), str(home / "lines.b")]
    for file in files:
        (home / file).write_text("\n".join(LINES * 5), encoding="utf-8")
    recipe = recipe_from({
        "task": "translate", "data": {"train": files, "valid": files}, "tokens": {"kind": "char"},
        "model": {"d_model": 8, "heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1, "max_length": 100},
        "training": {"steps": 6, "valid_every": 2, "tokens_per_batch": 300, "snapshots": 3, "precision": "float32"},
        "decoding": {"beam": 1, "max_length": 4},
    })  # fmt: skip
    train(recipe, home / "run")
    return load(home / "run")


def test_a_head_over_the_steps_of_training(screen, trained):
    """A checkpoint's flat vector gives the weights that the snapshot of the same step has by name."""
    studio = Studio([trained])
    stored = studio.runs[0].facts["checkpoints"]
    assert [one["step"] for one in stored] == [2, 4, 6]
    assert (trained.folder / "checkpoints" / stored[-1]["name"]).is_dir()
    flat = studio.model(0, stored[-1]["name"]).state_dict()
    named = read_weights(trained.folder / "snapshots" / "step-00000006.safetensors")
    assert flat.keys() == named.keys()
    assert all(torch.equal(flat[name], named[name]) for name in named)
    with served([trained], [Question(text="a bank", target="a")]) as address:
        shown = screen().open(address, view="whatif", part="encoder.self", head=1, at=0)
        shown.page.wait_for_function("() => document.querySelector('.heat-frame:last-child:not([hidden]) canvas')")
        shown.page.wait_for_load_state("networkidle")
        shown.settle()
        assert f"at {stored[0]['name']} (1 of 4)" in shown.text("section:last-child > .note")
        look = studio.look(Question(text="a bank", target="a", weights=stored[0]["name"]))
        wanted = look.array("encoder.self.0.weights").values()[1]
        box = shown.page.locator("section:last-child canvas").bounding_box()
        shown.page.locator("section:last-child .heat-frame").focus()
        shown.press("ArrowRight", "ArrowDown")
        assert box is not None
        assert shown.texts(".tip b") == [f"{wanted[1, 0]:.4f}"]
