"""Sentence pairs as ids on the disk, made once from the recipe's text, and batches of them.

Training data of any size is streamed in and mapped, never held. Validation and test text is small and is read directly.
"""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config import DataConfig
from regard.config.plain import build, to_plain
from regard.data.batch import PairBatch, pair_batch
from regard.data.plan import Lengths
from regard.data.prepared import Plain, content_of, prepare, tokenizer_hash
from regard.data.ragged import Ragged, RaggedWriter, id_type
from regard.data.reading import News, Report, blocks, text_pairs
from regard.errors import InputError
from regard.text import FilterReport, Ids, PairFilter, TextPair, Tokenizer, length_fault, training_sets
from regard.text.filters import Fault


class PairStore:
    """The training pairs of a recipe.

    A row's source begins with the id of its tag, if it has one. With `sampling` above 0 the text is kept as well, and
    each batch's pieces are cut anew.
    """

    def __init__(
        self, folder: Path, notes: Plain, *, tokenizer: Tokenizer, source_tokenizer: Tokenizer, sampling: float,
        max_length: int, made: bool,
    ) -> None:  # fmt: skip
        self.report: FilterReport = build(FilterReport, notes["report"])
        """how many pairs were kept, and how many left out for each reason"""
        self.sets = tuple(map(int, notes["sets"]))
        """pairs of each set, which stand one behind another"""
        self.made = made
        """whether the text was read now; if not the store was there"""
        self.source = Ragged.open(folder, "source", id_type(source_tokenizer.size))
        self.target = Ragged.open(folder, "target", id_type(tokenizer.size))
        self._tokenizer, self._source_tokenizer = tokenizer, source_tokenizer
        self._sampling, self._max_length = sampling, max_length
        self._texts = [Ragged.open(folder, f"{side}.text", "u1") for side in ("source", "target")] if sampling else []
        self._tags = {source_tokenizer.tag_id(tag) for tag in source_tokenizer.tags}

    @classmethod
    def open(
        cls,
        config: DataConfig,
        tokenizer: Tokenizer,
        *,
        folder: str | Path,
        source_tokenizer: Tokenizer | None = None,
        sampling: float = 0.0,
        report: Report | None = None,
    ) -> "PairStore":
        """The pairs that the recipe trains on, from the cache in `folder` if they are there.

        Without a source's own tokeniser one serves both sides. `report` is told in a line how far it is.
        """
        reader = source_tokenizer or tokenizer
        sets = training_sets(config)
        made_from = {
            "sets": content_of(sets),
            "fields": [config.source_field, config.target_field, config.tag_field],
            "limits": [config.max_length, config.max_ratio],
            "drop": [config.drop_duplicates, config.drop_copies],
            "lowercase": config.lowercase,
            "tokens": [tokenizer_hash(reader), tokenizer_hash(tokenizer)],
            "text": sampling > 0,
        }

        def make(half: Path) -> Plain:
            return _Maker(config, tokenizer, reader, keep_text=sampling > 0, report=report).fill(half)

        prepared = prepare(Path(folder), "pairs", made_from, make)
        return cls(
            prepared.folder, prepared.notes, tokenizer=tokenizer, source_tokenizer=reader, sampling=sampling,
            max_length=config.max_length, made=prepared.made,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.target)

    def lengths(self) -> tuple[Lengths, Lengths]:
        """Each row's pieces on both sides, end included, as batches hold them (when nothing is sampled)."""
        return self.source.lengths(more=1), self.target.lengths(more=1)

    def batch(self, rows: NDArray[np.integer], random: np.random.Generator | None = None) -> PairBatch:
        """These rows as a batch. With `random`, and if the store was opened for sampling, pieces are cut at random.

        Sampled cuts are longer than the stored ones that batches were planned by. One that is longer than a text may
        be is not taken: the row keeps its stored cut.
        """
        source, target = self.source.take(rows), self.target.take(rows)
        if random is not None and self._texts:
            source = self._sampled(source, rows, self._texts[0], self._source_tokenizer, random)
            target = self._sampled(target, rows, self._texts[1], self._tokenizer, random)
        return pair_batch(
            source, target, rows, source_specials=self._source_tokenizer.specials, specials=self._tokenizer.specials
        )

    def _sampled(
        self, stored: Ragged, rows: NDArray[np.integer], texts: Ragged, tokenizer: Tokenizer,
        random: np.random.Generator,
    ) -> Ragged:  # fmt: skip
        cuts = tokenizer.sample_all([texts[row].tobytes().decode() for row in rows.tolist()], self._sampling, random)
        result: list[Ids] = []
        for number, cut in enumerate(cuts):
            known = stored[number]
            tag = known[: int(known[0]) in self._tags]  # text never gives a tag's id
            result.append(np.concatenate([tag, cut]) if 0 < len(cut) <= self._max_length else known)
        return Ragged.of(result)


