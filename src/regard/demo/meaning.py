"""What a sentence says, before any language says it: the records that `english`, `french` and `turkish` put into words.

Because one meaning is said by three small grammars, a pair of sentences is a translation by construction.
"""

from dataclasses import dataclass
from typing import Literal

from regard.demo.words import Adjective, Noun, Pronoun, Relation, Time, Verb

# "own" is his or her, of the subject of the sentence.
Determiner = Literal["the", "a", "my", "your", "our", "own"]
Degree = Literal["", "very", "too"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Phrase:
    """A noun with what goes with it. ``a`` with a plural or a mass noun is the article that English does not say."""

    noun: Noun
    determiner: Determiner = "the"
    plural: bool = False
    adjective: Adjective | None = None

    @property
    def indefinite(self) -> bool:
        return self.determiner == "a"


Subject = Phrase | Pronoun


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """A place: under the table."""

    relation: Relation
    landmark: Phrase


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """Somebody did something (to something, somewhere, for somebody, at some time), or did not."""

    subject: Subject
    verb: Verb
    objects: tuple[Phrase, ...]
    negated: bool = False
    recipient: Phrase | None = None
    where: Where | None = None
    time: Time | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Being:
    """Somebody or something is or was a profession (Noun), so (Adjective) or somewhere (Where), or is not."""

    subject: Subject
    quality: Noun | Adjective | Where
    degree: Degree = ""
    past: bool = False
    negated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Having:
    """Somebody has something, or has not."""

    owner: Subject
    thing: Phrase
    past: bool = False
    negated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Existing:
    """There is something somewhere, or there is not."""

    thing: Phrase
    where: Where
    past: bool = False
    negated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Because:
    """An action and its reason: the subject (or, with ``of_object``, the object) was too tired (or too wide)."""

    action: Action
    of_object: bool
    adjective: Adjective
    degree: Degree


Meaning = Action | Being | Having | Existing | Because
