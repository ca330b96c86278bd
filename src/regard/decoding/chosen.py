"""Which way a model takes its steps: the compiled kernel where it can, else the model's own."""

from typing import Literal

from regard.decoding import kernel as native
from regard.decoding.fast import FastModel
from regard.decoding.packing import unsupported
from regard.decoding.steps import PlainModel, StepModel
from regard.models import DecoderOnly, EncoderDecoder

Kind = Literal["float32", "bf16", "int8"]


def step_model(model: EncoderDecoder | DecoderOnly, kind: Kind = "float32") -> StepModel:
    """The fastest steps of a model here: `kind` says what the kernel multiplies in, where there is one.

    Without a C compiler, on a GPU, or for a model that the kernel does not know, the model's own steps.
    """
    kernel = native.kernel()
    on_processor = model.output[0].device.type == "cpu"
    if kernel is None or not on_processor or unsupported(model.config):
        return PlainModel(model)
    return FastModel(model, kind, kernel)
