"""The pair store: what is kept and counted, what is in a batch, and when it is made anew."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.config import DataConfig, DataSet, TokensConfig
from regard.data import PairStore, text_pairs
from regard.errors import InputError
from regard.text import FilterReport, Tokenizer, train_tokenizer

Corpus = Callable[..., tuple[str, str]]
Files = Callable[[Path], set[str]]


def stores(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_rows_are_the_encoded_text(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=corpus(50))
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    pairs = list(text_pairs(config, config.train))
    assert len(store) == len(pairs) == 50
    assert store.sets == (50,)
    for row, pair in enumerate(pairs):
        assert store.source[row].tolist() == tokenizer.encode(pair.source)
        assert store.target[row].tolist() == tokenizer.encode(pair.target)
    assert store.source.values.dtype == np.uint16


def test_a_batch_is_filled_up_and_says_what_is_real(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=corpus(50))
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    rows = np.array([7, 3, 3, 40])
    batch = store.batch(rows)
    pad, begin, end = tokenizer.specials.pad, tokenizer.specials.begin, tokenizer.specials.end
    pairs = [list(text_pairs(config, config.train))[row] for row in rows]

    def filled(ids: list[list[int]]) -> list[list[int]]:
        return [row + [pad] * (max(map(len, ids)) - len(row)) for row in ids]

    sources, targets = ([tokenizer.encode(pair[side]) for pair in pairs] for side in (0, 1))
    assert batch.index.tolist() == rows.tolist()
    assert batch.source.tolist() == filled([[*ids, end] for ids in sources])
    assert batch.target_in.tolist() == filled([[begin, *ids] for ids in targets])
    assert batch.target_out.tolist() == filled([[*ids, end] for ids in targets])
    assert batch.source_lengths.tolist() == [len(ids) + 1 for ids in sources]
    assert batch.target_lengths.tolist() == [len(ids) + 1 for ids in targets]
    assert batch.tokens == sum(len(ids) + 1 for ids in targets)
    for side, lengths in zip(store.lengths(), (batch.source_lengths, batch.target_lengths), strict=True):
        assert side[rows].tolist() == lengths.tolist()
    moved = batch.to("meta")
    assert {getattr(moved, name).device.type for name in vars(batch)} == {"meta"}


def test_sides_may_have_tokenisers_of_their_own(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """A batch once could be filled up with the other side's pad; here the two are different ids."""
    config = DataConfig(train=corpus(20))
    reader = train_tokenizer([], TokensConfig(kind="byte"))
    reader.specials = replace(reader.specials, pad=1, unknown=0, end=2, begin=3)
    store = PairStore.open(config, tokenizer, source_tokenizer=reader, folder=tmp_path / "data")
    batch = store.batch(np.arange(20))
    pairs = list(text_pairs(config, config.train))
    assert [row[: n - 1].tolist() for row, n in zip(batch.source, batch.source_lengths, strict=True)] == [
        reader.encode(pair.source) for pair in pairs
    ]
    assert {row[n - 1].item() for row, n in zip(batch.source, batch.source_lengths, strict=True)} == {2}
    assert {i for row, n in zip(batch.source, batch.source_lengths, strict=True) for i in row[n:].tolist()} == {1}
    assert {i for row, n in zip(batch.target_in, batch.target_lengths, strict=True) for i in row[n:].tolist()} == {0}


