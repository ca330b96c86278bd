"""What a translation tells: its text, its scores, and which source words it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from regard.decoding import SearchTree
from regard.text import Tokenizer

Links = tuple[tuple[int, int], ...]
"""Places in the source and in the target."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Which parts of the source each part of the target looked at while it was written."""

    source: tuple[str, ...]
    """pieces, with the tag before them and the end behind them"""
    weights: tuple[tuple[float, ...], ...]
    """for each piece of the target how much of its attention went to each piece of the source: rows sum to 1"""
    pieces: Links
    """for each piece of the target the one of the source that it looked at most, if that is neither tag nor end"""
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    word_weights: tuple[tuple[float, ...], ...]
    """the same for words: summed over a source word's pieces, the mean over a target word's"""
    words: Links

    def pharaoh(self) -> str:
        """The words' links as aligners write them: 0-0 1-2."""
        return " ".join(f"{source}-{target}" for source, target in self.words)


@dataclass(frozen=True, kw_only=True)
class Translation:
    """One translated text."""

    text: str
    score: float
    """what ranks it: log-probability over length to the power of the penalty, with the other penalties asked for"""
    tokens: tuple[str, ...]
    ended: bool
    """whether the model ended it, or the limit of length did"""
    logp: float = 0.0
    """the model's log-probability of the pieces that it wrote, the end included"""
    guarded: bool = False
    """whether runaway repetition was stopped in it"""
    confidence: float | None = None
    """if asked for: the geometric mean of its pieces' calibrated probabilities"""
    alignment: Alignment | None = None
    """if asked for"""
    tree: SearchTree | None = None
    """if asked for: the search that it came from"""


EMPTY = Translation(text="", score=0.0, tokens=(), ended=True)
"""Of nothing, nothing is made: a model would make something up."""


def alignment(
    source_tokenizer: Tokenizer, tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int], weights: Tensor
) -> Alignment:
    """The alignment that attention weights give, (target pieces, source pieces); `source` has its end, the target none.

    A part of the target that looks most at the tag or at the end is linked to nothing.
    """
    text = text_places(source_tokenizer, source)
    rows = weights[: len(target)].float()
    columns = _words(source_tokenizer, [source[place] for place in text])
    lines = _words(tokenizer, target)
    by_word = rows.new_zeros(len(lines), len(columns))
    links = []
    for place, line in enumerate(lines):
        mean = rows[line].mean(0)
        for word, column in enumerate(columns):
            by_word[place, word] = mean[[text.start + each for each in column]].sum()
        others = float(mean.sum() - by_word[place].sum())
        best = int(by_word[place].argmax()) if len(columns) else -1
        if best >= 0 and float(by_word[place, best]) > others:
            links.append((best, place))
    most = rows.argmax(-1).tolist()
    return Alignment(
        source=tuple(source_tokenizer.piece(id) for id in source),
        weights=tuple(map(tuple, rows.tolist())),
        pieces=tuple((best, place) for place, best in enumerate(most) if best in text),
        source_words=_texts(source_tokenizer, [source[place] for place in text], columns),
        target_words=_texts(tokenizer, target, lines),
        word_weights=tuple(map(tuple, by_word.tolist())),
        words=tuple(links),
    )


def text_places(tokenizer: Tokenizer, source: Sequence[int]) -> range:
    """Places of a source's text, behind its tag and before its end."""
    tagged = bool(source) and any(tokenizer.tag_id(tag) == source[0] for tag in tokenizer.tags)
    return range(int(tagged), len(source) - 1)


def _words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[list[int]]:
    """For each word the places of its pieces."""
    places: dict[int, list[int]] = {}
    for place, word in enumerate(tokenizer.words(ids)):
        places.setdefault(word, []).append(place)
    return list(places.values())


def _texts(tokenizer: Tokenizer, ids: Sequence[int], words: Sequence[Sequence[int]]) -> tuple[str, ...]:
    return tuple(tokenizer.decode([ids[place] for place in word]).strip() for word in words)