class _Maker:
    """Streams the text into a store's files."""

    def __init__(
        self, config: DataConfig, tokenizer: Tokenizer, source_tokenizer: Tokenizer, *, keep_text: bool,
        report: Report | None,
    ) -> None:  # fmt: skip
        self._config, self._keep_text = config, keep_text
        self._target, self._source = tokenizer, source_tokenizer
        self._faults: Counter[Fault] = Counter()
        self._news = News(report)
        self._tags: dict[str, Ids] = {}

    def fill(self, folder: Path) -> Plain:
        """Write the files; the notes say what was left out, and how many rows each set has."""
        config, counts = self._config, []
        keep = PairFilter(drop_copies=config.drop_copies, drop_duplicates=config.drop_duplicates)
        with ExitStack() as open_files:
            source = open_files.enter_context(RaggedWriter(folder, "source", id_type(self._source.size)))
            target = open_files.enter_context(RaggedWriter(folder, "target", id_type(self._target.size)))
            sides = ("source", "target") if self._keep_text else ()
            texts = [open_files.enter_context(RaggedWriter(folder, f"{side}.text", "u1")) for side in sides]
            for data_set in training_sets(config):
                before = target.rows
                where = ", ".join(data_set.files)
                for block in blocks(keep(text_pairs(config, data_set.files, tag=data_set.tag))):
                    rows = self._short_enough(block)
                    source.add([self._tagged(ids, pair, where) for pair, ids, _ in rows])
                    target.add([ids for _, _, ids in rows])
                    if texts:
                        texts[0].add([_bytes(pair.source) for pair, _, _ in rows])
                        texts[1].add([_bytes(pair.target) for pair, _, _ in rows])
                    self._news.more(len(block))
                counts.append(target.rows - before)
        report = keep.report.moved(dict(self._faults))
        if not report.kept:
            raise InputError(f"data: no pairs to train on ({report})")
        return {"sets": counts, "report": to_plain(report)}

    def _short_enough(self, block: list[TextPair]) -> list[tuple[TextPair, Ids, Ids]]:
        """The pairs that are not too long or too uneven, with their ids; tags and ends do not count."""
        config, kept = self._config, []
        sources = self._source.encode_all([pair.source for pair in block])
        targets = self._target.encode_all([pair.target for pair in block])
        for pair, source, target in zip(block, sources, targets, strict=True):
            fault: Fault | None = "empty" if not (len(source) and len(target)) else None
            fault = fault or length_fault(
                len(source), len(target), max_length=config.max_length, max_ratio=config.max_ratio
            )
            if fault:
                self._faults[fault] += 1
            else:
                kept.append((pair, source, target))
        return kept

    def _tagged(self, ids: Ids, pair: TextPair, where: str) -> Ids:
        if pair.tag is None:
            return ids
        if pair.tag not in self._tags:
            try:
                self._tags[pair.tag] = np.array([self._source.tag_id(pair.tag)], dtype=np.int32)
            except InputError as error:
                raise InputError(f"{where}, line {pair.line}: {error}") from None
        return np.concatenate([self._tags[pair.tag], ids])


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)
