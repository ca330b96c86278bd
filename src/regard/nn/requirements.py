"""What one asks of positions, measured: five requirements, a number and a verdict for each kind.

The encoding of a step is what the model is told of it. For the kinds that are added to the embeddings that is the
vector added. For the others it is what the step adds as it is seen from step 0 of an encoder: the cosines and sines by
which rotary positions turn, ALiBi's and T5's bias in each head, Shaw's vectors for key and value.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.config.model import Positions
from regard.errors import InputError
from regard.nn.blocks import Layer, Stack
from regard.nn.initial import initialise
from regard.nn.positions import PositionEncoding, Rotation

KINDS: tuple[Positions, ...] = get_args(Positions)
STEPS = 256
"""tokens of the longest sentence trained on, unless stated"""

Name = Literal["unique", "distance", "longer", "bounded", "deterministic"]


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What is asked, how it is measured, and when it is met."""

    name: Name
    asks: str
    measures: str
    bound: float
    at_least: bool
    """whether the number must reach the bound, or else stay within it"""

    @property
    def met_by(self) -> str:
        """The bound in words."""
        return f"at {'least' if self.at_least else 'most'} {self.bound:g}"


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        name="unique",
        asks="each step of a sentence has an encoding of its own",
        measures="the smallest distance (Euclidean) between the encodings of two different steps of a sentence of n",
        bound=1e-3,
        at_least=True,
    ),
    Requirement(
        name="distance",
        asks="the distance between two steps is the same whatever the sentence's length",
        measures="the largest change of the distance between the encodings of steps t and t + k, over all t and k, "
        "from a sentence of n / 4 or n / 2 to one of n",
        bound=1e-5,
        at_least=False,
    ),
    Requirement(
        name="longer",
        asks="it goes to longer sentences than those trained on",
        measures="the share of steps n to 4n for which there is an encoding at all",
        bound=1.0,
        at_least=True,
    ),
    Requirement(
        name="bounded",
        asks="its values stay within limits however long the sentence is",
        measures="the largest magnitude of a value in a sentence of 4n (or the longest possible), over that in one "
        "of n",
        bound=1.0 + 1e-5,
        at_least=False,
    ),
    Requirement(
        name="deterministic",
        asks="it is a rule and not a matter of training",
        measures="the largest difference of a value between two models built with different seeds",
        bound=0.0,
        at_least=False,
    ),
)
"""The five, in the order of the table."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """One kind of position, measured."""

    kind: Positions
    numbers: dict[Name, float]

    def met(self, requirement: Requirement) -> bool:
        """Whether the kind meets the requirement."""
        number = self.numbers[requirement.name]
        return number >= requirement.bound if requirement.at_least else number <= requirement.bound


def measure_positions(kind: Positions, *, config: ModelConfig | None = None, steps: int = STEPS) -> Report:
    """The five numbers of a kind, for sentences of `steps` tokens; sizes are those of `config` (the base model)."""
    config = replace(config or ModelConfig(), positions=kind, max_length=steps, encoder_layers=1, family="encoder-only")
    encode, other = encoder(config, seed=1), encoder(config, seed=2)
    whole = encode(torch.arange(steps), steps)
    possible = [step for step in range(steps, 4 * steps) if _exists(encode, step)]
    longest = possible[-1] + 1 if possible else steps
    numbers: dict[Name, float] = {
        "unique": _smallest_distance(whole),
        "distance": max(_change(encode, length, whole) for length in (steps // 4, steps // 2)),
        "longer": len(possible) / (3 * steps),
        "bounded": _ratio(_magnitude(encode(torch.arange(longest), longest)), _magnitude(whole)),
        "deterministic": _magnitude(whole - other(torch.arange(steps), steps)),
    }
    return Report(kind=kind, numbers=numbers)


Encode = Callable[[Tensor, int], Tensor]
"""The encodings (T, values) of some steps (T) of a sentence of the given length."""


def encoder(config: ModelConfig, *, seed: int) -> Encode:
    """What a newly built model of this config is told of each step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.ModuleList([PositionEncoding(config), Stack(config, "encoder.self")])
        initialise(model, config)
    added, stack = model
    assert isinstance(stack, Stack)
    layer = stack.layers[0]
    assert isinstance(layer, Layer)
    shaw, shared = layer.attention.relation, stack.relation

    @torch.no_grad()
    def encode(steps: Tensor, length: int) -> Tensor:
        first = torch.zeros(1, 1, dtype=torch.long)
        if config.positions == "rotary":
            rotation = Rotation(steps[None], config.key_width, config.rotary_base)
            return torch.cat([rotation.cos, rotation.sin], dim=-1)[0, 0]
        if shaw is not None:  # a query for each component, then all weight on one key after the other
            queries = torch.eye(config.key_width)[None, :, None]
            weights = torch.eye(len(steps))[None, None]
            vectors = shaw.values(weights, torch.zeros_like(steps)[None], steps[None])[0, 0]
            return torch.cat([shaw.scores(queries, first, steps[None])[0, :, 0].T, vectors], dim=-1)
        if shared is not None:
            return shared.scores(torch.zeros(1, config.heads, 1, config.key_width), first, steps[None])[0, :, 0].T
        furthest = int(steps.max()) + 1
        vectors = added(steps[None], furthest=furthest, lengths=torch.tensor([length]))
        return torch.zeros(len(steps), 1) if vectors is None else vectors.expand(1, len(steps), -1)[0]

    return encode


def _exists(encode: Encode, step: int) -> bool:
    try:
        return bool(encode(torch.tensor([step]), step + 1).isfinite().all())
    except InputError:
        return False


def _distances(encodings: Tensor) -> Tensor:
    """From every step to every step, (T, T); in float64, and of differences, so that equal steps are at exactly 0."""
    return torch.cdist(encodings.double(), encodings.double(), compute_mode="donot_use_mm_for_euclid_dist")


def _smallest_distance(encodings: Tensor) -> float:
    return float(_distances(encodings).fill_diagonal_(torch.inf).min())


def _change(encode: Encode, length: int, whole: Tensor) -> float:
    """How far the distances in a shorter sentence are from those of the same steps in the whole one."""
    return _magnitude(_distances(encode(torch.arange(length), length)) - _distances(whole[:length]))


def _magnitude(values: Tensor) -> float:
    return float(values.abs().max())


def _ratio(longer: float, shorter: float) -> float:
    """Of two magnitudes; nothing beside nothing is 1."""
    return longer / shorter if shorter else 1.0


def requirement_table() -> str:
    """What is asked, as Markdown."""
    lines = ["| requirement | asks | measured as | met by |", "|---|---|---|---|"]
    lines += [f"| {each.name} | {each.asks} | {each.measures} | {each.met_by} |" for each in REQUIREMENTS]
    return "\n".join(lines)


def table(reports: list[Report]) -> str:
    """The reports as Markdown: for each requirement the verdict and the number."""
    lines = [
        f"| positions | {' | '.join(requirement.name for requirement in REQUIREMENTS)} |",
        f"|---|{'---|' * len(REQUIREMENTS)}",
    ]
    for report in reports:
        cells = [
            f"{'pass' if report.met(requirement) else 'fail'} ({_shown(report.numbers[requirement.name])})"
            for requirement in REQUIREMENTS
        ]
        lines.append(f"| `{report.kind}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(number: float) -> str:
    """Two digits: more might differ from one processor to another. A difference that is only rounding is 0."""
    return "0" if number < 1e-5 else f"{number:.2g}"
