"""Labelled texts as ids on the disk, made once from the recipe's text, and batches of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config import DataConfig
from regard.config.plain import build, to_plain
from regard.data.batch import LabelledBatch, labelled_batch
from regard.data.plan import Lengths
from regard.data.prepared import Plain, content_of, prepare, tokenizer_hash
from regard.data.ragged import Ragged, RaggedWriter, id_type
from regard.data.reading import News, Report, blocks, labelled_texts
from regard.errors import InputError, nearest
from regard.text import FilterReport, Ids, LabelledText, Tokenizer, training_sets
from regard.text.filters import Fault, HashSet


class LabelledStore:
    """The labelled training texts of a recipe.

    `names` are the labels in the order of their numbers: as given, or as sorted text.
    """

    def __init__(
        self, folder: Path, notes: Plain, *, tokenizer: Tokenizer, names: Sequence[str] | None, several: bool | None,
        made: bool,
    ) -> None:  # fmt: skip
        self.report: FilterReport = build(FilterReport, notes["report"])
        """how many texts were kept, and how many left out for each reason"""
        self.sets = tuple(map(int, notes["sets"]))
        """texts of each set, which stand one behind another"""
        self.made = made
        """whether the text was read now; if not the store was there"""
        self.texts = Ragged.open(folder, "texts", id_type(tokenizer.size))
        found: list[str] = notes["labels"]  # in the order in which they came
        self.names = tuple(sorted(found) if names is None else names)
        for name in found:
            if name not in self.names:
                raise InputError(f"label {name!r}: is in the training data; {nearest(name, self.names)}")
        self.several = bool(notes["several"]) if several is None else several
        """whether a text may have no label or more than one"""
        if notes["several"] and not self.several:
            raise InputError("data.several_labels = false: some texts have several labels or none; make it true")
        self.counts = {name: dict(zip(found, notes["counts"], strict=True)).get(name, 0) for name in self.names}
        """how many texts have each label"""
        self._numbers = np.array([self.names.index(name) for name in found], dtype=np.int64)
        self._labels = Ragged.open(folder, "labels", "<i4")
        self._firsts = Ragged.open(folder, "firsts", "<i4") if notes["two"] else None
        self._specials = tokenizer.specials

    @classmethod
    def open(
        cls,
        config: DataConfig,
        tokenizer: Tokenizer,
        *,
        folder: str | Path,
        names: Sequence[str] | None = None,
        several: bool | None = None,
        report: Report | None = None,
    ) -> "LabelledStore":
        """The texts that the recipe trains on, from the cache in `folder` if they are there.

        With `names` the labels must be among them and are numbered so. `several` says whether a text may have any
        number of labels, where the texts themselves should not say it.
        """
        made_from = {
            "sets": content_of(training_sets(config)),
            "fields": [config.source_field, config.target_field, config.second_field],
            "limits": [config.max_length],
            "drop": [config.drop_duplicates],
            "lowercase": config.lowercase,
            "tokens": [tokenizer_hash(tokenizer)],
        }
        prepared = prepare(
            Path(folder), "labelled", made_from, lambda half: _fill(half, config, tokenizer, News(report))
        )
        return cls(
            prepared.folder, prepared.notes, tokenizer=tokenizer, names=names, several=several, made=prepared.made
        )

    def __len__(self) -> int:
        return len(self.texts)

    def lengths(self) -> tuple[Lengths]:
        """Each row's pieces, begin and end included, as batches hold them."""
        return (self.texts.lengths(more=2),)

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> LabelledBatch:
        """These rows as a batch; nothing is random here."""
        firsts = None if self._firsts is None else self._firsts.take(rows).values
        return labelled_batch(
            self.texts.take(rows), self._label_tensor(rows), rows, specials=self._specials, firsts=firsts
        )

    def _label_tensor(self, rows: NDArray[np.integer]) -> Tensor:
        labels = self._labels.take(rows)
        numbers = self._numbers[labels.values]
        if not self.several:
            return torch.from_numpy(numbers)
        ones = np.zeros((len(rows), len(self.names)), dtype=np.float32)
        ones[np.repeat(np.arange(len(rows)), np.diff(labels.offsets)), numbers] = 1
        return torch.from_numpy(ones)


def _fill(folder: Path, config: DataConfig, tokenizer: Tokenizer, news: News) -> Plain:
    faults: Counter[Fault] = Counter()
    counts: list[int] = []
    numbers: dict[str, int] = {}
    seen = HashSet() if config.drop_duplicates else None
    having: Counter[int] = Counter()
    several, two = False, config.second_field is not None
    with (
        RaggedWriter(folder, "texts", id_type(tokenizer.size)) as texts,
        RaggedWriter(folder, "labels", "<i4") as labels,
        RaggedWriter(folder, "firsts", "<i4") as firsts,
    ):
        for data_set in training_sets(config):
            before = texts.rows
            for block in blocks(labelled_texts(config, data_set.files)):
                news.more(len(block))
                rows = _different(_not_blank(block, faults), seen, faults)
                kept = []
                for row, (ids, first) in zip(rows, joined_texts(rows, tokenizer), strict=True):
                    if len(ids) > config.max_length:
                        faults["too_long"] += 1
                    else:
                        own = [numbers.setdefault(label, len(numbers)) for label in dict.fromkeys(row.labels)]
                        kept.append((ids, own, first))
                texts.add([ids for ids, _, _ in kept])
                labels.add([np.array(own, dtype=np.int32) for _, own, _ in kept])
                firsts.add([np.array([first], dtype=np.int32) for _, _, first in kept] if two else [])
                having.update(number for _, own, _ in kept for number in own)
                several = several or any(len(own) != 1 for _, own, _ in kept)
            counts.append(texts.rows - before)
    report = FilterReport(kept=sum(counts) + faults.total()).moved(dict(faults))
    if not report.kept:
        raise InputError(f"data: no texts to train on ({report})")
    return {
        "sets": counts, "report": to_plain(report), "labels": list(numbers), "several": several, "two": two,
        "counts": [having[number] for number in numbers.values()],
    }  # fmt: skip


def joined_texts(rows: Sequence[LabelledText], tokenizer: Tokenizer) -> Iterator[tuple[Ids, int]]:
    """Each row's ids, of two texts with an end between them; and how many are the first one's, that end included."""
    firsts = tokenizer.encode_all([row.text for row in rows])
    seconds = iter(tokenizer.encode_all([row.second for row in rows if row.second is not None]))
    for row, ids in zip(rows, firsts, strict=True):
        if row.second is None:
            yield ids, len(ids)
        else:
            yield np.concatenate([ids, [tokenizer.specials.end], next(seconds)]).astype(np.int32), len(ids) + 1


def _not_blank(block: list[LabelledText], faults: Counter[Fault]) -> list[LabelledText]:
    kept = [row for row in block if row.text.strip() and (row.second is None or row.second.strip())]
    faults["empty"] += len(block) - len(kept)
    return kept


def _different(rows: list[LabelledText], seen: HashSet | None, faults: Counter[Fault]) -> list[LabelledText]:
    if seen is None:
        return rows
    new = seen.add(["\0".join((row.text, row.second or "", *row.labels)).encode() for row in rows])
    faults["duplicates"] += len(rows) - int(new.sum())
    return [row for row, first in zip(rows, new.tolist(), strict=True) if first]
