"""What every tokeniser can do, whatever it is made of: text to ids, ids to text, ids to words.

Special ids are known here and nowhere else: every other room asks `tokenizer.specials`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, nearest

Ids = NDArray[np.int32]

UNKNOWN_TEXT = "⁇"
"""What decoding writes for the unknown piece (sentencepiece's own sign)."""


@dataclass(frozen=True, kw_only=True)
class Specials:
    """Ids with a meaning of their own. A tokeniser without one of the first four reuses another of them."""

    pad: int = 0
    """fills up the rows of a batch"""
    unknown: int = 1
    """stands for what cannot be spelt"""
    begin: int = 2
    """first piece that a decoder reads"""
    end: int = 3
    """last piece that a decoder writes"""
    mask: int | None = None
    """hides a piece that an encoder has to guess (BERT); most tokenisers have none"""

    def __post_init__(self) -> None:
        """Refuse ids that no table has."""
        for name in ("pad", "unknown", "begin", "end", "mask"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InputError(f"special id {name} = {value}: must be 0 or more")


class Tokenizer(ABC):
    """Text to ids and back.

    `surfaces[i]` holds the bytes that piece i writes, and is none where it writes nothing (begin, end, pad and tags).
    `prefix` is what encoding puts before a text and decoding takes off again: a space, so that a word has the same
    piece at the start of a text as inside it, or nothing. A text that goes on from another (`continued`) has none.
    """

    def __init__(
        self, *, specials: Specials, tags: Sequence[str], surfaces: Sequence[bytes | None], prefix: str
    ) -> None:
        self.specials = specials
        self.tags = tuple(tags)
        """symbols such as <2fr>: one id each, put in by their id and never read from text"""
        self._surfaces = list(surfaces)
        self._prefix = prefix

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self._surfaces)

    @abstractmethod
    def encode(self, text: str, *, continued: bool = False) -> list[int]:
        """The text's ids, without begin and end. `continued`: it goes on from a text before."""

    @abstractmethod
    def encode_all(self, texts: Sequence[str]) -> list[Ids]:
        """The ids of many texts: the same as `encode` of each, and faster."""

    @abstractmethod
    def sample_all(self, texts: Sequence[str], strength: float, rng: np.random.Generator) -> list[Ids]:
        """Each text cut at random, the more so the nearer `strength` is to 1; the same for the same state of `rng`."""

    @abstractmethod
    def piece(self, id: int) -> str:
        """A piece as people see it: ▁ stands for a space, <0x0A> for a byte."""

    @abstractmethod
    def tag_id(self, tag: str) -> int:
        """The id of a tag such as <2fr>."""

    @abstractmethod
    def save(self, folder: str | Path, name: str = "tokens") -> Path:
        """Write the tokeniser into the folder, for `load_tokenizer`; answers with the file."""

    def sample(self, text: str, strength: float, rng: np.random.Generator) -> list[int]:
        """One text cut at random, as `sample_all`."""
        ids: list[int] = self.sample_all([text], strength, rng)[0].tolist()
        return ids

    def decode(self, ids: Iterable[int], *, continued: bool = False) -> str:
        """The text of the ids; specials and tags write nothing, bytes that are no UTF-8 the replacement character."""
        text = self.bytes_of(ids).decode("utf-8", errors="replace")
        return text if continued else text.removeprefix(self._prefix)

    @property
    def prefix(self) -> str:
        """What stands before a text's first piece and is no part of the text."""
        return self._prefix

    def bytes_of(self, ids: Iterable[int]) -> bytes:
        """What the ids write inside a text, which may be part of a character."""
        return b"".join(self._surface(id) or b"" for id in ids)

    def size_of(self, ids: Iterable[int]) -> int:
        """How many bytes that is."""
        surfaces = self._surfaces
        return sum(len(surfaces[id] or b"") for id in ids)

    def pieces(self, text: str) -> list[str]:
        """The text's pieces as people see them."""
        return [self.piece(id) for id in self.encode(text)]

    def words(self, ids: Iterable[int]) -> list[int]:
        """For each piece the number of the word it belongs to, where white space divides words.

        A piece belongs to the word of its first visible character, white space alone to the word that follows it;
        begin, end, pad and tags are words of their own. Only ASCII's white space counts: a no-break space joins.
        """
        words: list[int] = []
        word, joins, blank = -1, False, False  # does the next piece join this word? has it been blank so far?
        for id in ids:
            surface = self._surface(id)
            starts_blank = surface is not None and surface[:1].isspace()
            if surface is None or not joins or (starts_blank and not blank):
                word += 1
            words.append(word)
            blank = surface is not None and not surface.strip()
            joins = surface is not None and (blank or not surface[-1:].isspace())
        return words

    def _surface(self, id: int) -> bytes | None:
        if not 0 <= id < len(self._surfaces):
            raise ValueError(f"id {id}: the tokeniser has the ids 0 to {len(self._surfaces) - 1}")
        return self._surfaces[id]


def check_unicode(text: str) -> None:
    """Refuse text that has no UTF-8: with half of a surrogate pair, as broken JSON escapes make them."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise InputError(f"character {error.start + 1} is {half}, half of a surrogate pair: not Unicode text") from None


def unknown_tag(tag: str, tags: Sequence[str]) -> InputError:
    """The error for a tag that the tokeniser was not trained with."""
    return InputError(f"tag {tag!r}: {nearest(tag, tags) if tags else 'the tokeniser was trained without tags'}")


def check_tags(tags: Sequence[str], *, taken: Iterable[str]) -> None:
    """Refuse tags that could not be told from other pieces."""
    used = set(taken)
    for tag in tags:
        if not tag or any(character.isspace() or character in "▁\0" for character in tag):
            raise InputError(f"tag {tag!r}: must be one word, such as <2fr>")
        if tag in used:
            raise InputError(f"tag {tag!r}: is given twice, or is the name of another piece")
        used.add(tag)