def test_what_is_left_out_is_counted(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    pairs = [
        ("kedi", "the house"), ("", "day"), ("su", "  "), ("kedi", "the house"), ("yol", "yol"),
        ("su " * 30, "water"), ("ev", "house and " * 30), ("gün", "the day and the house"), ("ev", "house"),
    ]  # fmt: skip
    files = corpus(pairs=pairs)

    def report(config: DataConfig) -> FilterReport:
        store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
        assert len(store) == store.report.kept == sum(store.sets)
        return store.report

    config = DataConfig(train=files, max_length=20)
    assert report(config) == FilterReport(kept=5, empty=2, too_long=2)
    assert str(report(config)) == "5 of 9 kept; left out: 2 empty, 2 too long"
    assert report(replace(config, drop_copies=True)) == FilterReport(kept=4, empty=2, too_long=2, copies=1)
    assert report(replace(config, drop_duplicates=True)) == FilterReport(kept=4, empty=2, too_long=2, duplicates=1)
    lengths = [[len(tokenizer.encode(text)) for text in pair] for pair in pairs if all(map(str.strip, pair))]
    uneven = sum(max(pair) > 4 * min(pair) for pair in lengths if max(pair) <= 20)
    assert uneven
    assert report(replace(config, max_ratio=4)) == FilterReport(kept=5 - uneven, empty=2, too_long=2, ratio=uneven)
    assert report(replace(config, max_length=256)) == FilterReport(kept=7, empty=2)


def test_the_longest_text_allowed_is_kept(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Tags and ends do not count: they are the model's, not the text's."""
    files = corpus(pairs=[("kedi su yol", "the house")])
    length = len(tokenizer.encode("kedi su yol"))
    config = DataConfig(train=files, max_length=length, tag="<2fr>")
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    assert store.lengths()[0].tolist() == [length + 2]
    with pytest.raises(InputError, match=r"data: no pairs to train on \(0 of 1 kept; left out: 1 too long\)"):
        PairStore.open(replace(config, max_length=length - 1), tokenizer, folder=tmp_path / "data")


def test_sets_stand_one_behind_another_with_their_tags(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    table = tmp_path / "more.tsv.gz"
    table.write_bytes(gzip.compress("ev\thouse\ngün\tday\nev\thouse\n".encode()))
    lines = ({"source": "su", "target": "water"}, {"source": "yol", "target": ""})
    objects = tmp_path / "more.jsonl"
    objects.write_text("\n".join(map(json.dumps, lines)))
    sets = (DataSet(files=(str(table),), weight=2, tag="<2fr>"), DataSet(files=(str(objects),)))
    config = DataConfig(train=corpus(10), tag="<2tr>", sets=sets, drop_duplicates=True)
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    assert store.sets == (10, 2, 1)
    assert store.report == FilterReport(kept=13, duplicates=1, empty=1)
    to_tr, to_fr = tokenizer.tag_id("<2tr>"), tokenizer.tag_id("<2fr>")
    assert {store.source[row][0] for row in range(10)} == {to_tr}
    assert [store.source[row].tolist() for row in (10, 11, 12)] == [
        [to_fr, *tokenizer.encode("ev")], [to_fr, *tokenizer.encode("gün")], tokenizer.encode("su"),
    ]  # fmt: skip


def test_each_line_may_have_its_own_tag(tokenizer: Tokenizer, tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("ev\thouse\t<2fr>\nev\tmaison\t<2tr>\n")
    config = DataConfig(train=(str(table),), tag_field="3")
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    assert [store.source[row][0] for row in (0, 1)] == [tokenizer.tag_id("<2fr>"), tokenizer.tag_id("<2tr>")]
    table.write_text("ev\thouse\t<2fr>\nev\tmaison\t<2xy>\n")
    with pytest.raises(InputError, match=r"a\.tsv, line 2: tag '<2xy>'"):
        PairStore.open(config, tokenizer, folder=tmp_path / "data")


def test_a_sets_own_tag_goes_before_the_field(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Parallel files beside a table with a column of tags were once refused, though their set had a tag."""
    table, source, target = tmp_path / "a.tsv", tmp_path / "a.en", tmp_path / "a.fr"
    table.write_text("the house\tev\t<2tr>\n", encoding="utf-8")
    source.write_text("the day\n", encoding="utf-8")
    target.write_text("le jour\n", encoding="utf-8")
    config = DataConfig(
        train=(str(table),), tag_field="3", sets=(DataSet(files=(str(source), str(target)), tag="<2fr>"),)
    )
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    assert [int(store.source[row][0]) for row in range(2)] == [tokenizer.tag_id("<2tr>"), tokenizer.tag_id("<2fr>")]
    with pytest.raises(InputError, match=r"data.tag = '<2fr>' and data.tag_field = '3': state one of them"):
        DataConfig(tag="<2fr>", tag_field="3")


def test_lower_case_reaches_the_filters_too(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=corpus(pairs=[("Ev", "THE House"), ("eV", "the house")]), drop_duplicates=True)
    assert len(PairStore.open(config, tokenizer, folder=tmp_path / "data")) == 2
    store = PairStore.open(replace(config, lowercase=True), tokenizer, folder=tmp_path / "data")
    assert len(store) == 1
    assert store.target[0].tolist() == tokenizer.encode("the house")


def test_a_store_is_made_once(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    """What it was made from decides; names of files, dates and weights do not."""
    files, place = corpus(30), tmp_path / "data"
    config = DataConfig(train=files)
    first = PairStore.open(config, tokenizer, folder=place)
    assert first.made
    made = stores(place)
    again = PairStore.open(config, tokenizer, folder=place)
    assert not again.made
    assert (again.report, again.sets, len(again)) == (first.report, first.sets, len(first))
    assert again.target.values.tolist() == first.target.values.tolist()
    moved = tuple(str(Path(file).rename(tmp_path / f"other{Path(file).suffix}")) for file in files)
    for file in moved:
        Path(file).touch()
    assert not PairStore.open(replace(config, train=moved), tokenizer, folder=place).made
    heavy = DataConfig(sets=(DataSet(files=moved, weight=3),))
    assert not PairStore.open(heavy, tokenizer, folder=place).made
    assert stores(place) == made


def test_a_store_is_made_anew_when_anything_that_matters_changes(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    files, place = corpus(30), tmp_path / "data"
    config = DataConfig(train=files)
    assert PairStore.open(config, tokenizer, folder=place).made
    changed = [
        replace(config, max_length=20), replace(config, max_ratio=3), replace(config, drop_copies=True),
        replace(config, drop_duplicates=True), replace(config, lowercase=True), replace(config, tag="<2fr>"),
        replace(config, train=files[::-1]), replace(config, sets=(DataSet(files=files),)),
    ]  # fmt: skip
    for other in changed:
        assert PairStore.open(other, tokenizer, folder=place).made, other
    words = train_tokenizer(["kedi köpek the house"], TokensConfig(kind="word", size=300), ("<2fr>",))
    assert PairStore.open(config, words, folder=place).made
    assert PairStore.open(config, tokenizer, source_tokenizer=words, folder=place).made
    assert PairStore.open(config, tokenizer, sampling=0.1, folder=place).made
    assert not PairStore.open(config, tokenizer, folder=place).made

    # The same size and date, one letter changed.
    text, stat = Path(files[0]), Path(files[0]).stat()
    content = text.read_text(encoding="utf-8")
    text.write_text(content.replace("kedi", "keyi", 1), encoding="utf-8")
    os.utime(text, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert text.stat().st_size == stat.st_size
    store = PairStore.open(config, tokenizer, folder=place)
    assert store.made
    assert "keyi" in " ".join(tokenizer.decode(store.source[row].tolist()) for row in range(len(store)))


def test_sampled_pieces_say_the_same_text(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=corpus(40), tag="<2fr>")
    plain = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    store = PairStore.open(config, tokenizer, sampling=0.3, folder=tmp_path / "data")
    rows = np.arange(40)

    def random() -> np.random.Generator:
        return np.random.default_rng(1)

    one, two, other = store.batch(rows, random()), store.batch(rows, random()), store.batch(rows)
    assert one.source.tolist() == two.source.tolist()
    assert one.target_out.tolist() == two.target_out.tolist()
    assert one.tokens > other.tokens
    assert other.source.tolist() == plain.batch(rows, random()).source.tolist()
    for row, pair in enumerate(text_pairs(config, config.train)):
        source, target = (ids[row].tolist() for ids in (one.source, one.target_out))
        assert source[0] == tokenizer.tag_id("<2fr>")
        assert source[one.source_lengths[row] - 1] == tokenizer.specials.end
        assert tokenizer.decode(source) == pair.source
        assert tokenizer.decode(target) == pair.target


def test_sampled_pieces_are_never_too_many(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = DataConfig(train=corpus(40))
    longest = int(max(side.max() for side in PairStore.open(config, tokenizer, folder=tmp_path).lengths())) - 1
    store = PairStore.open(replace(config, max_length=longest), tokenizer, sampling=0.9, folder=tmp_path)
    batch = store.batch(np.arange(40), np.random.default_rng(0))
    assert longest // 2 < batch.target_lengths.max() <= longest + 1
    assert batch.source_lengths.max() <= longest + 1


def test_a_large_vocabulary_is_stored_in_four_bytes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train_tokenizer(
        [f"w{i}" for i in range(70_000)], TokensConfig(kind="word", size=70_000, byte_fallback=False)
    )
    assert tokenizer.size > 2**16
    config = DataConfig(train=corpus(pairs=[(" ".join(f"w{i}" for i in range(0, 70_000, 700)), "w69999 w1")]))
    store = PairStore.open(config, tokenizer, folder=tmp_path / "data")
    assert store.source.values.dtype == np.int32
    assert tokenizer.decode(store.target[0].tolist()) == "w69999 w1"


def test_progress_is_told_every_million_rows(
    corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.reading._NEWS", 10_000)
    told: list[str] = []
    config = DataConfig(train=corpus(pairs=[("ev", "house")] * 25_000))
    PairStore.open(config, tokenizer, folder=tmp_path / "data", report=told.append)
    assert told == ["16,384 rows prepared", "24,576 rows prepared"]
