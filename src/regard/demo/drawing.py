"""Drawing words that go together: seeded dice, who may do what to what, and subjects, things and places at random.

Only ``random()`` of Python's generator is used, whose values Python promises to keep, and no set is ever run through,
so that the same seed draws the same words on every machine.
"""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

from regard.demo import verbs
from regard.demo.meaning import Determiner, Phrase, Subject, Where
from regard.demo.nouns import ALL, ANIMALS, CHILD, FAMILY, NAMED, PEOPLE, PREY, PROFESSIONS
from regard.demo.words import Adjective, Noun, Pronoun, Relation, Verb

Item = TypeVar("Item")

WORKERS = tuple(noun for noun in PROFESSIONS if noun.english not in ("engineer", "lawyer"))
OWNERS: tuple[Determiner, ...] = ("my", "your", "our")
_OWN: dict[str, Determiner] = {"I": "my", "you": "your", "we": "our", "he": "own", "she": "own"}
_PRONOUNS = (verbs.I, *verbs.PRONOUNS)  # I twice as often
_SUBJECT_ADJECTIVES = 0.15


class Dice:
    """Seeded choices; ``fair`` ones level out how often each word comes up."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed).random
        self._used: dict[object, int] = {}

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self._random() < probability

    def pick(self, options: Sequence[Item]) -> Item:
        """Any of the options."""
        return options[int(self._random() * len(options))]

    def fair(self, options: Sequence[Item]) -> Item:
        """Of three picks the one that was used least so far."""
        used = self._used
        choice = min(self.pick(options), self.pick(options), self.pick(options), key=lambda item: used.get(item, 0))
        used[choice] = used.get(choice, 0) + 1
        return choice

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in a new order."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            result[last], result[other] = result[other], result[last]
        return result


@cache
def things(kind: str) -> tuple[Noun, ...]:
    """The nouns of a kind."""
    return tuple(noun for noun in ALL if kind in noun.kinds)


@cache
def fits(adjective: Adjective, noun: Noun) -> bool:
    """Whether the adjective may be said of the noun."""
    return not adjective.fits.isdisjoint(noun.kinds)


@cache
def fitting(adjective: Adjective) -> tuple[Noun, ...]:
    """The nouns that an adjective may be said of."""
    return tuple(noun for noun in ALL if fits(adjective, noun))


@cache
def attributes_of(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may stand beside a noun."""
    return tuple(adjective for adjective in verbs.ADJECTIVES if adjective.attributive and fits(adjective, noun))


@cache
def objects_of(verb: Verb, subject: Noun | None) -> tuple[Noun, ...]:
    """What this subject (None: a person) may do this to. Animals eat what they eat and hunt what they hunt."""
    animal = subject is not None and subject.is_a("animal")
    if subject is not None and animal and verb in (verbs.EAT, verbs.CATCH, verbs.CHASE):
        prey = tuple(NAMED[name] for name in PREY.get(subject.english, ()))
        if verb is not verbs.EAT:
            return prey
        plants = things("plant") if subject.is_a("grazes") else ()
        return tuple(noun for noun in prey if not noun.is_a("pet")) + plants
    if animal and verb is verbs.DRINK:
        return NAMED["water"], NAMED["milk"]
    return tuple(
        noun
        for noun in ALL
        if not verb.objects.isdisjoint(noun.kinds)
        and noun is not subject
        and noun not in FAMILY
        and not (animal and noun.is_a("text"))
    )


@cache
def subjects_of(verb: Verb) -> tuple[Noun, ...]:
    """The animals that may do this."""
    return tuple(noun for noun in ANIMALS if not verb.subjects.isdisjoint(noun.kinds) and objects_of(verb, noun))


def noun_of(subject: Subject) -> Noun | None:
    """The noun of a subject, if it is not a pronoun."""
    return None if isinstance(subject, Pronoun) else subject.noun


def name_of(subject: Subject) -> str:
    """The English name of a subject, for the key of a combination."""
    return subject.english if isinstance(subject, Pronoun) else subject.noun.english


def shows_number(noun: Noun) -> bool:
    """Whether French spells the plural of the noun differently: "pas de souris" may be one mouse or many."""
    return noun.french != noun.french_plural


def attribute(dice: Dice, noun: Noun, probability: float) -> Adjective | None:
    """An adjective to stand beside the noun, or none."""
    options = attributes_of(noun)
    if not options or not dice.chance(probability):
        return None
    common = tuple(adjective for adjective in options if adjective.before)
    return dice.pick(common) if common and dice.chance(0.3) else dice.fair(options)


