"""Writing on: the same as a loop over whole forwards, each row by itself, and drawn as the options say."""

import pytest
import torch

from regard.config import ModelConfig
from regard.config.model import Pattern
from regard.decoding.steps import PlainModel
from regard.decoding.stream import Sampling, Written, draw, write_on
from regard.errors import InputError
from regard.models import DecoderOnly

END, PIECES = 3, 31
GREEDY = Sampling(temperature=0)


def model_of(attention: Pattern = "full", *, seed: int = 2) -> DecoderOnly:
    torch.manual_seed(seed)
    config = ModelConfig(
        family="decoder-only", vocabulary=PIECES, d_model=32, heads=2, d_ff=48, decoder_layers=2, norm="pre",
        positions="rotary", attention=attention, window=5, max_length=400, embeddings="separate",
    )  # fmt: skip
    return DecoderOnly(config).eval()


def rows_of(written: list[list[Written]], count: int) -> list[list[int]]:
    return [[one.id for step in written for one in step if one.row == row] for row in range(count)]


def written_by(model: DecoderOnly, prompts: list[list[int]], *, limit: int = 20, **options: object) -> list[list[int]]:
    settings = {"sampling": GREEDY, "end": END, "context": 400, **options}
    steps = PlainModel(model, bounded=True)
    return rows_of(list(write_on(steps, prompts, limits=[limit] * len(prompts), **settings)), len(prompts))  # type: ignore[arg-type]


@torch.no_grad()
def plainly(
    model: DecoderOnly, prompt: list[int], limit: int, *, context: int = 400, never: tuple[int, ...] = ()
) -> list[int]:
    """One row, the whole text anew for each piece."""
    held, found = list(prompt), []
    while len(found) < limit:
        if len(held) > context:
            held = held[-(context // 2) :]
        scores = model.logits(model(torch.tensor([held])))[0, -1]
        scores[list(never)] = float("-inf")
        found.append(int(scores.argmax()))
        held.append(found[-1])
        if found[-1] == END:
            break
    return found


PROMPTS = [[2, 5, 9, 4], [2], [7] * 11, [2, 30]]


@pytest.mark.parametrize("attention", ["full", "sliding"])
def test_greedy_is_the_plain_loop_for_rows_of_any_length(attention: Pattern) -> None:
    model = model_of(attention)
    expected = [plainly(model, prompt, 20) for prompt in PROMPTS]
    assert written_by(model, PROMPTS) == expected
    assert [written_by(model, [prompt])[0] for prompt in PROMPTS] == expected


def test_a_row_ends_with_its_end_and_never_writes_what_is_forbidden() -> None:
    model = model_of()
    free = plainly(model, PROMPTS[0], 20)
    model.output_pieces.weight.data[END] = model.output_pieces.weight.data[free[6]]  # a twin that wins no tie
    model.output_pieces.weight.data[END] *= 1.001
    found = written_by(model, PROMPTS)
    assert found == [plainly(model, prompt, 20) for prompt in PROMPTS]
    assert found[0][-1] == END
    assert len(found[0]) <= 7
    forbidden = (free[0], free[1])
    assert written_by(model, PROMPTS, never=forbidden) == [
        plainly(model, prompt, 20, never=forbidden) for prompt in PROMPTS
    ]


def test_beyond_the_context_the_last_half_is_read_anew() -> None:
    model = model_of()
    assert written_by(model, PROMPTS, limit=40, context=12) == [
        plainly(model, prompt, 40, context=12) for prompt in PROMPTS
    ]


def test_a_drawn_row_depends_on_seed_and_number_only_and_its_score_is_the_models() -> None:
    model, sampling = model_of(), Sampling(temperature=1.3, seed=9)
    both = written_by(model, [PROMPTS[0], PROMPTS[1]], sampling=sampling)
    assert written_by(model, [PROMPTS[0]], sampling=sampling) == both[:1]
    assert written_by(model, [PROMPTS[0]], sampling=Sampling(temperature=1.3, seed=10)) != both[:1]
    assert written_by(model, [PROMPTS[0]] * 2, sampling=sampling)[1] != both[0]
    steps = list(
        write_on(
            PlainModel(model), [PROMPTS[0]], sampling=sampling, limits=[9], end=END, context=400, with_logp=True,
            never=(1,),
        )
    )  # fmt: skip
    whole = PROMPTS[0] + [step[0].id for step in steps]
    with torch.no_grad():
        logp = model.logits(model(torch.tensor([whole])))[0].log_softmax(-1)
    for place, step in enumerate(steps, len(PROMPTS[0])):
        assert step[0].logp == pytest.approx(float(logp[place - 1, step[0].id]), abs=1e-5)


def test_a_stopped_row_leaves_and_the_others_go_on() -> None:
    model, stopped = model_of(), {1}
    found = rows_of(
        list(
            write_on(
                PlainModel(model), PROMPTS, sampling=GREEDY, limits=[6] * 4, end=END, context=400, stopped=stopped
            )
        ), 4,
    )  # fmt: skip
    assert [len(row) for row in found] == [6, 1, 6, 6]
    assert found[2] == plainly(model, PROMPTS[2], 6)


def test_draws_follow_the_chances_that_are_left() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0, float("-inf")]])
    generator = torch.Generator().manual_seed(0)

    def shares(sampling: Sampling) -> torch.Tensor:
        drawn = torch.cat([draw(logits, sampling, [generator]) for _ in range(4000)])
        return torch.bincount(drawn, minlength=5) / 4000

    for sampling, kept in (
        (Sampling(), 4), (Sampling(temperature=0.5), 4), (Sampling(top_k=2), 2), (Sampling(top_p=0.7), 2),
        (Sampling(min_p=0.2), 2), (Sampling(top_k=3, min_p=0.1), 3), (Sampling(top_p=1e-9), 1),
    ):  # fmt: skip
        left = logits[0, :kept].div(sampling.temperature).softmax(-1)
        assert torch.allclose(shares(sampling)[:kept], left, atol=0.03), sampling
        assert shares(sampling)[kept:].sum() == 0


def test_wrong_options_are_refused() -> None:
    for wrong in ({"temperature": -1.0}, {"top_p": 0.0}, {"min_p": 1.1}, {"top_k": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            Sampling(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a prompt is empty"):
        written_by(model_of(), [[]])
