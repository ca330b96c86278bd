"""Every equality notices a fault of its kind: a certificate that cannot fail certifies nothing."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from regard.data import PairBatch
from regard.decoding import PlainSteps
from regard.decoding.fast import FastSteps
from regard.decoding.group import Group
from regard.models import DecoderOnly, EncoderDecoder, EncoderOnly
from regard.nn import Cache, MultiHead, Trace, attention, attention_formula
from regard.nn.masks import Causal, Padding
from regard.nn.windowed import WindowCache
from regard.training.optimizer import FlatAdam
from regard.verify import EQUALITIES, built_in_subject
from regard.verify.certificate import measure

from .runs import sure_run

NAMED = {equality.name: equality for equality in EQUALITIES}


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    """A few of the built-in models: of each family one with full attention, one without positions; windows; a run."""
    whole = built_in_subject(seed=3)
    kept = tuple(
        case
        for case in whole.models
        if case.model.config.attention == "full" and case.model.config.positions in ("none", "sinusoidal", "relative")
    )
    return dataclasses.replace(
        whole, grid=kept, models=kept, long_models=(*whole.long_models[:3], whole.long_models[-3]),
        shapes=whole.shapes[:1], folder=sure_run(tmp_path_factory.mktemp("runs")),
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_without_a_fault_it_holds(name, subject):
    result = measure(NAMED[name], subject)
    assert result is not None
    assert result.held, result


def near(out):
    """A little off, as a wrong kernel would be."""
    return out * 1.001


def wrong_attention(*given, **more):
    return near(attention(*given, **more))


def wrong_formula(*given, **more):
    found = attention_formula(*given, **more)
    return found._replace(weights=near(found.weights))


def spoilt(q, k, v, *given, **more):
    """NaN where a query sees nothing, as a softmax over nothing gives it."""
    out = attention(q, k, v, *given, **more)
    return torch.where(out == 0, torch.nan, out)


def escaping(q, k, v, *given, **more):
    return attention(q, k, v, *given, **more) * 1.5


def ordered(q, k, v, *given, **more):
    """Keys further back count less: an order that nobody asked for."""
    fade = torch.linspace(1, 0.9, k.shape[2])[:, None]
    return attention(q, k * fade, v, *given, **more)


def off_by_one(kept):
    """Positions of cached steps that are one too far."""

    def opened(self, mask, tokens):
        step = kept(self, mask, tokens)
        return dataclasses.replace(step, positions=step.positions + (1 if max(self.lengths) else 0))

    return opened


def forgets_nothing(kept):
    """Tokens that do not count are counted."""
    return lambda self, step, counts: kept(self, step, None)


def same_rows(kept):
    """A selection that leaves the rows where they were."""

    def select(self, rows):
        chosen = kept(self, rows)
        keys = [side[: len(chosen.lengths)] for side in self.keys]
        return dataclasses.replace(chosen, keys=keys) if len(keys[0]) == chosen.rows else chosen

    return select


def looks_ahead(kept):
    return lambda self, queries, keys: kept(self, queries + 1, keys)


def sees_padding(kept):
    return lambda self, queries, keys: torch.ones_like(kept(self, queries, keys))


def sees_others(kept):
    return lambda mask, positions: mask


def knows_the_batch(kept):
    """States that move with the batch's mean."""

    def forward(self, *given, **more):
        states = kept(self, *given, **more)
        return states + 0.001 * states.mean(0, keepdim=True)

    return forward


def knows_the_order(kept):
    def forward(self, *given, **more):
        states = kept(self, *given, **more)
        return states + 0.001 * torch.arange(states.shape[1])[:, None]

    return forward


def shows_other_weights(kept):
    def keep(self, name, value):
        kept(self, name, near(value) if name.endswith("weights") else value)

    return keep


def disturbs(kept):
    return lambda self, *given, **more: kept(self, *given, **more) * (1 + 1e-6)


def wrong_head(kept):
    """Heads counted from one."""

    def attended(self, part, layer, **more):
        off = frozenset((p, n, (head + 1) % 4) for p, n, head in self.heads_off)
        return kept(dataclasses.replace(self, heads_off=off), part, layer, **more)

    return attended


def rounds(kept):
    return lambda path: {name: weight.bfloat16().float() for name, weight in kept(path).items()}


def forgets_moments(kept):
    return lambda self, tensors: kept(self, {k: v for k, v in tensors.items() if not k.startswith("adam.")})


def loses_a_part(kept):
    return lambda self, count: kept(self, count)[: max(1, count - 1)]


def other_rows(kept):
    return lambda *given, seed, **more: kept(*given, seed=seed + 1, **more)


def forgets_to_smooth(kept):
    return lambda *given, smoothing: kept(*given, smoothing=0.0)


def divides_by_one_more(kept):
    return lambda self, counts: kept(self, counts + 1)


def draws_by_place(kept):
    """Random numbers of a sentence's place in the batch."""
    return lambda seed, keys, rows, counts: kept(seed, np.arange(len(keys), dtype=np.uint64), rows, counts)


def second_best(kept):
    return lambda logits, *given, **more: kept(-logits, *given, **more)


def others_rows(kept):
    return lambda self: kept(self).flip(1)


def nearly_steps(kept):
    return lambda self, *given: near(kept(self, *given))


def all_guesses(kept):
    """Guesses that nobody looks at."""
    return lambda guess, chosen: [*((piece, logp) for piece, (_, logp) in zip(guess, chosen, strict=False)), chosen[-1]]


