"""Positions: every kind against its formula in plain Python, and what they do inside a model."""

import math

import pytest
import torch

from regard.config import ModelConfig
from regard.errors import InputError
from regard.models import build_model
from regard.nn import Alibi, Buckets, Shaw, attention_formula
from regard.nn.positions import PositionEncoding, Rotation, binary, index, normalised_index, sinusoidal
from regard.nn.relations import alibi_slopes, relative_bucket

STEPS = torch.tensor([[0, 1, 5, 40], [3, 2, 1, 1000]])


def test_index_share_and_bits():
    assert index(STEPS, 2)[1].tolist() == [[3, 3], [2, 2], [1, 1], [1000, 1000]]
    shares = normalised_index(STEPS[:, :3], 1, torch.tensor([6, 1]))[..., 0]
    assert shares[0].tolist() == pytest.approx([0, 0.2, 1])
    assert torch.isfinite(shares[1]).all(), "a text of one token divides by nothing"
    bits = binary(STEPS, 12)
    assert bits[0, 2].tolist() == [1, 0, 1] + [0] * 9
    assert int((bits[1, 3] * 2 ** torch.arange(12)).sum()) == 1000
    assert binary(STEPS, 100)[0, 3].nonzero().flatten().tolist() == [3, 5], "a wide model has zeros for the rest"


def test_sinusoids_are_the_papers():
    found = sinusoidal(STEPS, 6)
    for row, steps in enumerate(STEPS.tolist()):
        for place, step in enumerate(steps):
            expected = [f(step / 10_000 ** (2 * pair / 6)) for pair in range(3) for f in (math.sin, math.cos)]
            assert found[row, place].tolist() == pytest.approx(expected, abs=1e-4)


def test_rotary_turns_pairs_and_only_distance_counts():
    turned = Rotation(torch.tensor([[0, 1, 7]]), 4, 100.0)(torch.tensor([1.0, 0, 0, 2]).expand(1, 1, 3, 4))[0, 0]
    for step, found in zip((0, 1, 7), turned.tolist(), strict=True):
        slow = step / 10
        assert found == pytest.approx(
            [math.cos(step), math.sin(step), -2 * math.sin(slow), 2 * math.cos(slow)], abs=1e-6
        )
    q, k = torch.randn(2, 1, 1, 1, 8)
    at = lambda x, step: Rotation(torch.tensor([[step]]), 8, 10_000.0)(x)  # noqa: E731
    products = [float((at(q, step + 3) * at(k, step)).sum()) for step in (0, 5, 50)]
    assert products == pytest.approx([products[0]] * 3, abs=1e-4)
    assert float(at(q, 77).norm()) == pytest.approx(float(q.norm()), rel=1e-6)
    assert at(q.bfloat16(), 3).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (1, [2**-8]),
        (2, [2**-4, 2**-8]),
        (8, [2.0**-n for n in range(1, 9)]),
        (12, [2.0**-n for n in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_slopes_are_the_papers(heads, slopes):
    assert alibi_slopes(heads) == pytest.approx(slopes)
    scores = Alibi(heads).scores(torch.zeros(1, heads, 1, 1), torch.tensor([[4]]), torch.arange(6)[None])
    assert scores[0, :, 0].tolist() == [pytest.approx([-slope * abs(key - 4) for key in range(6)]) for slope in slopes]


def bucket_in_words(offset, buckets, furthest, both_sides):
    """T5's rule for one offset, by Python's own numbers."""
    first = 0
    if both_sides:
        buckets //= 2
        first = buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(0, -offset)
    near = buckets // 2
    if distance < near:
        return first + distance
    return first + min(
        buckets - 1, near + int(math.log(distance / near) / math.log(furthest / near) * (buckets - near))
    )


@pytest.mark.parametrize("both_sides", [True, False])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 20), (4, 3)])
def test_buckets_are_t5s(buckets, furthest, both_sides):
    offsets = torch.arange(-200, 201)
    found = relative_bucket(offsets, buckets=buckets, furthest=furthest, both_sides=both_sides).tolist()
    expected = [bucket_in_words(offset, buckets, furthest, both_sides) for offset in offsets.tolist()]
    # a distance whose share is a whole number may round to either side in float32
    assert sum(one != other for one, other in zip(found, expected, strict=True)) <= 2
    assert all(abs(one - other) <= 1 for one, other in zip(found, expected, strict=True))
    assert set(found) <= set(range(buckets))
    relation = Buckets(3, buckets=buckets, furthest=furthest, both_sides=both_sides)
    scores = relation.scores(torch.zeros(1, 3, 1, 1), torch.tensor([[50]]), torch.arange(90)[None])
    assert torch.equal(scores[0, :, 0].T, relation.bias.weight[found[150:240]])


