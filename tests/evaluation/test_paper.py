"""The numbers of "Attention Is All You Need", and those of a model of GPT-3's shape."""

import pytest

from regard.config import model_preset
from regard.evaluation.cost import Work, cost
from regard.evaluation.flops import total
from regard.evaluation.paper import TABLE_2, TABLE_3


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: f"{row.group} {row.changes}")
def test_each_row_of_table_3_is_within_7_percent(row):
    assert abs(row.ours / (row.million * 1e6) - 1) <= 0.07


def test_table_3_has_the_rows_that_the_paper_counts():
    stated = [row.million for row in TABLE_3 if row.stated]
    assert stated == [65, 58, 60, 36, 50, 80, 28, 168, 53, 90, 213]
    assert [row.changes["heads"] for row in TABLE_3 if row.group == "A"] == [1, 4, 16, 32]


def test_row_a_is_of_the_base_models_size():
    """h heads of width 512/h are the same matrices, cut otherwise."""
    assert {row.ours for row in TABLE_3 if row.group in ("base", "A")} == {63_082_496}


@pytest.mark.parametrize("run", TABLE_2, ids=lambda run: run.preset)
def test_table_2_is_time_times_processors(run):
    assert f"{run.from_time:.1e}" == f"{run.stated:.1e}"


def test_the_models_own_arithmetic_is_near_6_for_each_parameter_and_pair_of_tokens():
    """An encoder's weights meet the source's tokens and a decoder's the target's: 25,000 of each in a step."""
    for run in TABLE_2:
        count = total(cost(model_preset(run.preset, vocabulary=37_000), Work()).parameters)
        assert run.from_model / (6 * count * 25_000 * run.steps) == pytest.approx(1, abs=0.02)


def test_a_model_of_gpt_3s_shape():
    """Every number worked out by hand from vocabulary 2^17, d = 12,288, 96 layers and a window of 32,768."""
    d, layers, window, pieces = 12_288, 96, 32_768, 2**17
    found = cost(model_preset("gpt3"), Work(batch=1, length=window, precision="bf16"))
    each = 12 * d * d + (4 * d + 4 * d + d) + 4 * d  # matrices, their biases, two norms
    assert total(found.parameters) == pieces * d + window * d + layers * each + 2 * d == 175_974_801_408
    multiplied = layers * 12 * d * d + pieces * d
    assert found.bytes.cache_token == 2 * layers * d * 2
    assert found.bytes.cache == window * found.bytes.cache_token == 144 * 2**30
    assert found.decoding.last_cached == 2 * multiplied + layers * 4 * window * d
    smoothing = 2 * window * d
    assert found.training == 3 * (window * 2 * multiplied + layers * 4 * window**2 * d) + smoothing
