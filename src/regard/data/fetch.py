"""Fetching public data sets: resumed where a connection broke, checked before it is believed, in place in one step.

`sets.json` says where the files are and what they have to be. A sum is of the file as it is fetched (md5:, as its
publishers or torchtext state it) or of the text in it (text-sha256:, of the very text that our recipes were run on, so
that the same text packed anew is right as well); one that fits is enough. Where no sum is known the first fetch notes
what came, and every later one has to give the same.
"""

import gzip
import hashlib
import json
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path

from regard.config.plain import build
from regard.errors import InputError, WorkError, nearest
from regard.text.files import lines, write_whole

NOTED = "sums.json"
"""beside the files: the sums of those that none was known of"""
TRIES, WAIT, TIMEOUT = 5, 2.0, 30.0
_BLOCK = 2**16

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Division:
    """How a table is divided into training, validation and test text, by a hash of each source text."""

    source: int
    """column of the source text, the first is 1"""
    target: int
    train: str
    """name of the file, as the others'"""
    valid: str
    test: str


@dataclass(frozen=True, kw_only=True)
class Remote:
    """One file."""

    path: str
    """behind the set's base"""
    name: str
    """what it is called here"""
    sums: tuple[str, ...] = ()
    """what it may be: md5:… or sha256:… of the file, text-sha256:… of its unpacked text"""
    divide: Division | None = None


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """One data set."""

    about: str
    licence: str
    base: str
    """address that the files' paths are put behind"""
    files: tuple[Remote, ...]


def known_sets() -> dict[str, DataSource]:
    """The sets that can be fetched."""
    listed = json.loads(files("regard.data").joinpath("sets.json").read_text(encoding="utf-8"))
    return {name: build(DataSource, values, where=f"sets.json {name}.") for name, values in listed.items()}


def fetch_set(name: str, folder: Path, say: Say, *, mirror: str | None = None) -> None:
    """Have all files of a set in a folder; what is there and right stays, what is there and wrong is refused."""
    sets = known_sets()
    if name not in sets:
        raise InputError(f"data set {name!r}: {nearest(name, sets)}")
    source = sets[name]
    folder.mkdir(parents=True, exist_ok=True)
    for remote in source.files:
        fetch_file(remote, (mirror or source.base).rstrip("/") + "/" + remote.path, folder, say)
        if remote.divide:
            divide(folder / remote.name, remote.divide, folder, say)


def fetch_file(remote: Remote, url: str, folder: Path, say: Say) -> None:
    """Have one file, checked."""
    path, part = folder / remote.name, folder / f".{remote.name}.part"
    sums = remote.sums or _noted(folder).get(remote.name, ())
    if path.exists():
        if sums and not fits(path, sums):
            raise InputError(f"{path}: is not the file that it should be ({_told(path, sums)}); move it away")
        say(f"{path}: is there")
        return
    resumed = download(url, part, say)
    if sums and resumed and not fits(part, sums):  # what was begun may have been of another file
        part.unlink()
        download(url, part, say)
    if sums and not fits(part, sums):
        told = _told(part, sums)
        part.unlink()
        raise WorkError(f"{url}: not the file that was expected ({told}); nothing of it was kept")
    if not sums:
        found = f"sha256:{_file_sum(part, 'sha256')}"
        write_whole(folder / NOTED, (json.dumps({**_noted(folder), remote.name: [found]}, indent=1) + "\n").encode())
        say(f"{path}: no sum is known of it; what came is noted in {NOTED}, and must come again: {found}")
    size = part.stat().st_size
    part.replace(path)
    say(f"{path}: {size:,} bytes, checked" if sums else f"{path}: {size:,} bytes")


def download(url: str, part: Path, say: Say) -> bool:
    """Write what is at an address into a file, from where it ends on; answers whether there was something before."""
    had = part.exists() and part.stat().st_size > 0
    for attempt in range(1, TRIES + 1):
        try:
            _read_rest(url, part)
            return had
        except urllib.error.HTTPError as error:
            if error.code == 416 and part.exists():  # longer than the file is: of another one
                part.unlink()
                continue
            if error.code < 500:
                raise WorkError(f"{url}: {error.code} {error.reason}") from None
            fault = f"{error.code} {error.reason}"
        except (urllib.error.URLError, HTTPException, ConnectionError, TimeoutError) as error:
            fault = str(getattr(error, "reason", error))
        except ValueError:
            raise InputError(f"{url}: not an address, such as https://example.org/data") from None
        if attempt < TRIES:
            say(f"{url}: {fault}; trying again")
            time.sleep(WAIT * attempt)
    raise WorkError(f"{url}: {fault}; the same command goes on where it stopped")


def _read_rest(url: str, part: Path) -> None:
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "regard"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        goes_on = answer.status == 206
        expected = answer.headers.get("Content-Length")
        came = 0
        with part.open("ab" if goes_on else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                came += len(block)
    if expected is not None and came < int(expected):
        raise ConnectionError(f"ended after {came:,} of {int(expected):,} bytes")


def fits(path: Path, sums: Sequence[str]) -> bool:
    """Whether the file has one of the sums."""
    return any(_sum(path, one.partition(":")[0]) == one.partition(":")[2] for one in sums)


def _sum(path: Path, kind: str) -> str:
    if kind == "text-sha256":
        return _text_sum(path)
    return _file_sum(path, kind)


def _file_sum(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def _text_sum(path: Path) -> str:
    """Of what is in a gzip file, or of the file if it is none."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    digest = hashlib.sha256()
    try:
        with gzip.open(path) if packed else path.open("rb") as text:
            while block := text.read(_BLOCK):
                digest.update(block)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return "damaged"
    return digest.hexdigest()


def _told(path: Path, sums: Sequence[str]) -> str:
    kind, _, right = sums[0].partition(":")
    return f"{kind} {_sum(path, kind)}, should be {right}"


def _noted(folder: Path) -> Mapping[str, list[str]]:
    try:
        noted: Mapping[str, list[str]] = json.loads((folder / NOTED).read_bytes())
        return noted
    except FileNotFoundError:
        return {}
    except ValueError:
        raise InputError(f"{folder / NOTED}: not JSON; move it away") from None


def divide(table: Path, division: Division, folder: Path, say: Say) -> None:
    """Write a table's pairs as training, validation and test text; the same pairs always go the same way.

    A source text goes with all its translations, so that none stands in two of the files: one in forty to the
    validation text, two in forty to the test text. Pairs with a blank side, and pairs that stood before, are left out.
    """
    parts: dict[str, dict[str, None]] = {division.train: {}, division.valid: {}, division.test: {}}
    for number, line in enumerate(lines(table), 1):
        columns = line.split("\t")
        if len(columns) < max(division.source, division.target):
            raise InputError(f"{table}, line {number}: {len(columns)} columns; move the file away and fetch it anew")
        source, target = columns[division.source - 1].strip(), columns[division.target - 1].strip()
        if source and target:
            share = hashlib.sha256(source.encode()).digest()[0] % 40
            where = division.valid if share == 0 else division.test if share <= 2 else division.train
            parts[where][f"{source}\t{target}\n"] = None
    for name, pairs in parts.items():
        write_whole(folder / name, gzip.compress("".join(pairs).encode(), mtime=0))
        say(f"{folder / name}: {len(pairs):,} pairs")
