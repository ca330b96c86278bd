"""Tiny runs to look at, and a page of two modules that shows nothing."""

import pytest

from regard.explorer import document

from .tiny import make_run


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
