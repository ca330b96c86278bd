"""What a search looked at: every candidate of one sentence, its score, and what became of it.

Plain values, for whoever draws them. A search records its tree only on request, since it costs more than the search.
"""

from dataclasses import asdict, dataclass
from typing import Literal

Fate = Literal["kept", "ended", "late end", "outscored", "cut"]
"""What became of a candidate:

- kept: among the best that do not end, it went on to the next step;
- ended: it wrote the end while among the best `beam`, and is an answer or was bettered by answers;
- late end: it wrote the end, but ranked below the best `beam`, so that nobody waited for it;
- outscored: others were better, and it was dropped;
- cut: it was among the best when the limit of length was reached, and counts as an answer only if too few ended.
"""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One piece that one hypothesis might have gone on with."""

    step: int
    """pieces written with it, from 1"""
    parent: int | None
    """place in the tree's candidates of the one that it continues; none: it is a first piece"""
    piece: int
    """id"""
    logp: float
    """the model's log-probability of the piece after what stands before it"""
    total: float
    """what ranked it: the sum of log-probabilities, with the penalties of the options"""
    rank: int
    """its place among its step's candidates, from 0"""
    fate: Fate


@dataclass(frozen=True, kw_only=True)
class SearchTree:
    """One sentence's search: candidates step by step, best first within a step (group by group in a diverse beam)."""

    candidates: tuple[Candidate, ...]
    answers: tuple[int, ...]
    """for each answer, best first, the place of its last candidate: one that ended, or was cut"""

    def path(self, place: int) -> list[int]:
        """Places of the candidates from the first piece to the one at `place`."""
        found = [place]
        while (parent := self.candidates[found[-1]].parent) is not None:
            found.append(parent)
        return found[::-1]

    def to_plain(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)
