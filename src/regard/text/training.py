"""Learning a tokeniser from text, and reading one that was stored.

The text may be any number of lines: an even sample of bounded size is kept, the same for the same text.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import sentencepiece

from regard.config import TokensConfig
from regard.errors import InputError
from regard.text.files import read_sealed
from regard.text.subwords import SPACE, SubwordTokenizer
from regard.text.tokenizer import Specials, Tokenizer, check_tags
from regard.text.vocabulary import (
    SPECIAL_NAMES,
    ByteTokenizer,
    CharTokenizer,
    Vocabulary,
    WordTokenizer,
    cut_words,
    read_vocabulary,
)

SAMPLE_CHARACTERS = 50_000_000
"""characters of text to learn from at most: about half a million sentences, and some 200 MB"""
PART_CHARACTERS = 1000
"""longer texts are learnt from in parts, since sentencepiece leaves out what is over 4,192 bytes"""

Report = Callable[[str], None]


def train_tokenizer(
    texts: Iterable[str], config: TokensConfig, tags: Sequence[str] = (), report: Report | None = None
) -> Tokenizer:
    """A tokeniser of the kind and size that `config` asks for, with an id of its own for each tag.

    `size` counts every id, specials, tags and bytes included. Where the text cannot give so many pieces there are
    fewer, and `report` is told in a line. char takes every character of the text, and byte needs no text.
    """
    check_tags(tags, taken=[*SPECIAL_NAMES, *(f"<0x{byte:02X}>" for byte in range(256))])
    fixed = len(SPECIAL_NAMES) + len(tags) + 256 * config.byte_fallback
    if config.kind in ("bpe", "unigram", "word") and config.size <= fixed:
        bytes_too = " and 256 bytes" if config.byte_fallback else ""
        raise InputError(
            f"tokens.size = {config.size}: too small, since {fixed} ids are specials, tags{bytes_too}; take more"
            + (", or byte_fallback = false" if config.byte_fallback else "")
        )
    match config.kind:
        case "bpe" | "unigram":
            tokenizer: Tokenizer = _train_subwords(texts, config, tags, config.size - fixed)
        case "word":
            found = Counter(word for text in _sample(texts) for word in cut_words(f" {text}"))
            tokenizer = WordTokenizer(_vocabulary(found, config, tags, limit=config.size - fixed))
        case "char":
            found = Counter()
            for text in texts:
                found.update(text)
            if all(character.isspace() for character in found):
                raise _no_text()
            tokenizer = CharTokenizer(_vocabulary(found, config, tags, limit=None))
        case "wordpiece":
            raise InputError('tokens.kind = "wordpiece": comes with an imported model and is not learned; take "bpe"')
        case "byte":
            return ByteTokenizer(Vocabulary(tags=tuple(tags)))
    if report and tokenizer.size < config.size and config.kind != "char":
        report(f"tokens.size = {config.size}: the text gave {tokenizer.size} pieces only")
    return tokenizer


def load_tokenizer(folder: str | Path, name: str = "tokens") -> Tokenizer:
    """The tokeniser that `save` wrote into the folder."""
    model, listed = Path(folder) / f"{name}.model", Path(folder) / f"{name}.json"
    if model.is_file():
        content = read_sealed(model)
        try:
            return SubwordTokenizer(content)
        except InputError as error:
            raise InputError(f"{model}: {error}") from None
    if listed.is_file():
        return read_vocabulary(listed)
    raise InputError(f"{folder}: no tokeniser, neither {model.name} nor {listed.name}")


def _train_subwords(texts: Iterable[str], config: TokensConfig, tags: Sequence[str], room: int) -> Tokenizer:
    sample = _sample(text.replace(SPACE, " ").replace("\0", " ") for text in texts)
    found: Counter[str] = Counter()
    for text in sample:
        found.update(text)
    found[" "] += len(sample)  # the space that is put before each
    if len(found) > room and not config.byte_fallback:
        raise InputError(
            f"tokens.size = {config.size}: too small for the {len(found)} different characters of the text; "
            f"take {config.size - room + len(found)} or more, or byte_fallback = true"
        )
    if len(found) > room / 2 and config.byte_fallback:
        # Half of the pieces are for learning, so the rarest characters are spelt in bytes. sentencepiece's own
        # `character_coverage` cannot do it: it takes no less than 0.98.
        rare = dict.fromkeys((ord(character) for character, _ in found.most_common()[room // 2 :]), " ")
        sample = [text.translate(rare) for text in sample]
    specials = Specials()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sample),
        model_writer=model,
        model_type=config.kind,
        vocab_size=config.size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        byte_fallback=config.byte_fallback,
        control_symbols=list(tags),
        pad_id=specials.pad,
        unk_id=specials.unknown,
        bos_id=specials.begin,
        eos_id=specials.end,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=4,  # unigram's sums, and so its pieces, depend on their number
        minloglevel=2,
    )
    return SubwordTokenizer(model.getvalue())


def _vocabulary(found: Counter[str], config: TokensConfig, tags: Sequence[str], *, limit: int | None) -> Vocabulary:
    """The most frequent pieces, the frequent first, equals in the order of their characters."""
    pieces = sorted(found, key=lambda piece: (-found[piece], piece))[:limit]
    return Vocabulary(pieces=tuple(pieces), byte_fallback=config.byte_fallback, tags=tuple(tags))


def _sample(texts: Iterable[str], limit: int = SAMPLE_CHARACTERS) -> list[str]:
    """An even sample of the texts' parts, of `limit` characters at most: each part draws a number, and whenever too
    much is held, those with the larger half of the numbers go."""
    random, share, held = Random(0), 1.0, 0
    kept: list[tuple[float, str]] = []
    for part in _parts(texts):
        drawn = random.random()
        if drawn < share:
            kept.append((drawn, part))
            held += len(part)
            while held > limit and len(kept) > 1:
                share /= 2
                kept = [(drawn, part) for drawn, part in kept if drawn < share]
                held = sum(len(part) for _, part in kept)
    if not kept:
        raise _no_text()
    return [part for _, part in kept]


def _parts(texts: Iterable[str]) -> Iterator[str]:
    """The texts that are not blank, long ones in parts that end at white space where there is any."""
    for text in texts:
        start = 0
        while len(text) - start > PART_CHARACTERS:
            limit = start + PART_CHARACTERS
            end = max(text.rfind(" ", start, limit), text.rfind("\n", start, limit)) + 1
            end = end if end > start else limit
            yield text[start:end]
            start = end
        if text[start:].strip():
            yield text[start:]


def _no_text() -> InputError:
    return InputError("tokens: there is no text to learn pieces from; the training data is empty or blank")
