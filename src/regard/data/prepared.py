"""Work that is done once: a folder of files with a manifest that says what they were made from.

A folder's name carries a hash of what it was made from (the text's content, the tokeniser, the options that matter), so
a change of any of them makes another folder and the old one stays true; delete what is no longer wanted. It is filled
beside its place and renamed when it is whole: a crash leaves nothing that looks finished, and the next try clears it.
Every byte is checked when a folder is opened (a gigabyte takes about a second), and one that is damaged is made anew.
Processes that want the same folder wait for the first of them.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from regard.config import DataSet
from regard.text import Tokenizer
from regard.text.files import check_files, kind_of

FORMAT = 2
"""of the stores; another number makes other folders"""
MANIFEST = "manifest.json"
_READ = 2**20

Plain = Mapping[str, Any]
"""Values that JSON can write."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A folder that is whole."""

    folder: Path
    notes: Plain
    """what was noted when it was made, such as counts"""
    made: bool
    """whether it was made now; if not it was there"""


def prepare(place: Path, kind: str, made_from: Plain, make: Callable[[Path], Plain]) -> Prepared:
    """The folder in `place` that was made from this; if there is none, `make` fills one and answers with the notes."""
    source = {"format": FORMAT, "kind": kind, **made_from}
    folder = place / f"{kind}-{_hash(json.dumps(source, sort_keys=True).encode())}"
    if (notes := _read(folder, source)) is not None:
        return Prepared(folder=folder, notes=notes, made=False)
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place / f".{folder.name}.lock"):
        if (notes := _read(folder, source)) is not None:
            return Prepared(folder=folder, notes=notes, made=False)
        half = place / f".{folder.name}.part"
        shutil.rmtree(half, ignore_errors=True)  # of a process that was killed
        try:
            half.mkdir()
            notes = dict(make(half))
            files = sorted(half.iterdir())
            sizes = {path.name: path.stat().st_size for path in files}
            sums = {path.name: file_hash(path) for path in files}
            manifest = {"made_from": source, "notes": notes, "files": sizes, "sums": sums}
            _write(half / MANIFEST, {**manifest, "check": _check(manifest)})
            shutil.rmtree(folder, ignore_errors=True)  # one that is damaged
            half.rename(folder)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return Prepared(folder=folder, notes=notes, made=True)


def content_of(sets: Sequence[DataSet]) -> list[dict[str, object]]:
    """What counts of the sets' files: how they are read, and a hash of every byte. Names and dates do not count.

    A gigabyte takes about a second; sizes and dates alone are not trusted, since both can lie.
    """
    check_files([file for data_set in sets for file in data_set.files])
    return [
        {"tag": data_set.tag, "files": [[kind_of(file), file_hash(file)] for file in data_set.files]}
        for data_set in sets
    ]


def file_hash(path: str | Path) -> str:
    """A hash of the file's content."""
    digest = blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        while block := file.read(_READ):
            digest.update(block)
    return digest.hexdigest()


def tokenizer_hash(tokenizer: Tokenizer) -> str:
    """A hash of the file that the tokeniser is stored as, and of its ending."""
    with tempfile.TemporaryDirectory() as folder:
        path = tokenizer.save(folder)
        return f"{path.suffix[1:]}-{file_hash(path)}"


def _check(manifest: Plain) -> str:
    return _hash(json.dumps(manifest, sort_keys=True).encode())


def _hash(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()


def _read(folder: Path, source: Plain) -> Plain | None:
    """The notes, if the folder is whole and was made from this."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest.pop("check") != _check(manifest) or manifest["made_from"] != json.loads(json.dumps(source)):
            return None
        whole = all((folder / name).stat().st_size == size for name, size in manifest["files"].items())
        if whole and all(file_hash(folder / name) == manifest["sums"][name] for name in manifest["files"]):
            notes: Plain = manifest["notes"]
            return notes
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None


def _write(path: Path, content: Plain) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())


if sys.platform == "win32":

    @contextmanager
    def _alone(path: Path) -> Iterator[None]:
        """There is no waiting here: start one process before the others."""
        yield

else:
    import fcntl

    @contextmanager
    def _alone(path: Path) -> Iterator[None]:
        """Only one process at a time; the system frees the lock of one that dies."""
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
