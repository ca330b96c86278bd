"""The families, each in a file that reads from top to bottom."""

from regard.config import ModelConfig
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.shared import Started, freeze, load_weights, start_weights

Model = EncoderDecoder | EncoderOnly | DecoderOnly
"""Any of them."""


def build_model(config: ModelConfig) -> Model:
    """The model that a config describes, with its first values; seed torch before."""
    match config.family:
        case "encoder-decoder":
            return EncoderDecoder(config)
        case "encoder-only":
            return EncoderOnly(config)
        case "decoder-only":
            return DecoderOnly(config)


__all__ = [
    "DecoderOnly", "EncoderDecoder", "EncoderOnly", "Model", "Started", "build_model", "freeze", "load_weights",
    "start_weights",
]  # fmt: skip
