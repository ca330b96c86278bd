"""Tiny runs to look at, a page of two modules that shows nothing, and a browser for the one that shows all."""

import pytest

from regard.explorer import document
from regard.explorer.looks import Question
from regard.explorer.pages import write_page

from .browser import Screen, launched
from .tiny import TARGET, TEXT, make_run


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """An encoder-decoder with the norm behind."""
    return make_run(tmp_path_factory.mktemp("runs") / "tiny", positions="sinusoidal")


@pytest.fixture(scope="session")
def other(tmp_path_factory):
    """Another of its shape."""
    return make_run(tmp_path_factory.mktemp("runs") / "other", seed=8)


@pytest.fixture
def bare_page(monkeypatch):
    """A page that shows nothing, so that these tests are of what it is given."""
    files = {"main.js": 'import { x } from "./x.js";\nx();\n', "x.js": "export function x() {}\n", "page.css": "p{}"}
    document.page_files.cache_clear()
    document._script.cache_clear()
    monkeypatch.setattr(document, "page_files", lambda: files)
    yield files
    document._script.cache_clear()


@pytest.fixture(scope="session")
def browser():
    """One for all tests."""
    with launched() as browser:
        yield browser


@pytest.fixture
def screen(browser):
    """Makes pages; none of them may have complained when the test ends."""
    made = []

    def make(**options):
        made.append(Screen(browser, **options))
        return made[-1]

    yield make
    for one in made:
        one.context.close()
    assert [said for one in made for said in one.said] == []


@pytest.fixture(scope="session")
def file_page(run, tmp_path_factory):
    """The address of a file with two texts in one run: one whose target is given, and one that the model writes."""
    path = tmp_path_factory.mktemp("pages") / "page.html"
    texts = [Question(text=TEXT, target=TARGET, tag="<2fr>"), Question(text="a bank, a bank", tag="<2en>", beam=3)]
    return write_page(run, texts, path).as_uri()
