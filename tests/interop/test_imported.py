"""Weights under other names become ours by a table, and nothing is dropped or left unset in silence."""

import pytest
import torch

from regard.config import ModelConfig
from regard.errors import InputError
from regard.interop.imported import converted, renamed

TABLE = {"words": "pieces.weight", "h.{}.q": "layers.{}.project", "h.{}.k": "layers.{}.project", "cos": None}


def test_parts_stand_one_below_another_in_the_tables_order_and_none_drops():
    weights = {
        "h.10.k": torch.full((1, 2), 4.0), "h.2.k": torch.full((1, 2), 2.0), "cos": torch.zeros(5),
        "h.2.q": torch.full((2, 2), 1.0), "h.10.q": torch.full((2, 2), 3.0), "words": torch.ones(3, 2),
    }  # fmt: skip
    ours = renamed(weights, TABLE, source="x.bin")
    assert set(ours) == {"pieces.weight", "layers.2.project", "layers.10.project"}
    assert ours["layers.2.project"][:, 0].tolist() == [1, 1, 2]
    assert ours["layers.10.project"][:, 0].tolist() == [3, 3, 4]


def test_a_weight_that_the_table_does_not_name_is_refused():
    weights = {f"h.{i}.bias": torch.zeros(1) for i in range(10)}
    with pytest.raises(InputError, match=r"x\.bin: weights that are not in the format's table: h\.0\.bias, .* 2 more"):
        renamed(weights, TABLE, source="x.bin")


def test_a_weight_of_ours_that_nothing_fills_is_refused():
    config = ModelConfig(family="decoder-only", vocabulary=5, d_model=8, d_ff=8, heads=2, decoder_layers=1)
    with pytest.raises(InputError, match=r"x\.bin: weights do not fit the model: missing decoder\.layers\.0"):
        converted(config, {"words": torch.zeros(5, 8)}, TABLE, source="x.bin")
