"""Tokenisers of every kind: text comes back exactly, and the same input gives the same ids."""

import random
from dataclasses import replace

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.config import TokensConfig
from regard.errors import InputError
from regard.text import Tokenizer, load_tokenizer, train_tokenizer
from regard.text.training import _parts, _sample
from regard.text.vocabulary import cut_words

KINDS = ["bpe", "unigram", "word", "char", "byte"]
TAGS = ("<2fr>", "<2tr>")
TURKISH = ["kedi", "köpek", "ışık", "İstanbul", "ev", "gün", "çocuk", "kitap", "yol", "su"]
STEMS = [*TURKISH, "the", "house", "water", "day"]
ENDS = ["", "ler", "lar", "de", "den", "s", "ing", "'s", ",", "."]


def sentences(count: int = 400) -> list[str]:
    draw = random.Random(5)
    return [" ".join(draw.choice(STEMS) + draw.choice(ENDS) for _ in range(draw.randint(1, 9))) for _ in range(count)]


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return train_tokenizer(sentences(), TokensConfig(kind=request.param, size=340), TAGS)


NASTY = [
    " ", "  ", "\t", "\n", "\r\n", "\0", "▁", "▁▁", "\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\ufeff", "\u200d",
    "\u200b", "\u00a0", "\u3000", "ı", "İ", "i\u0307", "\u0301", "👩‍👩‍👧‍👦", "🏳️‍🌈", "क्षि", "שָׁלוֹם", "مرحبا", "\u202e",
    "日本", "\U0010ffff", "\ufffe", "\ufffd", "⁇", "<unk>", "<s>", "</s>", "<pad>", "<2fr>", "<0x41>", "<", "kedi",
    " the", "house", "7", "_", "'", "ﬁ", "Å",
]  # fmt: skip
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.lists(st.sampled_from(NASTY), max_size=12).map("".join),
)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(TEXT)
@example("")
@example("▁")
@example(" ▁ ")
@example("kedi▁kedi")
@example("".join(NASTY))
def test_any_text_comes_back_exactly(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(tokenizer.encode(text, continued=True), continued=True) == text
    specials = tokenizer.specials
    special_ids = {specials.pad, specials.unknown, specials.begin, specials.end, *map(tokenizer.tag_id, TAGS)}
    assert not special_ids & set(ids), "text must not give special ids"
    assert tokenizer.pieces(text) == [tokenizer.piece(id) for id in ids]
    assert len(tokenizer.words(ids)) == len(ids)
    assert all(0 <= id < tokenizer.size for id in ids)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(TEXT, max_size=5), st.floats(0, 0.99), st.integers(0, 2**32))
def test_sampled_cuts_give_the_text_back_and_follow_the_seed(
    tokenizer: Tokenizer, texts: list[str], strength: float, seed: int
) -> None:
    drawn = tokenizer.sample_all(texts, strength, np.random.default_rng(seed))
    again = tokenizer.sample_all(texts, strength, np.random.default_rng(seed))
    assert [tokenizer.decode(ids) for ids in drawn] == texts
    assert [ids.tolist() for ids in drawn] == [ids.tolist() for ids in again]
    if texts:
        one = tokenizer.sample(texts[0], strength, np.random.default_rng(seed))
        assert one == drawn[0].tolist()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(TEXT, max_size=6))
def test_many_at_once_are_as_one_by_one(tokenizer: Tokenizer, texts: list[str]) -> None:
    batch = tokenizer.encode_all(texts)
    assert [ids.tolist() for ids in batch] == [tokenizer.encode(text) for text in texts]
    assert all(ids.dtype == np.int32 and ids.flags.writeable for ids in batch)


def test_a_large_batch_uses_threads_and_gives_the_same(tokenizer: Tokenizer) -> None:
    texts = [*sentences(3000), "a▁b"]
    assert [ids.tolist() for ids in tokenizer.encode_all(texts)] == [tokenizer.encode(text) for text in texts]


def test_text_in_two_parts_gives_the_text_in_one(tokenizer: Tokenizer) -> None:
    head, tail = "kedi ev", "den, su▁gün\n ışık"
    ids = tokenizer.encode(head) + tokenizer.encode(tail, continued=True)
    assert tokenizer.decode(ids) == head + tail


