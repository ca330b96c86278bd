"""Documents packed into one row: the same states, losses and gradients as each document alone."""

import pytest
import torch

from regard.config import ModelConfig
from regard.config.model import Pattern, Positions
from regard.models import DecoderOnly
from regard.nn.masks import causal, global_sliding, within_documents

VOCABULARY = 19
SIZES = ((5, 9, 1), (15,), (3, 8))


def model_of(positions: Positions, attention: Pattern = "full", *, window: int = 3) -> DecoderOnly:
    torch.manual_seed(7)
    return DecoderOnly(
        ModelConfig(
            family="decoder-only", vocabulary=VOCABULARY, d_model=16, heads=2, d_ff=24, decoder_layers=2, dropout=0.0,
            norm="pre", positions=positions, max_length=400, attention=attention, window=window,
            global_positions=(0, 2), relative_distance=20,
        )
    )  # fmt: skip


def packed(sizes: tuple[tuple[int, ...], ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Random pieces, and positions that begin anew in each document."""
    width = max(map(sum, sizes))
    torch.manual_seed(3)
    positions = torch.zeros(len(sizes), width, dtype=torch.long)
    for row, documents in enumerate(sizes):
        flat = [place for size in documents for place in range(size)]
        rest = range(documents[-1], documents[-1] + width - len(flat))
        positions[row] = torch.tensor([*flat, *rest])
    return torch.randint(VOCABULARY, (len(sizes), width)), positions


@pytest.mark.parametrize("attention", ["full", "sliding", "dilated", "global_sliding"])
@pytest.mark.parametrize(
    "positions", ["none", "sinusoidal", "learned", "rotary", "alibi", "relative", "shaw", "normalised_index"]
)
def test_packed_states_and_gradients_are_those_of_each_document_alone(positions: Positions, attention: Pattern) -> None:
    model = model_of(positions, attention)
    tokens, places = packed(SIZES)
    weights = torch.randn(*tokens.shape, 16)
    together = model(tokens, positions_BT=places)
    real = torch.zeros(tokens.shape)
    for row, documents in enumerate(SIZES):
        start = 0
        for size in documents:
            part = slice(start, start + size)
            alone = model(tokens[row : row + 1, part])
            assert torch.allclose(together[row : row + 1, part], alone, atol=2e-6)
            (alone * weights[row : row + 1, part]).sum().backward()
            real[row, part] = 1
            start += size
    separate = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    (together * weights * real[..., None]).sum().backward()
    for name, parameter in model.named_parameters():
        expected = separate[name]
        if parameter.grad is None or expected is None:
            assert parameter.grad is expected is None, name
            continue
        assert torch.allclose(parameter.grad, expected, atol=5e-5), name


@pytest.mark.parametrize("attention", ["full", "sliding", "global_sliding"])
def test_long_rows_and_those_computed_in_bands_too(attention: Pattern) -> None:
    model = model_of("rotary", attention, window=9)
    sizes = ((100, 130, 70), (290, 10))
    tokens, places = packed(sizes)
    together = model(tokens, positions_BT=places)
    for row, documents in enumerate(sizes):
        start = 0
        for size in documents:
            part = slice(start, start + size)
            assert torch.allclose(together[row : row + 1, part], model(tokens[row : row + 1, part]), atol=5e-6)
            start += size


def test_the_mask_draws_blocks() -> None:
    positions = torch.tensor([[0, 1, 2, 0, 1], [0, 1, 2, 3, 4]])
    drawn = within_documents(causal(), positions).matrix(5)
    assert drawn[0].int().tolist() == [
        [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 1]
    ]  # fmt: skip
    assert drawn[1].equal(causal().matrix(5)[0])
    near = within_documents(causal() & global_sliding(1, (0,)), positions).matrix(5)
    assert near[1, 4].int().tolist() == [1, 0, 0, 1, 1]
    assert near[0, 4].int().tolist() == [0, 0, 0, 1, 1]
