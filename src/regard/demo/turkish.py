"""Turkish: a meaning said in Turkish.

Subject, object, verb; cases, possessives and persons as endings that follow the vowels and consonants before them.
A suffix is written as in grammars: A is a or e, I is ı, i, u or ü, D is d or t, and a letter in brackets comes only
where it is needed, a consonant after a vowel, (y)I, and a vowel after a consonant, (I)m.
"""

from functools import cache

from regard.demo.meaning import Action, Because, Being, Existing, Having, Meaning, Phrase, Subject, Where
from regard.demo.words import Adjective, Case, Noun, Pronoun

_VOWELS = "aâıoueiöü"
_TWOFOLD = {"a": "a", "â": "e", "ı": "a", "o": "a", "u": "a", "e": "e", "i": "e", "ö": "e", "ü": "e"}
_FOURFOLD = {"a": "ı", "â": "i", "ı": "ı", "o": "u", "u": "u", "e": "i", "i": "i", "ö": "ü", "ü": "ü"}
_VOICELESS = "fstkçşhp"
_CASES: dict[Case, str] = {
    "none": "", "accusative": "(y)I", "dative": "(y)A", "locative": "DA", "ablative": "DAn", "genitive": "(n)In"
}  # fmt: skip
_POSSESSIVE = ("(I)m", "(I)n", "(s)I", "(I)mIz", "(I)nIz", "lArI")  # by person, then plural
_PRESENT = ("(y)Im", "sIn", "", "(y)Iz", "sInIz", "")
_PAST = ("m", "n", "", "k", "nIz", "lAr")
_OWNERS = ("benim", "senin", "onun", "bizim", "sizin", "onların")
_OWNER_OF = {"my": 0, "your": 1, "our": 3}


def sentence(meaning: Meaning) -> str:
    """The meaning as a Turkish sentence; its capital of i is İ."""
    text = _clause(meaning)
    first = {"i": "İ", "ı": "I"}.get(text[0], text[0].upper())
    return first + text[1:] + "."


@cache
def attach(word: str, suffix: str, *, soft: str = "", front: bool = False) -> str:
    """``word`` with ``suffix``; ``soft`` is its stem before a vowel, ``front`` makes its last vowel count as front."""
    if suffix.startswith("("):
        buffer, rest = suffix[1], suffix[3:]
        wanted = (word[-1] in _VOWELS) != (buffer in "AI")
        suffix = buffer + rest if wanted else rest
    result = soft if soft and suffix[:1] in ("A", "I") else word
    last = next(letter for letter in reversed(result) if letter in _VOWELS)
    if front:
        last = {"a": "e", "o": "ö", "u": "ü"}.get(last, last)
    for letter in suffix:
        if letter == "A":
            letter = last = _TWOFOLD[last]
        elif letter == "I":
            letter = last = _FOURFOLD[last]
        elif letter == "D":
            letter = "t" if result[-1] in _VOICELESS else "d"
        elif letter in _VOWELS:
            last = letter
        result += letter
    return result


@cache
def decline(noun: Noun, *, plural: bool = False, owner: int | None = None, case: Case = "none") -> str:
    """A noun in number, possessive (0 to 5: mine, yours ...) and case."""
    word, soft, front = noun.turkish, noun.turkish_soft, noun.turkish_front
    if plural:
        word = soft = attach(word, "lAr", front=front)
        front = False
    if owner is not None:
        word = soft = attach(word, _POSSESSIVE[owner], soft=soft, front=front)
        front = False
    if case == "none":
        return word
    suffix = _CASES[case]
    if owner in (2, 5):  # kitabı-n-ı, kitabı-n-da
        suffix = "n" + (suffix[3:] if suffix.startswith("(") else suffix)
    return attach(word, suffix, soft=soft, front=front)


def _clause(meaning: Meaning) -> str:
    match meaning:
        case Action():
            return _action(meaning)
        case Being():
            return _being(meaning)
        case Having():
            return _having(meaning)
        case Existing(thing=thing, where=where, past=past, negated=negated):
            return f"{_where(where)} {_phrase(thing, bare=negated)} {_there_is(past=past, negated=negated)}"
        case Because(action=action, of_object=of_object, adjective=adjective):
            about = action.objects[0] if of_object else action.subject
            # Without a subject it would be the first clause's: Turkish, which has no genders, names it again.
            named = "" if isinstance(about, Pronoun) else f"{_phrase(about)} "
            return f"{_action(action)} çünkü {named}çok {attach(_quality(adjective, about), '(y)DI')}"


