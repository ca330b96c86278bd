"""The shape of a model: one frozen record, and the presets that fill it.

The defaults are the base model of "Attention Is All You Need" (Vaswani et al. 2017); a preset says only what differs.
"""

from dataclasses import dataclass
from typing import Literal

from regard.errors import InputError, nearest

Family = Literal["encoder-decoder", "encoder-only", "decoder-only"]
Positions = Literal[
    "none", "index", "normalised_index", "binary", "sinusoidal", "learned", "rotary", "alibi", "relative", "shaw"
]
Pattern = Literal["full", "sliding", "dilated", "global_sliding"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that decides the weights' shapes and the function they compute."""

    family: Family = "encoder-decoder"
    """which stacks there are; the task decides it unless you say so"""
    vocabulary: int | None = None
    """number of pieces that the model writes (and reads, if joint); none: taken from the tokeniser"""
    source_vocabulary: int | None = None
    """number of pieces that an encoder-decoder reads; none: one joint vocabulary"""
    d_model: int = 512
    """width of the residual stream"""
    encoder_layers: int = 6
    """layers of the encoder (N in the paper)"""
    decoder_layers: int = 6
    """layers of the decoder (N in the paper)"""
    heads: int = 8
    """attention heads (h in the paper)"""
    kv_heads: int | None = None
    """heads of keys and values, shared by groups of query heads; none: as many as heads"""
    d_k: int | None = None
    """width of a query and of a key; none: d_model / heads"""
    d_v: int | None = None
    """width of a value; none: d_model / heads"""
    d_ff: int = 2048
    """inner width of the feed-forward network"""
    dropout: float = 0.1
    """share of each sub-layer's output and of the embeddings that training drops"""
    attention_dropout: float = 0.0
    """share of the attention weights that training drops"""
    activation_dropout: float = 0.0
    """share of the feed-forward network's inner values that training drops"""
    norm: Literal["pre", "post"] = "post"
    """where the norm stands: before each sub-layer, or after its residual sum as in the paper"""
    norm_kind: Literal["layer", "rms"] = "layer"
    """LayerNorm, or RMSNorm (no mean, no bias)"""
    norm_epsilon: float = 1e-5
    """added to the variance under the norm's root"""
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "relu"
    """of the feed-forward network; swiglu has a third matrix, the gate"""
    biases: bool = True
    """whether attention's and the feed-forward network's products have a bias"""
    positions: Positions = "sinusoidal"
    """how the model knows the order of its input"""
    max_length: int = 1024
    """longest sequence: rows of a learned table, and the limit that decoding keeps"""
    rotary_base: float = 10_000.0
    """slowest wavelength of rotary positions"""
    relative_buckets: int = 32
    """distances that relative positions (T5's) tell apart"""
    relative_distance: int = 128
    """distance from which relative (T5's) and shaw positions are all the same"""
    attention: Pattern = "full"
    """which keys self-attention may look at, beside the causal rule of a decoder"""
    window: int = 256
    """sliding, dilated and global_sliding: furthest key to either side, counted in steps of the dilation"""
    dilation: int = 2
    """dilated: distance between the keys that are looked at"""
    global_positions: tuple[int, ...] = (0,)
    """global_sliding: positions that see all and that all see"""
    embeddings: Literal["separate", "tied_output", "tied_all"] = "tied_all"
    """which of source, target and output embeddings are one matrix: none, the last two, or all three"""
    scale_embeddings: bool = True
    """multiply embeddings by the square root of d_model"""
    embedding_norm: bool = False
    """a norm on the sum of embeddings and positions (BERT)"""
    output_bias: bool = False
    """a bias for each piece that the model writes"""
    segments: int = 0
    """encoder-only: kinds of segment with an embedding each (BERT's two texts)"""
    pooling: Literal["first", "mean", "attention"] = "mean"
    """encoder-only: how the vectors of a text become one"""
    pooled_layer: bool = False
    """encoder-only: a further linear layer and tanh on the pooled vector (BERT)"""
    labels: int | None = None
    """encoder-only: classes to choose from; none: the model ends in vectors"""
    initial: Literal["xavier", "normal"] = "xavier"
    """first values of the weights: xavier (the paper's code), or normal (GPT-2's)"""

    def __post_init__(self) -> None:
        """Refuse what no model can be built from."""
        for name in ("d_model", "heads", "d_ff", "max_length", "relative_distance", "window", "dilation"):
            _at_least(name, getattr(self, name), 1)
        for name in ("encoder_layers", "decoder_layers", "segments"):
            _at_least(name, getattr(self, name), 0)
        if self.family != "decoder-only":
            _at_least("encoder_layers", self.encoder_layers, 1)
        if self.family != "encoder-only":
            _at_least("decoder_layers", self.decoder_layers, 1)
        for name in ("vocabulary", "source_vocabulary", "kv_heads", "d_k", "d_v", "labels"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 1)
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"model.{name} = {getattr(self, name)}: must be at least 0 and below 1")
        for name in ("norm_epsilon", "rotary_base"):
            if not getattr(self, name) > 0:
                raise InputError(f"model.{name} = {getattr(self, name)}: must be above 0")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            raise InputError(
                f"model.d_model = {self.d_model}: not divisible by heads = {self.heads}; "
                f"take a multiple of {self.heads}, or state d_k and d_v"
            )
        if self.heads % self.key_heads:
            raise InputError(f"model.kv_heads = {self.kv_heads}: must divide heads = {self.heads}")
        if self.positions == "rotary" and self.key_width % 2:
            raise InputError(f"model.d_k = {self.key_width}: rotary positions turn pairs, so it must be even")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise InputError(f"model.d_model = {self.d_model}: sinusoidal positions need an even width")
        if self.relative_buckets < 4 or self.relative_buckets % 4:
            raise InputError(f"model.relative_buckets = {self.relative_buckets}: must be a multiple of 4")
        if self.relative_distance <= self.relative_buckets // 2 and self.positions == "relative":
            raise InputError(
                f"model.relative_distance = {self.relative_distance}: "
                f"must exceed half of relative_buckets = {self.relative_buckets}"
            )
        if min(self.global_positions, default=0) < 0:
            raise InputError(f"model.global_positions = {list(self.global_positions)}: must be 0 or more")
        if self.embeddings == "tied_all" and self.source_vocabulary not in (None, self.vocabulary):
            raise InputError(
                f"model.embeddings = 'tied_all': the vocabularies differ ({self.source_vocabulary} and "
                f"{self.vocabulary}); take 'tied_output', or joint tokens"
            )

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def key_width(self) -> int:
        """d_k, resolved."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v, resolved."""
        return self.d_v or self.d_model // self.heads


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"model.{name} = {value}: must be {least} or more")