def test_saved_and_loaded_it_is_the_same(tokenizer: Tokenizer, tmp_path) -> None:
    path = tokenizer.save(tmp_path / "run", "tokens.source")
    loaded = load_tokenizer(tmp_path / "run", "tokens.source")
    assert {file.name for file in (tmp_path / "run").iterdir()} == {path.name, f".{path.name}.sha256"}
    assert type(loaded) is type(tokenizer)
    assert (loaded.size, loaded.specials, loaded.tags) == (tokenizer.size, tokenizer.specials, TAGS)
    assert [loaded.piece(i) for i in range(loaded.size)] == [tokenizer.piece(i) for i in range(tokenizer.size)]
    for text in [*sentences(50), "".join(NASTY)]:
        assert loaded.encode(text) == tokenizer.encode(text)
    assert [loaded.tag_id(tag) for tag in TAGS] == [tokenizer.tag_id(tag) for tag in TAGS]


def test_learning_twice_gives_the_same_file(tokenizer: Tokenizer, tmp_path) -> None:
    kind = next(kind for kind in KINDS if _is(tokenizer, kind))
    again = train_tokenizer(iter(sentences()), TokensConfig(kind=kind, size=340), TAGS)  # type: ignore[arg-type]
    assert tokenizer.save(tmp_path, "a").read_bytes() == again.save(tmp_path, "b").read_bytes()


def _is(tokenizer: Tokenizer, kind: str) -> bool:
    return getattr(tokenizer, "kind", "bpe" if getattr(tokenizer, "_is_bpe", False) else "unigram") == kind


def test_tags_have_ids_of_their_own_that_write_nothing(tokenizer: Tokenizer) -> None:
    ids = [tokenizer.tag_id(tag) for tag in TAGS]
    assert ids == [4, 5]
    assert [tokenizer.piece(id) for id in ids] == list(TAGS)
    specials = tokenizer.specials
    text = "kedi ev"
    framed = [specials.begin, *ids, *tokenizer.encode(text), specials.end, specials.pad, specials.pad]
    assert tokenizer.decode(framed) == text
    assert tokenizer.decode(np.array(framed)) == text
    with pytest.raises(InputError, match=r"tag '<2tt>': did you mean '<2tr>'\?"):
        tokenizer.tag_id("<2tt>")
    with pytest.raises(InputError, match="tag 'kedi'"):
        tokenizer.tag_id("kedi")


def test_ids_out_of_range_are_refused(tokenizer: Tokenizer) -> None:
    for id in (-1, tokenizer.size):
        for ask in (tokenizer.piece, lambda id: tokenizer.decode([id]), lambda id: tokenizer.words([id])):
            with pytest.raises(ValueError, match=f"id {id}: the tokeniser has the ids 0 to {tokenizer.size - 1}"):
                ask(id)


def test_half_a_surrogate_pair_is_refused(tokenizer: Tokenizer) -> None:
    message = r"character 3 is U\+D83D, half of a surrogate pair"
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_all(["ok", text])):
        with pytest.raises(InputError, match=message):
            encode("ab\ud83d")
    with pytest.raises(InputError, match=message):
        tokenizer.sample_all(["ok", "ab\ud83d", "ok"], 0.5, np.random.default_rng(1))


WORDS = st.text(st.sampled_from("kedi ışıkthe \n\t,.'7日👩\u0301"), max_size=30)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(WORDS)
def test_pieces_of_a_word_make_that_word(tokenizer: Tokenizer, text: str) -> None:
    """White space in front of a piece may come with it, and white space alone goes to the next word."""
    ids = tokenizer.encode(text)
    numbers = tokenizer.words(ids)
    assert numbers == sorted(numbers)
    grouped = [[id for id, word in zip(ids, numbers, strict=True) if word == number] for number in sorted(set(numbers))]
    assert sorted(set(numbers)) == list(range(len(grouped)))
    words = [tokenizer.decode(group, continued=True).strip() for group in grouped]
    if not any(len(word.split()) > 1 for word in words):  # a piece such as ".\nx" would hold two
        assert [word for word in words if word] == text.split()


def test_specials_and_tags_are_words_of_their_own(tokenizer: Tokenizer) -> None:
    specials, ids = tokenizer.specials, tokenizer.encode("kedi ev")
    words = tokenizer.words(ids)
    framed = tokenizer.words([specials.begin, tokenizer.tag_id("<2fr>"), *ids, specials.end, specials.pad])
    assert framed == [0, 1, *(word + 2 for word in words), 4, 5]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_ids_are_those_of_sentencepiece_itself(kind: str, tmp_path) -> None:
    """Other programs read the file: for text without U+2581 they must cut as we do, and write what we write."""
    tokenizer = train_tokenizer(sentences(), TokensConfig(kind=kind, size=340), TAGS)  # type: ignore[arg-type]
    other = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer.save(tmp_path)))
    for text in [*sentences(100), "  kedi  zürafa ", "new\nline", "👩‍👩‍👧", "<2fr> ev", ""]:
        assert tokenizer.encode(text) == other.encode(text)
        assert tokenizer.decode(other.encode(text)) == other.decode(other.encode(text)) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_cuts_in_many_ways_the_more_the_stronger(kind: str) -> None:
    tokenizer = train_tokenizer(sentences(), TokensConfig(kind=kind, size=340))  # type: ignore[arg-type]
    text, rng = "çocuklar kitaplar evlerde", np.random.default_rng(3)
    best = tokenizer.encode(text)
    draws = {
        strength: [tuple(ids.tolist()) for ids in tokenizer.sample_all([text] * 300, strength, rng)]
        for strength in (0.0, 0.1, 0.5, 0.95)
    }
    assert set(draws[0.0]) == {tuple(best)}
    ways = [len(set(draw)) for draw in draws.values()]
    lengths = [np.mean([len(ids) for ids in draw]) for draw in draws.values()]
    assert max(ways) > 40
    assert lengths == sorted(lengths)
    assert lengths[-1] > 1.5 * lengths[0]
    with pytest.raises(InputError, match=r"strength of sampling = 1"):
        tokenizer.sample(text, 1, rng)


