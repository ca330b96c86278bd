"""What of an item's arrays goes into a file: all weights, then scores and vectors as far as there is room."""

from collections.abc import Mapping
from math import prod

from regard.explorer.arrays import Array, Pack, Plain
from regard.explorer.calculation import calculation, stacks
from regard.explorer.document import script_json
from regard.explorer.holders import Holder
from regard.explorer.looks import Look

LETTERS = 2.4
"""of a file for a number of a vector or of scores: two bytes, hardly smaller when packed, a third more in base64"""

ENTRY = 130
"""letters of an array's entry in the table"""


def filled(holder: Holder, pack: Pack, state: Mapping[str, str], *, room: int) -> Plain:
    """The item for a file in which it should take `room` letters, whatever of it is JSON included.

    It has the vectors of at least one token of each side, and of at least one head all keys and values.
    """
    look = holder.look
    assert look is not None
    vectors = {name: array for name, array in holder.arrays.items() if name.startswith("calculation.")}
    scores = {name: array for name, array in holder.arrays.items() if name.endswith(".scores")}
    before = pack.packed
    must = set(holder.arrays) - set(vectors) - set(scores)
    item = holder.packed(pack, sections=(), arrays=lambda name, array: array if name in must else None)
    table: dict[str, Plain] = item["arrays"]
    left = room - (pack.packed - before) - len(script_json(item)) - ENTRY * len(vectors | scores)
    everything = {"keys": _is_keys, "rows": _is_rows}
    sizes = {kind: sum(_letters(array) for array in vectors.values() if of(array)) for kind, of in everything.items()}
    tokens = max(map(len, look.sides.values()))
    left -= sizes["keys"] // look.model.config.heads + sizes["rows"] // tokens  # what there is at the least
    if (size := sum(map(_letters, scores.values()))) <= left:
        table.update({name: pack.add(array) for name, array in scores.items()})
        left -= size
    more = max(0, left) * tokens // max(1, sizes["rows"])
    rows = {name: _rows(look, name, side, state)[: 1 + more] for name, (side, _) in stacks(look).items()}
    left -= sizes["rows"] * min(more, tokens) // tokens
    heads = None if sizes["keys"] <= left else _heads(look, state)
    for name, array in vectors.items():
        if _is_keys(array):
            table[name] = pack.add(array.part(heads=heads))
        else:
            table[name] = pack.add(array.part(rows=sorted(rows[name.split(".")[1]])))
    item["sections"]["calculation"] = calculation(look, {name: sorted(some) for name, some in rows.items()})
    return item


def _is_keys(array: Array) -> bool:
    return array.axes[0] == "key"


def _is_rows(array: Array) -> bool:
    return not _is_keys(array)


def _letters(array: Array) -> int:
    return int(LETTERS * prod(array.shape))


def _rows(look: Look, stack: str, side: str, state: Mapping[str, str]) -> list[int]:
    """A side's tokens, the one that the page starts with first, then those that write something."""
    texts = look.sides[side].texts
    order = sorted(range(len(texts)), key=lambda row: (not texts[row].strip(), row))
    wanted = state.get("row", "")
    own = state.get("part", "").startswith(f"{stack}.") and wanted.isdigit() and int(wanted) < len(texts)
    return sorted(order, key=lambda row: row != int(wanted)) if own else order


def _heads(look: Look, state: Mapping[str, str]) -> list[int]:
    """The heads that the page starts with; the first, if that is all or none."""
    named = [int(word) for word in state.get("heads", "").split(",") if word.isdigit()]
    return [head for head in named if head < look.model.config.heads][:2] or [0]
