"""The sentence patterns: each draws a meaning whose words go together, and names the combinations it is made of.

A combination is what is held out of training: the words that carry the sentence, without number, article, adjective,
time or negation.
"""

from collections.abc import Callable
from dataclasses import dataclass

from regard.demo import verbs
from regard.demo.drawing import (
    OWNERS,
    WORKERS,
    Dice,
    attribute,
    fits,
    fitting,
    name_of,
    noun_of,
    objects_of,
    own_of,
    person,
    phrase,
    shows_number,
    somewhere,
    subject_for,
    things,
)  # fmt: skip
from regard.demo.meaning import (
    Action,
    Because,
    Being,
    Degree,
    Determiner,
    Existing,
    Having,
    Meaning,
    Phrase,
    Subject,
    Where,
)
from regard.demo.nouns import ALL, ANIMALS, CHILD, FAMILY, PEOPLE, PROFESSIONS
from regard.demo.words import Adjective, Noun, Pronoun, Verb

_OWNABLE = tuple(noun for noun in ALL if noun.is_a("own", "pet", "kin"))
_BY_NAME = {verb.english: verb for verb in verbs.ACTIONS}
# Where people do what they do, by kinds of place.
_PLACED = {
    "see": "inside",
    "find": "inside",
    "lose": "inside",
    "forget": "inside",
    "hide": "inside",
    "hear": "roams",
    "eat": "dining",
    "drink": "dining",
    "read": "reading",
    "write": "reading",
    "draw": "reading",
}
_PAIRED = ("see", "find", "eat", "drink", "buy", "sell", "wash", "draw", "cut", "steal", "hear")
_POSSESSING = (
    "put on", "find", "lose", "sell", "wash", "repair", "hide", "forget", "open", "close", "break", "steal"
)  # fmt: skip
_GROUPS = ("edible", "drink", "thing", "animal", "person", "text", "building")  # two objects are of one of them


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A meaning and the keys of its combinations; it is held out as soon as one of them is, but for single words."""

    meaning: Meaning
    combinations: tuple[str, ...]
    one_word: bool = False  # Turkish says it in one word, "Öğrenciyim.": who has not seen it cannot know it


def _key(subject: Subject, verb: Verb, noun: Noun) -> str:
    return f"{name_of(subject)} {verb.english} {noun.english}"


def _group(noun: Noun) -> str:
    return next((group for group in _GROUPS if noun.is_a(group)), "")


def _of_us(subject: Subject) -> bool:
    """Whether it is I, you or we, of whom being is told in the present only: each Turkish ending comes up often."""
    return isinstance(subject, Pronoun) and subject.person != 3


def _being(being: Being, quality: Noun | Adjective) -> Draft:
    key = f"{name_of(being.subject)} be {quality.english}"
    return Draft(meaning=being, combinations=(key,), one_word=_of_us(being.subject))


def _place_key(subject: Subject, where: Where) -> str:
    return f"{name_of(subject)} {where.relation.english} {where.landmark.noun.english}"


def animal_because(dice: Dice) -> Draft:
    """The animal didn't cross the street because it was too tired, or too wide."""
    reason = dice.pick(verbs.ANIMAL_REASONS)
    of_place = dice.chance(0.5)
    feminine = dice.chance(0.5)
    animal = dice.fair(tuple(noun for noun in ANIMALS if noun.feminine == feminine))
    adjective, place = _reason_place(dice, reason, of_place=of_place)
    return _because(dice, reason, Phrase(noun=animal), place, adjective, of_place)


def person_because(dice: Dice) -> Draft:
    """The woman didn't cross the street because she was too tired, or because it was too wide; shopping likewise."""
    reason = dice.pick((*verbs.ANIMAL_REASONS, *verbs.SHOPPING_REASONS, *verbs.SHOPPING_REASONS))
    of_object = dice.chance(0.5)
    person = dice.fair(PEOPLE)
    adjective, thing = _reason_place(dice, reason, of_place=of_object)
    return _because(dice, reason, Phrase(noun=person), thing, adjective, of_object)


def _reason_place(dice: Dice, reason: verbs.Reason, *, of_place: bool) -> tuple[Adjective, Noun]:
    """An adjective and the place (or thing) of the sentence, masculine and feminine places equally often."""
    places = things(reason.objects)
    if of_place:
        adjective = dice.fair(tuple(adj for adj in reason.object if any(fits(adj, noun) for noun in places)))
        places = tuple(noun for noun in places if fits(adjective, noun))
    else:
        adjective = dice.fair(reason.subject)
    feminine = dice.chance(0.5)
    return adjective, dice.fair(tuple(noun for noun in places if noun.feminine == feminine) or places)


