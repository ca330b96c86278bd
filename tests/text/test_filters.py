"""What is left out of a corpus is counted, and nothing else is left out."""

import random
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.text import FilterReport, PairFilter, TextPair, length_fault
from regard.text.filters import HashSet, pair_key


def pair(source: str, target: str, tag: str | None = None) -> TextPair:
    return TextPair(source, target, tag, 1)


PAIRS = st.builds(
    pair, st.sampled_from(["", " ", "\t\u3000", "a", "a ", "b", "ab"]), st.sampled_from(["", "a", "b", " b", "c"]),
    st.sampled_from([None, "<x>"]),
)  # fmt: skip


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(PAIRS, max_size=60), st.booleans(), st.booleans())
def test_filters_do_what_the_plain_loop_does(pairs: list[TextPair], copies: bool, duplicates: bool) -> None:
    kept: list[TextPair] = []
    counts = {"empty": 0, "copies": 0, "duplicates": 0}
    for row in pairs:
        if not row.source.strip() or not row.target.strip():
            counts["empty"] += 1
        elif copies and row.source.strip() == row.target.strip():
            counts["copies"] += 1
        elif duplicates and row[:3] in [other[:3] for other in kept]:
            counts["duplicates"] += 1
        else:
            kept.append(row)
    rule = PairFilter(drop_copies=copies, drop_duplicates=duplicates)
    assert list(rule(pairs)) == kept
    assert rule.report == FilterReport(kept=len(kept), **counts)
    assert rule.report.read == len(pairs)


def test_duplicates_are_found_across_streams_and_blocks() -> None:
    rule = PairFilter(drop_duplicates=True)
    first = [pair(f"s{i % 30_000}", "t") for i in range(40_000)]
    assert list(rule(iter(first))) == first[:30_000]
    assert list(rule([pair("s7", "t"), pair("s7", "u"), pair("s7", "t", "<x>")])) == [
        pair("s7", "u"),
        pair("s7", "t", "<x>"),
    ]
    assert rule.report == FilterReport(kept=30_002, duplicates=10_001)


def test_pairs_that_join_to_the_same_text_differ() -> None:
    pairs = [pair("ab", "c"), pair("a", "bc"), pair("a", "b", "c"), pair("abc", "")]
    assert len(set(map(pair_key, pairs))) == 4


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=12))
def test_the_set_of_hashes_is_a_set(blocks: list[list[int]]) -> None:
    numbers, seen = HashSet(), set()
    for block in blocks:
        new = []
        for number in block:
            new.append(number not in seen)
            seen.add(number)
        assert numbers.add([b"%d" % number for number in block]).tolist() == new
        assert len(numbers) == len(seen)


def test_a_million_keys_take_eight_bytes_each() -> None:
    numbers, draw = HashSet(), random.Random(1)
    for _ in range(0, 1_000_000, 50_000):
        numbers.add([draw.randbytes(8) for _ in range(50_000)])
    assert len(numbers) == 1_000_000
    sizes = [run.nbytes for run in numbers._runs]
    assert sum(sizes) == 8_000_000
    assert all(larger >= 2 * smaller for larger, smaller in pairwise(sizes))
    assert all(np.all(run[1:] > run[:-1]) for run in numbers._runs)


def test_hashes_do_not_depend_on_the_process() -> None:
    """Python's own hash differs from run to run; which pairs are kept must not."""
    program = "from regard.text.filters import HashSet; s = HashSet(); s.add([b'a', b'b']); print(s._runs[0].tolist())"
    outputs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env={"PYTHONPATH": p}).stdout
        for p in [":".join(sys.path)]
        for _ in range(2)
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("lengths", "max_length", "max_ratio", "fault"),
    [
        ((5, 5), 5, None, None), ((6, 5), 5, None, "too_long"), ((5, 6), 5, 1.0, "too_long"), ((2, 4), 9, 2.0, None),
        ((2, 5), 9, 2.0, "ratio"), ((5, 2), 9, 2.0, "ratio"), ((0, 0), 9, 2.0, None), ((0, 1), 9, 2.0, "ratio"),
    ],
)  # fmt: skip
def test_length_faults(lengths: tuple[int, int], max_length: int, max_ratio: float | None, fault: str | None) -> None:
    assert length_fault(*lengths, max_length=max_length, max_ratio=max_ratio) == fault


def test_reports_add_up_and_read_well() -> None:
    report = FilterReport(kept=28_990, empty=8) + FilterReport(kept=2)
    assert str(report) == "28,992 of 29,000 kept; left out: 8 empty"
    assert str(FilterReport(kept=3)) == "3 of 3 kept"
    later = report.moved({"too_long": 2, "ratio": 1})
    assert later == FilterReport(kept=28_989, empty=8, too_long=2, ratio=1)
    assert later.read == report.read
    assert str(later) == "28,989 of 29,000 kept; left out: 8 empty, 2 too long, 1 ratio"
