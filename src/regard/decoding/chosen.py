"""Which way a model takes its steps: the compiled kernel where it can, else the model's own."""

from typing import Literal, NamedTuple

from regard.decoding import kernel as native
from regard.decoding.fast import FastModel
from regard.decoding.packing import unsupported
from regard.decoding.steps import PlainModel, StepModel
from regard.models import DecoderOnly, EncoderDecoder

Kind = Literal["float32", "bf16", "int8"]


class Chosen(NamedTuple):
    """Steps, and why these."""

    steps: StepModel
    reason: str


def step_model(
    model: EncoderDecoder | DecoderOnly, kind: Kind | Literal["auto"] = "float32", *, threads: int = 1
) -> StepModel:
    """The fastest steps of a model here: `kind` says what the kernel multiplies in, where there is one.

    `threads` share the kernel's large calls. Without a C compiler, on a GPU, or for a model that the kernel does not
    know, the model's own steps; a decoder alone that looks through a window then forgets what lies behind it.
    """
    return choose_steps(model, kind, threads=threads).steps


def choose_steps(model: EncoderDecoder | DecoderOnly, kind: Kind | Literal["auto"], *, threads: int = 1) -> Chosen:
    """The same, with the reason. `auto` goes by what the processor has instructions for, so that a machine always
    answers the same: bf16, else int8, else float32.
    """  # fmt: skip
    kernel = native.kernel()
    on_processor = model.output[0].device.type == "cpu"
    unknown = unsupported(model.config)
    if kernel is None or not on_processor or unknown:
        why = unknown or ("there is no compiled kernel here" if on_processor else "it is on a GPU")
        return Chosen(PlainModel(model, bounded=isinstance(model, DecoderOnly)), f"the model's own steps, for {why}")
    if kind != "auto":
        return Chosen(FastModel(model, kind, kernel, threads=threads), f"{kind}, as asked")
    for chosen in ("bf16", "int8"):
        if chosen in kernel.multiplies:
            return Chosen(
                FastModel(model, chosen, kernel, threads=threads),
                f"{chosen}, which this processor has instructions for",
            )
    return Chosen(
        FastModel(model, "float32", kernel, threads=threads),
        "float32, since this processor has no instructions for fewer bits",
    )