def person(dice: Dice, *, kin: bool = True) -> Subject:
    """A person as a subject: a pronoun, somebody of the family, somebody at work, somebody."""
    if dice.chance(0.5):
        return dice.pick(_PRONOUNS)
    if kin and dice.chance(0.2):
        return Phrase(noun=dice.fair(FAMILY), determiner=dice.pick(OWNERS))
    return _living(dice, dice.fair(WORKERS) if dice.chance(0.3) else dice.fair((*PEOPLE, *CHILD)))


def subject_for(dice: Dice, verb: Verb, *, kin: bool = True) -> Subject:
    """Somebody, or some animal, that may do this; one puts on a hat alone."""
    animals = subjects_of(verb)
    if animals and ("person" not in verb.subjects or dice.chance(0.35)):
        return _living(dice, dice.fair(animals))
    subject = person(dice, kin=kin)
    while verb is verbs.PUT_ON and subject.plural:
        subject = person(dice, kin=kin)
    return subject


def _living(dice: Dice, noun: Noun) -> Phrase:
    """Somebody or some animal as a subject: the cats, a little girl."""
    plural = noun.is_a("many") and dice.chance(0.25)
    determiner: Determiner = "the" if plural or dice.chance(0.8) else "a"
    adjective = attribute(dice, noun, _SUBJECT_ADJECTIVES)
    return Phrase(noun=noun, determiner=determiner, plural=plural, adjective=adjective)


def own_of(subject: Subject) -> Determiner | None:
    """How the subject's own things are called: my with I, his or her with a known man or woman."""
    if isinstance(subject, Pronoun):
        return _OWN.get(subject.english)
    return "own" if subject.noun.is_a("gendered") and not subject.plural else None


def phrase(
    dice: Dice,
    noun: Noun,
    *,
    definite: bool = False,
    adjectives: float = 0.0,
    negated: bool = False,
    plural: bool = True,
) -> Phrase:
    """A noun as an object: the apple, an apple, and if ``plural`` allows it apples."""
    definite = definite or dice.chance(0.5) or (negated and not shows_number(noun))
    plural = plural and noun.is_a("many") and dice.chance(0.3)
    adjective = attribute(dice, noun, adjectives * (1.5 if plural else 1))
    return Phrase(noun=noun, determiner="the" if definite else "a", plural=plural, adjective=adjective)


def somewhere(dice: Dice, *, definite: bool) -> tuple[Subject, Where]:
    """Somebody or something, and where it may be: small ones on a chair, things in a box, people in a garden."""
    kind = dice.pick(("laid", "laid", "little", "large", "person", "person"))
    match kind:
        case "laid":
            noun, inside = dice.fair(things("laid")), things("holds")
        case "little":
            noun, inside = dice.fair(things("little")), things("roams")
        case "large":
            noun, inside = dice.fair(_LARGE), things("roams")
        case _:
            noun, inside = dice.fair((*PEOPLE, *CHILD, *WORKERS)), things("inside")
    relation: Relation
    if kind in ("laid", "little") and dice.chance(0.45):
        relation, landmarks = dice.pick((verbs.ON, verbs.UNDER)), things("surface")
    elif dice.chance(0.4):
        relation, landmarks = dice.pick((verbs.BEHIND, verbs.IN_FRONT_OF, verbs.NEAR)), things("stands")
    else:
        relation, landmarks = verbs.IN, inside
    landmark = dice.fair(tuple(landmark for landmark in landmarks if landmark is not noun))
    where = Where(relation=relation, landmark=Phrase(noun=landmark))
    if definite and kind == "person" and dice.chance(0.6):
        return dice.pick((verbs.HE, verbs.SHE, verbs.THEY)), where
    plural = noun.is_a("many") and dice.chance(0.3 if definite else 0.45)
    adjective = attribute(dice, noun, _SUBJECT_ADJECTIVES)
    determiner: Determiner = "the" if definite else "a"
    if definite and not plural and noun.is_a("own") and dice.chance(0.6):
        determiner = dice.pick(OWNERS)
    return Phrase(noun=noun, determiner=determiner, plural=plural, adjective=adjective), where


_LARGE = tuple(noun for noun in ANIMALS if not noun.is_a("little"))
