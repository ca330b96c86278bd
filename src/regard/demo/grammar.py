"""The demonstration's corpus: pairs of sentences written by a grammar of our own, in three directions.

A pattern draws a meaning (`patterns`), three small grammars say it (`english`, `french`, `turkish`), and the two sides
of a direction make a pair. Combinations of words (cat + eat + mouse) are divided by a hash of their names: one that is
held out for validation or test is in training in no direction, number, tense or negation, while every word form of the
held-out sentences is. Only what Turkish says in one word ("Öğrenciyim.") is never held out: it has to be seen.

So that every sentence has one translation, I, you, we and they are masculine in French ("Je suis étudiant."), you is
one friend (tu, sen), only he and she tell a man from a woman, a profession is masculine but in what is said of a woman,
and Turkish, which has no genders, names again what "it" stands for ("… çünkü cadde çok genişti.").
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from typing import Literal

from regard.demo import english, french, turkish, verbs
from regard.demo.drawing import Dice
from regard.demo.meaning import Action, Because, Being, Meaning, Phrase
from regard.demo.nouns import NAMED
from regard.demo.patterns import PATTERNS, Draft, animal_because

Side = Literal["train", "valid", "test"]

DIRECTIONS = ("en-fr", "fr-en", "en-tr")
_SAY: dict[str, Callable[[Meaning], str]] = {
    "en": english.sentence, "fr": french.sentence, "tr": turkish.sentence
}  # fmt: skip
_VALID, _TEST = 0.03, 0.06  # shares of all combinations
_KNOWN = 3_000  # a form counts as known when it comes in one of so many pairs of a direction
_PATIENCE = 400  # draws without a new pair before giving up


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A sentence, its translation and what they are made of."""

    direction: str  # "en-fr", "fr-en" or "en-tr"
    source: str
    target: str
    pattern: str  # name of the pattern
    combination: str  # the words that are combined, such as "cat eat mouse"; two of them with " + " between


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The three parts of a corpus; no combination of one is in another."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A held-out sentence in which "it" stands for one of two nouns."""

    sentence: str  # English
    pronoun: str
    antecedent: str  # the noun that the pronoun stands for
    other: str


def words(text: str) -> list[str]:
    """The word forms of a sentence: ``L'animal n'a pas dormi.`` gives L', animal, n', a, pas, dormi and the stop."""
    return re.findall(r"\w+(?:-\w+)*'?|[^\w\s]", text)


def corpus(*, size: int = 90_000, valid: int = 600, test: int = 1_200, seed: int = 1) -> Corpus:
    """``size`` pairs to train on and held-out ones, a third of each in each direction, always the same for a seed."""
    for name, value in (("size", size), ("valid", valid), ("test", test)):
        if value < 0:
            raise ValueError(f"{name}: {value} pairs cannot be written; it is a number from 0")
    parts: dict[Side, list[Pair]] = {"train": [], "valid": [], "test": []}
    for number, direction in enumerate(DIRECTIONS):
        dice = Dice(f"{seed} {direction}")
        counts = {
            side: total // 3 + (number < total % 3) for side, total in zip(parts, (size, valid, test), strict=True)
        }
        for side, pairs in _one_direction(direction, counts, dice).items():
            parts[side] += pairs
    order = Dice(f"{seed} order")
    return Corpus(**{side: tuple(order.shuffled(pairs)) for side, pairs in parts.items()})


