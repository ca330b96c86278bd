"""Text files line by line: plain or gzip, UTF-8, in bounded memory, with errors that name the file and the line.

A line ends at a line feed (or carriage return and line feed) and nowhere else: Python's own splitlines would also cut
at U+2028, U+0085 and others that stand inside sentences, and shift one file against its partner.
"""

import codecs
import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from regard.errors import InputError

_CHUNK = 2**20
_BOM = b"\xef\xbb\xbf"


class Chunk(NamedTuple):
    """Part of a file's text."""

    text: str
    line: int
    """number of its first line"""
    last: bool


def kind_of(path: str | Path) -> str:
    """The file name's ending in lower case, less .gz: ".tsv", ".jsonl", ".txt" or another."""
    path = Path(path)
    return Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()


def check_files(paths: Sequence[str | Path]) -> None:
    """Refuse names of nothing and of folders, before any file is read."""
    for path in paths:
        if Path(path).is_dir():
            raise InputError(f"{path}: is a folder; name a file in it")
        if not Path(path).exists():
            folder, *rest = Path(path).parts
            hint = f"; if it is a public one, regard data get {rest[0]} fetches it" if folder == "data" and rest else ""
            raise InputError(f"{path}: no such file{hint}")


def lines(path: str | Path, *, told: Callable[[InputError], object] | None = None) -> Iterator[str]:
    """The file's lines without their ends; a last line needs no end.

    With `told`, a line that is not UTF-8 is no error: it is told of, and comes with U+FFFD for what cannot be read.
    """
    with _open(path) as file:
        yield from lines_of(file, path, told=told)


def lines_of(file: BinaryIO, path: str | Path, *, told: Callable[[InputError], object] | None = None) -> Iterator[str]:
    """The lines of a file that is open, such as standard input; `path` is what errors call it."""
    number = 0
    try:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(_BOM)
            end = 2 if raw.endswith(b"\r\n") else 1 if raw.endswith(b"\n") else 0
            try:
                line = raw[: len(raw) - end].decode()
            except UnicodeDecodeError as error:
                wrong = _not_utf8(path, number, error)
                if told is None:
                    raise wrong from None
                told(wrong)
                line = raw[: len(raw) - end].decode(errors="replace")
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(path, number, error) from None


def chunks(path: str | Path, size: int = _CHUNK) -> Iterator[Chunk]:
    """The file's text in parts of about `size` bytes, cut behind line ends unless a line alone is longer."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    parts: list[str] = []
    held, number, first = 0, 1, 1  # bytes held back, the line being read, the line that the chunk begins with
    with _open(path) as file:
        try:
            raw = file.readline(size).removeprefix(_BOM)
            while raw:
                while raw.endswith(b"\r") and (more := file.read(1)):
                    raw += more  # a limited read may have parted carriage return and line feed
                parts.append(decoder.decode(raw).replace("\r\n", "\n"))
                held += len(raw)
                number += raw.endswith(b"\n")
                raw = file.readline(size)
                if raw and held >= size:
                    yield Chunk("".join(parts), first, last=False)
                    parts, held, first = [], 0, number
            parts.append(decoder.decode(b"", final=True))
            yield Chunk("".join(parts), first, last=True)
        except UnicodeDecodeError as error:
            raise _not_utf8(path, number, error) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _damaged(path, number - 1, error) from None


def fill_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside the place, then put it there in one step that a crash cannot split."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.touch()
        mode = beside.stat().st_mode  # what the user's umask gives; some writers make files that only their owner reads
        write(beside)
        beside.chmod(mode)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a file that was renamed is safe only then."""
    if os.name == "nt":  # which opens no folders, and keeps names in order by itself
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fill_whole(path, lambda beside: beside.write_bytes(content))


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file whole, and its checksum into a hidden file beside it."""
    seal = _seal(path)
    seal.unlink(missing_ok=True)
    write_whole(path, content)
    write_whole(seal, hashlib.sha256(content).hexdigest().encode())


def read_sealed(path: Path) -> bytes:
    """A file's content; refuses one that is not what was written. A file without a checksum is taken as it is."""
    content, seal = path.read_bytes(), _seal(path)
    if seal.is_file() and seal.read_bytes() != hashlib.sha256(content).hexdigest().encode():
        raise InputError(
            f"{path}: is damaged or was changed: its content does not have the checksum in {seal.name}; "
            "take it from a copy of the run"
        )
    return content


def forget_sealed(path: Path) -> None:
    """Take away a file that `write_sealed` wrote; one without a checksum is somebody else's, and stays."""
    if _seal(path).is_file():
        path.unlink()
        _seal(path).unlink()


def _seal(path: Path) -> Path:
    return path.with_name(f".{path.name}.sha256")


def _open(path: str | Path) -> BinaryIO:
    check_files([path])
    try:
        if Path(path).suffix.lower() != ".gz":
            return Path(path).open("rb")
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path)), buffer_size=2**17))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _not_utf8(path: str | Path, line: int, error: UnicodeDecodeError) -> InputError:
    bad: bytes = error.object[error.start : error.start + 1]
    if error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return InputError(f"{path}, line {line}: not UTF-8 but UTF-16, it seems; convert it (iconv -f UTF-16 -t UTF-8)")
    if error.object[:2] == b"\x1f\x8b":
        return InputError(f"{path}, line {line}: not text but gzip; its name must end in .gz")
    return InputError(
        f"{path}, line {line}: not UTF-8 (byte 0x{bad.hex().upper()} at place {error.start + 1}); convert it "
        "(such as: iconv -f LATIN1 -t UTF-8)"
    )


def _damaged(path: str | Path, lines_read: int, error: Exception) -> InputError:
    return InputError(f"{path}: gzip file cut off or damaged after line {lines_read} ({error}); fetch it again")