def test_unigram_samples_by_the_probability_that_the_model_gives() -> None:
    """The share of each cut is its probability to the power (1 - strength) / strength, among all cuts."""
    tokenizer = train_tokenizer(sentences(), TokensConfig(kind="unigram", size=320))
    word, strength = "kitaplar", 0.9
    scores = {tokenizer.piece(i): tokenizer._processor.get_score(i) for i in range(260, tokenizer.size)}

    def cuts(rest: str) -> list[list[str]]:
        heads = [rest[:n] for n in range(1, len(rest) + 1) if rest[:n] in scores]
        return [[head, *tail] for head in heads for tail in cuts(rest[len(head) :])] if rest else [[]]

    weights = {tuple(cut): float(np.exp(sum(scores[piece] for piece in cut) / 9)) for cut in cuts("▁" + word)}
    draws = tokenizer.sample_all([word] * 4000, strength, np.random.default_rng(11))
    counts = {cut: 0 for cut in weights}
    for ids in draws:
        counts[tuple(tokenizer.piece(int(id)) for id in ids)] += 1
    assert len(weights) > 3
    for cut, weight in weights.items():
        share = weight / sum(weights.values())
        assert counts[cut] / 4000 == pytest.approx(share, abs=4 * (share / 4000) ** 0.5 + 1e-3)


def test_sampling_leaves_numpy_where_it_was_but_for_one_draw() -> None:
    """A resumed run restores the generator's state; how many texts a batch has must not matter to it."""
    tokenizer = train_tokenizer(sentences(), TokensConfig(kind="bpe", size=340))
    states = []
    for count in (1, 7):
        rng = np.random.default_rng(1)
        tokenizer.sample_all(sentences(count), 0.1, rng)
        states.append(rng.integers(2**32))
    assert states[0] == states[1]


def test_words_are_cut_at_signs_and_keep_their_marks() -> None:
    assert cut_words(" l'homme est là.") == [" l", "'", "homme", " est", " là", "."]
    assert cut_words(" i\u0307ki  क्षि\t\n x_1") == [" i\u0307ki", " ", " क्षि", "\t", "\n", " x_1"]


@settings(derandomize=True, max_examples=300, deadline=None)
@given(TEXT)
def test_cutting_words_loses_nothing(text: str) -> None:
    assert "".join(cut_words(text)) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char"])
