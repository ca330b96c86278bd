"""`regard translate` on what pipes bring: carriage returns, a last line without an end, lines without an end of their
own, readers that leave, and streams that never end.
"""

import contextlib
import io
import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import regard
from regard.cli import feed, main
from regard.errors import InputError

from ..verify.runs import sure_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sure_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def run(folder):
    return regard.load(folder)


def command(folder, *options):
    return [sys.executable, "-m", "regard", "translate", str(folder), *options]


@pytest.fixture
def translated(folder, monkeypatch, capsys):
    """The exit code, the lines and what is said, for bytes on standard input."""

    def translate(content, *options):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        code = main(["translate", str(folder), *options])
        captured = capsys.readouterr()
        return code, captured.out.split("\n"), captured.err

    return translate


def test_carriage_returns_and_a_last_line_without_an_end(translated, run):
    expected = [answer.text for answer in run.translate(["the cat sleeps.", "", "a dog", "a\0 dog now."])]
    windows, marked = b"the cat sleeps.\r\n\r\na dog\r\na\0 dog now.", b"the cat sleeps.\n\na dog\na\0 dog now.\n"
    for content in (windows, b"\xef\xbb\xbf" + marked):
        assert translated(content)[:2] == (0, [*expected, ""])
    assert translated(b"")[:2] == (0, [""])


def test_a_line_of_a_million_words(translated, run):
    """It is refused by its number and its length, or split; the lines before it are there, and none is shifted."""
    long = "red cats see the dog now. " * 170_000
    code, lines, said = translated(f"the cat sleeps.\n{long}\na dog\n".encode())
    assert (code, lines) == (2, [run.translate("the cat sleeps.").text, ""])
    pieces = len(run.translator.source_ids(long))
    assert f"standard input, line 2: {pieces:,} pieces, of which the model reads 40; cut it, or have it split" in said
    code, lines, _ = translated(f"the cat sleeps.\n{long[:2600]}\na dog\n".encode(), "--split")
    assert code == 0
    assert len(lines) == 4
    assert len(lines[1].split()) > 100
    assert lines[2] == run.translate("a dog").text
    code, lines, _ = translated(b"cats " * 500, "--split", "--min-length", "3")
    assert code == 0
    assert len(lines) == 2
    assert len(lines[0].split()) >= 3 * 500 / 39


def test_a_reader_that_leaves_ends_it(folder, run):
    """As head does, while lines still come."""
    process = subprocess.Popen(
        command(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"the cat sleeps.\n")
    process.stdin.flush()
    assert process.stdout.readline().decode() == run.translate("the cat sleeps.").text + "\n"
    process.stdout.close()
    try:
        while process.poll() is None:
            process.stdin.write(b"a dog\n" * 100)
            process.stdin.flush()
    except BrokenPipeError:
        pass
    assert process.wait() == 1
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def test_of_an_endless_stream_only_so_much_is_held(monkeypatch):
    """However long it takes to translate a block, no more is read than the queue holds."""
    read = itertools.count()

    endless = (b"line %d\n" % next(read) for _ in itertools.repeat(None))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=endless))
    coming = feed.blocks(None, replace_errors=False)
    taken = []
    while len(taken) < 5000:
        block, wrong = next(coming)
        assert not wrong
        assert len(block) <= feed.BLOCK
        taken += block
    assert taken == [f"line {number}" for number in range(len(taken))]
    assert next(read) <= len(taken) + 2 * feed.BLOCK + 3
    coming.close()


def test_memory_stays_as_lines_come(folder):
    """Behind the first blocks 4,000 lines more leave less than 1,000 bytes each, in KiB as Linux counts."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    line = b"the cat sleeps.\n"
    process = subprocess.Popen(
        command(folder, "--beam", "1"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    held = []
    for _ in range(3):
        process.stdin.write(line * 4000)
        process.stdin.flush()
        for _ in range(4000):
            assert process.stdout.readline().endswith(b"\n")
        status = Path(f"/proc/{process.pid}/status").read_text()
        held.append(int(status.split("VmRSS:")[1].split()[0]))
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()
    assert held[2] - held[1] < 4000, held


def test_what_cannot_be_read_ends_a_stream_behind_the_lines_before(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=iter([b"one\n", b"\xff\n", b"three\n"])))
    seen = []

    def take():
        for block, _ in feed.blocks(None, replace_errors=False):
            seen.extend(block)

    with pytest.raises(InputError, match="standard input, line 2: not UTF-8"):
        take()
    assert seen == ["one"]
