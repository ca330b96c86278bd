"""What may not be written next, and what becomes less likely: changes to the scores of next pieces.

Scores that are set to minus infinity leave all others as they are, so that the log-probability of whatever is written
stays the model's own. Only the repetition penalty makes a distribution of its own.

Shapes: B sentences, W rows of each, V pieces, C room for pieces, P periods.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding.request import Ids

NEVER = float("-inf")
PERIODS = 16
"""longest loop that the guard knows, in pieces"""
LONGEST_LOOP = 16
"""pieces that a loop may run on, at least"""
TURNS = 4
"""times that a loop may come, at least"""


def penalise(logits_BWV: Tensor, written_BWC: Tensor, lengths_B: Tensor, penalty: float) -> Tensor:
    """Keskar and others (2019): scores of pieces that stand in a row are divided by the penalty, negative ones
    multiplied.
    """  # fmt: skip
    ids = _real(written_BWC, lengths_B)
    found = logits_BWV.gather(-1, ids)
    return logits_BWV.scatter(-1, ids, torch.where(found > 0, found / penalty, found * penalty))


def forbid_repeats(logits_BWV: Tensor, written_BWC: Tensor, lengths_B: Tensor, size: int) -> None:
    """Forbid pieces that would complete a run of `size` pieces that stands in their row."""
    if written_BWC.shape[-1] < size:
        return
    windows = written_BWC.unfold(-1, size, 1)
    starts = torch.arange(windows.shape[2], device=windows.device)
    last = (lengths_B[:, None] - (size - 1) + torch.arange(size - 1, device=windows.device)).clamp(min=0)
    tail = written_BWC.gather(-1, last[:, None].expand(-1, written_BWC.shape[1], -1))
    same = (windows[..., :-1] == tail[:, :, None]).all(-1) & (starts + size <= lengths_B[:, None])[:, None]
    sentence, row, place = same.nonzero(as_tuple=True)
    logits_BWV[sentence, row, windows[sentence, row, place, -1]] = NEVER


def forbid_runs(logits_BWV: Tensor, written_BWC: Tensor, lengths_B: Tensor, runs: Sequence[Ids]) -> None:
    """Forbid the last piece of each run where those before it have just been written."""
    for run in runs:
        before = torch.tensor(run[:-1], device=logits_BWV.device, dtype=torch.long)
        places = lengths_B[:, None] - len(before) + torch.arange(len(before), device=before.device)
        tail = written_BWC.gather(-1, places.clamp(min=0)[:, None].expand(-1, written_BWC.shape[1], -1))
        same = (tail == before).all(-1) & (lengths_B >= len(before))[:, None]
        logits_BWV[..., run[-1]].masked_fill_(same, NEVER)


def forbid_early_end(logits_BWV: Tensor, counts_B: Tensor, least_B: Tensor, end: int) -> None:
    """Forbid the end where fewer pieces are written than have to be."""
    logits_BWV[..., end].masked_fill_((counts_B < least_B)[:, None], NEVER)


class Guard:
    """Stops runaway repetition.

    `runs[p - 1]` counts the pieces at a row's end each of which is the one p before it, so that the row ends with
    `runs + p` pieces of period p. When these are 16 and four turns, and twice what the source itself repeats, the
    piece that would go on with it is forbidden, and the row is marked.
    """

    def __init__(self, sources: Sequence[Ids], device: torch.device) -> None:
        periods = torch.arange(1, PERIODS + 1, device=device)
        own = torch.tensor([2 * _longest_loop(source) for source in sources], device=device)
        self.bounds = torch.maximum((TURNS * periods).clamp(min=LONGEST_LOOP), own[:, None]) - periods
        """(B, P) runs at which a loop is stopped"""
        self.runs = torch.zeros(len(sources), 1, PERIODS, dtype=torch.long, device=device)
        self.acted = torch.zeros(len(sources), 1, dtype=torch.bool, device=device)
        """(B, W) rows in which something was forbidden"""

    def forbid(self, logits_BWV: Tensor, written_BWC: Tensor, lengths_B: Tensor) -> None:
        """Forbid what would go on with a loop."""
        looping = self.runs >= self.bounds[:, None]
        if not bool(looping.any()):
            return
        sentence, row, place = looping.nonzero(as_tuple=True)
        pieces = written_BWC[sentence, row, lengths_B[sentence] - 1 - place]
        logits_BWV[sentence, row, pieces] = NEVER
        self.acted = self.acted | looping.any(-1)

    def follow(self, parents_BW: Tensor, written_BWC: Tensor, lengths_B: Tensor, starts_B: Tensor) -> None:
        """Rows were moved and a piece was added to each; what was read before counts for no loop."""
        index = parents_BW[:, :, None].expand(-1, -1, PERIODS)
        back = lengths_B[:, None] - 1 - torch.arange(1, PERIODS + 1, device=lengths_B.device)
        before = written_BWC.gather(2, back.clamp(min=0)[:, None].expand_as(index))
        last = written_BWC.gather(2, (lengths_B - 1)[:, None, None].expand(-1, index.shape[1], 1))
        same = (before == last) & (back >= starts_B[:, None])[:, None]
        self.runs = (self.runs.gather(1, index) + 1) * same
        self.acted = self.acted.gather(1, parents_BW)

    def keep(self, sentences: Tensor) -> None:
        """Only these go on."""
        self.bounds, self.runs, self.acted = (each[sentences] for each in (self.bounds, self.runs, self.acted))

    def add(self, other: "Guard") -> None:
        """These go on too."""
        self.bounds = torch.cat([self.bounds, other.bounds])
        self.runs = torch.cat([self.runs, other.runs])
        self.acted = torch.cat([self.acted, other.acted])


def _longest_loop(ids: Ids) -> int:
    """Pieces of the longest part that repeats something at least three times."""
    longest = 0
    for period in range(1, min(PERIODS, len(ids) // 3) + 1):
        run = 0
        for piece, before in zip(ids[period:], ids, strict=False):
            run = run + 1 if piece == before else 0
            if run >= 2 * period:
                longest = max(longest, run + period)
    return longest


def _real(written_BWC: Tensor, lengths_B: Tensor) -> Tensor:
    """The pieces of each row, with its first one in the room behind them."""
    places = torch.arange(written_BWC.shape[-1], device=lengths_B.device)
    return torch.where((places < lengths_B[:, None])[:, None], written_BWC, written_BWC[..., :1])
