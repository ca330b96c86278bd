"""The tokeniser of llama2.c against its own rule, written out plainly here."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.text import Specials, load_tokenizer, read_llama2c_tokenizer
from regard.text.modelfile import is_bpe

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[3] / "shared" / "data"))
REAL = DATA / "stories260K" / "tok512.bin"

WORDS = [" t", "he", " a", " the", "in", "ing", " w", "er", "th", "the", "  ", " b", "bo", " bo", "at", "boat", "aa"]
LETTERS = " etaoinshrbdlucmfwg\nyé日"


def write(path: Path, pieces: list[tuple[str, float]]) -> Path:
    rows = [(text.encode(), score) for text, score in pieces]
    longest = max(len(text) for text, _ in rows)
    body = b"".join(struct.pack("<fi", score, len(text)) + text for text, score in rows)
    path.write_bytes(struct.pack("<i", longest) + body)
    return path


def listed() -> list[tuple[str, float]]:
    fixed = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{byte:02X}>" for byte in range(256))]
    learnt = [*WORDS, *LETTERS]
    return [(text, 0.0) for text in fixed] + [(text, -float(i)) for i, text in enumerate(learnt)]


def read(path: Path) -> list[tuple[str, float]]:
    content, place, pieces = path.read_bytes(), 4, []
    while place < len(content):
        score, length = struct.unpack_from("<fi", content, place)
        pieces.append((content[place + 8 : place + 8 + length].decode(), score))
        place += 8 + length
    return pieces


def plain_encode(text: str, pieces: list[tuple[str, float]]) -> list[int]:
    """encode() of llama2.c's run.c: a space, then each character's id or its bytes', then the best merge while any."""
    ids_of = {piece: i for i, (piece, _) in enumerate(pieces)}
    ids: list[int] = [ids_of[" "]] if text else []
    for character in text:
        ids += [ids_of[character]] if character in ids_of else [byte + 3 for byte in character.encode()]
    while True:
        best, place = -1e10, -1
        for i in range(len(ids) - 1):
            merged = ids_of.get(pieces[ids[i]][0] + pieces[ids[i + 1]][0])
            if merged is not None and pieces[merged][1] > best:
                best, place = pieces[merged][1], i
        if place < 0:
            return ids
        ids[place : place + 2] = [ids_of[pieces[ids[place]][0] + pieces[ids[place + 1]][0]]]


TEXT = st.one_of(
    st.text(st.sampled_from(LETTERS + "▁ż👩"), max_size=40),
    st.lists(st.sampled_from([*WORDS, "▁", "aaa", " "]), max_size=12).map("".join),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("llama") / "tok.bin", listed())


@settings(derandomize=True, max_examples=300, deadline=None)
@given(TEXT)
def test_ids_are_those_of_the_plain_rule(made: Path, text: str) -> None:
    tokenizer = read_llama2c_tokenizer(made)
    assert tokenizer.encode(text) == plain_encode(text, listed())
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_it_is_stored_as_an_ordinary_model(made: Path, tmp_path: Path) -> None:
    tokenizer = read_llama2c_tokenizer(made, size=len(listed()))
    assert tokenizer.specials == Specials(pad=0, unknown=0, begin=1, end=2)
    assert tokenizer.size == len(listed())
    assert tokenizer.tags == ()
    assert [tokenizer.piece(i) for i in (0, 1, 2, 3, 258, 259)] == ["<unk>", "<s>", "</s>", "<0x00>", "<0xFF>", "▁t"]
    path = tokenizer.save(tmp_path)
    assert path.name == "tokens.model"
    assert is_bpe(path.read_bytes())
    loaded = load_tokenizer(tmp_path)
    assert loaded.specials == tokenizer.specials
    assert loaded.encode("the boat in the water 👩") == tokenizer.encode("the boat in the water 👩")
    assert loaded.decode([1, *loaded.encode("the boat"), 2]) == "the boat"


def test_files_that_are_none_are_refused(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"has {len(listed())} pieces, but the model has 512"):
        read_llama2c_tokenizer(made, size=512)
    with pytest.raises(InputError, match="no such file"):
        read_llama2c_tokenizer(tmp_path / "none.bin")
    cut = tmp_path / "cut.bin"
    cut.write_bytes(made.read_bytes()[:-3])
    with pytest.raises(InputError, match="or cut off, at byte"):
        read_llama2c_tokenizer(cut)
    with pytest.raises(InputError, match="ids 3 to 258 must be the bytes"):
        read_llama2c_tokenizer(write(tmp_path / "other.bin", listed()[5:]))


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not there")
def test_the_real_file_gives_the_ids_of_the_plain_rule() -> None:
    tokenizer, pieces = read_llama2c_tokenizer(REAL, size=512), read(REAL)
    texts = [
        "", " ", "Once upon a time, there was a little girl named Lily.", "  two  spaces\n\nand lines ",
        'She said, "Let\'s play!" — naïve café… 日本 👩‍👩‍👧 ñ\u00a0\t', "<unk><s></s><0x41>",
        "aaaaaaaaaaaa", "TheThethe the", "▁a ▁",
    ]  # fmt: skip
    for text in texts:
        assert tokenizer.encode(text) == plain_encode(text, pieces)
        assert tokenizer.decode(tokenizer.encode(text)) == text
