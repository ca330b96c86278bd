"""How a text comes about, step by step: what was known, what was likely, what the search kept, and the alignment."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.decoding import Hypothesis
from regard.explorer.arrays import Array, Plain, fixed, short
from regard.explorer.beam import beam_tree
from regard.explorer.looks import Look
from regard.explorer.writing import Written
from regard.text import Tokenizer

CANDIDATES = 10


@torch.no_grad()
def decoding(look: Look, written: Written | None) -> tuple[Plain, dict[str, Array]]:
    """The section of that name, and its alignment; `written` tells of the search, if there was one."""
    tokenizer = look.run.tokenizer
    recipe = look.run.recipe.decoding
    alignment, arrays = aligned(look)
    section: Plain = {
        "beam": written.decoding.beam if written else recipe.beam,
        "length_penalty": recipe.length_penalty,
        "prefix": len(written.prefix) if written else 0,
        "steps": steps(look),
        "answers": [_answer(answer, written.prefix, tokenizer) for answer in written.answers] if written else [],
        "tree": beam_tree(written, tokenizer) if written else None,
        "alignment": alignment,
    }
    return section, arrays


def next_pieces(look: Look) -> list[int]:
    """For each row of the target the piece that its step chose: the one that stands behind it.

    Behind the last row comes the end if the decoder was to stop there, which nobody knows but the model: its likeliest.
    """
    ids = look.sides["target"].ids
    return [*ids[1:], int(look.logits([len(ids) - 1])[0].argmax())]


def steps(look: Look) -> list[Plain]:
    """Every step with its likeliest pieces and the one that was chosen."""
    tokenizer, chosen = look.run.tokenizer, next_pieces(look)
    found: list[Plain] = []
    for start in range(0, len(chosen), 128):  # a block of rows at a time: the scores of a vocabulary are many
        rows = range(start, min(start + 128, len(chosen)))
        logps = look.logits(rows).log_softmax(-1)
        best, places = logps.topk(min(CANDIDATES, logps.shape[1]), dim=-1)
        entropies = -(logps.exp() * logps).sum(-1) / math.log(2)
        for row, logp, values, ids, entropy in zip(rows, logps, best, places, entropies, strict=True):
            own = float(logp[chosen[row]])
            rank = int((logp > logp[chosen[row]]).sum())
            candidates = [
                _candidate(id, value, tokenizer) for id, value in zip(ids.tolist(), values.tolist(), strict=True)
            ]
            found.append(
                {"known": row + 1, "chosen": {**_candidate(chosen[row], own, tokenizer), "rank": rank},
                 "candidates": candidates, "entropy": short(float(entropy))}
            )  # fmt: skip
    return found


def _candidate(id: int, logp: float, tokenizer: Tokenizer) -> Plain:
    text = tokenizer.decode([id], continued=True)
    return {
        "id": id,
        "piece": tokenizer.piece(id),
        "text": text,
        "logp": short(logp),
        "probability": short(math.exp(logp)),
    }


def _answer(answer: Hypothesis, prefix: Sequence[int], tokenizer: Tokenizer) -> Plain:
    whole = [*prefix, *answer.ids]
    return {
        "ids": whole,
        "pieces": [tokenizer.piece(id) for id in whole],
        "text": tokenizer.decode(whole),
        "score": answer.score,
        "logp": answer.logp,
        "ended": answer.ended,
    }


def aligned(look: Look) -> tuple[Plain | None, dict[str, Array]]:
    """What each row of the target looks at in the source: the mean over the heads of the last layer but one.

    Of the layers of a trained decoder that one is mostly the best aligned (Garg et al. 2019).
    """
    if not any(shape.part == "decoder.cross" for shape in look.parts):
        return None, {}
    layer = max(0, look.shape("decoder.cross").layers - 2)
    weights: Tensor = look.attended("decoder.cross", layer).weights[0].mean(0)
    links = [[row, int(key)] for row, key in enumerate(weights.argmax(-1))]
    name = "decoding.alignment"
    return {"array": name, "layer": layer, "links": links}, {name: fixed(weights, ("row", "key"))}


@torch.no_grad()
def target_logps(look: Look, end: int) -> list[float]:
    """The log-probability of each piece of the target, its end included, in float64."""
    wanted = [*look.sides["target"].ids[1:], end]
    found: list[float] = []
    for start in range(0, len(wanted), 128):
        rows = range(start, min(start + 128, len(wanted)))
        logps = look.logits(rows).log_softmax(-1)
        found += [float(logp[wanted[row]]) for row, logp in zip(rows, logps, strict=True)]
    return found
