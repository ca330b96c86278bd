"""Corpora as streams of rows: sentence pairs, plain text, labelled texts.

One row at a time is held, so files may have any size. What does not fit together (line counts, columns, keys, bytes
that are no UTF-8) is an error that names the file and the line; nothing is skipped or cut here.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from regard.config import DataConfig, DataSet
from regard.errors import InputError, nearest
from regard.text.files import Chunk, check_files, chunks, kind_of, lines
from regard.text.tokenizer import check_unicode

# Rows are named tuples, not dataclasses: millions are made, and these take a third of the time.


class TextPair(NamedTuple):
    """A source text and its target, with the tag that goes before the source."""

    source: str
    target: str
    tag: str | None
    line: int


class LabelledText(NamedTuple):
    """A text, or two of them, and what it was labelled with: one label, or several."""

    text: str
    labels: tuple[str, ...]
    line: int
    second: str | None = None


Files = Sequence[str | Path]
Field = Callable[[Any], Any]
"""Takes a field's value out of a row, or raises InputError without the place."""


def training_sets(config: DataConfig) -> tuple[DataSet, ...]:
    """All that the recipe trains on: `data.train` with weight 1, then `data.sets`."""
    first = (DataSet(files=config.train, tag=config.tag),) if config.train else ()
    if not first and not config.sets:
        raise InputError('data.train is not stated: name the training text, such as train = ["train.fr", "train.en"]')
    return first + config.sets


def read_pairs(
    files: Files,
    *,
    source_field: str = "1",
    target_field: str = "2",
    tag_field: str | None = None,
    tag: str | None = None,
) -> Iterator[TextPair]:
    """The pairs of two parallel files, or of .tsv and .jsonl files one after another (.gz of each).

    A field is the number of a .tsv's column, or a key of a .jsonl's objects, where dots lead inside ("translation.fr");
    1 and 2 there mean the keys "source" and "target". Each pair's tag is `tag`, or what stands in `tag_field`.
    """
    paths = [Path(file) for file in files]
    check_files(paths)
    tables = [kind_of(path) in (".tsv", ".jsonl") for path in paths]
    if paths and all(tables):
        fields = {"source": source_field, "target": target_field} | ({"tag": tag_field} if tag_field else {})
        return _table_pairs(paths, fields, tag)
    if len(paths) != 2 or any(tables):
        names = ", ".join(map(str, paths)) or "none"
        raise InputError(f"files of sentence pairs ({names}): must be two parallel text files, or .tsv or .jsonl files")
    if tag_field is not None:
        raise InputError(f"data.tag_field = {tag_field!r}: parallel files ({paths[0]}) have no columns; use data.tag")
    return _parallel_pairs(paths[0], paths[1], tag)


def read_labelled(
    files: Files, *, text_field: str = "1", label_field: str = "2", second_field: str | None = None
) -> Iterator[LabelledText]:
    """The labelled texts of .tsv and .jsonl files (.gz of each), one after another.

    Fields are as in `read_pairs`, and 1, 2 and 3 mean the keys "text", "label" and "second". A list of labels in a
    .jsonl is a text with several.
    """
    paths = [Path(file) for file in files]
    check_files(paths)
    for path in paths:
        if kind_of(path) not in (".tsv", ".jsonl"):
            raise InputError(f"{path}: labelled text must be a .tsv or a .jsonl file")
    fields = {"text": text_field, "label": label_field} | ({"second": second_field} if second_field else {})
    return (_labelled(path, line, values) for path in paths for line, values in _rows(path, fields))


def _labelled(path: Path, line: int, values: list[Any]) -> LabelledText:
    text, label, *second = values
    labels = (label,) if isinstance(label, str) else label
    if not all(map(str.strip, labels)):
        raise InputError(f"{path}, line {line}: a label is blank")
    return LabelledText(text, labels, line, *second)


def read_texts(files: Files, *, text_field: str = "1") -> Iterator[Chunk]:
    """The documents of text files, in order.

    A .jsonl or .tsv has a document a line, in its field `text_field` (1 means the key "text", or the first column). Any
    other file is one document, which comes in chunks of a megabyte cut behind line ends; `last` tells where a document
    ends.
    """
    paths = [Path(file) for file in files]
    check_files(paths)
    return _documents(paths, text_field)


