"""Where the page begins if nobody says it: at the row that looks far and surely, in the head that does so most."""

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.explorer.arrays import Plain
from regard.explorer.looks import Look

PLACES = ("part", "layer", "heads", "head", "row", "col")
"""of a page's state: who names one of them has said where to begin"""
FAR = 4
"""words from which on a look goes beyond its own phrase"""


class Opening:
    """The greatest weight that a word gives to one that is far away, or as far as the text goes, among all heads."""

    def __init__(self, look: Look) -> None:
        self.shape = look.parts[0]
        side = look.sides[self.shape.rows]
        words = torch.tensor(side.words)
        lexical = torch.tensor([any(map(str.isalnum, text)) for text in side.texts])
        away = (words[:, None] - words).abs() * (lexical[:, None] & lexical)
        far = min(FAR, int(away.max()))
        self._hidden = away < far if far else None
        self._best = 0.0
        self.place: Plain | None = None
        """where that is, of the layers seen; none if the text has no two words"""

    def see(self, layer: int, weights_HTT: Tensor) -> None:
        """Look at one more layer."""
        if self._hidden is None:
            return
        rows = weights_HTT.cpu().masked_fill(self._hidden, -1.0).amax(-1)
        if float(rows.max()) > self._best:
            self._best = float(rows.max())
            head, row = divmod(int(rows.argmax()), rows.shape[1])
            self.place = {"part": self.shape.part, "layer": layer, "head": head, "row": row}


def opened(state: Mapping[str, str], begin: Plain | None) -> dict[str, str]:
    """A state that begins there, unless it says itself where: as the page reads it."""
    if begin is None or not state.keys().isdisjoint(PLACES):
        return dict(state)
    return {**state, **{name: str(value) for name, value in begin.items()}, "heads": str(begin["head"])}
