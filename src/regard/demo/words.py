"""What the lexicon is made of: a word in three languages at once, and the short notation it is written in.

A noun is written ``("mouse/mice", "une souris", "fare")``: a slash gives an irregular plural (English, French) or the
stem before a vowel (Turkish: ``kitap/kitab``); French says its gender by ``un`` or ``une``; a star before the word is
an aspirated h (``une *hache``: no elision), as in dictionaries; a French comma separates the feminine of a profession;
a Turkish tilde marks a word with back vowels that takes front suffixes (``saat~``: saati).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Case = Literal["none", "accusative", "dative", "locative", "ablative", "genitive"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Noun:
    """A noun. ``kinds`` are the plain words by which verbs and adjectives say what they go with."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    french_feminine: str  # a profession said of a woman; otherwise the same as `french`
    french_feminine_plural: str
    feminine: bool  # the French gender
    aspirated: bool
    turkish: str
    turkish_soft: str  # the stem before a vowel
    turkish_front: bool
    kinds: frozenset[str]

    def is_a(self, *kinds: str) -> bool:
        """Whether the noun is of one of these kinds."""
        return not self.kinds.isdisjoint(kinds)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Adjective:
    """An adjective. ``fits`` are the kinds of noun it may be said of."""

    english: str
    masculine: str
    masculine_before_vowel: str  # un bel oiseau
    feminine: str
    before: bool  # stands before the noun in French
    turkish: str
    turkish_soft: str
    turkish_living: str  # "old" is eski of a house and yaşlı of a man
    fits: frozenset[str]
    graded: bool  # can be "very" so
    attributive: bool  # stands beside a noun, too


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Verb:
    """A verb in the past, with its government: the prepositions of French and English, the case of Turkish."""

    english: str  # "look at"
    english_past: str
    participle: str
    with_etre: bool
    preposition: str  # what French puts before the object: "", "à", "de", "dans", "jusqu'à"
    turkish: str  # the stem: "bak"
    case: Case
    subjects: frozenset[str]
    objects: frozenset[str]
    definite: bool  # wants a definite object


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pronoun:
    """A subject pronoun. I, you, we and they count as masculine, and you is one friend (tu, sen): see `grammar`."""

    english: str
    french: str
    person: Literal[1, 2, 3]
    plural: bool
    feminine: bool


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Relation:
    """Where something is: in, on, under ... In Turkish a case, or a noun of place after the genitive."""

    english: str
    french: str
    turkish: str  # "" for the locative, else "üstünde"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Time:
    """An adverb of time: at the end in English and French, at the beginning in Turkish."""

    english: str
    french: str
    turkish: str


def _english_plural(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def french_plural(word: str) -> str:
    """The regular plural of a French noun or masculine adjective."""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("eau"):
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


def _halves(text: str) -> tuple[str, str]:
    first, _, second = text.partition("/")
    return first, second


def noun(english: str, french: str, turkish: str, kinds: str) -> Noun:
    """A noun from the notation at the top of this file."""
    singular, plural = _halves(english)
    masculine, _, feminine = french.partition(", ")
    article, _, word = masculine.partition(" ")
    fr, fr_plural = _halves(word.removeprefix("*"))
    fr_feminine = feminine.removeprefix("une ") or fr
    tr, tr_soft = _halves(turkish.removesuffix("~"))
    return Noun(
        english=singular,
        english_plural=plural or _english_plural(singular),
        french=fr,
        french_plural=fr_plural or french_plural(fr),
        french_feminine=fr_feminine,
        french_feminine_plural=french_plural(fr_feminine),
        feminine=article == "une",
        aspirated=word.startswith("*"),
        turkish=tr,
        turkish_soft=tr_soft or tr,
        turkish_front=turkish.endswith("~"),
        kinds=frozenset(kinds.split()),
    )


def nouns(common: str, rows: Sequence[tuple[str, str, str] | tuple[str, str, str, str]]) -> tuple[Noun, ...]:
    """A group of nouns that share the kinds ``common``; a fourth cell adds kinds of its own."""
    return tuple(noun(row[0], row[1], row[2], " ".join((common, *row[3:]))) for row in rows)


def adjective(
    english: str,
    french: str,
    turkish: str,
    fits: str,
    *,
    before: bool = False,
    graded: bool = True,
    attributive: bool = True,
) -> Adjective:
    """An adjective: French as ``vieux, vieille, vieil``, Turkish as ``genç/genc`` or ``eski, yaşlı``.

    An adjective always fits nouns whose kinds hold its own English name.
    """
    forms = french.split(", ")
    thing, _, living = turkish.partition(", ")
    tr, tr_soft = _halves(thing)
    feminine = forms[1] if len(forms) > 1 else (forms[0] if forms[0].endswith("e") else forms[0] + "e")
    return Adjective(
        english=english,
        masculine=forms[0],
        masculine_before_vowel=forms[2] if len(forms) > 2 else forms[0],
        feminine=feminine,
        before=before,
        turkish=tr,
        turkish_soft=tr_soft or tr,
        turkish_living=living or tr,
        fits=frozenset((*fits.split(), english)),
        graded=graded,
        attributive=attributive,
    )


def verb(
    english: str, french: str, turkish: str, case: Case, subjects: str, objects: str, *, definite: bool = False
) -> Verb:
    """A verb: ``("go to/went to", "être allé à", "git", "dative", ...)``; without ``être`` it takes avoir."""
    base, past = _halves(english)
    with_etre = french.startswith("être ")
    participle, _, preposition = french.removeprefix("être ").partition(" ")
    return Verb(
        english=base,
        english_past=past,
        participle=participle,
        with_etre=with_etre,
        preposition=preposition,
        turkish=turkish,
        case=case,
        subjects=frozenset(subjects.split()),
        objects=frozenset(objects.split()),
        definite=definite or case != "accusative",
    )
