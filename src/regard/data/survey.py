"""What is in a recipe's text, counted before anything is learned: rows, faults, lengths, what stands in two parts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.config import DataConfig
from regard.data.reading import text_pairs
from regard.errors import InputError
from regard.text import FilterReport, PairFilter, TextPair, training_sets
from regard.text.filters import HashSet

PERCENTILES = (50, 95, 99, 100)
LONGEST = 1000
"""words from which lengths are counted as this"""
_BLOCK = 8192


@dataclass(frozen=True, kw_only=True)
class Survey:
    """One set of pairs."""

    part: str
    """training, validation or test"""
    files: tuple[str, ...]
    tag: str | None
    weight: float
    report: FilterReport
    """what is kept and why the rest is not, lengths aside"""
    words: tuple[tuple[int, ...], tuple[int, ...]]
    """of source and target: how many words the middle text has, the 95th of 100, the 99th, and the longest"""
    known: int
    """kept pairs whose source text stands in the training text too"""


def survey(config: DataConfig) -> Iterator[Survey]:
    """Every set of the recipe's text, one after another: training first."""
    seen = HashSet()
    keep = PairFilter(drop_copies=config.drop_copies, drop_duplicates=config.drop_duplicates)
    counted = FilterReport()
    for data_set in training_sets(config):
        pairs = keep(text_pairs(config, data_set.files, tag=data_set.tag))
        words, _ = _count(pairs, seen, learn=True)
        mine = FilterReport(**{name: getattr(keep.report, name) - getattr(counted, name) for name in _COUNTS})
        counted = keep.report
        yield Survey(
            part="training", files=data_set.files, tag=data_set.tag, weight=data_set.weight, report=mine, words=words,
            known=0,
        )  # fmt: skip
    for part, files in (("validation", config.valid), ("test", config.test)):
        if files:
            whole = PairFilter()
            words, known = _count(whole(text_pairs(config, files, tag=config.tag)), seen, learn=False)
            yield Survey(
                part=part, files=files, tag=config.tag, weight=1.0, report=whole.report, words=words, known=known
            )


_COUNTS = ("kept", "empty", "copies", "duplicates")


def _count(
    pairs: Iterable[TextPair], seen: HashSet, *, learn: bool
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """Percentiles of the words of both sides, and how many sources were seen before."""
    counts = np.zeros((2, LONGEST + 1), dtype=np.int64)
    known = 0
    for block in _blocks(pairs):
        keys = [pair.source.encode() for pair in block]
        if learn:
            seen.add(keys)
        else:
            known += int((~seen.new(keys)).sum())
        for side, texts in enumerate(([pair.source for pair in block], [pair.target for pair in block])):
            lengths = np.array([len(text.split()) for text in texts])
            counts[side] += np.bincount(np.minimum(lengths, LONGEST), minlength=LONGEST + 1)
    return (_percentiles(counts[0]), _percentiles(counts[1])), known


def _blocks(pairs: Iterable[TextPair]) -> Iterator[list[TextPair]]:
    block: list[TextPair] = []
    for pair in pairs:
        block.append(pair)
        if len(block) == _BLOCK:
            yield block
            block = []
    if block:
        yield block


def _percentiles(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, ...]:
    total = int(counts.sum())
    if not total:
        return (0,) * len(PERCENTILES)
    ends = np.cumsum(counts)
    return tuple(int(np.searchsorted(ends, max(1, share * total / 100))) for share in PERCENTILES)


def survey_table(rows: Sequence[Survey]) -> list[str]:
    """For people: a block of lines for each set."""
    lines: list[str] = []
    for row in rows:
        extra = [f"tag {row.tag}"] * bool(row.tag) + [f"weight {row.weight:g}"] * (row.weight != 1)
        lines.append(f"{row.part}: {', '.join(row.files)}" + (f" ({', '.join(extra)})" if extra else ""))
        lines.append(f"  {row.report}")
        for side, words in zip(("source", "target"), row.words, strict=True):
            shown = f"{words[-1]:,}" if words[-1] < LONGEST else f"{LONGEST:,} or more"
            lines.append(
                f"  words of the {side}: half have up to {words[0]}, 95 % up to {words[1]}, the longest {shown}"
            )
        if row.part != "training":
            share = row.known / max(1, row.report.kept)
            lines.append(f"  in the training text too: {row.known:,} sources ({share:.1%})")
    if not rows:
        raise InputError("the recipe names no text")
    return lines
