"""How a phrase may be spelt in pieces, for those that must not be written."""

from collections.abc import Iterable

from regard.text.tokenizer import Tokenizer


def spellings(tokenizer: Tokenizer, phrases: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """Runs of pieces that write each phrase: as it is stated, in lower case and with a capital, at a text's beginning
    and behind other text.
    """  # fmt: skip
    found = (
        tuple(tokenizer.encode(text, continued=continued))
        for phrase in phrases
        for text in (phrase, phrase.lower(), phrase[:1].upper() + phrase[1:])
        for continued in (False, True)
    )
    return tuple(dict.fromkeys(ids for ids in found if ids))
