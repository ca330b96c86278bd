"""A beam in which phrases have to be written: hypotheses compete only with those that are as far with them.

Every hypothesis has met some pieces of its phrases: all of those that stand in it, and of the others as many first
pieces as it ends with. Candidates are each row's likeliest pieces and those that carry a phrase on. They are ranked in
turns: the best of those that have met most, the best of those that have met one less, and so on down, then the second
best of each. (Post and Vilar 2018 share a beam out in the same way.) The end is no candidate before all is met, and
neither is a piece that would write a phrase a second time.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest

import torch

from regard.decoding.choose import Choice, Scores
from regard.decoding.request import Ids
from regard.decoding.restrict import NEVER

Candidate = tuple[float, int, int]
"""Total, parent, piece."""


def constrained(
    scores: Scores, written: Sequence[Sequence[Sequence[int]]], phrases: Sequence[Sequence[Ids]], *, width: int,
    end: int,
) -> Choice:  # fmt: skip
    """The 2 w best of each sentence in turns; `written` holds the pieces of each of its rows."""
    count = 2 * width
    logp = scores.logits - scores.norm[:, :, None] + scores.totals[:, :, None]
    spare = 1 + 2 * max(map(len, phrases))  # the end, and of each phrase what begins it and what carries it on
    top = logp.topk(min(count + spare, logp.shape[-1])).indices.tolist()
    device = logp.device
    choice = Choice(
        rank=torch.full((len(written), 1, count), NEVER, device=device),
        totals=torch.full((len(written), 1, count), NEVER, device=device),
        parents=torch.zeros(len(written), 1, count, dtype=torch.long, device=device),
        pieces=torch.zeros(len(written), 1, count, dtype=torch.long, device=device),
    )
    for sentence, rows in enumerate(written):
        banks: dict[int, list[Candidate]] = defaultdict(list)
        wanted = phrases[sentence]
        for row, ids in enumerate(rows):
            if float(scores.totals[sentence, row]) == NEVER:
                continue
            pieces = sorted({*top[sentence][row], *_next_pieces(ids, wanted)})
            for piece, total in zip(pieces, logp[sentence, row, pieces].tolist(), strict=True):
                bank = _met_with(ids, piece, wanted, end)
                if bank is not None and total > NEVER:
                    banks[bank].append((total, row, piece))
        for place, (total, row, piece) in enumerate(_in_turns(banks)[:count]):
            choice.rank[sentence, 0, place] = -place
            choice.totals[sentence, 0, place] = total
            choice.parents[sentence, 0, place] = row
            choice.pieces[sentence, 0, place] = piece
    return choice


def _in_turns(banks: dict[int, list[Candidate]]) -> list[Candidate]:
    ordered = [sorted(banks[bank], reverse=True) for bank in sorted(banks, reverse=True)]
    return [each for turn in zip_longest(*ordered) for each in turn if each is not None]


def _met_with(ids: Sequence[int], piece: int, phrases: Sequence[Ids], end: int) -> int | None:
    """Pieces met when `piece` follows; none if it may not."""
    if piece == end:
        return sum(map(len, phrases)) if all(_stands(ids, phrase) for phrase in phrases) else None
    longer = [*ids, piece]
    if any(_ends(longer, phrase) == len(phrase) and _stands(ids, phrase) for phrase in phrases):
        return None
    return met(longer, phrases)


def met(ids: Sequence[int], phrases: Sequence[Ids]) -> int:
    """Pieces of the phrases that are met."""
    return sum(len(phrase) if _stands(ids, phrase) else _ends(ids, phrase) for phrase in phrases)


def _next_pieces(ids: Sequence[int], phrases: Sequence[Ids]) -> list[int]:
    """What carries each phrase on, or begins it."""
    open_ones = [phrase for phrase in phrases if not _stands(ids, phrase)]
    return [piece for phrase in open_ones for piece in (phrase[_ends(ids, phrase)], phrase[0])]


def _stands(ids: Sequence[int], phrase: Ids) -> bool:
    size = len(phrase)
    return any(tuple(ids[place : place + size]) == phrase for place in range(len(ids) - size + 1))


def _ends(ids: Sequence[int], phrase: Ids) -> int:
    """How many first pieces of the phrase stand at the end."""
    for size in range(min(len(phrase), len(ids)), 0, -1):
        if tuple(ids[-size:]) == phrase[:size]:
            return size
    return 0
