"""Where the page begins if nobody says it: at the row that looks far and surely, in the head that does so most."""

from collections.abc import Mapping

import torch

from regard.explorer.arrays import Plain
from regard.explorer.looks import Look

PLACES = ("part", "layer", "heads", "head", "row", "col")
"""of a page's state: who names one of them has said where to begin"""
FAR = 4
"""words from which on a look goes beyond its own phrase"""


def opening(look: Look) -> Plain | None:
    """The greatest weight that a word gives to one that is far away, or as far as the text goes, among all heads."""
    shape = look.parts[0]
    side = look.sides[shape.rows]
    words = torch.tensor(side.words)
    lexical = torch.tensor([any(map(str.isalnum, text)) for text in side.texts])
    away = (words[:, None] - words).abs() * (lexical[:, None] & lexical)
    far = min(FAR, int(away.max()))
    if far == 0:
        return None
    best, found = -1.0, None
    for layer in range(shape.layers):
        weights = look.attended(shape.part, layer).weights[0].cpu().masked_fill(away < far, 0.0).amax(-1)
        place = int(weights.argmax())
        if float(weights.max()) > best:
            best = float(weights.max())
            head, row = divmod(place, len(side))
            found = {"part": shape.part, "layer": layer, "head": head, "row": row}
    return found


def opened(state: Mapping[str, str], begin: Plain | None) -> dict[str, str]:
    """A state that begins there, unless it says itself where: as the page reads it."""
    if begin is None or not state.keys().isdisjoint(PLACES):
        return dict(state)
    return {**state, **{name: str(value) for name, value in begin.items()}, "heads": str(begin["head"])}