def coarser(kept):
    """Three bits or so."""

    def made(model, kind="float32"):
        if kind != "float32":
            model = copy.deepcopy(model)
            for parameter in model.parameters():
                parameter.data = (parameter.data * 2).round() / 2
        return kept(model, kind)

    return made


HEADS = "regard.verify.heads"
LEARNING = "regard.verify.learning"
FAULTS = [
    ("fused kernel = formula", f"{HEADS}.attention", lambda kept: wrong_attention),
    ("band = formula", f"{HEADS}.attention", lambda kept: wrong_attention),
    ("seeing nothing = zeros", f"{HEADS}.attention", lambda kept: spoilt),
    ("weights of a query sum to one", f"{HEADS}.attention_formula", lambda kept: wrong_formula),
    ("outputs lie among the values", f"{HEADS}.attention", lambda kept: escaping),
    ("attention sees a set", f"{HEADS}.attention", lambda kept: ordered),
    ("cached = uncached", (Cache, "open"), off_by_one),
    ("ragged rows = each row alone", (Cache, "close"), forgets_nothing),
    ("moved rows = separate rows", (Cache, "select"), same_rows),
    ("the future is not seen", (Causal, "draw"), looks_ahead),
    ("batch of one = batch of many", (DecoderOnly, "forward"), knows_the_batch),
    ("batch of one = batch of many", (EncoderDecoder, "forward"), knows_the_batch),
    ("padded = unpadded", (Padding, "draw"), sees_padding),
    ("permuted input = permuted output", (EncoderOnly, "forward"), knows_the_order),
    ("packed = each document alone", "regard.models.decoder_only.within_documents", sees_others),
    ("windowed cache = whole text", (WindowCache, "open"), off_by_one),
    ("observed weights = formula", (Trace, "keep"), shows_other_weights),
    ("observed weights give the output", (Trace, "keep"), shows_other_weights),
    ("observed = unobserved", (Trace, "attention"), disturbs),
    ("head off = its columns of W_O at zero", (Trace, "attention"), wrong_head),
    ("batched search = plain search", (Group, "_norm"), divides_by_one_more),
    ("searched alone = in company", "regard.decoding.group.uniforms", draws_by_place),
    ("streamed = whole", "regard.decoding.stream.choose", second_best),
    ("alignment = forced alignment", (PlainSteps, "observed"), others_rows),
    ("compiled steps = plain steps", (FastSteps, "advance"), nearly_steps),
    ("drafted text = plain text", "regard.decoding.drafted._agreed", all_guesses),
    ("fewer bits = float32, nearly", "regard.verify.faster.step_model", coarser),
    ("saved = loaded", "regard.verify.storing.read_weights", rounds),
    ("resumed = uninterrupted", (FlatAdam, "load"), forgets_moments),
    ("accumulated = whole batch", (PairBatch, "cut"), loses_a_part),
    ("two processes = one", f"{LEARNING}.learn", other_rows),
    ("label-smoothed loss = torch's", f"{LEARNING}.cross_entropy", forgets_to_smooth),
]


@pytest.mark.parametrize(("name", "place", "fault"), FAULTS)
def test_a_fault_is_noticed(name, place, fault, subject, monkeypatch):
    if isinstance(place, str):
        monkeypatch.setattr(place, fault(eval_path(place)))
    else:
        owner, method = place
        monkeypatch.setattr(owner, method, fault(getattr(owner, method)))
    result = measure(NAMED[name], subject)
    assert result is not None
    assert not result.held, result


def eval_path(place):
    module, _, name = place.rpartition(".")
    return getattr(__import__(module, fromlist=[name]), name)


def test_every_equality_has_a_fault():
    assert {name for name, _, _ in FAULTS} == set(NAMED)


def test_a_model_with_a_cache_that_is_off_by_one_fails(subject):
    """The fault is in the model and not in the cache: a step that looks its pieces up one position on."""

    class Hasty(DecoderOnly):
        def step(self, tokens_BT, cache, *, counts=None, trace=None):
            fresh = not max(cache.lengths)
            return super().step(tokens_BT if fresh else tokens_BT.roll(1, dims=0), cache, counts=counts, trace=trace)

    case = next(case for case in subject.grid if isinstance(case.model, DecoderOnly))
    hasty = Hasty(case.model.config).eval()
    hasty.load_state_dict(case.model.state_dict())
    broken = dataclasses.replace(subject, grid=(case._replace(model=hasty),), long_models=())
    result = measure(NAMED["cached = uncached"], broken)
    assert not result.held
    assert case.name in result.worst
    whole = dataclasses.replace(subject, grid=(case,), long_models=())
    assert measure(NAMED["cached = uncached"], whole).held


def test_weights_that_are_no_numbers_hold_nothing(subject):
    """A difference of NaN is no difference, and not below any bound."""
    case = next(case for case in subject.models if isinstance(case.model, EncoderOnly))
    broken = EncoderOnly(case.model.config).eval()
    with torch.no_grad():
        next(module for module in broken.modules() if isinstance(module, MultiHead)).project.weight[0, 0] = torch.nan
    alone = dataclasses.replace(subject, models=(case._replace(model=broken),), long_models=())
    for name in ("batch of one = batch of many", "padded = unpadded", "observed = unobserved", "saved = loaded"):
        assert not measure(NAMED[name], alone).held, name
