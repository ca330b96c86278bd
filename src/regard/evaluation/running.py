"""Costs found by running the model on tensors that pretend: they have shapes and types and hold no numbers.

So a model of any size runs in a moment, on the very paths that it would take for real.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from regard.config import ModelConfig
from regard.errors import InputError
from regard.evaluation.cost import Work
from regard.evaluation.counter import Counter
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly, Model, build_model
from regard.nn import loss
from regard.nn.cache import Cache

TYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


@contextmanager
def pretending(device: str) -> Iterator[None]:
    """Within it nothing is computed, and tensors are made on `device`."""
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device = 'cuda': there is none here; take 'cpu'")
    slice_size = loss.SLICE
    loss.SLICE = sys.maxsize  # the loss saves memory by slices, hundreds of them; here none is taken, and one will do
    try:
        nought = _Nought()  # type: ignore[no-untyped-call]
        with FakeTensorMode(), nought, torch.device(device):
            yield
    finally:
        loss.SLICE = slice_size


class _Nought(TorchDispatchMode):
    """Answers questions about values, which nobody holds here, with no and nought: is any text empty? No."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return False if args[0].dtype == torch.bool else 0.0 if args[0].is_floating_point() else 0
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the counter saw."""

    parameters: int
    forward: int
    backward: int
    recomputed: int
    """by fused kernels' backward, beside `backward`"""
    source: int = 0
    last_cached: int = 0
    last_again: int = 0
    cache: int = 0
    """bytes"""
    source_cache: int = 0
    """bytes"""


def counted(config: ModelConfig, work: Work) -> Counted:
    """The costs of some work, by running the model."""
    with pretending(work.device):
        model = _built(config, work)
        with Counter() as forward:
            learned = training_loss(model, work)
        with Counter() as backward:
            learned.backward()
        count = sum(parameter.numel() for parameter in model.parameters())
        training = Counted(
            parameters=count, forward=forward.flops, backward=backward.flops, recomputed=backward.recomputed
        )
        if isinstance(model, EncoderOnly):
            return training
        return _count_decoding(model.eval(), work, training)


@torch.no_grad()
def _count_decoding(model: EncoderDecoder | DecoderOnly, work: Work, training: Counted) -> Counted:
    """The same with what decoding costs: operations for one text, bytes for all."""
    written = work.written(model.config)
    with Counter() as source:
        cache = _start(model, 1, work.length, written)
    cache.lengths = [written - 1]
    with Counter() as cached:
        model.logits(model.step(_tokens(1, 1), cache))
    cache.lengths = [0]
    with Counter() as again:
        model.logits(model.step(_tokens(1, written), cache)[:, -1:])
    whole = _start(model, work.batch, work.length, written)
    memory = [side for layer in whole.memory.layers for side in layer] if whole.memory else []
    return Counted(
        parameters=training.parameters,
        forward=training.forward,
        backward=training.backward,
        recomputed=training.recomputed,
        source=source.flops,
        last_cached=cached.flops,
        last_again=again.flops,
        cache=sum(side.nbytes for side in [*whole.keys, *whole.values]),
        source_cache=sum(side.nbytes for side in memory),
    )


def activation_bytes(config: ModelConfig, work: Work) -> int:
    """What autograd keeps of a forward for its backward: each piece of memory once, the weights left out."""
    with pretending(work.device):
        return saved_bytes(_built(config, work), work)


def _built(config: ModelConfig, work: Work) -> Model:
    model = build_model(config)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(TYPES[work.precision])  # module.to swaps tensors, and only real ones let it
    return model


def saved_bytes(model: Model, work: Work) -> int:
    """The same of a model that is there."""
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        training_loss(model, work)
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in weights)


def training_loss(model: Model, work: Work) -> Tensor:
    """A training step's forward: the loss over all pieces of all targets, or over the labels.

    An encoder without labels ends in its vectors; any loss of them costs little beside it.
    """
    device = next(model.parameters()).device
    lengths = torch.full((work.batch,), work.length, device=device)
    with torch.device(device):
        tokens = _tokens(work.batch, work.length)
        match model:
            case EncoderDecoder():
                targets = _tokens(work.batch, work.written(model.config))
                pieces = model.output_pieces or model.target_pieces
                return _piece_loss(model(tokens, lengths, targets), targets, pieces.weight, model.output_bias)
            case DecoderOnly():
                pieces = model.output_pieces or model.pieces
                return _piece_loss(model(tokens), tokens, pieces.weight, model.output_bias)
            case EncoderOnly():
                pooled = model.pool(model(tokens, lengths), lengths)
                if model.label is None:
                    return pooled.sum()
                return F.cross_entropy(model.logits(pooled), _tokens(work.batch, 1)[:, 0])


def _piece_loss(states: Tensor, targets: Tensor, pieces: Tensor, bias: Tensor | None) -> Tensor:
    smoothed, _ = loss.cross_entropy(states.flatten(0, 1), targets.flatten(), pieces, bias, smoothing=0.1)
    return smoothed


def _tokens(texts: int, length: int) -> Tensor:
    return torch.zeros(texts, length, dtype=torch.long)


def _start(model: EncoderDecoder | DecoderOnly, texts: int, length: int, capacity: int) -> Cache:
    if isinstance(model, DecoderOnly):
        return model.start(rows=texts, capacity=capacity)
    return model.start(_tokens(texts, length), torch.full((texts,), length), capacity=capacity)
