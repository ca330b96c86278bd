"""Recording of search trees: each step's candidates become plain values, as `regard.decoding.tree` has them."""

from dataclasses import replace

from torch import Tensor

from regard.decoding.choose import Choice
from regard.decoding.restrict import NEVER
from regard.decoding.tree import Candidate, Fate, SearchTree


class Recorder:
    """The trees of sentences that are searched together, by their numbers."""

    def __init__(self, numbers: list[int]) -> None:
        self.trees: dict[int, list[Candidate]] = {number: [] for number in numbers}
        self._rows: dict[int, list[int | None]] = {number: [None] for number in numbers}
        """place of what each row wrote last"""
        self._now: dict[int, dict[tuple[int, int], int]] = {}
        """of this step, places by group and rank"""
        self._steps = dict.fromkeys(numbers, 0)

    def step(self, numbers: list[int], choice: Choice, gained: Tensor, kept: Tensor, ends: Tensor, width: int) -> None:
        """What became of each candidate; `gained` are the model's own log-probabilities of the pieces."""
        sides = (choice.rank, choice.totals, choice.parents, choice.pieces, gained, kept, ends)
        for number, *own in zip(numbers, *(side.tolist() for side in sides), strict=True):
            self._steps[number] += 1
            self._now[number] = {}
            before, rows = self._rows[number], []
            for group, (ranks, totals, parents, pieces, logps, goes_on, ended) in enumerate(zip(*own, strict=True)):
                for rank in range(len(ranks)):
                    if ranks[rank] == NEVER:
                        continue
                    self._now[number][group, rank] = len(self.trees[number])
                    candidate = Candidate(
                        step=self._steps[number], parent=before[parents[rank]], piece=pieces[rank], logp=logps[rank],
                        total=totals[rank], rank=rank, fate=_fate(rank, ended[rank], rank in goes_on, width),
                    )  # fmt: skip
                    self.trees[number].append(candidate)
                rows += [self._now[number].get((group, rank)) for rank in goes_on]
            self._rows[number] = rows

    def place(self, number: int, group: int, rank: int) -> int:
        """Where in its tree this step's candidate stands."""
        return self._now[number][group, rank]

    def cut(self, number: int, row: int) -> int:
        """The row's last candidate was cut at the limit."""
        place = self._rows[number][row]
        assert place is not None
        self.trees[number][place] = replace(self.trees[number][place], fate="cut")
        return place

    def add(self, other: "Recorder") -> None:
        """The other's sentences are here now."""
        self.trees |= other.trees
        self._rows |= other._rows
        self._steps |= other._steps

    def tree(self, number: int, answers: tuple[int, ...]) -> SearchTree:
        """A sentence's whole tree, which is then forgotten."""
        self._rows.pop(number)
        return SearchTree(candidates=tuple(self.trees.pop(number)), answers=answers)


def _fate(rank: int, ended: bool, goes_on: bool, width: int) -> Fate:
    if ended:
        return "ended" if rank < width else "late end"
    return "kept" if goes_on else "outscored"
