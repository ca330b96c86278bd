"""Packed rows: every piece is told once, documents stay whole, windows move, and a part can be held out."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import DataConfig, DataSet, TokensConfig
from regard.data import BatchStream, PackedStore, Position, TextBatch, TextStore, hold_out, text_batch, whole_spans
from regard.data.packing import pack
from regard.text import Specials, Tokenizer, train_tokenizer

WINDOW = 12


@pytest.fixture(scope="module")
def bytewise() -> Tokenizer:
    return train_tokenizer([], TokensConfig(kind="byte"))


def store_of(texts: list[list[str]], tokenizer: Tokenizer, folder: Path) -> TextStore:
    """A file of documents for each set."""
    files = [folder / f"{number}.jsonl" for number in range(len(texts))]
    for file, documents in zip(files, texts, strict=True):
        file.write_text("".join(f'{{"text": "{text}"}}\n' for text in documents))
    config = DataConfig(sets=tuple(DataSet(files=(str(file),)) for file in files))
    return TextStore.open(config, tokenizer, folder=folder / "data")


def told(batch: TextBatch) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(batch.tokens_out, batch.lengths.tolist(), strict=True)]


def test_best_fit_wastes_little_and_loses_nothing() -> None:
    lengths = np.random.default_rng(0).integers(1, 101, size=4000)
    order, sizes = pack(lengths, 100)
    assert sorted(order.tolist()) == list(range(4000))
    rows = np.add.reduceat(lengths[order], np.concatenate([[0], sizes.cumsum()[:-1]]))
    assert rows.max() <= 100
    assert len(rows) <= 1.01 * lengths.sum() / 100 + 1
    assert [part.tolist() for part in pack(np.array([5, 5, 5]), 5)] == [[0, 1, 2], [1, 1, 1]]
    assert [len(part) for part in pack(np.array([], dtype=np.int64), 5)] == [0, 0]


def test_documents_are_told_once_and_read_from_their_begin(bytewise: Tokenizer, tmp_path: Path) -> None:
    documents = [["abc", "a much longer document than a window", "de", "f", "0123456789"], ["ghijk", "l" * 12]]
    store = store_of(documents, bytewise, tmp_path)
    packed = PackedStore(store, whole_spans(store), window=WINDOW, specials=bytewise.specials)
    assert (packed.documents, packed.long) == (7, 2)
    assert packed.pieces == sum(len(text) + 1 for part in documents for text in part)
    assert packed.lengths()[0].tolist() == packed.batch(np.arange(len(packed))).lengths.tolist()
    assert sum(packed.sets) == len(packed)
    begin, end = bytewise.specials.begin, bytewise.specials.end
    batch = packed.batch(np.arange(len(packed)))
    assert batch.positions is not None
    found: list[str] = []
    for read, out, positions, length in zip(
        batch.tokens_in.tolist(), batch.tokens_out.tolist(), batch.positions.tolist(), batch.lengths.tolist(),
        strict=True,
    ):  # fmt: skip
        for place in range(length):
            if read[place] == begin:
                assert positions[place] == 0
                found.append("")
            elif positions[place] == 0:  # a later window of a long document
                found.append("…")
            else:
                assert positions[place] == positions[place - 1] + 1
                assert read[place] == out[place - 1]
            found[-1] += "|" if out[place] == end else bytewise.decode([out[place]])
    whole = [text for text in found if not text.startswith("…") and text.endswith("|")]
    assert sorted(whole) == ["0123456789|", "abc|", "de|", "f|", "ghijk|"]
    assert "".join(text.strip("…") for text in found if text not in whole) == (
        "a much longer document than a window|" + "l" * 12 + "|"
    )


def test_windows_move_in_training_and_stay_inside(bytewise: Tokenizer, tmp_path: Path) -> None:
    text = "".join(chr(97 + i % 26) for i in range(100))
    store = store_of([[text]], bytewise, tmp_path)
    packed = PackedStore(store, whole_spans(store), window=WINDOW, specials=bytewise.specials)
    begin, end = bytewise.specials.begin, bytewise.specials.end
    whole = [begin, *bytewise.encode(text), end]
    rows = np.arange(len(packed))
    seen: set[tuple[int, ...]] = set()
    for seed in range(30):
        batch = packed.batch(rows, np.random.default_rng(seed))
        assert batch.positions is None
        assert set(batch.lengths.tolist()) == {WINDOW}
        for read, out in zip(batch.tokens_in.tolist(), batch.tokens_out.tolist(), strict=True):
            starts = [i for i in range(len(whole) - WINDOW) if whole[i : i + WINDOW] == read]
            assert any(whole[i + 1 : i + WINDOW + 1] == out for i in starts)
            seen.add(tuple(read))
    assert len(seen) > 26  # windows begin at every letter, not at every twelfth
    assert [id for row in told(packed.batch(rows)) for id in row] == whole[1:]


def test_the_same_windows_come_after_a_resume(bytewise: Tokenizer, tmp_path: Path) -> None:
    store = store_of([["x" * 50 + "yz" * 40, "short", "other"]], bytewise, tmp_path)
    packed = PackedStore(store, whole_spans(store), window=WINDOW, specials=bytewise.specials)

    def updates(position: Position | None = None) -> list[tuple[Position, list[list[int]]]]:
        with BatchStream(packed, tokens_per_batch=3 * WINDOW, seed=5, position=position) as stream:
            return [(update.after, told(update.parts[0])) for update, _ in zip(stream, range(12), strict=False)]

    first = updates()
    assert updates(first[4][0])[:7] == first[5:12]


def test_a_share_is_held_out_at_the_end(bytewise: Tokenizer, tmp_path: Path) -> None:
    text = "".join(chr(97 + i % 26) for i in range(99))
    store = store_of([[text], ["abcd"] * 10], bytewise, tmp_path)
    kept, held = hold_out(whole_spans(store), 0.1, WINDOW)
    learned, watched = (PackedStore(store, spans, window=WINDOW, specials=bytewise.specials) for spans in (kept, held))
    assert (learned.pieces, watched.pieces) == (90 + 45, 10 + 5)
    ids = [id for row in told(watched.batch(np.arange(len(watched)))) for id in row]
    assert bytewise.decode(ids) in (text[90:] + "abcd", "abcd" + text[90:])
    whole, nothing = hold_out(whole_spans(store), 0.0, WINDOW)
    assert [len(spans) for spans in whole] == [1, 10]
    assert [len(spans) for spans in nothing] == [0, 0]


def test_a_batch_is_cut_in_parts() -> None:
    rows = [[np.array([2, 5, 6, 3]), np.array([2, 7, 3])], [np.array([2, 8, 3])], [np.array([2, 3])]]
    batch = text_batch(rows, np.arange(3), pad=Specials().pad)
    assert batch.tokens_in.tolist() == [[2, 5, 6, 2, 7], [2, 8, 0, 0, 0], [2, 0, 0, 0, 0]]
    assert batch.tokens_out.tolist() == [[5, 6, 3, 7, 3], [8, 3, 0, 0, 0], [3, 0, 0, 0, 0]]
    assert batch.positions is not None
    assert batch.positions.tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert (batch.tokens, len(batch)) == (8, 3)
    first, second, third, empty = batch.cut(4)
    assert [part.tokens for part in (first, second, third, empty)] == [5, 2, 1, 0]
    assert torch.equal(second.tokens_in, torch.tensor([[2, 8]]))
