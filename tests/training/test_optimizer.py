"""FlatAdam is torch's AdamW on the same model; and comes back from its state."""

import copy

import pytest
import torch
from torch import nn

from regard.config import TrainingConfig
from regard.training.optimizer import FlatAdam, is_finite, square_sum


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def model():
    """Vectors between the matrices, and one weight that no loss reaches."""
    made = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Linear(7, 3))
    made.register_parameter("unused", nn.Parameter(torch.ones(2, 2)))
    return made


def learn(net):
    loss = net(torch.randn(6, 5).to(net[0].weight.dtype)).square().sum()
    loss.backward()


@pytest.mark.parametrize("clip", [None, 1e-2, 1e6])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_step_by_step_it_is_torchs(clip, decay):
    """Matrices decay, vectors do not. Clipped by hand: torch's function adds 1e-6 to the length that it divides by."""
    ours = model()
    theirs = copy.deepcopy(ours)
    config = TrainingConfig(clip=clip, weight_decay=decay, beta1=0.8, beta2=0.95, epsilon=1e-6)
    adam = FlatAdam(ours, config, torch.float32)
    matrices = [p for p in theirs.parameters() if p.dim() >= 2]
    vectors = [p for p in theirs.parameters() if p.dim() < 2]
    torchs = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=0.0, betas=(0.8, 0.95), eps=1e-6, foreach=False,
    )  # fmt: skip
    theirs.unused.grad = torch.zeros_like(theirs.unused)
    for step in range(1, 8):
        rate = 0.1 / step
        state = torch.get_rng_state()
        learn(ours)
        torch.set_rng_state(state)
        learn(theirs)
        length = adam.collect()
        expected = nn.utils.get_total_norm([p.grad for p in theirs.parameters()])
        assert length == pytest.approx(float(expected), rel=1e-5)
        if clip is not None and length > clip:
            for parameter in theirs.parameters():
                parameter.grad *= clip / length
        for group in torchs.param_groups:
            group["lr"] = rate
        torchs.step()
        adam.step(rate, length)
        torchs.zero_grad(set_to_none=False)
        for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6, msg=lambda said, name=name: f"{name}: {said}")
            assert mine.grad is None
    named = adam.named_weights()
    assert named.keys() == dict(ours.named_parameters()).keys()
    assert all(torch.equal(named[name], parameter) for name, parameter in ours.named_parameters())


def test_the_length_of_a_long_gradient():
    """Torch's norm in float32 fell 2e-4 short here, so that one process clipped otherwise than two that share weights.

    Verifying a trained translator found it: two processes came to weights that were 3e-5 from one's.
    """
    weight = nn.Parameter(torch.zeros(2000, 2000))
    net = nn.ParameterList([weight])
    weight.grad = torch.randn(2000, 2000)
    expected = float(weight.grad.double().square().sum().sqrt())
    shares = [float(square_sum(share)) for share in weight.grad.chunk(3)]
    assert sum(shares) ** 0.5 == pytest.approx(expected, rel=1e-8)
    assert FlatAdam(net, TrainingConfig(), torch.float32).collect() == pytest.approx(expected, rel=1e-8)
    assert square_sum(torch.zeros(0)) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_what_its_state_gives_goes_on_to_the_last_bit(dtype, ema):
    config = TrainingConfig(ema=ema, weight_decay=0.1)
    first = model()
    second = copy.deepcopy(first)

    def steps(net, adam, seed):
        torch.manual_seed(seed)
        for _ in range(3):
            net(torch.randn(6, 5, dtype=dtype)).square().sum().backward()
            adam.step(0.01, adam.collect())

    one = FlatAdam(first, config, dtype)
    steps(first, one, 1)
    kept = {name: value.clone() for name, value in one.state().items()}
    steps(first, one, 2)
    other = FlatAdam(second, config, dtype)
    other.load(kept)
    assert all(value.data_ptr() not in {v.data_ptr() for v in kept.values()} for value in other.state().values())
    steps(second, other, 2)
    assert one.state().keys() == other.state().keys()
    for name, value in one.state().items():
        assert torch.equal(value, other.state()[name]), name
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_an_optimizer_that_has_not_stepped_has_a_state():
    first = model()
    adam = FlatAdam(first, TrainingConfig(), torch.float32)
    second = model()
    FlatAdam(second, TrainingConfig(), torch.float32).load(adam.state())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_average_over_time(dtype):
    net = model()
    adam = FlatAdam(net, TrainingConfig(ema=0.75), dtype)
    expected = adam.weights.double().clone()
    for _ in range(5):
        net(torch.randn(6, 5, dtype=dtype)).square().sum().backward()
        adam.step(0.05, adam.collect())
        expected = 0.75 * expected + 0.25 * adam.weights.double()
    torch.testing.assert_close(adam.average.double(), expected, rtol=1e-5, atol=1e-6)
    kept, seen = adam.weights.clone(), [p.clone() for p in net.parameters()]
    with adam.averaged():
        shown = torch.cat([parameter.flatten() for parameter in adam.parameters])
        assert torch.equal(shown, adam.average.to(dtype))
    assert torch.equal(adam.weights, kept)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), seen, strict=True))
    flat = torch.cat([adam.named_weights()[name].flatten() for name in adam.names])
    assert torch.equal(flat, adam.average)
    assert torch.equal(torch.cat([adam.named_weights(averaged=False)[n].flatten() for n in adam.names]), kept)


def test_the_model_sees_rounded_weights_and_the_optimizer_keeps_whole_ones():
    net = model()
    whole = torch.cat([p.detach().flatten() for p in sorted(net.parameters(), key=lambda p: p.dim() < 2)])
    adam = FlatAdam(net, TrainingConfig(), torch.bfloat16)
    assert torch.equal(adam.weights, whole)
    assert {p.dtype for p in net.parameters()} == {torch.bfloat16}
    assert torch.equal(torch.cat([p.flatten() for p in adam.parameters]), whole.bfloat16())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_do_not_learn_are_left_alone(dtype):
    """They were once missing from what is kept, so that a run with frozen weights could not be opened."""
    net = model()
    net[0].weight.requires_grad_(False)
    before = net[0].weight.clone()
    adam = FlatAdam(net, TrainingConfig(), dtype)
    assert "0.weight" not in adam.names
    learn(net)
    adam.step(0.1, adam.collect())
    assert torch.equal(net[0].weight, before.to(dtype))
    assert set(adam.named_weights()) == {name for name, _ in net.named_parameters()}
    assert torch.equal(adam.named_weights()["0.weight"], before)
    other = model()
    other[0].weight.requires_grad_(False)
    resumed = FlatAdam(other, TrainingConfig(), dtype)
    resumed.load(adam.state())
    assert torch.equal(other[0].weight, before.to(dtype))
    assert torch.equal(resumed.named_weights()["0.weight"], before)


def test_all_of_the_state_goes_to_the_weights_device():
    """The count of steps once stayed on the processor, where the fused kernel of an accelerator does not look for it.

    The device `meta` stands for an accelerator here: it keeps no numbers, but knows where a tensor is.
    """
    adam = FlatAdam(model().to("meta"), TrainingConfig(), torch.float32)
    adam.load(FlatAdam(model(), TrainingConfig(), torch.float32).state())
    assert {value.device.type for value in adam.state().values()} == {"meta"}


def test_finite():
    assert is_finite(1.0, 0.0)
    assert not any(is_finite(1.0, bad) for bad in (float("nan"), float("inf"), -float("inf")))
