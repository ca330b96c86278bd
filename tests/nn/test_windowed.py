"""The windowed cache: the states of full attention under a window, in memory that does not grow."""

import pytest
import torch

from regard.config import ModelConfig
from regard.config.model import Pattern, Positions
from regard.errors import InputError
from regard.models import DecoderOnly
from regard.nn.windowed import STEP, WindowCache

WINDOW, TOKENS = 12, 130
PATTERNS: list[tuple[Pattern, tuple[int, ...]]] = [
    ("sliding", ()), ("dilated", ()), ("global_sliding", (0,)), ("global_sliding", (0, 3, 20)), ("global_sliding", ()),
]  # fmt: skip


def model_of(attention: Pattern, everywhere: tuple[int, ...], positions: Positions = "rotary") -> DecoderOnly:
    torch.manual_seed(5)
    return DecoderOnly(
        ModelConfig(
            family="decoder-only", vocabulary=23, d_model=16, heads=4, kv_heads=2, d_ff=24, decoder_layers=2,
            dropout=0.0, norm="pre", positions=positions, max_length=1000, attention=attention, window=WINDOW,
            dilation=3, global_positions=everywhere,
        )
    ).eval()  # fmt: skip


def slots(cache: object) -> int:
    assert isinstance(cache, WindowCache)
    return sum(side.numel() for side in (*cache.keys, *cache.values))


@pytest.mark.parametrize("positions", ["rotary", "alibi", "learned", "relative", "shaw"])
@pytest.mark.parametrize(("attention", "everywhere"), PATTERNS)
@torch.no_grad()
def test_ten_windows_on_it_equals_full_attention_in_constant_memory(
    attention: Pattern, everywhere: tuple[int, ...], positions: Positions
) -> None:
    model = model_of(attention, everywhere, positions)
    tokens = torch.randint(23, (2, TOKENS))
    assert TOKENS > 10 * WINDOW
    whole = model(tokens)
    cache = model.start(rows=2, capacity=TOKENS, bounded=True)
    memory = slots(cache)
    parts = [model.step(tokens[:, :5], cache), model.step(tokens[:, 5:20], cache)]
    parts += [model.step(tokens[:, place, None], cache) for place in range(20, TOKENS)]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-5)
    assert slots(cache) == memory
    longer = model.start(rows=2, capacity=900, bounded=True)
    assert slots(longer) == memory
    reached = WINDOW * (3 if attention == "dilated" else 1)
    assert memory == 2 * 2 * 2 * 2 * 4 * (max(reached, *everywhere, 0) + STEP + len(everywhere))


@pytest.mark.parametrize(("attention", "everywhere"), PATTERNS)
@torch.no_grad()
def test_rows_of_different_length_read_in_parts_moved_and_joined(
    attention: Pattern, everywhere: tuple[int, ...]
) -> None:
    model = model_of(attention, everywhere)
    tokens = torch.randint(23, (3, 250))
    lengths = [170, 9, 64]
    whole = model(tokens)
    cache = model.start(rows=3, capacity=250, bounded=True)
    states = model.step(tokens[:, :170], cache, counts=lengths)
    for row, length in enumerate(lengths):
        assert torch.allclose(states[row, :length], whole[row, :length], atol=1e-5)
    held = list(lengths)
    for ahead in range(70):
        new = torch.stack([tokens[row, held[row]] for row in range(3)])[:, None]
        found = model.step(new, cache)
        for row in range(3):
            assert torch.allclose(found[row, 0], whole[row, held[row]], atol=1e-5), (ahead, row)
        held = [length + 1 for length in held]
    moved = cache.select([2, 0]).join(cache.select([1]))
    order = [2, 0, 1]
    found = model.step(torch.stack([tokens[row, held[row]] for row in order])[:, None], moved)
    for place, row in enumerate(order):
        assert torch.allclose(found[place, 0], whole[row, held[row]], atol=1e-5)


def test_without_a_window_it_is_the_ordinary_cache_and_limits_hold() -> None:
    model = model_of("full", ())
    assert not isinstance(model.start(rows=1, capacity=9, bounded=True), WindowCache)
    cache = model_of("sliding", ()).start(rows=1, capacity=9, bounded=True)
    with pytest.raises(InputError, match="cache of 9 tokens a row: 10 are asked for"):
        model_of("sliding", ()).step(torch.zeros(1, 10, dtype=torch.long), cache)
