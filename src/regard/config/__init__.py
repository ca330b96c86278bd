"""Recipes and their parts: frozen records that refuse what they do not know."""

from regard.config.decoding import DecodingConfig
from regard.config.model import PRESETS, Family, ModelConfig
from regard.config.recipe import (
    DataConfig,
    DataSet,
    Recipe,
    TokensConfig,
    TrainingConfig,
    model_preset,
    read_recipe,
    recipe_from,
)

__all__ = [
    "PRESETS", "DataConfig", "DataSet", "DecodingConfig", "Family", "ModelConfig", "Recipe", "TokensConfig",
    "TrainingConfig", "model_preset", "read_recipe", "recipe_from",
]  # fmt: skip
