"""How many parameters a model has, in closed form and by part; nothing is built."""

from regard.config import ModelConfig
from regard.errors import InputError


def parameters(config: ModelConfig) -> dict[str, int]:
    """Parameters of each part that the model has."""
    if config.vocabulary is None:
        raise InputError("model.vocabulary is not known: state it")
    embeddings = {"encoder-decoder": 2, "encoder-only": 1, "decoder-only": 1}[config.family]
    parts = {
        "embeddings": _pieces(config, config.vocabulary),
        "positions": _positions(config),
        "segments": embeddings * config.segments * config.d_model,
        "embedding norms": embeddings * norm(config) if config.embedding_norm else 0,
    }
    own, forward, norms = attention(config) + _shaw(config), feed_forward(config), norm(config)
    last = norms if config.norm == "pre" else 0
    if config.family != "decoder-only":
        parts |= {
            "encoder attention": config.encoder_layers * own,
            "encoder feed-forward": config.encoder_layers * forward,
            "encoder norms": config.encoder_layers * 2 * norms + last,
        }
    if config.family != "encoder-only":
        cross = config.family == "encoder-decoder"
        parts |= {
            "decoder attention": config.decoder_layers * own,
            "cross-attention": config.decoder_layers * attention(config) if cross else 0,
            "decoder feed-forward": config.decoder_layers * forward,
            "decoder norms": config.decoder_layers * (3 if cross else 2) * norms + last,
            "output bias": config.vocabulary if config.output_bias else 0,
        }
    else:
        parts["head"] = _head(config)
    return {name: count for name, count in parts.items() if count}


def attention(config: ModelConfig) -> int:
    """One multi-head attention: W_Q, W_K, W_V and W_O."""
    inner = config.heads * config.key_width + config.key_heads * (config.key_width + config.value_width)
    weights = config.d_model * (inner + config.heads * config.value_width)
    return weights + (inner + config.d_model if config.biases else 0)


def feed_forward(config: ModelConfig) -> int:
    """One feed-forward network: W1, W2, and for swiglu the gate."""
    inner = config.d_ff * (2 if config.activation == "swiglu" else 1)
    weights = config.d_model * (inner + config.d_ff)
    return weights + (inner + config.d_model if config.biases else 0)


def norm(config: ModelConfig) -> int:
    """One norm: a gain, and for LayerNorm a bias."""
    return config.d_model * (1 if config.norm_kind == "rms" else 2)


def _pieces(config: ModelConfig, target: int) -> int:
    """The embedding matrices that there are after tying."""
    source = config.source_vocabulary or target
    match config.family, config.embeddings:
        case "encoder-decoder", "separate":
            rows = source + 2 * target
        case "encoder-decoder", "tied_output":
            rows = source + target
        case "decoder-only", "separate":
            rows = 2 * target
        case _:
            rows = target
    return rows * config.d_model


def _positions(config: ModelConfig) -> int:
    """Learned tables: a row for each position, or a bias for each head and bucket; one for each stack."""
    stacks = 2 if config.family == "encoder-decoder" else 1
    match config.positions:
        case "learned":
            return stacks * config.max_length * config.d_model
        case "relative":
            return stacks * config.relative_buckets * config.heads
        case _:
            return 0


def _shaw(config: ModelConfig) -> int:
    """Shaw's vectors, which each self-attention has for itself."""
    distances = 2 * config.relative_distance + 1
    return distances * (config.key_width + config.value_width) if config.positions == "shaw" else 0


def _head(config: ModelConfig) -> int:
    """What an encoder alone ends in."""
    attend = config.d_model + 1 if config.pooling == "attention" else 0
    pooled = config.d_model * (config.d_model + 1) if config.pooled_layer else 0
    return attend + pooled + (config.labels or 0) * (config.d_model + 1)
