"""English: a meaning said in English (a and an, irregular plurals and pasts, didn't, any)."""

from regard.demo.meaning import Action, Because, Being, Existing, Having, Meaning, Phrase, Subject, Where
from regard.demo.words import Adjective, Noun, Pronoun


def sentence(meaning: Meaning) -> str:
    """The meaning as an English sentence."""
    text = _clause(meaning)
    return text[0].upper() + text[1:] + "."


def _clause(meaning: Meaning) -> str:
    match meaning:
        case Action():
            return _action(meaning)
        case Being():
            return _being(meaning)
        case Having(owner=owner, thing=thing, past=past, negated=negated):
            third = _third_singular(owner)
            if negated:
                verb = ("didn't" if past else "doesn't" if third else "don't") + " have"
            else:
                verb = "had" if past else "has" if third else "have"
            return f"{_subject(owner)} {verb} {_phrase(thing)}"
        case Existing(thing=thing, where=where, past=past, negated=negated):
            be = _be(plural=thing.plural, past=past, negated=negated)
            return f"there {be} {_phrase(thing, negated=negated)} {_where(where)}"
        case Because(action=action, of_object=of_object, adjective=adjective, degree=degree):
            about = action.objects[0] if of_object else action.subject
            return f"{_action(action)} because {pronoun_of(about)} was {degree} {adjective.english}"


def pronoun_of(subject: Subject) -> str:
    """The pronoun that stands for a subject: he or she for people whose gender is known, else it."""
    if isinstance(subject, Pronoun):
        return subject.english
    if subject.noun.is_a("gendered"):
        return "she" if subject.noun.feminine else "he"
    return "it"


def _action(action: Action) -> str:
    verb = f"didn't {action.verb.english}" if action.negated else action.verb.english_past
    objects = " and ".join(_phrase(thing, negated=action.negated, owner=action.subject) for thing in action.objects)
    words = [_subject(action.subject), verb, objects]
    if action.recipient:
        words += ["to", _phrase(action.recipient)]
    if action.where:
        words.append(_where(action.where))
    if action.time:
        words.append(action.time.english)
    return " ".join(words)


def _being(being: Being) -> str:
    match being.quality:
        case Noun(english=english, english_plural=english_plural):
            quality = english_plural if _plural(being.subject) else _with_article(english)
        case Adjective(english=english):
            quality = f"{being.degree} {english}" if being.degree else english
        case Where():
            quality = _where(being.quality)
    first = isinstance(being.subject, Pronoun) and being.subject.english == "I"
    second = isinstance(being.subject, Pronoun) and being.subject.person == 2
    be = _be(plural=_plural(being.subject) or second, past=being.past, negated=being.negated, first=first)
    return f"{_subject(being.subject)} {be} {quality}"


def _be(*, plural: bool, past: bool, negated: bool, first: bool = False) -> str:
    if first and not past:
        return "am not" if negated else "am"
    be = ("were" if plural else "was") if past else ("are" if plural else "is")
    return f"{be}n't" if negated else be


def _plural(subject: Subject) -> bool:
    return subject.plural


def _third_singular(subject: Subject) -> bool:
    return not subject.plural and not (isinstance(subject, Pronoun) and subject.person != 3)


def _subject(subject: Subject) -> str:
    return subject.english if isinstance(subject, Pronoun) else _phrase(subject)


def _phrase(phrase: Phrase, *, negated: bool = False, owner: Subject | None = None) -> str:
    """A noun phrase; ``owner`` is whose "own" thing it is; an indefinite plural or mass noun takes "any" after not."""
    word = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    if phrase.adjective:
        word = f"{phrase.adjective.english} {word}"
    match phrase.determiner:
        case "a" if phrase.plural or phrase.noun.is_a("mass"):
            return f"any {word}" if negated else word
        case "a":
            return _with_article(word)
        case "own":
            assert owner is not None, "an own thing needs an owner"
            feminine = owner.feminine if isinstance(owner, Pronoun) else owner.noun.feminine
            return f"{'her' if feminine else 'his'} {word}"
        case determiner:
            return f"{determiner} {word}"


def _with_article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _where(where: Where) -> str:
    return f"{where.relation.english} {_phrase(where.landmark)}"
