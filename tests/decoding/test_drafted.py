"""Written with a draft, texts are what they are without: whoever guesses, however far ahead, however they are drawn."""

import copy

import pytest
import torch

from regard.decoding.drafted import Draft, write_drafted
from regard.decoding.steps import PlainModel
from regard.decoding.stream import Sampling, write_on
from regard.errors import InputError

from .test_stream import END, PROMPTS, model_of


def near(model, noise=0.05):
    """A model that often guesses what this one writes."""
    other = copy.deepcopy(model)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for parameter in other.parameters():
            parameter.add_(torch.randn_like(parameter) * parameter.std(), alpha=noise)
    return other


DRAFTS = {
    "itself": lambda model: model,
    "a near one": near,
    "another": lambda model: model_of(seed=9),
}
SAMPLINGS = [
    Sampling(temperature=0),
    Sampling(temperature=1.2, seed=5),
    Sampling(temperature=0.8, top_k=9, top_p=0.9, min_p=0.02, seed=6),
]


def both(model, draft, *, prompts=PROMPTS, limits=(20, 7, 33, 1), context=400, stopped=(), **options):
    """Steps of the plain stream, and of the drafted one."""
    settings = {"limits": limits, "end": END, "context": context, "stopped": stopped, "with_logp": True, **options}
    plain = list(write_on(PlainModel(model, bounded=True), prompts, **settings))
    return plain, list(write_drafted(model, draft, prompts, **settings))


def rows(steps):
    found = {}
    for step in steps:
        for row, id, logp in step:
            found.setdefault(row, []).append((id, pytest.approx(logp, abs=1e-4)))
    return found


@pytest.mark.parametrize("attention", ["full", "sliding"])
@pytest.mark.parametrize("guessing", DRAFTS)
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "drawn", "restricted"])
def test_the_same_pieces_whoever_guesses(attention, guessing, sampling):
    model = model_of(attention)
    for ahead in (1, 4):
        plain, drafted = both(model, Draft(DRAFTS[guessing](model), 400, ahead), sampling=sampling, never=(1, 7))
        assert rows(drafted) == rows(plain)
    assert max(len(pieces) for pieces in rows(plain).values()) > 7


@pytest.mark.parametrize("sampling", SAMPLINGS[:2], ids=["greedy", "drawn"])
def test_beyond_the_context_of_either(sampling):
    """The model goes on from the last half of its context; the draft has a shorter one."""
    model = model_of()
    for draft_context in (2, 9, 12, 400):
        plain, drafted = both(
            model, Draft(near(model), draft_context, 3), context=12, limits=[40] * 4, sampling=sampling
        )
        assert rows(drafted) == rows(plain)


def test_guesses_save_forwards(monkeypatch):
    model, taken = model_of(), []
    kept = type(model).step
    draft = copy.deepcopy(model)

    def counted(self, tokens, cache, **more):
        if self is model:
            taken.append(tokens.shape[1])
        return kept(self, tokens, cache, **more)

    monkeypatch.setattr(type(model), "step", counted)
    for each in write_drafted(
        model, Draft(draft, 400, 4), [[2, 5]], sampling=Sampling(temperature=0), limits=[25], end=-1, context=400
    ):
        assert len(each) == 1
    assert taken == [6, 5, 5, 5, 5]


def test_a_stopped_row_leaves_in_the_midst_of_agreed_pieces():
    model = model_of()
    stopped = set()
    seen = []
    for step in write_drafted(
        model, Draft(model, 400, 4), PROMPTS, sampling=Sampling(temperature=0), limits=[9] * 4, end=-1, context=400,
        stopped=stopped,
    ):  # fmt: skip
        seen.append([each.row for each in step])
        if len(seen) == 2:
            stopped.add(1)
    assert seen == [[0, 1, 2, 3]] * 2 + [[0, 2, 3]] * 7


def test_what_cannot_guess_is_refused():
    model = model_of()
    for draft, prompts, said in ((Draft(model, 400, 0), PROMPTS, "ahead = 0"), (Draft(model, 400), [[]], "is empty")):
        with pytest.raises(InputError, match=said):
            next(write_drafted(model, draft, prompts, sampling=SAMPLINGS[0], limits=[3] * 4, end=END, context=400))
