"""The tables refuse what they do not know, so no comparison rests on a weight that was forgotten."""

import pytest
import torch

from .carry import To, carry

WEIGHTS = {"layer.0.q": torch.ones(2, 3), "layer.0.k": torch.zeros(1, 3), "layer.0.twin": torch.ones(1)}
TABLE = {"layer.{}.q": To("own.{}.project", 0), "layer.{}.k": To("own.{}.project", 1), "layer.{}.twin": None}


def test_parts_are_put_under_each_other_and_dropped_ones_left_out():
    carried = carry(TABLE, WEIGHTS)
    assert list(carried) == ["own.0.project"]
    assert carried["own.0.project"].equal(torch.tensor([[1.0] * 3, [1.0] * 3, [0.0] * 3]))


@pytest.mark.parametrize(
    ("table", "weights", "said"),
    [
        (TABLE, {**WEIGHTS, "layer.0.o": torch.ones(1)}, r"layer.0.o \(1,\): 0 rows"),
        ({**TABLE, "layer.0.q": None}, WEIGHTS, r"layer.0.q \(2, 3\): 2 rows"),
        ({**TABLE, "layer.{}.o": "own.{}.join"}, WEIGHTS, r"rows without a weight: \['layer.{}.o'\]"),
        ({**TABLE, "layer.{}.k": To("own.{}.project", 0)}, WEIGHTS, "layer.0.k: its place .* is taken"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(table, weights, said):
    with pytest.raises(ValueError, match=said):
        carry(table, weights)
