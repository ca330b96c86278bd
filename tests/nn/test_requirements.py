"""The five requirements of positions, and that the docs' tables are what is measured."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.config import ModelConfig
from regard.nn.requirements import KINDS, REQUIREMENTS, Report, measure_positions, requirement_table, table

ROOT = Path(__file__).parents[2]
SMALL = ModelConfig(d_model=32, heads=4, d_ff=8, relative_distance=40, relative_buckets=16)

FAILS = {
    "none": {"unique"},
    "index": {"bounded"},
    "normalised_index": {"distance"},
    "binary": set(),
    "sinusoidal": set(),
    "learned": {"longer", "deterministic"},
    "rotary": set(),
    "alibi": {"bounded"},
    "relative": {"unique", "deterministic"},
    "shaw": {"unique", "deterministic"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_which_kind_fails_what(kind):
    report = measure_positions(kind, config=SMALL, steps=64)
    assert {each.name for each in REQUIREMENTS if not report.met(each)} == FAILS[kind]


def test_the_numbers_of_kinds_that_can_be_reckoned():
    index = measure_positions("index", config=SMALL, steps=64).numbers
    assert index["unique"] == pytest.approx(32**0.5)
    assert index["bounded"] == pytest.approx(255 / 63)
    share = measure_positions("normalised_index", config=SMALL, steps=64).numbers
    assert share["unique"] == pytest.approx(32**0.5 / 63, rel=1e-4)
    assert share["distance"] == pytest.approx(32**0.5 * (1 - 15 / 63), rel=1e-4), "first to last of 16, and of 64"
    alibi = measure_positions("alibi", config=SMALL, steps=64).numbers
    assert alibi["unique"] == pytest.approx(sum((2 ** (-2 * head)) ** 2 for head in (1, 2, 3, 4)) ** 0.5, rel=1e-5)
    assert measure_positions("learned", config=SMALL, steps=64).numbers["longer"] == 0
    assert measure_positions("shaw", config=SMALL, steps=30).numbers["unique"] > 0.01, "within reach all differ"


def test_the_tables_say_pass_and_fail_with_the_number():
    numbers = {"unique": 0.25, "distance": 3e-9, "longer": 0.5, "bounded": 1.0, "deterministic": 0.0}
    line = table([Report(kind="none", numbers=numbers)]).splitlines()[-1]
    assert line == "| `none` | pass (0.25) | pass (0) | fail (0.5) | pass (1) | pass (0) |"
    assert requirement_table().count("\n") == 1 + len(REQUIREMENTS)


PAGES = ("positions.md", "verify.md")


def tables(*words):
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "tables.py", *PAGES, *words], capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_the_docs_are_not_out_of_date():
    done = tables("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_that_is_out_of_date_is_named_and_written_anew(tmp_path):
    for name in PAGES:
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("| pass", "| perhaps"), encoding="utf-8")
    done = tables("--check", "--folder", tmp_path)
    assert done.returncode == 1
    assert "positions.md: out of date" in done.stderr
    assert "verify.md" not in done.stderr
    assert tables("--folder", tmp_path).returncode == 0
    assert (tmp_path / "positions.md").read_bytes() == (ROOT / "docs" / "positions.md").read_bytes()
