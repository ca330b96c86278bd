"""What the families share: checks of sizes, and of weights as they are loaded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import InputError, nearest


def needed(vocabulary: int | None) -> int:
    """The vocabulary's size, which a model cannot be built without."""
    if vocabulary is None:
        raise InputError("model.vocabulary is not known: state it, or let the tokeniser set it")
    return vocabulary


def at_most(furthest: int, config: ModelConfig) -> int:
    """`furthest`, if a sequence may be that long."""
    if furthest > config.max_length:
        raise InputError(f"sequence of {furthest} tokens: model.max_length = {config.max_length}")
    return furthest


@torch.no_grad()
def load_weights(model: nn.Module, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Fill a model with named weights; refuse missing, unused, misshapen and not finite ones, all in one message."""
    own = model.state_dict()
    faults = [f"missing {name} {tuple(own[name].shape)}" for name in own if name not in weights]
    faults += [f"unused {name} {tuple(weights[name].shape)}" for name in weights if name not in own]
    for name, weight in weights.items():
        if name not in own:
            continue
        if own[name].shape != weight.shape:
            faults.append(f"misshapen {name}: {tuple(weight.shape)}, the model has {tuple(own[name].shape)}")
        elif not weight.isfinite().all():
            wrong = ~weight.isfinite()
            place = wrong.nonzero()[0].tolist()
            first = f"first {float(weight[tuple(place)])} at {place}"
            faults.append(f"{name}: {int(wrong.sum())} of {weight.numel()} values are not finite, {first}")
    if faults:
        shown = "; ".join(faults[:8]) + (f"; and {len(faults) - 8} more" if len(faults) > 8 else "")
        raise InputError(f"{source}: weights do not fit the model: {shown}")
    for name, parameter in own.items():
        parameter.copy_(weights[name])


@dataclass(frozen=True, kw_only=True)
class Started:
    """How a model came by its weights, where not all are another model's."""

    new: tuple[str, ...]
    """weights that have their first values"""
    unused: tuple[str, ...]
    """weights of the other model that have no place here"""


def start_weights(
    model: nn.Module, weights: Mapping[str, Tensor], *, source: str, heads: Sequence[str], fresh: Collection[str] = ()
) -> Started:
    """Fill a model with another's weights. Only those whose names begin as `heads` do may be missing or unused.

    Those that begin as `fresh` are not taken over. Whatever else does not fit is refused as by `load_weights`.
    """

    def is_in(name: str, beginnings: Collection[str]) -> bool:
        return any(name.startswith(beginning) for beginning in beginnings)

    own = model.state_dict()
    fits = {name: weight for name, weight in weights.items() if not is_in(name, fresh)}
    new = [name for name in own if name not in fits and is_in(name, heads)]
    unused = [name for name in weights if (name not in own or name not in fits) and is_in(name, heads)]
    taken = {name: weight for name, weight in fits.items() if name not in unused}
    load_weights(model, {**taken, **{name: own[name].clone() for name in new}}, source=source)
    return Started(new=tuple(new), unused=tuple(unused))


def freeze(model: nn.Module, beginnings: Sequence[str]) -> int:
    """Let the weights whose names are these, or begin so up to a dot, learn no more; answers with how many numbers."""
    frozen = 0
    names = [name for name, _ in model.named_parameters()]
    for beginning in beginnings:
        if not any(name == beginning or name.startswith(f"{beginning}.") for name in names):
            known = {".".join(name.split(".")[:parts]) for name in names for parts in (1, 2, 3)}
            raise InputError(f"training.freeze: no weight is called {beginning!r}; {nearest(beginning, known)}")
    for name, parameter in model.named_parameters():
        if any(name == beginning or name.startswith(f"{beginning}.") for beginning in beginnings):
            parameter.requires_grad_(False)
            frozen += parameter.numel()
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(f"training.freeze = {list(beginnings)}: leaves no weight to learn")
    return frozen
