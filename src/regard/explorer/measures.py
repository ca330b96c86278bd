"""What each head does, in a few numbers, to find the interesting ones among many."""

import torch
from torch import Tensor

from regard.explorer.arrays import Plain, short
from regard.explorer.looks import Look, PartShape
from regard.explorer.opening import Opening

NAMES: tuple[tuple[str, str, str, str], ...] = (
    ("entropy", "entropy", "bits", "how spread out the weights of a row are: 0 is one key, 3 is as if over eight"),
    ("distance", "distance", "tokens", "how far away, on average, what it looks at is"),
    ("previous", "previous", "share", "weight on the token before"),
    ("next", "next", "share", "weight on the token behind"),
    ("self", "self", "share", "weight on the token itself"),
    ("first", "first", "share", "weight on the first token"),
    ("alignment", "alignment", "share", "how nearly each row has one key and each key one row: 1 is one to one"),
)
"""name, title, unit, and what it says"""


def measures(look: Look) -> Plain:
    """The section of that name."""
    heads, begin = [], Opening(look)
    for shape in look.parts:
        for layer in range(shape.layers):
            weights = look.attended(shape.part, layer).weights[0]
            if shape is begin.shape:
                begin.see(layer, weights)
            found = measured(weights, shape)
            for head in range(shape.heads):
                numbers = {name: None if value is None else short(float(value[head])) for name, value in found.items()}
                heads.append({"part": shape.part, "layer": layer, "head": head, **numbers})
    names = [{"name": name, "title": title, "unit": unit, "says": says} for name, title, unit, says in NAMES]
    return {"heads": heads, "names": names, "opening": begin.place}


def measured(weights_HTS: Tensor, shape: PartShape) -> dict[str, Tensor | None]:
    """Each measure of each head, (H), in the order of the table; none where it has no meaning."""
    w = weights_HTS
    rows, keys = w.shape[1:]
    entropy = -(w * w.clamp(min=torch.finfo(w.dtype).tiny).log2()).sum((-2, -1), dtype=torch.float64) / rows
    row_peak, key_peak = w.amax(-1).double().mean(-1), w.amax(-2).double().mean(-1)
    found: dict[str, Tensor | None] = {
        "entropy": entropy, "distance": None, "previous": None, "next": None, "self": None,
        "first": w[:, :, 0].double().mean(-1), "alignment": 2 * row_peak * key_peak / (row_peak + key_peak),
    }  # fmt: skip
    if shape.rows == shape.keys:
        for name, place in (("previous", -1), ("next", 1), ("self", 0)):
            if name != "next" or not shape.causal:
                found[name] = w.diagonal(place, -2, -1).sum(-1, dtype=torch.float64) / rows
        away = (torch.arange(keys, device=w.device) - torch.arange(rows, device=w.device)[:, None]).abs()
        found["distance"] = (w * away).sum((-2, -1), dtype=torch.float64) / rows
    return found
