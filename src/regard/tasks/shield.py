"""Parts of a text that are not translated: tags, addresses, and whatever the user names.

Each is replaced by a placeholder, a short made-up name, before the model reads the text; the search has to write every
placeholder once; and then each is replaced by what it stands for. Glossary terms are left in place, and the search has
to write their translations.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|&#?\w+;"  # tags and entities
    r"|\b(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'»”)\]]"  # addresses, without the sentence's own signs behind them
    r"|\b[\w.+-]+@[\w-]+\.[\w.-]*\w"
    r"|\{\{?\w*\}?\}|%\d*\$?[sd]"  # places that a program fills
)


class Span(NamedTuple):
    """A part that was taken out."""

    placeholder: str
    original: str
    joined_before: bool
    """whether there was no space before it"""
    joined_behind: bool


class Shielded(NamedTuple):
    """A text with placeholders."""

    text: str
    spans: tuple[Span, ...]


def shield(text: str, kept: Sequence[str] = (), *, markup: bool = True, lowercase: bool = False) -> Shielded:
    """Take out what is not translated: `kept` terms where they stand as words, and tags and addresses."""
    named = [rf"(?<!\w){re.escape(term)}(?!\w)" for term in sorted(kept, key=len, reverse=True)]
    patterns = [*([MARKUP.pattern] if markup else []), *named]
    found = list(re.finditer("|".join(patterns), text)) if patterns else []
    if not found:
        return Shielded(text, ())
    names = _names(text, len(found), lowercase)
    parts: list[str] = []
    spans: list[Span] = []
    end = 0
    for match, name in zip(found, names, strict=True):
        before = match.start() > 0 and not text[match.start() - 1].isspace()
        behind = match.end() < len(text) and not text[match.end()].isspace()
        near = bool(parts) and match.start() == end and spans[-1].joined_behind  # a space was put there already
        parts += [text[end : match.start()], " " if before and not near else "", name, " " if behind else ""]
        spans.append(Span(name, match[0], before, behind))
        end = match.end()
    return Shielded("".join([*parts, text[end:]]), tuple(spans))


def restore(text: str, spans: Sequence[Span]) -> str:
    """Put back what was taken out, once each; what is missing (an answer that was cut) comes at the end."""
    for span in spans:
        before, behind = (r"\s*" if joined else "" for joined in (span.joined_before, span.joined_behind))
        pattern = re.compile(before + re.escape(span.placeholder) + behind)
        if pattern.search(text):
            text = pattern.sub(span.original.replace("\\", r"\\"), text, count=1)
        else:
            text = f"{text} {span.original}".lstrip()
    return text


def required(text: str, glossary: Mapping[str, str]) -> tuple[str, ...]:
    """The translations of the glossary's terms that stand in the text as words, in whatever case."""
    return tuple(
        target for term, target in glossary.items() if re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.I)
    )


def _names(text: str, count: int, lowercase: bool) -> list[str]:
    """X1, X2, …, all as long, and none that the text holds."""
    letter = "x" if lowercase else "X"
    first = 10 ** max(0, len(str(count)) - 1)
    while True:
        names = [f"{letter}{number}" for number in range(first, first + count)]
        if len(names[0]) == len(names[-1]) and not any(name.lower() in text.lower() for name in names):
            return names
        first += count