Values = dict[str, object]
"""Plain values of a section's fields, as a recipe states them."""

_SMALL: Values = {"d_model": 256, "d_ff": 1024, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "norm": "pre"}
_GPT: Values = {
    "family": "decoder-only", "vocabulary": 50_257, "norm": "pre", "activation": "gelu_tanh", "positions": "learned",
    "embeddings": "tied_output", "scale_embeddings": False, "initial": "normal",
}  # fmt: skip

PRESETS: dict[str, Values] = {
    "tiny": {**_SMALL, "d_model": 128, "d_ff": 256},
    "small": _SMALL,
    "base": {},
    "big": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
    "minilm": {
        "family": "encoder-only", "vocabulary": 30_522, "d_model": 384, "d_ff": 1536, "heads": 12, "encoder_layers": 6,
        "activation": "gelu", "norm_epsilon": 1e-12, "positions": "learned", "max_length": 512, "segments": 2,
        "embedding_norm": True, "scale_embeddings": False, "initial": "normal",
    },
    "gpt2": {**_GPT, "d_model": 768, "d_ff": 3072, "heads": 12, "decoder_layers": 12},
    "gpt3": {
        **_GPT, "vocabulary": 2**17, "d_model": 12_288, "d_ff": 49_152, "heads": 96, "decoder_layers": 96,
        "max_length": 32_768,
    },
}  # fmt: skip
"""What each preset changes of the paper's base model."""


def preset_values(name: str) -> Values:
    """The fields that a preset sets."""
    if name not in PRESETS:
        raise InputError(f"model.preset = {name!r}: no such preset; {nearest(name, PRESETS)}")
    return PRESETS[name]
