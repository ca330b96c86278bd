"""The cache: tokens taken in any way give the states of all at once, and every row goes on as if it were alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import ModelConfig
from regard.errors import InputError
from regard.models import build_model

EVERY = settings(derandomize=True, deadline=None, max_examples=60)
KINDS = ["none", "index", "normalised_index", "binary", "sinusoidal", "learned", "rotary", "alibi", "relative", "shaw"]


def config_of(family, **changes):
    values = {
        "family": family, "vocabulary": 11, "d_model": 8, "heads": 2, "d_ff": 12, "encoder_layers": 1,
        "decoder_layers": 2, "max_length": 512, "relative_buckets": 4, "relative_distance": 5, "window": 2,
        "global_positions": (0, 4), "dropout": 0.0,
    }  # fmt: skip
    return ModelConfig(**{**values, **changes})


@st.composite
def models(draw):
    torch.manual_seed(draw(st.integers(0, 99)))
    config = config_of(
        draw(st.sampled_from(["encoder-decoder", "decoder-only"])),
        positions=draw(st.sampled_from(KINDS)),
        norm=draw(st.sampled_from(["pre", "post"])),
        norm_kind=draw(st.sampled_from(["layer", "rms"])),
        attention=draw(st.sampled_from(["full", "sliding", "dilated", "global_sliding"])),
        window=draw(st.integers(1, 4)),
        dilation=draw(st.integers(1, 3)),
        global_positions=tuple(draw(st.lists(st.integers(0, 12), max_size=3))),
        heads=draw(st.sampled_from([2, 4])),
        kv_heads=draw(st.sampled_from([None, 1, 2])),
        d_k=draw(st.sampled_from([None, 6])),
        d_v=draw(st.sampled_from([None, 3])),
    )
    return shaken(build_model(config))


def shaken(model):
    """In use and not in training, and with no weight at zero or one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def whole(model, source, lengths, target):
    return model(source, lengths, target) if model.config.family == "encoder-decoder" else model(target)


def start(model, source, lengths, rows, capacity):
    if model.config.family == "encoder-decoder":
        return model.start(source, lengths, capacity=capacity)
    return model.start(rows=rows, capacity=capacity)


def close(one, other):
    assert one.shape == other.shape
    assert float(((one - other).abs() / other.abs().clamp(min=1)).max()) <= 1e-5


@EVERY
@given(models(), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.integers(0, 3))
@torch.no_grad()
def test_cached_is_uncached_however_the_tokens_come(model, parts, spare):
    tokens = sum(parts)
    source, target = torch.randint(11, (2, 5)), torch.randint(11, (2, tokens))
    lengths = torch.tensor([5, 3])
    cache = start(model, source, lengths, 2, tokens + spare)
    stepped = torch.cat([model.step(part, cache) for part in target.split(parts, dim=1)], dim=1)
    close(stepped, whole(model, source, lengths, target))
    assert cache.lengths == [tokens, tokens]


@EVERY
@given(models(), st.data())
@torch.no_grad()
def test_rows_are_alone_whatever_happens_to_the_others(model, data):
    """Rows grow by different counts, and between steps they are reordered, repeated and dropped, and others join."""
    rows = 3
    source, lengths, target = torch.randint(11, (rows, 4)), torch.tensor([4, 1, 2]), torch.randint(11, (rows, 16))
    expected = [whole(model, source[[row], : lengths[row]], lengths[[row]], target[[row]])[0] for row in range(rows)]
    cache, who = start(model, source, lengths, rows, 16), list(range(rows))
    for _ in range(data.draw(st.integers(1, 4))):
        counts = [data.draw(st.integers(0, min(4, 16 - held))) for held in cache.lengths]
        width = max(max(counts), 1)
        if max(cache.lengths) + width > 16:
            break
        tokens = torch.zeros(len(who), width, dtype=torch.long)
        for place, (row, held, count) in enumerate(zip(who, cache.lengths, counts, strict=True)):
            tokens[place, :count] = target[row, held : held + count]
        before = list(cache.lengths)
        stepped = model.step(tokens, cache, counts=counts)
        for place, (row, held, count) in enumerate(zip(who, before, counts, strict=True)):
            if count:
                close(stepped[place, :count], expected[row][held : held + count])
        order = data.draw(st.lists(st.integers(0, len(who) - 1), min_size=1, max_size=4))
        cache, who = cache.select(order), [who[place] for place in order]
        if data.draw(st.booleans()):
            row = data.draw(st.integers(0, rows - 1))
            cache = cache.join(start(model, source[[row]], lengths[[row]], 1, data.draw(st.integers(1, 16))))
            who.append(row)


