"""What the families share: checks of sizes, and of weights as they are loaded."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.config import ModelConfig
from regard.errors import InputError


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