def test_without_bytes_the_unseen_is_unknown(kind: str) -> None:
    config = TokensConfig(kind=kind, size=90, byte_fallback=False)  # type: ignore[arg-type]
    tokenizer = train_tokenizer(sentences(), config)
    for text in ["kedi", "the day"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    for text in ["kedi ж", "▁"]:
        assert tokenizer.specials.unknown in tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.encode("kedi ж")) == "kedi ⁇"
    assert not any(tokenizer.piece(i).startswith("<0x") for i in range(tokenizer.size))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_a_small_text_gives_fewer_pieces_and_says_so(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    told: list[str] = []
    config = TokensConfig(kind=kind, size=8000)  # type: ignore[arg-type]
    tokenizer = train_tokenizer(["the house", "the day"], config, report=told.append)
    assert 260 < tokenizer.size < 330
    assert told == [f"tokens.size = 8000: the text gave {tokenizer.size} pieces only"]
    assert tokenizer.decode(tokenizer.encode("the water")) == "the water"
    exact = train_tokenizer(sentences(), replace(config, size=300), report=told.append)
    assert exact.size == 300
    assert len(told) == 1
    assert capfd.readouterr() == ("", ""), "training must be quiet"


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char"])
@pytest.mark.parametrize("texts", [[], [""], ["", "  ", "\n"]])
def test_no_text_is_an_error(kind: str, texts: list[str]) -> None:
    with pytest.raises(InputError, match="there is no text to learn pieces from"):
        train_tokenizer(texts, TokensConfig(kind=kind))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_many_characters_leave_half_of_the_room_for_pieces(kind: str) -> None:
    """A text of more characters than pieces (Chinese, or many scripts) must train: the rarest are spelt in bytes."""
    draw = random.Random(2)
    common = ["".join(chr(0x4E00 + draw.randrange(30)) for _ in range(8)) for _ in range(300)]
    texts = [*common, "".join(map(chr, range(0x5000, 0x5000 + 900)))]
    tokenizer = train_tokenizer(texts, TokensConfig(kind=kind, size=600))  # type: ignore[arg-type]
    assert tokenizer.size <= 600
    assert any(len(tokenizer.piece(i)) > 1 for i in range(260, tokenizer.size))
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts
    with pytest.raises(InputError, match=r"tokens.size = 600: too small for the 931 different characters.*take 935"):
        train_tokenizer(texts, TokensConfig(kind=kind, size=600, byte_fallback=False))  # type: ignore[arg-type]
    enough = train_tokenizer(texts, TokensConfig(kind=kind, size=935, byte_fallback=False))  # type: ignore[arg-type]
    assert [enough.decode(enough.encode(text)) for text in texts] == texts


def test_sizes_below_the_fixed_ids_are_refused() -> None:
    with pytest.raises(InputError, match=r"tokens.size = 200: too small, since 261 ids .* byte_fallback = false"):
        train_tokenizer(["a"], TokensConfig(kind="bpe", size=200), ["<x>"])


@pytest.mark.parametrize("tag", ["", "a b", "<s>", "<0x41>", "▁x"])
def test_tags_that_could_be_mistaken_are_refused(tag: str) -> None:
    with pytest.raises(InputError, match=r"^tag "):
        train_tokenizer(["a"], TokensConfig(kind="char"), [tag])
    with pytest.raises(InputError, match="given twice"):
        train_tokenizer(["a"], TokensConfig(kind="char"), ["<x>", "<x>"])


def test_tags_may_hold_commas_and_quotes() -> None:
    """sentencepiece takes its symbols as a line of comma-separated values."""
    tags = ["<a,b>", '<"q>', "__fr__"]
    tokenizer = train_tokenizer(sentences(), TokensConfig(size=340), tags)
    assert list(tokenizer.tags) == tags
    assert [tokenizer.piece(tokenizer.tag_id(tag)) for tag in tags] == tags


def test_long_documents_are_learnt_from_to_their_end() -> None:
    """sentencepiece leaves out texts over 4,192 bytes: a book on one line would have taught nothing."""
    book = " ".join(["filler"] * 3000 + ["zebra"] * 50)
    tokenizer = train_tokenizer([book], TokensConfig(kind="bpe", size=300))
    assert "▁zebra" in [tokenizer.piece(i) for i in range(tokenizer.size)]
    parts = list(_parts([book, "é" * 2500, "", " "]))
    assert "".join(parts) == book + "é" * 2500
    assert max(map(len, parts)) == 1000
    assert all(part.endswith(" ") for part in parts[: len(book) // 1000])


def test_line_ends_are_pieces_for_language_models() -> None:
    tokenizer = train_tokenizer(["\n".join(sentences())], TokensConfig(kind="bpe", size=200, byte_fallback=False))
    assert tokenizer.decode(tokenizer.encode("kedi\n\nev")) == "kedi\n\nev"


def test_a_sample_is_even_bounded_and_always_the_same() -> None:
    texts = [f"{i:06d}" for i in range(20_000)]
    sample = _sample(iter(texts), limit=6000)
    assert sample == _sample(iter(texts), limit=6000)
    assert 3000 * 0.8 < sum(map(len, sample)) <= 6000
    numbers = [int(text) for text in sample]
    assert numbers == sorted(numbers)
    assert 8000 < np.mean(numbers) < 12_000
    assert _sample(["x" * 900]) == ["x" * 900]


def test_folders_without_a_tokeniser_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"no tokeniser, neither tokens\.model nor tokens\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokens.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="format 99 is newer"):
        load_tokenizer(tmp_path)
    for broken in ["{", "[]", '{"format": 1, "kind": "other", "pieces": []}']:
        (tmp_path / "tokens.json").write_text(broken)
        with pytest.raises(InputError, match=r"tokens\.json: not a tokeniser's file"):
            load_tokenizer(tmp_path)
    (tmp_path / "tokens.model").write_bytes(b"not a model")
    with pytest.raises(InputError, match=r"tokens\.model: not a sentencepiece model"):
        load_tokenizer(tmp_path)
