"""The position encoding of a run as a picture, with the verdicts of the five requirements."""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from regard.config import ModelConfig
from regard.explorer.arrays import Array, Plain, fixed
from regard.models import DecoderOnly, EncoderDecoder, Model
from regard.nn.positions import ADDED
from regard.nn.requirements import REQUIREMENTS, Report, encoder, measure_positions

STEPS = 50
DECIMALS = 3
SAYS = {
    "none": "nothing tells the model the order of its input",
    "rotary": "the cosines and sines by which a step turns queries and keys",
    "alibi": "what the distance from step 0 adds to the scores of each head",
    "relative": "what the distance from step 0 adds to the scores of each head, as it is before training",
    "shaw": "the vectors of the distance from step 0, for keys and for values, as they are before training",
}


def positions(model: Model) -> tuple[Plain, dict[str, Array]]:
    """The section of that name, and its picture."""
    config = model.config
    report = _measured(config)
    picture = picture_of(model)
    section: Plain = {
        "kind": config.positions,
        "picture": "positions.picture",
        "steps": picture.shape[0],
        "says": SAYS.get(config.positions, "what is added to the embedding at each step"),
        "requirements": [
            {"name": each.name, "asks": each.asks, "measures": each.measures, "met_by": each.met_by,
             "number": report.numbers[each.name], "met": report.met(each)}
            for each in REQUIREMENTS
        ],
    }  # fmt: skip
    return section, {"positions.picture": fixed(picture, ("step", "value"), decimals=DECIMALS)}


@cache
def _measured(config: ModelConfig) -> Report:
    return measure_positions(config.positions, config=config)


@torch.no_grad()
def picture_of(model: Model) -> Tensor:
    """What the model is told of its first steps, (steps, values): its own vectors, where there are any."""
    config = model.config
    steps = torch.arange(min(STEPS, config.max_length))
    if config.positions in ADDED:
        embedding = model.embedding if not isinstance(model, EncoderDecoder) else model.source_embedding
        device = next(model.parameters()).device
        lengths = None if isinstance(model, DecoderOnly) else torch.tensor([len(steps)], device=device)
        added = embedding.positions(steps[None].to(device), furthest=len(steps), lengths=lengths)
        assert isinstance(added, Tensor)
        return added.expand(1, len(steps), -1)[0].float().cpu()
    return encoder(replace(config, encoder_layers=1, family="encoder-only"), seed=1)(steps, len(steps)).float()