def references(*, count: int, seed: int) -> tuple[Reference, ...]:
    """Held-out English sentences with "it", half of them about the animal and half about the place."""
    dice = Dice(f"{seed} references")
    found: dict[str, Reference] = {pair.source: _NO_REFERENCE for pair in LECTURE_SENTENCES}
    lecture = len(found)
    wanted = {False: count - count // 2, True: count // 2}
    misses = 0
    while any(wanted.values()):
        draft = animal_because(dice)
        meaning = draft.meaning
        assert isinstance(meaning, Because)
        assert isinstance(meaning.action.subject, Phrase)
        sentence = english.sentence(meaning)
        if not wanted[meaning.of_object] or sentence in found or _side(draft) != "test":
            misses += 1
            if misses > _PATIENCE * 10:
                raise ValueError(f"count: {count} is more than there are held-out sentences with it")
            continue
        misses = 0
        wanted[meaning.of_object] -= 1
        nouns = [meaning.action.subject.noun.english, meaning.action.objects[0].noun.english]
        if meaning.of_object:
            nouns.reverse()
        found[sentence] = Reference(sentence=sentence, pronoun="it", antecedent=nouns[0], other=nouns[1])
    return tuple(dice.shuffled(list(found.values())[lecture:]))


def _one_direction(direction: str, counts: dict[Side, int], dice: Dice) -> dict[Side, list[Pair]]:
    """The pairs of one direction: first all training, then what is held out and made of known forms."""
    kept: dict[Side, list[Pair]] = {"train": [], "valid": [], "test": []}
    seen = {pair.source for pair in LECTURE_SENTENCES if pair.direction == direction}
    spare: dict[str, list[tuple[Side, Pair]]] = {}
    for pattern, quota in _quotas(counts["train"]).items():
        spare[pattern] = []
        pairs = _distinct(direction, pattern, dice, seen)
        while quota:
            side, pair = next(pairs)
            if side == "train":
                kept["train"].append(pair)
                quota -= 1
            else:
                spare[pattern].append((side, pair))
    known = _known(kept["train"])
    quotas: dict[Side, dict[str, int]] = {side: _quotas(counts[side]) for side in ("valid", "test")}
    for pattern, first in spare.items():
        left = {side: quotas[side][pattern] for side in quotas}
        waiting = chain(first, _distinct(direction, pattern, dice, seen))
        tries = 0
        while any(left.values()):
            side, pair = next(waiting)
            tries += 1
            if tries > _PATIENCE * 50:
                raise ValueError(
                    f"size: {counts['train']} {direction} pairs do not show the words of {pattern} often enough"
                )
            if side != "train" and left[side] and known.issuperset(_forms(pair)):
                kept[side].append(pair)
                left[side] -= 1
    return kept


def _distinct(direction: str, pattern: str, dice: Dice, seen: set[str]) -> Iterator[tuple[Side, Pair]]:
    """Pairs of a pattern with new sources, without end until they run out."""
    source, target = (_SAY[language] for language in direction.split("-"))
    draw = PATTERNS[pattern][1]
    misses = 0
    while misses < _PATIENCE:
        draft = draw(dice)
        text = source(draft.meaning)
        if text in seen:
            misses += 1
            continue
        misses = 0
        seen.add(text)
        yield (
            _side(draft),
            Pair(
                direction=direction,
                source=text,
                target=target(draft.meaning),
                pattern=pattern,
                combination=" + ".join(draft.combinations),
            ),
        )
    raise ValueError(f"size: the pattern {pattern} has fewer {direction} pairs than were asked of it")


def _side(draft: Draft) -> Side:
    """Where a sentence belongs: to the test as soon as one of its combinations does."""
    if draft.one_word:
        return "train"
    sides = [_side_of(combination) for combination in draft.combinations]
    return "test" if "test" in sides else "valid" if "valid" in sides else "train"


@cache
def _side_of(combination: str) -> Side:
    """The side of a combination, by a hash that is the same on every machine."""
    if combination in _LECTURE_COMBINATIONS:
        return "test"
    share = int.from_bytes(sha256(combination.encode()).digest()[:8], "big") / 2**64
    return "test" if share < _TEST else "valid" if share < _TEST + _VALID else "train"


def _quotas(total: int) -> dict[str, int]:
    """How many of ``total`` pairs each pattern writes, by its share."""
    quotas, done, share = {}, 0, 0.0
    for name, (part, _) in PATTERNS.items():
        share += part
        quotas[name] = round(total * share) - done
        done += quotas[name]
    return quotas


def _forms(pair: Pair) -> set[str]:
    return {f"source {word}" for word in words(pair.source)} | {f"target {word}" for word in words(pair.target)}


def _known(pairs: list[Pair]) -> set[str]:
    """The word forms that were seen often enough to be learnt."""
    counts = Counter(form for pair in pairs for form in _forms(pair))
    return {form for form, count in counts.items() if count * _KNOWN >= len(pairs)}


def _lecture() -> Iterator[Pair]:
    """The sentences that lectures on attention use."""
    cross = verbs.CROSS
    animal, street = Phrase(noun=NAMED["animal"]), Phrase(noun=NAMED["street"])
    crossing = Action(subject=animal, verb=cross, objects=(street,), negated=True)
    wide = next(adjective for adjective in verbs.PLACE_ADJECTIVES if adjective.english == "wide")
    mouse = Phrase(noun=NAMED["mouse"])
    meanings: tuple[tuple[str, str, Meaning], ...] = (
        ("profession", "I be student", Being(subject=verbs.I, quality=NAMED["student"])),
        ("transitive", "cat eat mouse", Action(subject=Phrase(noun=NAMED["cat"]), verb=verbs.EAT, objects=(mouse,))),
        (
            "animal_because",
            "animal street tired",
            Because(action=crossing, of_object=False, adjective=verbs.TIRED, degree="too"),
        ),
        (
            "animal_because",
            "animal street wide",
            Because(action=crossing, of_object=True, adjective=wide, degree="too"),
        ),
    )
    for direction in DIRECTIONS:
        source, target = (_SAY[language] for language in direction.split("-"))
        for pattern, combination, meaning in meanings:
            if direction == "en-tr" and pattern == "profession":
                continue  # one word in Turkish, which training has to show
            yield Pair(
                direction=direction,
                source=source(meaning),
                target=target(meaning),
                pattern=pattern,
                combination=combination,
            )


LECTURE_SENTENCES: tuple[Pair, ...] = tuple(_lecture())
"""The lectures' sentences in every direction; their combinations are held out of training."""

_LECTURE_COMBINATIONS = frozenset(pair.combination for pair in LECTURE_SENTENCES if pair.pattern != "profession")
_NO_REFERENCE = Reference(sentence="", pronoun="", antecedent="", other="")
