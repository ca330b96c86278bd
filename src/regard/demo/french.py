"""French: a meaning said in French.

Agreement in gender and number (articles, adjectives, participles after être, pronouns), elision before a vowel or a
mute h, the contractions of à and de with le and les, the place of adjectives, and ne ... pas with its de.
"""

from functools import cache

from regard.demo.meaning import Action, Because, Being, Existing, Having, Meaning, Phrase, Subject, Where
from regard.demo.words import Adjective, Noun, Pronoun, french_plural

_VOWELS = frozenset("aeiouyhàâéèêîôœ")  # h is mute unless the noun says that it is aspirated
_ETRE_PRESENT = ("suis", "es", "est", "sommes", "êtes", "sont")
_ETRE_PAST = ("étais", "étais", "était", "étions", "étiez", "étaient")
_AVOIR_PRESENT = ("ai", "as", "a", "avons", "avez", "ont")
_AVOIR_PAST = ("avais", "avais", "avait", "avions", "aviez", "avaient")
_POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "own": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
}


def sentence(meaning: Meaning) -> str:
    """The meaning as a French sentence."""
    text = _clause(meaning)
    return text[0].upper() + text[1:] + "."


def _clause(meaning: Meaning) -> str:
    match meaning:
        case Action():
            return _action(meaning)
        case Being():
            return _being(meaning)
        case Having(owner=owner, thing=thing, past=past, negated=negated):
            have = (_AVOIR_PAST if past else _AVOIR_PRESENT)[_person(owner)]
            return f"{_with_verb(owner, have, negated=negated)} {_phrase(thing, negated=negated)}"
        case Existing(thing=thing, where=where, past=past, negated=negated):
            have = "avait" if past else "a"
            there = f"il n'y {have} pas" if negated else f"il y {have}"
            return f"{there} {_phrase(thing, negated=negated)} {_where(where)}"
        case Because(action=action, of_object=of_object, adjective=adjective, degree=degree):
            about = action.objects[0] if of_object else action.subject
            pronoun = "elle" if _feminine(about) else "il"
            word = agree(adjective, feminine=_feminine(about), plural=False)
            return f"{_action(action)} parce qu'{pronoun} était {'très' if degree == 'very' else 'trop'} {word}"


def agree(adjective: Adjective, *, feminine: bool, plural: bool) -> str:
    """The form of an adjective."""
    if feminine:
        return adjective.feminine + "s" if plural else adjective.feminine
    return french_plural(adjective.masculine) if plural else adjective.masculine


def _action(action: Action) -> str:
    verb, subject = action.verb, action.subject
    auxiliary = (_ETRE_PRESENT if verb.with_etre else _AVOIR_PRESENT)[_person(subject)]
    participle = verb.participle
    if verb.with_etre:
        participle += ("e" if _feminine(subject) else "") + ("s" if subject.plural else "")
    objects = " et ".join(
        after_preposition(verb.preposition, _phrase(thing, negated=action.negated and not verb.preposition))
        for thing in action.objects
    )
    words = [_with_verb(subject, auxiliary, negated=action.negated), participle, objects]
    if action.recipient:
        words.append(after_preposition("à", _phrase(action.recipient)))
    if action.where:
        words.append(_where(action.where))
    if action.time:
        words.append(action.time.french)
    return " ".join(words)


def _being(being: Being) -> str:
    subject = being.subject
    match being.quality:
        case Noun() as profession:  # no article: "Elle est étudiante."
            if _feminine(subject):
                quality = profession.french_feminine_plural if subject.plural else profession.french_feminine
            else:
                quality = profession.french_plural if subject.plural else profession.french
        case Adjective() as adjective:
            quality = agree(adjective, feminine=_feminine(subject), plural=subject.plural)
            if being.degree:
                quality = f"{'très' if being.degree == 'very' else 'trop'} {quality}"
        case Where() as where:
            quality = _where(where)
    be = (_ETRE_PAST if being.past else _ETRE_PRESENT)[_person(subject)]
    return f"{_with_verb(subject, be, negated=being.negated)} {quality}"


def _person(subject: Subject) -> int:
    person = subject.person if isinstance(subject, Pronoun) else 3
    return person - 1 + (3 if subject.plural else 0)


def _feminine(subject: Subject) -> bool:
    return subject.feminine if isinstance(subject, Pronoun) else subject.noun.feminine


def _with_verb(subject: Subject, verb: str, *, negated: bool) -> str:
    """Subject and finite verb, negated around the verb: je suis, j'ai, je n'ai pas."""
    if negated:
        verb = ("n'" if _elides(verb) else "ne ") + verb + " pas"
    if not isinstance(subject, Pronoun):
        return f"{_phrase(subject)} {verb}"
    if subject.french == "je" and _elides(verb):
        return "j'" + verb
    return f"{subject.french} {verb}"


@cache
def _elides(word: str, *, aspirated: bool = False) -> bool:
    return word[0] in _VOWELS and not aspirated


def _phrase(phrase: Phrase, *, negated: bool = False) -> str:
    """A noun phrase with its determiner; an indefinite one takes de after a negation (pas de pain, pas d'eau)."""
    noun, adjective, plural, feminine = phrase.noun, phrase.adjective, phrase.plural, phrase.noun.feminine
    word = noun.french_plural if plural else noun.french
    vowel = _elides(noun.french, aspirated=noun.aspirated)
    before = adjective is not None and adjective.before
    if adjective:
        form = agree(adjective, feminine=feminine, plural=plural)
        if before and vowel and not feminine and not plural:
            form = adjective.masculine_before_vowel  # un bel oiseau
        word = f"{form} {word}" if before else f"{word} {form}"
    vowel = vowel and not before  # no adjective that stands before the noun begins with a vowel
    match phrase.determiner:
        case "the" if vowel and not plural:
            return "l'" + word
        case "the":
            return f"{'les' if plural else 'la' if feminine else 'le'} {word}"
        case "a" if negated or (plural and before):
            return ("d'" if vowel else "de ") + word
        case "a" if plural:
            return "des " + word
        case "a" if noun.is_a("mass"):
            return "de l'" + word if vowel else ("de la " if feminine else "du ") + word
        case "a":
            return ("une " if feminine else "un ") + word
        case determiner:
            masculine, feminine_form, plural_form = _POSSESSIVES[determiner]
            if plural:
                return f"{plural_form} {word}"
            return f"{feminine_form if feminine and not vowel else masculine} {word}"


def after_preposition(preposition: str, phrase: str) -> str:
    """Preposition and phrase, with au, aux, du and des: à + le jardin = au jardin."""
    if not preposition:
        return phrase
    for article, contracted in (("le ", {"à": "au ", "de": "du "}), ("les ", {"à": "aux ", "de": "des "})):
        if phrase.startswith(article):
            for end, short in contracted.items():
                if preposition == end or preposition.endswith((" " + end, "'" + end)):
                    return preposition[: len(preposition) - len(end)] + short + phrase.removeprefix(article)
    return f"{preposition} {phrase}"


def _where(where: Where) -> str:
    return after_preposition(where.relation.french, _phrase(where.landmark))
