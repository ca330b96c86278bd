"""What a model costs for some work: parameters, arithmetic and memory, in closed form; nothing is run."""

from dataclasses import dataclass
from typing import Literal

from regard.config import ModelConfig
from regard.errors import InputError
from regard.evaluation.flops import ATTENTION, Device, Flops, Parts, joined, total
from regard.evaluation.parameters import parameters

Precision = Literal["float32", "bf16"]
BYTES: dict[Precision, int] = {"float32": 4, "bf16": 2}
"""Bytes of a number."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """So many texts of such a length."""

    batch: int = 64
    length: int = 128
    """tokens of each text; of an encoder-decoder's sources"""
    target_length: int | None = None
    """tokens of an encoder-decoder's targets; none: as many as the source's"""
    precision: Precision = "float32"
    """of the model's numbers; in training the optimizer keeps its own in float32"""
    device: Device = "cpu"
    """where it runs: attention takes other ways on an accelerator"""

    def __post_init__(self) -> None:
        """Refuse no work at all."""
        for name in ("batch", "length", "target_length"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} = {value}: must be 1 or more")

    def written(self, config: ModelConfig) -> int:
        """Tokens that a decoder writes for each text."""
        stated = self.target_length if config.family == "encoder-decoder" else None
        return self.length if stated is None else stated


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Operations to write one text."""

    source: int
    """to read the source, once"""
    last_cached: int
    """the last token, with the cache"""
    last_again: int
    """the last token without it: the whole prefix runs through the decoder again"""
    all_cached: int
    """all tokens, with the cache"""
    all_again: int
    """all tokens, without it"""


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """Memory."""

    weights: int
    """in training: the optimizer's float32, and for bf16 the model's copy"""
    gradients: int
    moments: int
    """Adam's two"""
    activations: int | None
    """what a training step keeps for its backward pass; none: not measured"""
    decoding_weights: int
    """in use"""
    cache_token: int
    """the keys and values of one token of one text, in all layers"""
    cache: int
    """those of all texts"""
    source: int
    """keys and values of the sources, for cross-attention"""

    @property
    def training(self) -> int | None:
        """All that a training step holds."""
        return None if self.activations is None else self.weights + self.gradients + self.moments + self.activations


@dataclass(frozen=True, kw_only=True)
class Cost:
    """All of it."""

    work: Work
    parameters: Parts
    forward: Parts
    """operations of a training step's forward, and of the loss with its gradients"""
    again: int
    """operations that a training step's backward repeats of the forward, to save memory"""
    tokens: int
    """that a training step learns to tell; an encoder's: that it reads"""
    decoding: Decoding | None
    bytes: Bytes

    @property
    def backward(self) -> int:
        """Operations of a training step's backward: two products for each of the forward, the loss's done before."""
        return 2 * sum(count for name, count in self.forward.items() if name != "output") + self.again

    @property
    def training(self) -> int:
        """Operations of a training step."""
        return total(self.forward) + self.backward

    @property
    def between_tokens(self) -> int:
        """Operations of a training step that grow with the square of the length."""
        return 3 * sum(self.forward.get(name, 0) for name in ATTENTION) + self.again


def cost(config: ModelConfig, work: Work, *, activations: int | None = None) -> Cost:
    """The cost of some work; `activations` is `regard.evaluation.running.activation_bytes`, where it was measured."""
    longest = max(work.length, work.written(config))
    if longest > config.max_length:
        raise InputError(f"texts of {longest} tokens: model.max_length = {config.max_length}; state --model.max_length")
    return Cost(
        work=work,
        parameters=parameters(config),
        forward=_forward(config, work),
        again=_again(config, work),
        tokens=work.batch * work.written(config),
        decoding=None if config.family == "encoder-only" else _decoding(config, work),
        bytes=_bytes(config, work, activations),
    )


def _forward(config: ModelConfig, work: Work) -> Parts:
    """The operations of a training step's forward, by part."""
    flops = Flops(config=config, device=work.device, training=True)
    written, batch = work.written(config), work.batch
    match config.family:
        case "encoder-decoder":
            read = [flops.encode(batch, work.length), flops.remember(batch, work.length)]
            return joined(*read, flops.decode(batch, written, source=work.length), flops.loss(batch * written))
        case "encoder-only":
            return joined(flops.encode(batch, work.length), flops.head(batch, work.length))
        case "decoder-only":
            return joined(flops.decode(batch, written, source=None), flops.loss(batch * written))


def _again(config: ModelConfig, work: Work) -> int:
    flops = Flops(config=config, device=work.device, training=True)
    read = 0 if config.family == "decoder-only" else flops.again(work.batch, work.length, causal=False)
    wrote = 0 if config.family == "encoder-only" else flops.again(work.batch, work.written(config), causal=True)
    return read + wrote


def _decoding(config: ModelConfig, work: Work) -> Decoding:
    flops = Flops(config=config, device=work.device)
    source = work.length if config.family == "encoder-decoder" else None
    output = flops.logits(1)
    cached = [total(flops.step(1, place, source=source), output) for place in range(work.written(config))]
    again = [total(flops.decode(1, place + 1, source=source), output) for place in range(work.written(config))]
    return Decoding(
        source=0 if source is None else total(flops.encode(1, source), flops.remember(1, source)),
        last_cached=cached[-1],
        last_again=again[-1],
        all_cached=sum(cached),
        all_again=sum(again),
    )


def _bytes(config: ModelConfig, work: Work, activations: int | None) -> Bytes:
    count, size = total(parameters(config)), BYTES[work.precision]
    decoder = config.decoder_layers if config.family != "encoder-only" else 0
    token = decoder * config.key_heads * (config.key_width + config.value_width) * size
    return Bytes(
        weights=(4 if size == 4 else 4 + size) * count,
        gradients=4 * count,
        moments=8 * count,
        activations=activations,
        decoding_weights=size * count,
        cache_token=token,
        cache=token * work.batch * work.written(config),
        source=token * work.batch * work.length if config.family == "encoder-decoder" else 0,
    )
