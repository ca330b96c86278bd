"""The studio: runs that are looked at, and everything that was looked at in them. Server and file are made of it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count

import torch
from torch import Tensor

from regard.errors import InputError
from regard.explorer.ablation import changed, each_head, without
from regard.explorer.arrays import Array, Axis, Plain, Some, fixed
from regard.explorer.calculation import DECIMALS, calculation, calculation_arrays
from regard.explorer.checkpoints import checkpoint_model, checkpoints
from regard.explorer.classes import classes
from regard.explorer.decoding import decoding, next_pieces
from regard.explorer.holders import Holder, Made
from regard.explorer.looks import BEST, Look, PartShape, Question, with_target
from regard.explorer.maps import token_map
from regard.explorer.measures import measures
from regard.explorer.positions import positions
from regard.explorer.projection import displacement
from regard.explorer.writing import Written, write
from regard.models import EncoderDecoder, EncoderOnly, Model
from regard.nn import Attended, Head
from regard.tasks.run import Run

KEPT_LOOKS, KEPT_BYTES = 16, 2**30
"""items that stay good, and the memory that they may take (two stay whatever they take)"""


class GoneError(KeyError):
    """A holder of that id is not kept, or not any more."""


class Studio:
    """Looks at texts in one run, or in two that are compared."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = [_run_holder(number, run) for number, run in enumerate(runs)]
        self._runs = list(runs)
        self._held: OrderedDict[str, Holder] = OrderedDict()
        self._numbers = count()
        self._models: dict[tuple[int, str], Model] = {}

    def run(self, number: int) -> Run:
        """The run of that number."""
        if not 0 <= number < len(self._runs):
            raise InputError(f"run {number}: there are runs 0 to {len(self._runs) - 1}")
        return self._runs[number]

    def model(self, number: int, weights: str) -> Model:
        """A run's model, with its best weights or those of a checkpoint."""
        run = self.run(number)
        if weights == BEST:
            return run.model
        if (number, weights) not in self._models:
            self._models.clear()  # one at a time: they may be large
            self._models[number, weights] = checkpoint_model(run, weights)
        return self._models[number, weights]

    def held(self, id: str) -> Holder:
        """The holder of that id."""
        for holder in self.runs:
            if holder.id == id:
                return holder
        if id not in self._held:
            raise GoneError(id)
        self._held.move_to_end(id)
        return self._held[id]

    def item(self, id: str) -> tuple[Holder, Look]:
        """The item of that id."""
        holder = self.held(id)
        if holder.look is None:
            raise InputError(f"{id}: is no item")
        return holder, holder.look

    def look(self, question: Question) -> Holder:
        """Look at a text; without a target, at what the model writes."""
        run, model = self.run(question.run), self.model(question.run, question.weights)
        if question.target is None and question.target_ids is None and isinstance(model, EncoderDecoder):
            return self.decode(question, beam=question.beam)
        return self._keep(_item(self._id("k"), Look(run, question, model=model), None))

    def decode(self, question: Question, *, prefix: Sequence[int] = (), beam: int | None = None) -> Holder:
        """Look at what the model writes: from the beginning, or on from these pieces."""
        run, model = self.run(question.run), self.model(question.run, question.weights)
        written = write(
            run, model, question.text, tag=question.tag, prefix=prefix, beam=beam, heads_off=question.heads_off
        )
        look = Look(run, with_target(question, written.ids), model=model)
        return self._keep(_item(self._id("k"), look, written))

    def ablate(self, id: str, heads_off: frozenset[Head]) -> Holder:
        """The item with other heads switched off, on the same target, and what that changes."""
        _, before = self.item(id)
        after = without(before, heads_off)
        item = self._keep(_item(self._id("k"), after, None))
        facts: Plain = {"item": item.live(), "heads_off": _listed(heads_off)}
        return self._keep(Holder(id=self._id("a"), facts={**facts, **changed(before, after)}))

    def map(self, ids: Sequence[str]) -> Holder:
        """Where the tokens of several items lie; all of one run."""
        looks = [self.item(id)[1] for id in ids]
        if not looks:
            raise InputError("items: is empty; name at least one")
        if len({(look.question.run, look.question.weights) for look in looks}) > 1:
            raise InputError("items: are of several models, whose vectors have no place on one map")
        section, arrays = token_map(looks)
        return self._keep(Holder(id=self._id("m"), arrays=arrays, sections={"map": section}))

    def history(self, id: str, part: str, layer: int, head: int) -> Holder:
        """One head's weights on the item in every checkpoint, and in the run's best weights at the end."""
        section, arrays = self.history_of(self.item(id)[1], part, layer, head)
        return self._keep(Holder(id=self._id("h"), arrays=arrays, sections={"history": section}))

    def history_of(self, look: Look, part: str, layer: int, head: int) -> Made:
        """The section of that name; none if the run has no checkpoints."""
        shape = look.shape(part)
        if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
            raise InputError(f"head ({part}, {layer}, {head}): {part} has {shape.layers} layers of {shape.heads} heads")
        question = look.question
        if "target" in look.sides:
            question = with_target(question, look.sides["target"].ids[1:])
        stored = checkpoints(look.run)
        if not stored:
            return None, {}
        pictures = []
        for weights in (*(checkpoint.name for checkpoint in stored), BEST):
            own = Look(look.run, replace(question, weights=weights), model=self.model(question.run, weights))
            pictures.append(own.attended(shape.part, layer, [head]).weights[0, 0])
        section: Plain = {
            "part": part, "layer": layer, "head": head, "weights": "history.weights",
            "checkpoints": [*({"name": each.name, "step": each.step} for each in stored), {"name": BEST, "step": None}],
        }  # fmt: skip
        return section, {"history.weights": fixed(torch.stack(pictures), ("checkpoint", "row", "key"))}

    def _id(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def _keep(self, holder: Holder) -> Holder:
        """Keep it, and let go of those that nobody asked for longest."""
        self._held[holder.id] = holder
        while len(self._held) > 2 and (len(self._held) > KEPT_LOOKS or self._bytes() > KEPT_BYTES):
            self._held.popitem(last=False)
        return holder

    def _bytes(self) -> int:
        return sum(holder.look.bytes for holder in self._held.values() if holder.look)


def _item(id: str, look: Look, written: Written | None) -> Holder:
    """A look as the page knows it; `written` tells how its target came about, if the model wrote it."""
    question, sides = look.question, {name: side.to_plain() for name, side in look.sides.items()}
    tokenizer = look.run.tokenizer
    target = None
    if "target" in look.sides:
        target = tokenizer.decode(look.sides["target"].ids[1:])
        sides["target"]["next"] = [tokenizer.piece(id) for id in next_pieces(look)]
    facts: Plain = {
        "run": question.run, "text": question.text, "tag": question.tag, "target": target,
        "written": written is not None, "weights": question.weights, "heads_off": _listed(question.heads_off),
        "sides": sides, "parts": [shape.to_plain() for shape in look.parts],
    }  # fmt: skip
    arrays: dict[str, Array] = {}
    for shape in look.parts:
        arrays.update(_part_arrays(look, shape))
    arrays.update(calculation_arrays(look))
    holder = Holder(id=id, facts=facts, arrays=arrays, look=look)
    holder.makers = {
        "measures": lambda: (measures(look), {}),
        "calculation": lambda: (calculation(look), {}),
        "displacement": lambda: displacement(look),
        "decoding": lambda: (None, {}) if isinstance(look.model, EncoderOnly) else decoding(look, written),
        "classes": lambda: classes(look),
        "ablation": lambda: (each_head(look), {}),
    }
    return holder


def _part_arrays(look: Look, shape: PartShape) -> dict[str, Array]:
    """Mask, weights and scores of a part."""
    rows, keys = len(look.sides[shape.rows]), len(look.sides[shape.keys])
    axes: tuple[Axis, ...] = ("head", "row", "key")
    size = (shape.heads, rows, keys)

    def mask(heads: Some, lines: Some) -> Tensor:
        seen = look.sight(shape.part).seen
        whole = torch.ones(rows, keys) if seen is None else seen[0, 0].expand(rows, keys)
        return whole.to(torch.uint8) if lines is None else whole[list(lines)].to(torch.uint8)

    found = {f"{shape.part}.mask": Array(shape=(rows, keys), axes=("row", "key"), dtype="u1", make=mask)}
    for layer in range(shape.layers):
        attended = partial(look.attended, shape.part, layer)
        for kind, decimals, make in (
            ("weights", None, partial(_weights, attended)), ("scores", DECIMALS, partial(_scores, attended))
        ):  # fmt: skip
            found[f"{shape.part}.{layer}.{kind}"] = Array(shape=size, axes=axes, decimals=decimals, make=make)
    return found


def _weights(attended: Callable[[Some, Some], Attended], heads: Some, rows: Some) -> Tensor:
    return attended(heads, rows).weights[0]


def _scores(attended: Callable[[Some, Some], Attended], heads: Some, rows: Some) -> Tensor:
    return attended(heads, rows).scores[0]


def _listed(heads: frozenset[Head]) -> list[list[object]]:
    return [list(head) for head in sorted(heads)]


def _run_holder(number: int, run: Run) -> Holder:
    """What the page says of a run."""
    config = run.model.config
    shape = {
        name: getattr(config, name)
        for name in ("d_model", "heads", "key_heads", "d_ff", "encoder_layers", "decoder_layers", "norm", "norm_kind",
                     "activation", "positions", "attention", "vocabulary", "max_length")
    }  # fmt: skip
    facts: Plain = {
        "name": run.folder.resolve().name,
        "task": run.recipe.task,
        "family": config.family,
        "parameters": sum(parameter.numel() for parameter in run.model.parameters()),
        "shape": {**shape, "d_k": config.key_width, "d_v": config.value_width},
        "tags": list(run.source_tokenizer.tags),
        "weights": BEST,
        "checkpoints": [{"name": each.name, "step": each.step} for each in checkpoints(run)],
    }
    made = cache(lambda: positions(run.model))
    return Holder(id=f"r{number}", facts=facts, makers={"positions": made})
