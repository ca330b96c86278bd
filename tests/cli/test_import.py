"""`regard import`: what it prints, what it makes, and how it refuses."""

import random
import struct

import pytest

from regard.cli import main
from regard.runs import open_run


@pytest.fixture
def tiny(tmp_path):
    """A folder with a random llama2.c checkpoint of one layer, and its tokeniser."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    dim, hidden, vocabulary, length = 8, 12, 260, 16
    count = vocabulary * dim + 3 * dim + 3 * dim**2 + dim**2 + 3 * hidden * dim + length * 4
    values = [random.Random(1).uniform(-1, 1) for _ in range(count)]
    (folder / "tiny.bin").write_bytes(struct.pack(f"<7i{count}f", dim, hidden, 1, 2, 2, vocabulary, length, *values))
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{byte:02X}>" for byte in range(256)), " "]
    rows = b"".join(struct.pack("<fi", 0.0, len(piece)) + piece.encode() for piece in pieces)
    (folder / "tok260.bin").write_bytes(struct.pack("<i", 6) + rows)
    return folder


def test_it_makes_a_run_and_says_what_it_is(tiny, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["import", str(tiny), "--out", str(out)]) == 0
    assert capsys.readouterr().out == (
        f"imported {tiny} (llama2.c version 0) into {out}\n"
        "decoder-only, 2,648 parameters, 1 layer, vocabulary of 260 pieces\n"
    )
    assert open_run(out).tokenizer.decode(open_run(out).tokenizer.encode("hello")) == "hello"


def test_the_tokeniser_may_be_named(tiny, tmp_path, capsys):
    (tiny / "tok260.bin").rename(tmp_path / "pieces.bin")
    out = str(tmp_path / "run")
    words = ["import", str(tiny / "tiny.bin"), "--out", out]
    assert main(words) == 2
    assert capsys.readouterr().err == (
        f"regard: {tiny / 'tiny.bin'}: needs its tokeniser beside it, tok260.bin or tokenizer.bin; there is none; "
        "or name the file with --tokenizer\n"
    )
    assert main([*words, "--tokenizer", str(tmp_path / "pieces.bin")]) == 0


def test_what_is_wrong_is_one_line_and_2(tiny, tmp_path, capsys):
    file, out = tiny / "tiny.bin", tmp_path / "run"
    words = ["import", str(file), "--out", str(out)]
    file.write_bytes(file.read_bytes()[:-8])
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"regard: {file}: expected 10,876 bytes, found 10,868: cut off")
    assert said.count("\n") == 1
    assert not out.exists()
    out.mkdir()
    (out / "recipe.toml").touch()
    assert main(words) == 2
    assert f"{out}: is not empty; name a folder that does not exist yet" in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["recipe.toml"]
