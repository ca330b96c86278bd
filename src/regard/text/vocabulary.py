"""Tokenisers that are a list of pieces: words, characters, bytes.

Ids are the specials, then the tags, then (with `byte_fallback`) the 256 bytes, then the listed pieces. What is not
listed is spelt in bytes, so that every text comes back exactly; without bytes it becomes the unknown piece.
"""

import json
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from regard.errors import InputError
from regard.text.files import read_sealed, write_sealed
from regard.text.huggingface import KIND as HUGGINGFACE
from regard.text.huggingface import huggingface_tokenizer
from regard.text.tokenizer import UNKNOWN_TEXT, Ids, Specials, Tokenizer, check_unicode, unknown_tag

FORMAT = 1
SPECIAL_NAMES = ("<pad>", "<unk>", "<s>", "</s>")
"""Names of ids 0 to 3, as sentencepiece has them."""
MASK = "<mask>"
"""the symbol whose id hides pieces, where there is one; it is given to training like a tag"""


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What such a tokeniser consists of."""

    pieces: tuple[str, ...] = ()
    """the text of each listed piece"""
    byte_fallback: bool = True
    """whether there are pieces for the 256 bytes"""
    tags: tuple[str, ...] = ()
    """symbols such as <2fr> and <mask>, one id each, never read from text"""


class ListedTokenizer(Tokenizer):
    """A tokeniser that cuts text by a rule and looks the parts up."""

    kind: ClassVar[str]
    space_before: ClassVar[bool] = False
    """whether a text's first word is taken to follow a space, as the others do"""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spelt = [bytes([byte]) for byte in range(256)] if vocabulary.byte_fallback else []
        listed = [piece.encode() for piece in vocabulary.pieces]
        before = [None] * (len(SPECIAL_NAMES) + len(vocabulary.tags))
        self._symbols = (*SPECIAL_NAMES, *vocabulary.tags)
        super().__init__(
            specials=Specials(mask=self._symbols.index(MASK) if MASK in vocabulary.tags else None),
            tags=[tag for tag in vocabulary.tags if tag != MASK],
            surfaces=[*before, *spelt, *listed],
            prefix=" " if self.space_before else "",
        )
        self._surfaces[self.specials.unknown] = (self._prefix + UNKNOWN_TEXT).encode()
        self._vocabulary = vocabulary
        self._first_byte = len(before) if vocabulary.byte_fallback else None
        self._ids = {piece: [len(before) + len(spelt) + i] for i, piece in enumerate(vocabulary.pieces)}

    @abstractmethod
    def _cut(self, text: str) -> Sequence[str]:
        """The text in parts, which joined are the text."""

    def encode(self, text: str, *, continued: bool = False) -> list[int]:
        """The text's ids."""
        if not text:
            return []
        check_unicode(text)
        parts, known = self._cut(text if continued else self._prefix + text), self._ids
        return [id for part in parts for id in known.get(part) or self._spell(part)]

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of many texts."""
        return [np.array(self.encode(text), dtype=np.int32) for text in texts]

    def sample_all(self, texts: Sequence[str], strength: float, rng: np.random.Generator) -> list[Ids]:
        """There is one way to cut only: the same as `encode_all`."""
        return self.encode_all(texts)

    def piece(self, id: int) -> str:
        """The piece as people see it."""
        self._surface(id)
        names, first = self._symbols, self._first_byte
        if id < len(names):
            return names[id]
        place = id - len(names)
        if first is None:
            return self._vocabulary.pieces[place].replace(" ", "▁")
        return f"<0x{place:02X}>" if place < 256 else self._vocabulary.pieces[place - 256].replace(" ", "▁")

    def tag_id(self, tag: str) -> int:
        """The id of a tag."""
        if tag not in self.tags:
            raise unknown_tag(tag, self.tags)
        return self._symbols.index(tag)

    def save(self, folder: str | Path, name: str = "tokens") -> Path:
        """Write NAME.json."""
        path = Path(folder) / f"{name}.json"
        content = {"format": FORMAT, "kind": self.kind, **asdict(self._vocabulary)}
        write_sealed(path, (json.dumps(content, ensure_ascii=False, indent=0) + "\n").encode())
        return path

    def _spell(self, part: str) -> list[int]:
        if self._first_byte is None:
            return [self.specials.unknown]
        return [self._first_byte + byte for byte in part.encode()]


class WordTokenizer(ListedTokenizer):
    """Words and punctuation signs, each with the space before it."""

    kind = "word"
    space_before = True

    def _cut(self, text: str) -> Sequence[str]:
        return cut_words(text)


class CharTokenizer(ListedTokenizer):
    """Unicode characters."""

    kind = "char"

    def _cut(self, text: str) -> Sequence[str]:
        return text


class ByteTokenizer(ListedTokenizer):
    """The bytes of UTF-8: nothing to learn, nothing unknown."""

    kind = "byte"

    def _cut(self, text: str) -> Sequence[str]:
        return (text,)

    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of many texts, by one addition each."""
        first = np.int32(len(SPECIAL_NAMES) + len(self.tags))
        for text in texts:
            check_unicode(text)
        return [np.frombuffer(text.encode(), np.uint8).astype(np.int32) + first for text in texts]


def cut_words(text: str) -> list[str]:
    """The text in words, single signs and white space; a space goes with what follows it, and nothing is lost.

    A word is a run of letters, digits, underscores and the marks that combine with them.
    """
    marks, plain, full = _rules()
    return plain.findall(text) if marks.isdisjoint(text) else full.findall(text)


@cache
def _rules() -> tuple[frozenset[str], re.Pattern[str], re.Pattern[str]]:
    """All combining marks, what cuts text without any (seven times as fast), and what cuts any text.

    Python's \\w leaves the marks out, without which many scripts' words fall apart. They stand below U+1F000 but for
    the variation selectors (looking for them takes 20 ms, once).
    """
    codes = [*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0)]
    marks = "".join(chr(code) for code in codes if unicodedata.category(chr(code)).startswith("M"))
    plain, full = r" ?(?:\w+|[^\w\s])|\s", rf" ?(?:[\w{marks}]+|[^\w\s{marks}])|\s"
    return frozenset(marks), re.compile(plain), re.compile(full)


def read_vocabulary(path: Path) -> Tokenizer:
    """The tokeniser in a file that `save` wrote: a listed one, or one of another program."""
    try:
        content = json.loads(read_sealed(path))
        if content.get("kind") == HUGGINGFACE:
            return huggingface_tokenizer(content)
        if content["format"] > FORMAT:
            raise InputError(f"{path}: format {content['format']} is newer than this program's, {FORMAT}; update it")
        kinds = {kind.kind: kind for kind in (WordTokenizer, CharTokenizer, ByteTokenizer)}
        return kinds[content["kind"]](
            Vocabulary(
                pieces=tuple(content["pieces"]), byte_fallback=content["byte_fallback"], tags=tuple(content["tags"])
            )
        )
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a tokeniser's file: {error!r}") from None