def test_shaw_is_a_vector_for_each_distance():
    """Equations 3 and 4 of the paper, pair by pair."""
    relation = Shaw(key_width=3, value_width=2, furthest=2).double()
    q, k, v = (torch.randn(1, 2, 5, width, dtype=torch.float64) for width in (3, 3, 2))
    found = attention_formula(q, k, v, bias=relation)
    for head in range(2):
        for row in range(5):
            near = [max(-2, min(2, key - row)) + 2 for key in range(5)]
            scores = torch.stack([q[0, head, row] @ (k[0, head, key] + relation.keys.weight[near[key]]) / 3**0.5
                                  for key in range(5)])  # fmt: skip
            out = sum(weight * (v[0, head, key] + relation.vectors.weight[near[key]])
                      for key, weight in enumerate(scores.softmax(0)))  # fmt: skip
            assert torch.allclose(found.out[0, head, row], out)


def encoder_of(**changes):
    torch.manual_seed(6)
    values = {"family": "encoder-only", "vocabulary": 17, "d_model": 16, "heads": 2, "d_ff": 16, "encoder_layers": 2,
              "max_length": 12, "relative_buckets": 8, "relative_distance": 6}  # fmt: skip
    return build_model(ModelConfig(**{**values, **changes})).eval()


KINDS = ["index", "normalised_index", "binary", "sinusoidal", "learned", "rotary", "alibi", "relative", "shaw"]


@pytest.mark.parametrize("kind", ["none", *KINDS])
@torch.no_grad()
def test_only_without_positions_a_permuted_input_gives_a_permuted_output(kind):
    model, tokens, order = encoder_of(positions=kind), torch.randperm(17)[:9][None], torch.randperm(9)
    out, moved = model(tokens, torch.tensor([9])), model(tokens[:, order], torch.tensor([9]))
    assert torch.allclose(moved, out[:, order], atol=1e-5) == (kind == "none")


@pytest.mark.parametrize("kind", ["rotary", "alibi", "relative", "shaw"])
@torch.no_grad()
def test_where_only_distance_counts_a_text_may_stand_anywhere(kind):
    """Padding on the left moves a text; only distances are told, so its states stay."""
    from regard.nn import padding

    model, tokens = encoder_of(positions=kind), torch.randint(17, (1, 6))
    alone = model(tokens, torch.tensor([6]))
    x = model.pieces.weight[torch.cat([torch.zeros(1, 5, dtype=torch.long), tokens], dim=1)] * 4.0
    moved = model.encoder(x, mask=padding(torch.arange(11)[None] >= 5))
    assert torch.allclose(moved[:, 5:], alone, atol=1e-5)


def test_a_sequence_longer_than_the_table_is_refused():
    model = encoder_of(positions="learned")
    with pytest.raises(InputError, match="sequence of 13 tokens: learned positions end at max_length = 12"):
        model(torch.zeros(1, 13, dtype=torch.long), torch.tensor([13]))
    assert encoder_of(positions="sinusoidal")(torch.zeros(1, 13, dtype=torch.long), torch.tensor([13])).shape[1] == 13


def test_kinds_that_act_elsewhere_add_nothing():
    for kind in ("none", "rotary", "alibi", "relative", "shaw"):
        assert PositionEncoding(ModelConfig(positions=kind))(torch.arange(3)[None], furthest=3) is None
