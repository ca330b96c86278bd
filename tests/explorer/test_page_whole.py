"""The page as a whole, in a real browser: nothing is asked for, nothing typed is run, anybody can use it."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from regard.explorer.document import script_json
from regard.explorer.looks import Question
from regard.explorer.pages import Framed, page_document

from .tiny import TEXT, make_run

VIEWS = ("heads", "all", "matrix", "calculation", "decoding", "positions", "map", "whatif")
HOSTILE = {
    "animal": "</script><img/src=x/onerror=alert(1)>",
    "cross": "<svg/onload=alert(2)>",
    "street": '"><iframe/srcdoc=x>',
    "was": "&lt;b&gt;",
    "tired": "שלום",
    "wide": "مرحبا",
    "bank": "你好世界",
    "too": "👩\u200d👩\u200d👧",
    "it": "\u202eevil",
    "the": "y" * 3000,
}
"""what stands for a piece of a harmless text"""


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    """A text, and a target, of pieces that would be markup, run from right to left, or never end."""
    home = tmp_path_factory.mktemp("hostile")
    run = make_run(home / "run", tokens={"kind": "word", "size": 300}, heads=2)
    text = " ".join(HOSTILE)
    before, payload, after = re.split(r'(?<=id="regard-payload">)(.*?)(?=</script>)', page_document(
        run, [Question(text=text, target=text)]), maxsplit=1)  # fmt: skip
    payload = payload.replace(script_json(text), script_json(" ".join(HOSTILE.values())))
    for word, hostile in HOSTILE.items():
        for space in ("", " ", "▁"):
            payload = payload.replace(script_json(f"{space}{word}"), script_json(f"{space}{hostile}"))
    (home / "page.html").write_text(before + payload + after, encoding="utf-8")
    return (home / "page.html").as_uri()


def test_the_file_asks_for_nothing_and_the_address_tells_all(screen, file_page):
    shown, again = screen(), screen()
    pictures = "() => [...document.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL())"
    shown.open(file_page, part="decoder.self", layer=1, heads="2", head=2, row=2, col=1, t=2, step=4)
    for view in VIEWS:
        shown.click(f"#tab-{view}")
        again.page.goto("about:blank")
        again.page.goto(shown.page.url)
        again.ready()
        assert again.text("#regard") == shown.text("#regard"), view
        assert again.page.evaluate(pictures) == shown.page.evaluate(pictures), view
    assert {*shown.asked, *again.asked} == {file_page}


def test_what_one_view_chooses_the_others_show(screen, file_page):
    shown = screen().open(file_page)
    shown.click(".strip [data-value='decoder.cross']")
    shown.click("[aria-label=Layer] [data-value='1']")
    shown.click(".quiet:text-is('all')")
    shown.click(".chip >> nth=3")
    shown.click(".tokens.row .token >> nth=2")
    token = shown.text(".tokens.row .chosen .text")
    shown.click("#tab-matrix")
    assert "Layer 1, head 3" in shown.text(".reading h2")
    assert f"At “{token}”" in shown.text(".reading .sentence")
    shown.click("#tab-calculation")
    assert shown.text(".calculation-title") == f"layer 1: cross-attention of “{token}”"
    shown.click("#tab-all")
    assert shown.page.locator(".thumb[aria-pressed=true]").get_attribute("aria-label").endswith("layer 1, head 3")
    shown.page.go_back()  # over the views, not over every choice
    shown.settle()
    assert shown.state["view"] == "calculation"
    shown.page.locator(".sentence-card select").select_option("1")
    shown.settle()
    assert shown.text(".read") == "a bank, a bank"


def test_text_is_text(screen, hostile_page):
    shown = screen(width=390).open(hostile_page, row=1, part="decoder.cross", step=4)
    assert [text.rstrip("…") for text in shown.texts(".tokens.row .text")[1:]] == [one[:89] for one in HOSTILE.values()]
    for view in VIEWS:
        shown.click(f"#tab-{view}")
        assert shown.page.locator("#regard :is(img, svg:not(.mark):not(.tree), iframe, script)").count() == 0, view
        assert shown.beyond() <= 0, view
        assert shown.text(".read").startswith(" ".join(HOSTILE.values())[:500]), view


def test_an_address_that_nobody_wrote_is_no_harm(screen, file_page):
    told = {
        "view": "<img src=x onerror=alert(1)>", "part": "__proto__", "layer": "1e99", "heads": "9,-1,x", "row": "-7",
        "item": "99", "off": "a.b,<b>", "group": "<b>", "t": "NaN", "theme": "constructor",
    }  # fmt: skip
    shown = screen().open(file_page, **told)
    assert shown.text('[role=tab][aria-selected="true"]') == "Heads"
    for view in VIEWS:
        shown.click(f"#tab-{view}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(screen, file_page, dark):
    shown = screen(dark=dark).open(file_page, part="decoder.self", row=2)
    found = {}
    for view in VIEWS:
        shown.click(f"#tab-{view}")
        found[view] = faults(shown.page)
    assert found == {view: [] for view in VIEWS}


def faults(page):
    """What axe finds that is serious."""
    found = Axe().run(page).response["violations"]
    return [
        (fault["id"], [node["html"] for node in fault["nodes"]][:3])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


def test_the_help_is_read_by_all(screen, file_page):
    shown = screen().open(file_page)
    shown.press("?")
    assert faults(shown.page) == []
    shown.press("Escape")
    assert shown.page.locator("dialog[open]").count() == 0


REACHED = """() => {
  const kept = "button:not([disabled]), input:not([disabled]), select, [tabindex]";
  const seen = [...document.querySelectorAll(`#regard :is(${kept})`)].filter((one) => one.checkVisibility());
  seen.forEach((one, place) => (one.dataset.stop = place));
  return seen.length;
}"""


def test_the_keyboard_reaches_everything(screen, file_page):
    """By tab, or by arrows within a group of which one member is a stop of tab."""
    shown = screen().open(file_page, part="decoder.self")
    found = {}
    for view in VIEWS:
        shown.click(f"#tab-{view}")
        found[view] = not_reached(shown.page)
    assert found == {view: [] for view in VIEWS}


def not_reached(page):
    """What the view has that neither tab nor arrows come to."""
    wanted = set(map(str, range(page.evaluate(REACHED))))
    here = "() => document.activeElement.dataset.stop"
    page.locator("[data-stop='0']").focus()
    reached = {"0"}
    for _ in range(len(wanted)):
        page.keyboard.press("Tab")
        stop = page.evaluate(here)
        if stop is None:
            break
        reached.add(stop)
    for group in page.locator(":is(.chips, .off-grid, .gallery):visible").all():
        group.locator("button[tabindex='0']").focus()
        page.keyboard.press("Home")
        for _ in range(group.locator("button").count()):
            reached.add(page.evaluate(here))
            page.keyboard.press("ArrowRight")
    strips = page.locator("[role=radiogroup]:visible, [role=tablist]").locator("button").all()
    reached |= {strip.get_attribute("data-stop") for strip in strips}  # arrows choose in these: the next test's
    return [page.locator(f'[data-stop="{stop}"]').evaluate("(one) => one.outerHTML") for stop in wanted - reached]


def test_keys(screen, file_page):
    shown = screen().open(file_page, part="encoder.self")
    shown.press("2", "3")
    assert shown.text('[role=tab][aria-selected="true"]') == "Matrix"
    shown.press("ArrowLeft", "ArrowLeft")
    assert shown.text('[role=tab][aria-selected="true"]') == "Heads"
    shown.press("]", "h", "h", "p", "w")
    told = {"part": "decoder.self", "layer": "1", "heads": "2", "head": "2", "units": "words"}
    assert {name: shown.state[name] for name in told} == told
    shown.page.locator("[aria-label=Attention] [aria-checked=true]").focus()
    shown.press("ArrowRight")
    assert shown.state["part"] == "decoder.cross"
    shown.page.locator(".tokens.row").focus()
    shown.press("ArrowDown", "ArrowDown")
    assert (shown.state["row"], shown.text(".tokens.row .chosen .text")) == ("1", "je")
    shown.press("Escape", "a", "t")
    assert "row" not in shown.state
    assert "heads" not in shown.state
    assert shown.page.locator("html").get_attribute("data-theme") == "dark"
    shown.click("#tab-decoding")
    shown.page.locator("#time").focus()
    shown.press("ArrowRight")
    assert shown.state["t"] == "1"


def test_a_narrow_page_has_no_sideways_scroll(screen, file_page):
    shown = screen(width=390).open(file_page, row=2, step=4)
    found = {}
    for view in VIEWS:
        shown.click(f"#tab-{view}")
        found[view] = shown.beyond()
    assert found == dict.fromkeys(VIEWS, 0)


def test_two_pages_in_one_notebook(screen, run, tmp_path):
    """Each in its frame, from which nothing gets out and into which nothing gets."""
    frames = [run.look(TEXT, target="je suis"), run.look("a bank", target="je", at="view=matrix&layer=1")]
    cells = "".join(f"<div class=cell>{frame._repr_html_()}</div>" for frame in frames)
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{cells}</body>", encoding="utf-8")
    shown = screen()
    shown.page.goto((tmp_path / "notebook.html").as_uri())
    one, two = (shown.page.locator(f".cell >> nth={place} >> iframe").content_frame for place in (0, 1))
    for frame in (one, two):
        frame.locator("#regard[data-ready=true]").wait_for()
    assert (one.locator(".read").inner_text(), two.locator(".read").inner_text()) == (TEXT, "a bank")
    one.locator("#tab-calculation").click()
    one.locator(".calculation-title").wait_for()
    assert two.locator('[role=tab][aria-selected="true"]').inner_text() == "Matrix"
    assert len(shown.asked) == 1
    assert isinstance(frames[0], Framed)


def test_a_file_of_another_time_says_so(screen, run, tmp_path):
    document = page_document(run, [Question(text=TEXT, target="je")])
    newer = document.replace('"format":1', '"format":2')
    assert newer != document
    (tmp_path / "newer.html").write_text(newer, encoding="utf-8")
    shown = screen()
    shown.page.goto((tmp_path / "newer.html").as_uri())
    assert shown.page.locator("[role=alert]").inner_text() == (
        "This cannot be shown: the payload has format 2, this page reads 1: use a newer page"
    )