def _because(
    dice: Dice, reason: verbs.Reason, subject: Phrase, place: Noun, adjective: Adjective, of_object: bool
) -> Draft:
    action = Action(subject=subject, verb=reason.verb, objects=(Phrase(noun=place),), negated=reason.negated)
    degree: Degree = "too" if dice.chance(0.6) else "very"
    return Draft(
        meaning=Because(action=action, of_object=of_object, adjective=adjective, degree=degree),
        combinations=(f"{subject.noun.english} {place.english} {adjective.english}",),
    )


def transitive(dice: Dice) -> Draft:
    """The cat ate the mouse yesterday."""
    verb = dice.fair(verbs.ACTIONS)
    subject = subject_for(dice, verb)
    noun = dice.fair(objects_of(verb, noun_of(subject)))
    negated = dice.chance(0.3)
    thing = phrase(dice, noun, definite=verb.definite, adjectives=0.3, negated=negated, plural=verb is not verbs.PUT_ON)
    time = dice.pick(verbs.TIMES) if dice.chance(0.25) else None
    action = Action(subject=subject, verb=verb, objects=(thing,), negated=negated, time=time)
    return Draft(meaning=action, combinations=(_key(subject, verb, noun),))


def placed(dice: Dice) -> Draft:
    """The boy read a book in the garden."""
    verb = _BY_NAME[dice.pick(tuple(_PLACED))]
    subject = subject_for(dice, verb)
    noun = dice.fair(tuple(noun for noun in objects_of(verb, noun_of(subject)) if not noun.is_a("stands", "vehicle")))
    of_animal = noun.is_a("animal") or (isinstance(subject, Phrase) and subject.noun.is_a("animal"))
    place = dice.fair(things("roams" if of_animal else _PLACED[verb.english]))
    action = Action(
        subject=subject,
        verb=verb,
        objects=(phrase(dice, noun, definite=verb.definite, adjectives=0.1),),
        where=Where(relation=verbs.IN, landmark=Phrase(noun=place)),
        negated=False,
    )
    return Draft(meaning=action, combinations=(_key(subject, verb, noun),))


def pair(dice: Dice) -> Draft:
    """The girl bought a pear and an apple."""
    verb = _BY_NAME[dice.fair(_PAIRED)]
    subject = subject_for(dice, verb)
    options = tuple(noun for noun in objects_of(verb, noun_of(subject)) if noun.english != "animal")
    first = dice.fair(options)
    others = tuple(noun for noun in options if noun is not first and _group(noun) == _group(first))
    if not others:  # frogs eat nothing but ants
        return pair(dice)
    second = dice.fair(others)
    definite = verb.definite or dice.chance(0.5)
    determiner: Determiner = "the" if definite else "a"
    plural = not definite and first.is_a("many") and second.is_a("many") and dice.chance(0.4)
    action = Action(
        subject=subject,
        verb=verb,
        objects=tuple(Phrase(noun=noun, determiner=determiner, plural=plural) for noun in (first, second)),
    )
    return Draft(meaning=action, combinations=(_key(subject, verb, first), _key(subject, verb, second)))


def possessive(dice: Dice) -> Draft:
    """The girl lost her red book."""
    verb = _BY_NAME[dice.fair(_POSSESSING)]
    subject = subject_for(dice, verb, kin=False)
    noun = dice.fair(tuple(noun for noun in objects_of(verb, None) if noun.is_a("own")))
    own = own_of(subject)
    mine = own is not None and (verb is verbs.PUT_ON or dice.chance(0.6))
    determiner = own if own and mine else dice.pick(OWNERS)
    thing = Phrase(noun=noun, determiner=determiner, adjective=attribute(dice, noun, 0.3))
    action = Action(subject=subject, verb=verb, objects=(thing,), negated=dice.chance(0.25))
    return Draft(meaning=action, combinations=(_key(subject, verb, noun),))


def giving(dice: Dice) -> Draft:
    """The boy gave a flower to the queen."""
    verb = dice.fair(verbs.GIFTS)
    subject = person(dice)
    noun = dice.fair(objects_of(verb, None))
    receivers = tuple(receiver for receiver in (*PEOPLE, *CHILD, *FAMILY, *WORKERS) if receiver is not noun_of(subject))
    receiver = dice.fair(receivers)
    determiner: Determiner = dice.pick(OWNERS) if receiver in FAMILY else "the"
    negated = dice.chance(0.2)
    action = Action(
        subject=subject,
        verb=verb,
        objects=(phrase(dice, noun, adjectives=0.1, negated=negated),),
        recipient=Phrase(noun=receiver, determiner=determiner, plural=receiver.is_a("folk") and dice.chance(0.15)),
        negated=negated,
    )
    return Draft(meaning=action, combinations=(f"{_key(subject, verb, noun)} {receiver.english}",))


