"""The two sides of what is looked at: pieces, the text that each writes, and the words that they are parts of."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explorer.arrays import Plain
from regard.text import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Side:
    """The source, or what the decoder reads."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    texts: tuple[str, ...]
    """what each piece writes; of a piece that is a part of a character, the replacement character"""
    words: tuple[int, ...]
    """for each piece the number of its word"""
    word_texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def to_plain(self) -> Plain:
        """For JSON."""
        return {
            "kind": "text",
            "pieces": list(self.pieces),
            "texts": list(self.texts),
            "ids": list(self.ids),
            "words": list(self.words),
            "word_texts": list(self.word_texts),
            "special": [not text for text in self.texts],
        }


def side_of(ids: Sequence[int], tokenizer: Tokenizer) -> Side:
    """The side that these ids are."""
    words = tokenizer.words(ids)
    by_word: dict[int, list[int]] = {}
    for id, word in zip(ids, words, strict=True):
        by_word.setdefault(word, []).append(id)
    return Side(
        ids=tuple(ids),
        pieces=tuple(tokenizer.piece(id) for id in ids),
        texts=tuple(tokenizer.decode([id], continued=True) for id in ids),
        words=tuple(words),
        word_texts=tuple(_word_text(by_word[word], tokenizer) for word in sorted(by_word)),
    )


def _word_text(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """A word as it is read; begin, end and tags by their names, and white space alone as it is."""
    text = tokenizer.decode(ids, continued=True)
    return text.strip() or text or tokenizer.piece(ids[0])
