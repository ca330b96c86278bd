"""The recipe's text as its rows are read, and what all stores need while they stream it in."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from regard.config import DataConfig
from regard.text import LabelledText, TextPair, read_labelled, read_pairs

T = TypeVar("T")
Report = Callable[[str], None]
"""Takes a line for people."""

_BLOCK = 8192
_NEWS = 1_000_000
"""rows after which `report` hears how far it is"""


def text_pairs(config: DataConfig, files: Sequence[str | Path], *, tag: str | None = None) -> Iterator[TextPair]:
    """The pairs of some files, read as the recipe says; for training, validation and test text alike.

    A set's own tag goes before the field that holds each row's.
    """
    tag_field = config.tag_field if tag is None else None
    pairs = read_pairs(
        files, source_field=config.source_field, target_field=config.target_field, tag_field=tag_field, tag=tag
    )
    if not config.lowercase:
        return pairs
    return (TextPair(pair.source.lower(), pair.target.lower(), pair.tag, pair.line) for pair in pairs)


def labelled_texts(config: DataConfig, files: Sequence[str | Path]) -> Iterator[LabelledText]:
    """The labelled texts of some files, read as the recipe says: text in `source_field`, label in `target_field`."""
    rows = read_labelled(
        files, text_field=config.source_field, label_field=config.target_field, second_field=config.second_field
    )
    if not config.lowercase:
        return rows
    return (row._replace(text=row.text.lower(), second=row.second and row.second.lower()) for row in rows)


def blocks(items: Iterable[T], size: int = _BLOCK) -> Iterator[list[T]]:
    """The items, some thousands at a time."""
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block


class News:
    """Tells every million rows how far it is."""

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self._rows = 0

    def more(self, rows: int) -> None:
        """So many rows were read."""
        before, self._rows = self._rows, self._rows + rows
        if self._report and before // _NEWS < self._rows // _NEWS:
            self._report(f"{self._rows:,} rows prepared")