def _documents(paths: Sequence[Path], text_field: str) -> Iterator[Chunk]:
    for path in paths:
        if kind_of(path) in (".jsonl", ".tsv"):
            for line, (text,) in _rows(path, {"text": text_field}):
                yield Chunk(text, line, last=True)
            continue
        for chunk in chunks(path):
            if chunk.last and chunk.line == 1 and not chunk.text:
                raise _empty(path)
            yield chunk


def _parallel_pairs(source: Path, target: Path, tag: str | None) -> Iterator[TextPair]:
    rows = zip_longest(lines(source), lines(target))
    line = 0
    for line, (left, right) in enumerate(rows, 1):
        if left is None or right is None:
            short, long = (source, target) if left is None else (target, source)
            total = line + sum(1 for _ in rows)
            if line == 1:
                raise _empty(short)
            raise InputError(
                f"{short} ends after line {line - 1}, but {long} has {total} lines: parallel files must have as many"
            )
        yield TextPair(left, right, tag, line)
    if not line:
        raise _empty(source)


def _table_pairs(paths: Sequence[Path], fields: dict[str, str], tag: str | None) -> Iterator[TextPair]:
    for path in paths:
        for line, values in _rows(path, fields):
            own = values[2] if len(values) > 2 else tag
            if own is not None and not own.strip():
                raise InputError(f"{path}, line {line}: the tag is empty")
            yield TextPair(values[0], values[1], own, line)


def _rows(path: Path, fields: dict[str, str]) -> Iterator[tuple[int, list[Any]]]:
    """Line numbers and the fields' values, of a .tsv or a .jsonl; `fields` maps what is sought to where it stands."""
    is_json = kind_of(path) == ".jsonl"
    usual = list(fields)
    takers = [_json_field(name, where, usual) if is_json else _column(name, where) for name, where in fields.items()]
    number = 0
    for number, text in enumerate(lines(path), 1):
        try:
            row = _json_object(text) if is_json else text.split("\t")
            yield number, [take(row) for take in takers]
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    if not number:
        raise _empty(path)


def _column(name: str, where: str) -> Field:
    try:
        column = int(where)
    except ValueError:
        column = 0
    if column < 1:
        raise InputError(f"data.{name}_field = {where!r}: a .tsv's columns are numbered, 1 is the first")

    def take(row: list[str]) -> str:
        if column > len(row):
            found = "1 column" if len(row) == 1 else f"{len(row)} columns"
            raise InputError(f"{found}, so no column {column} for the {name} (tabs divide columns)")
        return row[column - 1]

    return take


def _json_field(name: str, where: str, usual: Sequence[str]) -> Field:
    path = where.split(".")
    if where.isdecimal():
        if not 1 <= int(where) <= len(usual):
            raise InputError(f"data.{name}_field = {where!r}: must be a key of the .jsonl's objects")
        path = [usual[int(where) - 1]]

    def take(row: dict[str, Any]) -> str | tuple[str, ...]:
        value: Any = row
        if where in row:
            value = row[where]
        else:
            for key in path:
                if not isinstance(value, dict) or key not in value:
                    keys = nearest(key, value) if isinstance(value, dict) and value else "there is none"
                    raise InputError(f"no key {'.'.join(path)!r} for the {name}: {keys}")
                value = value[key]
        if name == "label":
            return _labels(value)
        if not isinstance(value, str):
            raise InputError(f"the {name} is no text: {json.dumps(value)[:40]}")
        return value

    return take


def _labels(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    for label in values:
        if not isinstance(label, (str, int)):
            raise InputError(f"a label must be text or a whole number: {json.dumps(label)[:40]}")
    return tuple(json.dumps(label) if isinstance(label, bool) else str(label) for label in values)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{error.msg} at character {error.colno}" if text.strip() else "the line is blank"
        raise InputError(f"not JSON: {what}") from None
    except RecursionError:
        raise InputError("not JSON that can be read: nested too deep") from None
    if not isinstance(value, dict):
        raise InputError(f"not a JSON object: {text[:40]}")
    if "\\ud" in text or "\\uD" in text:
        _check_texts(value)
    return value


def _check_texts(value: Any) -> None:
    """Refuse halves of surrogate pairs, which JSON's escapes can write and UTF-8 cannot."""
    match value:
        case str():
            check_unicode(value)
        case list():
            for item in value:
                _check_texts(item)
        case dict():
            for item in value.values():
                _check_texts(item)


def _empty(path: Path) -> InputError:
    return InputError(f"{path}: is empty; it must have a line for each text")
