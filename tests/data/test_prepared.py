"""Folders that are made once: whole or not there, whatever happens on the way."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.config import DataConfig
from regard.data import PairStore
from regard.data.prepared import MANIFEST, prepare
from regard.errors import InputError
from regard.text import Tokenizer

Corpus = Callable[..., tuple[str, str]]


def visible(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if not path.name.endswith(".lock")]


def fill(folder: Path) -> dict[str, object]:
    (folder / "x.bin").write_bytes(b"12345")
    return {"count": 5}


def never(folder: Path) -> dict[str, object]:
    raise AssertionError("it is there already")


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    first = prepare(tmp_path, "pairs", {"text": "a"}, fill)
    assert (first.made, first.notes) == (True, {"count": 5})
    again = prepare(tmp_path, "pairs", {"text": "a"}, never)
    assert (again.made, again.notes, again.folder) == (False, {"count": 5}, first.folder)
    other = prepare(tmp_path, "pairs", {"text": "b"}, fill)
    assert other.made
    assert other.folder != first.folder
    assert not prepare(tmp_path, "pairs", {"text": "a"}, never).made


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_fails_half_way_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def fail(folder: Path) -> dict[str, object]:
        fill(folder)
        raise error

    with pytest.raises(error):
        prepare(tmp_path, "pairs", {}, fail)
    assert visible(tmp_path) == []
    assert prepare(tmp_path, "pairs", {}, fill).made


def test_text_that_turns_out_wrong_leaves_nothing(corpus: Corpus, tokenizer: Tokenizer, tmp_path: Path) -> None:
    files = corpus(20_000)
    with Path(files[1]).open("a") as file:
        file.write("one line more\n")
    with pytest.raises(InputError, match="ends after line 20000"):
        PairStore.open(DataConfig(train=files), tokenizer, folder=tmp_path / "data")
    assert visible(tmp_path / "data") == []


def test_a_process_that_is_killed_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    program = (
        "import sys, time; sys.path[:] = sys.argv[2].split(':')\n"
        "from pathlib import Path\n"
        "from regard.data.prepared import prepare\n"
        "def make(folder):\n"
        "    (folder / 'x.bin').write_bytes(b'123')\n"
        "    (folder / 'y.bin').write_bytes(b'123')\n"
        "    print('half', flush=True)\n"
        "    time.sleep(60)\n"
        "prepare(Path(sys.argv[1]), 'pairs', {}, make)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), ":".join(sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "half\n"
        process.kill()
    assert [name.endswith(".part") for name in visible(tmp_path)] == [True]
    made = prepare(tmp_path, "pairs", {}, fill)
    assert made.made
    assert visible(tmp_path) == [made.folder.name]
    assert sorted(path.name for path in made.folder.iterdir()) == [MANIFEST, "x.bin"]


DAMAGES = [
    "manifest gone", "manifest cut", "manifest of another", "a count changed", "file cut", "file gone",
    "a byte flipped",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_is_made_anew(tmp_path: Path, damage: str) -> None:
    folder = prepare(tmp_path, "pairs", {}, fill).folder
    manifest, file = folder / MANIFEST, folder / "x.bin"
    match damage:
        case "manifest gone":
            manifest.unlink()
        case "manifest cut":
            manifest.write_bytes(manifest.read_bytes()[:20])
        case "manifest of another":
            manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"made_from": {}}))
        case "a count changed":
            manifest.write_text(manifest.read_text().replace('"notes": {', '"notes": {"rows": 7, '))
        case "a byte flipped":
            file.write_bytes(b"12045")
        case "file cut":
            file.write_bytes(b"1234")
        case "file gone":
            file.unlink()
    assert prepare(tmp_path, "pairs", {}, fill).made
    assert file.read_bytes() == b"12345"
    assert not prepare(tmp_path, "pairs", {}, never).made


@pytest.mark.skipif(sys.platform == "win32", reason="processes do not wait for one another there")
def test_processes_wait_for_the_first(tmp_path: Path) -> None:
    """All processes of a run open the same store at once; one makes it."""
    program = (
        "import sys, time; sys.path[:] = sys.argv[2].split(':')\n"
        "from pathlib import Path\n"
        "from regard.data.prepared import prepare\n"
        "def make(folder):\n"
        "    time.sleep(0.5)\n"
        "    (folder / 'x.bin').write_bytes(b'123')\n"
        "    return {}\n"
        "print(prepare(Path(sys.argv[1]), 'pairs', {}, make).made)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path), ":".join(sys.path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert sorted(answers) == ["False\n", "True\n"]
