"""The arithmetic of a model in closed form: floating-point operations of its matrix products.

A product of (m, k) by (k, n) is 2 m k n of them: a multiplication and an addition for each term. Norms, softmax,
activations and look-ups are left out; beside the products they are little. Attention is counted as it runs: under the
causal rule the whole square, as the plain way computes it (fused kernels skip some of it), under a window the blocks
that are cut from it, and in a fused kernel, which wants one width, keys and values at the wider of theirs.

The backward pass of a product is two products of its size, so training takes three times what reading does. The loss
makes the gradients of its states and weights in the forward pass, so the output's three products all stand there.
Attention under a window computes its blocks once more in its backward.
`regard.evaluation.counter` counts the same by running the model; the tests hold them equal.
"""

from dataclasses import dataclass
from typing import Literal

from regard.config import ModelConfig

Device = Literal["cpu", "cuda"]
Parts = dict[str, int]
"""Operations of each part of a model."""

ATTENTION = ("encoder attention", "decoder attention", "cross-attention")
"""The parts in which tokens are compared and mixed: what grows with the square of the length."""


@dataclass(frozen=True, kw_only=True)
class Flops:
    """Counts for one model on one kind of device."""

    config: ModelConfig
    device: Device = "cpu"
    training: bool = False

    def encode(self, texts: int, length: int) -> Parts:
        """The encoder on whole texts."""
        tokens, layers = texts * length, self.config.encoder_layers
        return {
            "encoder projections": layers * self._projections(tokens),
            "encoder attention": layers * self._square(texts, length, causal=False),
            "encoder feed-forward": layers * self._feed_forward(tokens),
        }

    def remember(self, texts: int, length: int) -> Parts:
        """Keys and values of the source for all layers' cross-attention."""
        config = self.config
        width = config.key_heads * (config.key_width + config.value_width)
        return {"cross projections": config.decoder_layers * product(texts * length, config.d_model, width)}

    def decode(self, texts: int, length: int, *, source: int | None) -> Parts:
        """The decoder on all tokens of some texts at once; `source` is how many tokens cross-attention looks at."""
        return self._decoder(texts, length, self._square(texts, length, causal=True), source)

    def step(self, texts: int, position: int, *, source: int | None) -> Parts:
        """The decoder with its cache on the one token that stands at `position`."""
        seen = self._cached_keys(position)
        return self._decoder(texts, 1, self._attend(texts, 1, seen, own=True), source)

    def logits(self, states: int) -> Parts:
        """A score for each piece at some places."""
        return {"output": product(states, self.config.d_model, self.config.vocabulary or 0)}

    def loss(self, states: int) -> Parts:
        """The loss over all pieces, with its gradients; smoothing takes each state's product with the mean weight."""
        return {"output": 3 * total(self.logits(states)) + product(states, self.config.d_model, 1)}

    def head(self, texts: int, length: int) -> Parts:
        """What an encoder alone ends in: pooling, and a score for each label."""
        width = self.config.d_model
        attend = product(texts * length, width, 1) if self.config.pooling == "attention" else 0
        pooled = product(texts, width, width) if self.config.pooled_layer else 0
        return {"head": attend + pooled + product(texts, width, self.config.labels or 0)}

    def _decoder(self, texts: int, length: int, own: int, source: int | None) -> Parts:
        tokens, layers = texts * length, self.config.decoder_layers
        parts = {
            "decoder projections": layers * self._projections(tokens),
            "decoder attention": layers * own,
            "decoder feed-forward": layers * self._feed_forward(tokens),
        }
        if source is not None:
            config = self.config
            ends = config.heads * (config.key_width + config.value_width)
            parts["cross projections"] = layers * product(tokens, config.d_model, ends)
            parts["cross-attention"] = layers * self._attend(texts, length, source, own=False)
        return parts

    def _projections(self, tokens: int) -> int:
        """To queries, keys and values, and from the heads' outputs back."""
        config = self.config
        inner = (config.heads + config.key_heads) * (config.key_width + config.value_width)
        return product(tokens, config.d_model, inner)

    def _feed_forward(self, tokens: int) -> int:
        matrices = 3 if self.config.activation == "swiglu" else 2
        return matrices * product(tokens, self.config.d_model, self.config.d_ff)

    def again(self, texts: int, length: int, *, causal: bool) -> int:
        """What a backward pass computes once more, to save memory: a window's blocks, in all layers of a stack."""
        layers = self.config.decoder_layers if causal else self.config.encoder_layers
        return layers * self._banded(texts, length, causal=causal)

    def _square(self, texts: int, length: int, *, causal: bool) -> int:
        """Self-attention of whole texts: the whole square, or under a window its blocks and its global queries."""
        banded = self._banded(texts, length, causal=causal)
        if not banded:
            return self._attend(texts, length, length, own=True)
        marked = sum(position < length for position in self._reach()[1])
        return banded + (self._attend(texts, marked, length, own=True) if marked else 0)

    def _banded(self, texts: int, length: int, *, causal: bool) -> int:
        """The blocks under a window; none where the text is so short that the whole square is as small."""
        config = self.config
        dilation, everywhere = self._reach()
        before, after = config.window, 0 if causal else config.window
        block = min(max(before, 64), 256)
        if config.attention == "full" or length <= max(128, (block + before + after) * dilation):
            return 0
        marked = sum(position < length for position in everywhere)
        blocks = dilation * -(-length // (dilation * block))
        return self._attend(texts * blocks, block, marked + before + block + after, own=True)

    def _cached_keys(self, position: int) -> int:
        """How many keys a cached step is computed over: all until now, or the window's last and the global ones."""
        dilation, everywhere = self._reach()
        first = max(0, position - self.config.window * dilation)
        if self.config.attention == "full" or position in everywhere:
            return position + 1
        return position + 1 - first + sum(marked < first for marked in everywhere)

    def _reach(self) -> tuple[int, set[int]]:
        """The window's dilation, and the positions that all look at."""
        config = self.config
        everywhere = set(config.global_positions) if config.attention == "global_sliding" else set()
        return config.dilation if config.attention == "dilated" else 1, everywhere

    def _attend(self, rows: int, queries: int, keys: int, *, own: bool) -> int:
        """All queries against all keys, and the mixing of the values; `own` says whether it is self-attention."""
        config = self.config
        shaw = own and config.positions == "shaw"
        short = self.device == "cpu" and queries * keys <= 128 * 128
        plain = short or shaw or (self.training and config.attention_dropout > 0)
        widest = max(config.key_width, config.value_width)
        width = config.key_width + config.value_width if plain else 2 * widest
        distances = 2 * config.relative_distance + 1 if shaw else 0
        return config.heads * rows * product(queries, width, keys + distances)


def product(rows: int, inner: int, columns: int) -> int:
    """Operations of a product of (rows, inner) by (inner, columns)."""
    return 2 * rows * inner * columns


def total(*parts: Parts) -> int:
    """All operations of some counts."""
    return sum(sum(part.values()) for part in parts)


def joined(*parts: Parts) -> Parts:
    """Counts added up part by part; parts without products are left out."""
    names = dict.fromkeys(name for part in parts for name in part)
    added = {name: sum(part.get(name, 0) for part in parts) for name in names}
    return {name: count for name, count in added.items() if count}
