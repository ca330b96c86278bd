"""The exceptions that mean "what you gave us is wrong" and "it went wrong", and the nearest right name."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """The user's input is wrong. The message says what, where, and what would be right, in one line.

    The command line prints it without a traceback and leaves with exit code 2.
    """


class WorkError(RuntimeError):
    """It cannot be done, though what the user gave is right: a server that does not answer, numbers that run away.

    The command line prints it without a traceback and leaves with exit code 1.
    """


def nearest(name: str, right: Iterable[str]) -> str:
    """A hint for an unknown name: the nearest right one, or all of them when none is near."""
    names = sorted(right)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there is {', '.join(names)}"
