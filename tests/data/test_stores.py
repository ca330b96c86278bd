"""Stores of plain text and of labelled text."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig, DataSet
from regard.data import BatchStream, LabelledStore, TextStore
from regard.errors import InputError
from regard.text import FilterReport, Tokenizer

Corpus = Callable[..., tuple[str, str]]


def test_documents_are_rows(tokenizer: Tokenizer, tmp_path: Path) -> None:
    text, objects = tmp_path / "a.txt", tmp_path / "b.jsonl"
    text.write_text("The kedi\n\n  su\n", encoding="utf-8")
    objects.write_text("\n".join(json.dumps({"text": part}) for part in ("yol", " ", "gün\nev")))
    config = DataConfig(train=(str(text),), sets=(DataSet(files=(str(objects),)),))
    store = TextStore.open(config, tokenizer, folder=tmp_path / "data")
    decoded = [tokenizer.decode(store.documents[row].tolist()) for row in range(len(store))]
    assert decoded == ["The kedi\n\n  su\n", "yol", "gün\nev"]
    assert store.sets == (1, 2)
    assert store.report == FilterReport(kept=3, empty=1)
    assert not TextStore.open(config, tokenizer, folder=tmp_path / "data").made
    lower = TextStore.open(replace(config, lowercase=True), tokenizer, folder=tmp_path / "data")
    assert tokenizer.decode(lower.documents[0].tolist()) == "the kedi\n\n  su\n"
    text.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"data: no text to train on \(0 of 1 kept; left out: 1 empty\)"):
        TextStore.open(DataConfig(train=(str(text),)), tokenizer, folder=tmp_path / "data")


def test_a_long_document_comes_in_parts_and_is_one_row(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.documents._CHARACTERS", 1_500_000)
    files = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt")]
    texts = ["the house and water\n" * 200_000, "kedi\n", "köpek gün\n" * 150_000]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    store = TextStore.open(DataConfig(train=tuple(map(str, files))), tokenizer, folder=tmp_path / "data")
    assert len(store) == 3
    for row, text in enumerate(texts):
        assert tokenizer.decode(store.documents[row].tolist()) == text


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "a.tsv"
    path.write_text("good film\t1\nbad film\t0\n \t1\nbad film\t0\nbad film\t1\n" + "the " * 50 + "\t0\n")
    return str(path)


def test_labelled_texts(table: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=(table,), max_length=40)
    store = LabelledStore.open(config, tokenizer, folder=tmp_path / "data")
    assert store.report == FilterReport(kept=4, empty=1, too_long=1)
    assert (store.names, store.several) == (("0", "1"), False)
    batch = store.batch(np.array([1, 0]))
    specials = tokenizer.specials
    ids = [[specials.begin, *tokenizer.encode(text), specials.end] for text in ("bad film", "good film")]
    assert [row[:n].tolist() for row, n in zip(batch.texts, batch.lengths, strict=True)] == ids
    assert batch.labels.tolist() == [0, 1]
    assert batch.tokens == len(batch) == 2
    assert store.lengths()[0][[1, 0]].tolist() == batch.lengths.tolist()
    once = LabelledStore.open(replace(config, drop_duplicates=True), tokenizer, folder=tmp_path / "data")
    assert once.report == FilterReport(kept=3, empty=1, too_long=1, duplicates=1)
    assert not LabelledStore.open(config, tokenizer, folder=tmp_path / "data").made


def test_names_of_labels_may_be_given(table: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=(table,))
    store = LabelledStore.open(config, tokenizer, names=("1", "neutral", "0"), folder=tmp_path)
    assert store.batch(np.arange(2)).labels.tolist() == [0, 2]
    with pytest.raises(InputError, match="label '1': is in the training data; there is bad, good"):
        LabelledStore.open(config, tokenizer, names=("bad", "good"), folder=tmp_path)


def test_texts_with_several_labels(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [("kedi", ["b", "a"]), ("su", []), ("ev", "c")]
    path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in rows))
    store = LabelledStore.open(DataConfig(train=(str(path),)), tokenizer, folder=tmp_path / "data")
    assert store.several
    assert store.names == ("a", "b", "c")
    assert store.batch(np.array([2, 0, 1])).labels.tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]


def test_labelled_texts_stream_too(table: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    store = LabelledStore.open(DataConfig(train=(table,)), tokenizer, folder=tmp_path / "data")
    with BatchStream(store, tokens_per_batch=30, seed=0) as stream:
        seen: list[int] = []
        for update in stream:
            seen += [row for part in update.parts for row in part.index.tolist()]
            if update.after.epoch:
                break
    assert sorted(seen) == list(range(len(store)))
    assert len(update.padding) == 1
