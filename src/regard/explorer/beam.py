"""The tree of a beam search as the page draws it: what was kept, what was dropped and why, what was answered."""

from collections import defaultdict

from regard.decoding import Candidate, SearchTree
from regard.explorer.arrays import Plain, short
from regard.explorer.writing import Written
from regard.text import Tokenizer

STATES = {"kept": "kept", "ended": "ended", "late end": "dropped", "outscored": "dropped", "cut": "cut"}


def beam_tree(written: Written, tokenizer: Tokenizer) -> Plain | None:
    """The section `tree`; none without a search. The pieces that were given stand before it as a stem."""
    tree, prefix, beam = written.tree, written.prefix, written.decoding.beam
    if tree is None:
        return None
    stem = [tokenizer.specials.begin, *prefix]
    nodes = [
        _node(
            place, place - 1 if place else None, place, id, tokenizer, logp=0.0, total=0.0, score=0.0, state="kept",
            rank=0, why="given" if place else "the beginning",
        )
        for place, id in enumerate(stem)
    ]  # fmt: skip
    weakest = _weakest(tree)
    numbers: dict[int, int] = {}
    dropped: defaultdict[int, int] = defaultdict(int)
    for place, one in enumerate(tree.candidates):
        state = STATES[one.fate]
        if state == "dropped":
            dropped[one.step] += 1
            if dropped[one.step] > beam:
                continue
        numbers[place] = len(nodes)
        parent = len(stem) - 1 if one.parent is None else numbers[one.parent]
        nodes.append(
            _node(
                len(nodes), parent, len(prefix) + one.step, one.piece, tokenizer, logp=one.logp, total=one.total,
                score=one.total / written.norm(one.step), state=state, rank=one.rank,
                why=_why(one, weakest.get(one.step), beam),
            )
        )  # fmt: skip
    best = [numbers[place] for place in tree.path(tree.answers[0])] if tree.answers else []
    return {"nodes": nodes, "best": [*range(len(stem)), *best]}


def _node(
    id: int, parent: int | None, step: int, piece: int, tokenizer: Tokenizer, *, logp: float, total: float,
    score: float, state: str, rank: int, why: str,
) -> Plain:  # fmt: skip
    return {
        "id": id, "parent": parent, "step": step, "piece": tokenizer.piece(piece),
        "text": tokenizer.decode([piece], continued=True), "token": piece, "logp": short(logp), "total": short(total),
        "score": short(score), "state": state, "rank": rank, "why": why,
    }  # fmt: skip


def _weakest(tree: SearchTree) -> dict[int, float]:
    """For each step the sum of the last that was kept."""
    found: dict[int, float] = {}
    for one in tree.candidates:
        if one.fate in ("kept", "cut"):
            found[one.step] = min(one.total, found.get(one.step, one.total))
    return found


def _why(one: Candidate, weakest: float | None, beam: int) -> str:
    """What became of a candidate, in words."""
    match one.fate:
        case "kept":
            return "among the best that go on"
        case "ended":
            return "wrote the end: an answer"
        case "late end":
            return f"wrote the end, but {one.rank} others were better than it, in a beam of {beam}"
        case "cut":
            return "cut at the longest length"
        case "outscored":
            below = "" if weakest is None else f": {weakest - one.total:.3f} below the last that was kept"
            return f"others were better{below}"