@pytest.mark.parametrize("pattern", ["sliding", "dilated", "global_sliding"])
@torch.no_grad()
def test_a_long_beginning_in_a_band_is_the_same(pattern):
    """The first part is computed in bands, the second is long and no square, then single tokens."""
    torch.manual_seed(3)
    config = config_of("decoder-only", attention=pattern, window=9, global_positions=(0, 150, 311), positions="rotary")
    model = shaken(build_model(config))
    tokens = torch.randint(11, (2, 320))
    cache = model.start(rows=2, capacity=320)
    stepped = torch.cat([model.step(part, cache) for part in tokens.split([200, 110, 1, 1, 1, 1, 6], dim=1)], dim=1)
    close(stepped, model(tokens))


@torch.no_grad()
def test_a_selected_or_joined_cache_leaves_the_first_as_it_is():
    torch.manual_seed(1)
    model = shaken(build_model(config_of("decoder-only")))
    tokens = torch.randint(11, (2, 6))
    cache, expected = model.start(rows=2, capacity=6), model(tokens)
    model.step(tokens[:, :3], cache)
    other = cache.select([1, 1])
    model.step(torch.full((2, 2), 7), other)
    joined = cache.join(other)
    model.step(torch.full((4, 1), 9), joined)
    assert (cache.lengths, other.lengths, joined.lengths) == ([3, 3], [5, 5], [4, 4, 6, 6])
    close(model.step(tokens[:, 3:], cache), expected[:, 3:])


@torch.no_grad()
def test_tokens_that_do_not_count_are_forgotten():
    torch.manual_seed(1)
    model = shaken(build_model(config_of("decoder-only", positions="learned")))
    tokens = torch.randint(11, (1, 5))
    cache, expected = model.start(rows=1, capacity=8), model(tokens)
    model.step(torch.cat([tokens[:, :2], torch.full((1, 4), 10)], dim=1), cache, counts=[2])
    assert cache.lengths == [2]
    close(model.step(tokens[:, 2:], cache), expected[:, 2:])


def test_learning_through_a_cache_gives_the_gradients_of_no_cache():
    """In training too a step is a step: the cache keeps what gradients need."""
    torch.manual_seed(1)
    model = shaken(build_model(config_of("decoder-only"))).train()
    tokens = torch.randint(11, (2, 6))
    model(tokens).square().mean().backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model.step(tokens, model.start(rows=2, capacity=6)).square().mean().backward()
    for name, parameter in model.named_parameters():
        close(parameter.grad, expected[name])


def test_what_has_no_room_is_refused():
    model = build_model(config_of("decoder-only", positions="learned", max_length=8)).eval()
    with pytest.raises(InputError, match=r"cache of 9 tokens a row: learned positions end at max_length = 8"):
        model.start(rows=1, capacity=9)
    cache = model.start(rows=2, capacity=4)
    model.step(torch.zeros(2, 3, dtype=torch.long), cache)
    with pytest.raises(InputError, match="cache of 4 tokens a row: 5 are asked for"):
        model.step(torch.zeros(2, 2, dtype=torch.long), cache)
    for counts in ([1], [1, 2], [-1, 0]):
        with pytest.raises(InputError, match="must be 2 numbers from 0 to 1"):
            model.step(torch.zeros(2, 1, dtype=torch.long), cache, counts=counts)
    assert cache.lengths == [3, 3]
    rotary = build_model(config_of("decoder-only", positions="rotary", max_length=8)).eval()
    with pytest.raises(InputError, match=r"sequence of 9 tokens: model.max_length = 8"):
        rotary.step(torch.zeros(1, 9, dtype=torch.long), rotary.start(rows=1, capacity=9))


def test_memory_is_taken_once():
    """Steps write into the tensors that the cache began with."""
    model = build_model(config_of("decoder-only")).eval()
    with torch.no_grad():
        cache = model.start(rows=2, capacity=9)
        places = [side.data_ptr() for side in (*cache.keys, *cache.values)]
        for _ in range(9):
            model.step(torch.zeros(2, 1, dtype=torch.long), cache)
    assert [side.data_ptr() for side in (*cache.keys, *cache.values)] == places
