"""Plain text as ids on the disk, made once: the documents that a language model learns from."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.config import DataConfig, DataSet
from regard.config.plain import build, to_plain
from regard.data.prepared import Plain, content_of, prepare, tokenizer_hash
from regard.data.ragged import Ragged, RaggedWriter, id_type
from regard.data.reading import News, Report
from regard.errors import InputError
from regard.text import FilterReport, Ids, Tokenizer, read_texts, training_sets

_CHARACTERS, _PARTS = 2_000_000, 8192
"""what is cut into pieces at a time"""


class TextStore:
    """The training documents of a recipe: one row each, without begin or end; a long document is not cut."""

    def __init__(self, folder: Path, notes: Plain, *, tokenizer: Tokenizer, made: bool) -> None:
        self.report: FilterReport = build(FilterReport, notes["report"])
        """how many documents were kept, and how many were blank"""
        self.sets = tuple(map(int, notes["sets"]))
        """documents of each set, which stand one behind another"""
        self.made = made
        """whether the text was read now; if not the store was there"""
        self.documents = Ragged.open(folder, "documents", id_type(tokenizer.size))

    @classmethod
    def open(
        cls, config: DataConfig, tokenizer: Tokenizer, *, folder: str | Path, report: Report | None = None
    ) -> "TextStore":
        """The text that the recipe trains on, from the cache in `folder` if it is there."""
        made_from = {
            "sets": content_of(training_sets(config)),
            "fields": [config.source_field],
            "lowercase": config.lowercase,
            "tokens": [tokenizer_hash(tokenizer)],
        }
        prepared = prepare(Path(folder), "text", made_from, lambda half: _fill(half, config, tokenizer, News(report)))
        return cls(prepared.folder, prepared.notes, tokenizer=tokenizer, made=prepared.made)

    def __len__(self) -> int:
        return len(self.documents)


def _fill(folder: Path, config: DataConfig, tokenizer: Tokenizer, news: News) -> Plain:
    counts: list[int] = []
    empty = 0
    with RaggedWriter(folder, "documents", id_type(tokenizer.size)) as documents:
        for data_set in training_sets(config):
            before = documents.rows
            for part, ids in _encoded(_parts(config, data_set), tokenizer):
                if part.begins and part.ends and not part.text.strip():
                    empty += 1
                    continue
                documents.extend(ids)
                if part.ends:
                    documents.end_row()
                    news.more(1)
            counts.append(documents.rows - before)
    report = FilterReport(kept=sum(counts), empty=empty)
    if not report.kept:
        raise InputError(f"data: no text to train on ({report})")
    return {"sets": counts, "report": to_plain(report)}


class _Part(NamedTuple):
    """A piece of a document, or a whole one."""

    text: str
    begins: bool
    ends: bool


def _parts(config: DataConfig, data_set: DataSet) -> Iterator[_Part]:
    begins = True
    for chunk in read_texts(data_set.files, text_field=config.source_field):
        yield _Part(chunk.text.lower() if config.lowercase else chunk.text, begins, chunk.last)
        begins = chunk.last


def _encoded(parts: Iterator[_Part], tokenizer: Tokenizer) -> Iterator[tuple[_Part, Ids]]:
    """Each part with its ids: those that begin a document many at a time, those that go on one by one."""
    for block in _bounded(parts):
        whole = iter(tokenizer.encode_all([part.text for part in block if part.begins]))
        for part in block:
            continued = None if part.begins else tokenizer.encode(part.text, continued=True)
            yield part, next(whole) if continued is None else np.array(continued, dtype=np.int32)


def _bounded(parts: Iterator[_Part]) -> Iterator[list[_Part]]:
    block: list[_Part] = []
    held = 0
    for part in parts:
        block.append(part)
        held += len(part.text)
        if held >= _CHARACTERS or len(block) >= _PARTS:
            yield block
            block, held = [], 0
    if block:
        yield block
