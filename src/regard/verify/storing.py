"""Equalities of storing: what is read back is what was written."""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from regard.models import build_model, load_weights
from regard.runs import read_weights, write_weights
from regard.verify.certificate import Equality, Measured, difference
from regard.verify.subject import Subject, random_inputs, states


@torch.no_grad()
def saved_is_loaded(subject: Subject) -> Measured:
    """Every weight, and the states of a fresh model that read them."""
    for name, model in subject.models:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            write_weights(path, model.state_dict())
            read = read_weights(path)
        for weight, value in model.state_dict().items():
            yield f"{name}, {weight}", difference(read[weight], value.cpu())
        with torch.device("meta"):
            fresh = build_model(model.config)
        fresh = fresh.to_empty(device=subject.device).to(subject.dtype).eval()
        load_weights(fresh, read, source="the file just written")
        inputs = random_inputs(model, subject.draw(), rows=2)
        yield f"{name}, states", difference(states(fresh, inputs), states(model, inputs))


STORING = (
    Equality(
        name="saved = loaded",
        says="weights come back from their file to the last bit, and so do the states that they give",
        bound=0.0,
        measure=saved_is_loaded,
    ),
)
"""What holds of files."""
