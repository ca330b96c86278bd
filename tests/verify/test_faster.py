"""A run's test text in fewer bits, as `regard verify` shows it; without text or a kernel nothing is claimed."""

import pytest

import regard.verify
from regard.cli import main
from regard.decoding import kernel
from regard.verify import run_subject
from regard.verify.certificate import measure
from regard.verify.faster import FASTER

from .runs import LINES, sure_run

(FEWER,) = (each for each in FASTER if each.name.startswith("fewer bits"))


def test_figures_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(regard.verify, "EQUALITIES", FASTER)
    assert main(["verify", str(sure_run(tmp_path))]) == 0
    lines = capsys.readouterr().out.splitlines()
    (place,) = (number for number, line in enumerate(lines) if line.startswith("holds  fewer bits"))
    for line, kind in zip(lines[place + 1 :], ("bf16", "int8"), strict=False):
        said, _, figures = line.strip().partition(": ")
        assert said == f"{kind}, {len(LINES)} sentences"
        share, pieces = figures.split(" of float32's pieces, BLEU ")
        assert float(share.removesuffix("%")) >= 99 or len(set(pieces.split(" and "))) == 1


def test_without_text_or_kernel_nothing_is_claimed(tmp_path, monkeypatch):
    subject = run_subject(sure_run(tmp_path))
    assert measure(FEWER, subject) is not None
    monkeypatch.setenv("REGARD_KERNEL", "off")
    kernel.kernel.cache_clear()
    try:
        assert measure(FEWER, subject) is None
    finally:
        monkeypatch.undo()
        kernel.kernel.cache_clear()
    for side in ("fr", "en"):
        (tmp_path / f"test.{side}").unlink()
    assert measure(FEWER, subject) is None


@pytest.fixture(autouse=True)
def _needs_the_kernel():
    if kernel.kernel() is None:
        pytest.skip("no C compiler here")