def motion(dice: Dice) -> Draft:
    """The girls didn't go to the market."""
    verb = dice.fair(verbs.MOTIONS)
    subject = subject_for(dice, verb)
    noun = noun_of(subject)
    options = objects_of(verb, None)
    if noun is not None and noun.is_a("animal"):
        options = tuple(place for place in options if place.is_a("roams", "farm"))
    place = dice.fair(options)
    action = Action(
        subject=subject,
        verb=verb,
        objects=(Phrase(noun=place, adjective=attribute(dice, place, 0.15)),),
        negated=dice.chance(0.3),
        time=dice.pick(verbs.TIMES) if dice.chance(0.25) else None,
    )
    return Draft(meaning=action, combinations=(_key(subject, verb, place),))


def location(dice: Dice) -> Draft:
    """The cat is under the table."""
    subject, where = somewhere(dice, definite=True)
    being = Being(subject=subject, quality=where, past=dice.chance(0.5), negated=dice.chance(0.25))
    return Draft(meaning=being, combinations=(_place_key(subject, where),))


def existence(dice: Dice) -> Draft:
    """There are birds in the garden."""
    subject, where = somewhere(dice, definite=False)
    assert isinstance(subject, Phrase)
    negated = dice.chance(0.35) and shows_number(subject.noun)
    meaning = Existing(thing=subject, where=where, past=dice.chance(0.5), negated=negated)
    return Draft(meaning=meaning, combinations=(_place_key(subject, where),))


def quality(dice: Dice) -> Draft:
    """The houses are very old."""
    adjective = dice.fair(verbs.ADJECTIVES)
    subject: Subject
    if fits(adjective, PEOPLE[0]) and dice.chance(0.75):
        subject = person(dice)
        if dice.chance(0.3) or (isinstance(subject, Phrase) and not fits(adjective, subject.noun)):
            subject = dice.pick(verbs.PRONOUNS)
    else:
        noun = dice.fair(fitting(adjective))
        owned = noun in FAMILY or (noun.is_a("own") and dice.chance(0.6))
        plural = noun.is_a("many") and not owned and dice.chance(0.4)
        subject = Phrase(noun=noun, plural=plural, determiner=dice.pick(OWNERS) if owned else "the")
    if isinstance(subject, Phrase):
        determiner: Determiner = "the" if subject.indefinite else subject.determiner
        subject = Phrase(noun=subject.noun, plural=subject.plural, determiner=determiner)
    degree: Degree = "very" if adjective.graded and dice.chance(0.3) else ""
    past = dice.chance(0.5) and not _of_us(subject)
    being = Being(subject=subject, quality=adjective, degree=degree, past=past, negated=dice.chance(0.25))
    return _being(being, adjective)


def profession(dice: Dice) -> Draft:
    """I am a student. My mother was not a doctor."""
    if dice.chance(0.65):
        subject: Subject = dice.pick(verbs.PRONOUNS)
    elif dice.chance(0.5):
        subject = Phrase(noun=dice.fair(FAMILY), determiner=dice.pick(OWNERS))
    else:
        subject = Phrase(noun=dice.fair((*PEOPLE[:4], *PEOPLE[:2])), plural=dice.chance(0.3))
    work = dice.fair(PROFESSIONS)
    being = Being(
        subject=subject, quality=work, past=dice.chance(0.4) and not _of_us(subject), negated=dice.chance(0.3)
    )
    return _being(being, work)


def having(dice: Dice) -> Draft:
    """My father has a red car."""
    noun = dice.fair(_OWNABLE)
    owner: Subject = dice.pick(verbs.PRONOUNS)
    if noun not in FAMILY and dice.chance(0.5):
        family = dice.chance(0.4)
        owner = Phrase(noun=dice.fair(FAMILY if family else PEOPLE), determiner=dice.pick(OWNERS) if family else "the")
    adjective = None if noun in FAMILY else attribute(dice, noun, 0.7)
    negated = dice.chance(0.25) and shows_number(noun)
    thing = Phrase(noun=noun, determiner="a", adjective=adjective)
    meaning = Having(owner=owner, thing=thing, past=dice.chance(0.4), negated=negated)
    key = f"{name_of(owner)} have {adjective.english + ' ' if adjective else ''}{noun.english}"
    return Draft(meaning=meaning, combinations=(key,))


PATTERNS: dict[str, tuple[float, Callable[[Dice], Draft]]] = {
    "transitive": (0.19, transitive),
    "placed": (0.05, placed),
    "pair": (0.04, pair),
    "possessive": (0.07, possessive),
    "giving": (0.05, giving),
    "motion": (0.07, motion),
    "location": (0.05, location),
    "existence": (0.04, existence),
    "quality": (0.10, quality),
    "profession": (0.05, profession),
    "having": (0.05, having),
    "person_because": (0.06, person_because),
    "animal_because": (0.18, animal_because),
}
"""The patterns by name, with the share of the corpus that each has."""