def _action(action: Action) -> str:
    """Time, subject, objects, verb; what is definite stands before the place and the receiver, the rest after."""
    subject, verb = action.subject, action.verb
    words = [action.time.turkish] if action.time else []
    if not isinstance(subject, Pronoun):
        words.append(_phrase(subject))
    objects = " ve ".join(_object(thing, action) for thing in action.objects)
    around = [_where(action.where)] if action.where else []
    if action.recipient:
        around.append(_phrase(action.recipient, case="dative"))
    words += [*around, objects] if action.objects[0].indefinite else [objects, *around]
    stem = attach(verb.turkish, "mA") if action.negated else verb.turkish
    past = attach(stem, "DI")
    words.append(attach(past, _PAST[_person(subject)]) if isinstance(subject, Pronoun) else past)
    return " ".join(words)


def _object(thing: Phrase, action: Action) -> str:
    """An object: the accusative marks only the definite one; an indefinite one that is denied stands bare."""
    case = action.verb.case
    if thing.indefinite and case == "accusative":  # "kedi gördü" is seeing cats, one or several
        return _phrase(thing, bare=action.negated or (thing.plural and not thing.adjective))
    return _phrase(thing, case=case, subject=action.subject)


def _being(being: Being) -> str:
    subject = being.subject
    pronoun = isinstance(subject, Pronoun)
    match being.quality:
        case Noun() as profession:
            word = soft = profession.turkish
            if isinstance(subject, Pronoun) and subject.person == 3 and not subject.plural and not being.negated:
                word = soft = "bir " + word  # "O bir doktor": without bir it would be "that doctor"
        case Adjective() as adjective:
            word = _quality(adjective, subject)
            soft = adjective.turkish_soft if word == adjective.turkish else word
            if being.degree:
                word, soft = "çok " + word, "çok " + soft
        case Where() as where:
            word = soft = _where(where)
    if being.negated:
        before, word, soft = word + " ", "değil", "değil"
    else:
        before = ""
    ending = _person(subject)
    if being.past:
        word = attach(attach(word, "(y)DI"), _PAST[ending] if pronoun and ending != 5 else "")
    elif pronoun:
        word = attach(word, _PRESENT[ending], soft=soft)
    said = _phrase(subject) if not isinstance(subject, Pronoun) else {2: "o", 5: "onlar"}.get(ending, "")
    return f"{said} {before}{word}".lstrip()


def _having(having: Having) -> str:
    """The owner in the genitive and the thing with the owner's ending: adamın kırmızı bir kitabı var."""
    owner, thing = having.owner, having.thing
    ending = _person(owner) if isinstance(owner, Pronoun) else 2
    thing_of = 2 if ending == 5 else ending  # after "onların" the thing has the singular's ending
    if isinstance(owner, Pronoun):
        said = _OWNERS[ending] if ending in (2, 5) else ""
    else:
        said = _phrase(owner, case="genitive")
    words = [said] if said else []
    if thing.adjective:
        words.append(_quality(thing.adjective, thing))
    if not having.negated:
        words.append("bir")
    words += [decline(thing.noun, owner=thing_of), _there_is(past=having.past, negated=having.negated)]
    return " ".join(words)


def _there_is(*, past: bool, negated: bool) -> str:
    return {(False, False): "var", (True, False): "vardı", (False, True): "yok", (True, True): "yoktu"}[past, negated]


def _person(subject: Subject) -> int:
    if isinstance(subject, Pronoun):
        return subject.person - 1 + (3 if subject.plural else 0)
    return 2


def _quality(adjective: Adjective, of: Subject) -> str:
    living = isinstance(of, Pronoun) or of.noun.is_a("living")
    return adjective.turkish_living if living else adjective.turkish


def _phrase(phrase: Phrase, *, case: Case = "none", subject: Subject | None = None, bare: bool = False) -> str:
    """A noun phrase. ``subject`` is that of the sentence: its own things need no benim; ``bare`` drops bir and lar."""
    noun, plural, owner = phrase.noun, phrase.plural, None
    words = []
    if phrase.determiner == "own":
        owner = 2
    elif phrase.determiner in _OWNER_OF:
        owner = _OWNER_OF[phrase.determiner]
        if subject is not None and not (isinstance(subject, Pronoun) and _person(subject) == owner):
            words.append(_OWNERS[owner])
    if phrase.adjective:
        words.append(_quality(phrase.adjective, phrase))
    if phrase.indefinite:
        if bare:
            plural = False
        elif not plural and not noun.is_a("mass"):
            words.append("bir")
    words.append(decline(noun, plural=plural, owner=owner, case=case))
    return " ".join(words)


def _where(where: Where) -> str:
    if not where.relation.turkish:
        return _phrase(where.landmark, case="locative")
    return f"{_phrase(where.landmark, case='genitive')} {where.relation.turkish}"
