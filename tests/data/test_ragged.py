"""Rows of different lengths: on the disk as in memory."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import fill
from regard.data.ragged import Ragged, RaggedWriter, id_type
from regard.text import Specials

ROWS = st.lists(st.lists(st.integers(0, 60_000), max_size=6), max_size=12)


def arrays(rows: list[list[int]]) -> list[np.ndarray]:
    return [np.array(row, dtype=np.int32) for row in rows]


@settings(derandomize=True, max_examples=100, deadline=None)
@given(ROWS, st.integers(1, 5), st.sampled_from(["<u2", "<i4"]))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], step: int, dtype: str
) -> None:
    folder = tmp_path_factory.mktemp("ragged")
    with RaggedWriter(folder, "x", dtype) as writer:
        for start in range(0, len(rows), step):
            writer.add(arrays(rows[start : start + step]))
        for row in rows:
            for part in np.array_split(np.array(row, dtype=np.int32), 2):
                writer.extend(part)
            writer.end_row()
        assert writer.rows == 2 * len(rows)
    back = Ragged.open(folder, "x", dtype)
    assert [row.tolist() for row in (back[i] for i in range(len(back)))] == rows + rows
    assert back.values.dtype == np.dtype(dtype)
    assert back.lengths(more=2).tolist() == [len(row) + 2 for row in rows + rows]
    some = np.arange(len(back))[::-2]
    taken = back.take(some)
    assert [taken[i].tolist() for i in range(len(taken))] == [(rows + rows)[i] for i in some]


def test_files_are_mapped_and_not_read(tmp_path: Path) -> None:
    with RaggedWriter(tmp_path, "x", "<u2") as writer:
        writer.add(arrays([[1, 2], [3]]))
    back = Ragged.open(tmp_path, "x", "<u2")
    assert [len(map) for map in back.maps] == [6, 24]
    back.release()
    assert back[0].tolist() == [1, 2], "what was given back is mapped again"
    with pytest.raises(ValueError, match="read-only"):
        back.values[0] = 5


def test_lengths_take_the_narrowest_type() -> None:
    for length, more, dtype in ((254, 1, "u1"), (255, 1, "u2"), (70_000, 0, "u4")):
        lengths = Ragged.of([np.zeros(length, dtype=np.int32), np.zeros(1, dtype=np.int32)]).lengths(more=more)
        assert lengths.tolist() == [length + more, 1 + more]
        assert lengths.dtype == dtype
    assert Ragged.of([]).lengths().tolist() == []


def test_ids_are_as_narrow_as_the_vocabulary_allows() -> None:
    assert (id_type(2**16), id_type(2**16 + 1)) == ("<u2", "<i4")


@settings(derandomize=True, max_examples=100, deadline=None)
@given(ROWS, st.booleans(), st.booleans())
def test_rows_are_filled_up(rows: list[list[int]], begin: bool, end: bool) -> None:
    specials = Specials(pad=9, begin=7, end=8)
    ids, lengths = fill(Ragged.of(arrays(rows)), specials, begin=begin, end=end)
    whole = [[7] * begin + row + [8] * end for row in rows]
    longest = max(map(len, whole), default=begin + end)
    assert ids.tolist() == [row + [9] * (longest - len(row)) for row in whole]
    assert lengths.tolist() == [len(row) for row in whole]
