"""Where tokens lie: their embeddings and, layer by layer, what the context makes of them; neighbours by cosine."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.explorer.arrays import Array, Plain, fixed, short
from regard.explorer.calculation import stacks
from regard.explorer.looks import Look
from regard.explorer.projection import components, path, projected
from regard.models import EncoderDecoder
from regard.text import Tokenizer

NEIGHBOURS = 8
BACKGROUND = 300
"""pieces of the vocabulary that are drawn behind the tokens"""
MOST = 4000
"""tokens of all texts together: their cosines are a square"""


@torch.no_grad()
def token_map(looks: Sequence[Look]) -> tuple[Plain, dict[str, Array]]:
    """The map of the tokens of several texts in one model, with its arrays.

    The texts are those that the model reads: the sources of an encoder, or of a decoder alone what it reads.
    """
    first = looks[0]
    side = "target" if "source" not in first.sides else "source"
    states = [states_of(look, side) for look in looks]  # each (layers, T, D)
    table = embeddings_of(first, side)
    ids = [torch.tensor(look.sides[side].ids, device=table.device) for look in looks]
    layers = [torch.cat([table[some] for some in ids]), *torch.cat(states, dim=1)]
    sizes = [len(some) for some in ids]
    background = _background(first.tokenizer(side), sizes)
    arrays: dict[str, Array] = {}
    explained, places, cosines = [], [], []
    for number, vectors in enumerate(layers):
        behind = table[background] if number == 0 else vectors[:0]
        centre, axes, shares = components(torch.cat([vectors, behind]))
        explained.append(shares)
        places.append(projected(vectors, centre, axes))
        unit = F.normalize(vectors.double(), dim=-1)
        cosines.append((unit @ unit.T).float())
        if number == 0:
            arrays["map.vocabulary"] = fixed(projected(behind, centre, axes), ("row", "point"))
    for text, points in enumerate(torch.stack(places).split(sizes, dim=1)):
        arrays[f"map.{text}.points"] = fixed(points.contiguous(), ("layer", "row", "point"))
    square = torch.stack(cosines)
    arrays["map.cosines"] = fixed(square, ("layer", "row", "key"), decimals=4)
    starts = [sum(sizes[:text]) for text in range(len(sizes))]
    same = _same_words(looks, side, starts, square, arrays)
    section: Plain = {
        "layers": ["embeddings", *(f"layer {layer}" for layer in range(len(layers) - 1))],
        "explained": explained,
        "texts": [
            {"text": look.question.text, "item": number, "side": side, "pieces": list(look.sides[side].pieces),
             "words": list(look.sides[side].words), "points": f"map.{number}.points"}
            for number, look in enumerate(looks)
        ],
        "first": starts,
        "cosines": "map.cosines",
        "neighbours": neighbours(table, torch.cat(ids), first.tokenizer(side)),
        "vocabulary": {
            "pieces": [first.tokenizer(side).piece(id) for id in background], "points": "map.vocabulary"
        },
        "same": same,
    }  # fmt: skip
    return section, arrays


def states_of(look: Look, side: str) -> Tensor:
    """What each layer makes of each token, (layers, T, D)."""
    name = next(name for name, (own, _) in stacks(look).items() if own == side)
    groups = stacks(look)[name][1]
    ends = [place for place, group in enumerate(groups) if ".feed_forward." in group.name]
    return path(look, name, groups)[ends]


def embeddings_of(look: Look, side: str) -> Tensor:
    """The table of embeddings that a side's pieces are looked up in, (pieces, D)."""
    model = look.model
    if isinstance(model, EncoderDecoder):
        pieces = model.source_pieces or model.target_pieces if side == "source" else model.target_pieces
        return pieces.weight.detach()
    return model.pieces.weight.detach()


def neighbours(table: Tensor, ids: Tensor, tokenizer: Tokenizer) -> list[list[Plain]]:
    """Of each token the pieces of the vocabulary whose embeddings point most nearly the same way."""
    unit = F.normalize(table.float(), dim=-1)
    cosines = unit[ids] @ unit.T
    cosines[torch.arange(len(ids)), ids] = -2.0  # not itself
    values, places = cosines.topk(min(NEIGHBOURS, cosines.shape[1] - 1), dim=-1)
    return [
        [
            {"piece": tokenizer.piece(id), "id": id, "cosine": short(value)}
            for id, value in zip(row_ids, row_values, strict=True)
        ]
        for row_ids, row_values in zip(places.tolist(), values.tolist(), strict=True)
    ]


def _background(tokenizer: Tokenizer, sizes: Sequence[int]) -> list[int]:
    """Pieces from all over the vocabulary that write something."""
    size = tokenizer.size
    some = range(0, size, max(1, size // BACKGROUND))
    return [id for id in some if tokenizer.decode([id], continued=True).strip()][:BACKGROUND]


def _same_words(
    looks: Sequence[Look], side: str, starts: Sequence[int], cosines: Tensor, arrays: dict[str, Array]
) -> list[Plain]:
    """Words that stand in several places, and how alike the places' vectors are, layer by layer."""
    found: dict[str, list[list[int]]] = {}
    for text, look in enumerate(looks):
        its = look.sides[side]
        for word, name in enumerate(its.word_texts):
            row = its.words.index(word)
            if any(character.isalpha() for character in name) and its.texts[row]:
                found.setdefault(name.strip(".,;:!?").casefold(), []).append([text, row])
    same: list[Plain] = []
    for name, places in found.items():
        if len(places) > 1:
            rows = torch.tensor([starts[text] + row for text, row in places])
            among = cosines[:, rows][:, :, rows]
            above = torch.triu(torch.ones(len(rows), len(rows), dtype=torch.bool), diagonal=1)
            arrays[f"map.same.{len(same)}"] = fixed(among[:, above].mean(-1), ("layer",))
            same.append({"text": name, "places": places, "cosines": f"map.same.{len(same)}"})
    return same
