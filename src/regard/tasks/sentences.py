"""Cutting a text at the ends of its sentences, for lines that are longer than a model reads."""

import re
from collections.abc import Callable

ENDS = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*(\s+)(?=\S)|(?<=[。！？])()(?=\S)")
"""white space behind a sentence's end; behind a Chinese or Japanese one there is none"""


def sentences(text: str) -> list[tuple[str, str]]:
    """Each sentence, and the white space behind it; joined they are the text."""
    found, start = [], 0
    for match in ENDS.finditer(text):
        group = 1 if match[1] is not None else 2
        if _shortened(text[start : match.start(group)]):
            continue
        found.append((text[start : match.start(group)], match[group]))
        start = match.end()
    return [*found, (text[start:], "")]


def portions(text: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The text in sentences; one that does not fit is cut at white space, as late as it fits."""
    made: list[tuple[str, str]] = []
    for sentence, space in sentences(text):
        if fits(sentence):
            made.append((sentence, space))
        else:
            made += _cut(sentence, fits)
            made[-1] = (made[-1][0], space)
    return made


def _cut(sentence: str, fits: Callable[[str], bool]) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    words = re.findall(r"(\S+)(\s*)", sentence)
    held, space = "", ""
    for word, behind in words:
        if held and not fits(held + space + word):
            parts.append((held, space))
            held = ""
        held = held + space + word if held else word
        space = behind
    return [*parts, (held, "")]


def _shortened(text: str) -> bool:
    """Whether it ends with an initial, such as "J.": no sentence's end."""
    return re.search(r"(?:^|\s)\w\.$", text) is not None
