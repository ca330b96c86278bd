"""The plain search notices when an option of a search does nothing, or something else: each in a trial of its own."""

import dataclasses
import itertools

import pytest
import torch

from regard.config import DecodingConfig
from regard.decoding.ensemble import EnsembleSteps
from regard.decoding.group import Group
from regard.decoding.restrict import Guard
from regard.decoding.steps import PlainSteps
from regard.nn import Cache
from regard.verify import built_in_subject, searching
from regard.verify.certificate import measure
from regard.verify.trials import TRIALS, Trial

GROUP = "regard.decoding.group"
(BATCHED,) = (each for each in searching.SEARCHING if each.name == "batched search = plain search")


@pytest.fixture(scope="module")
def subject():
    """A model of each family, of which one comes to another answer if it stops when that is likely the best."""
    whole = built_in_subject(seed=3)
    kept = tuple(case for case in whole.models if case.model.config.positions == "index")
    return dataclasses.replace(whole, models=kept)


def nothing(kept):
    return lambda *given: None


def first_given(kept):
    return lambda logits, *given: logits


def of_group_one(kept):
    return lambda scores, groups, width, strength: kept(scores, groups, width, 0.0)


def without_filters(kept):
    return lambda scores, options, chances: kept(scores, dataclasses.replace(options, top_k=0, top_p=1.0), chances)


def of_temperature_one(kept):
    return lambda scores, options, chances: kept(scores, dataclasses.replace(options, temperature=1.0), chances)


def half_the_phrases(kept):
    return lambda scores, written, phrases, **more: kept(
        scores, written, [each[:1] for each in phrases] if len(phrases) else phrases, **more
    )


def even(kept):
    return lambda self: torch.full_like(kept(self), 0.1)


def hasty(kept):
    """Closes with the first answer."""

    def close(self):
        kept(self)
        self.closed = self.closed | (self.done[..., 0] > float("-inf"))

    return close


def never_full(kept):
    def close(self):
        asked, self.options = self.options, dataclasses.replace(self.options, stopping="safe")
        kept(self)
        self.options = asked

    return close


def of_the_first(kept):
    return lambda self, *given: self.members[0].advance(*given).log_softmax(-1)


def swaps_two(kept):
    """Rows that are moved are each other's."""

    def select(self, rows):
        rows = torch.as_tensor(rows)
        return kept(self, rows.flip(0) if len(rows) > 3 else rows)

    return select


def one_off(kept):
    return lambda self, counts: kept(self, counts + 1)


def of(**options):
    return Trial(DecodingConfig(**options))


FAULTS = [
    (of(beam=4, length_penalty=0.6), (Group, "_norm"), one_off),
    (of(beam=3, repetition_penalty=1.7), f"{GROUP}.penalise", first_given),
    (of(beam=4, no_repeat_ngram=1), f"{GROUP}.forbid_repeats", nothing),
    (of(beam=4, groups=2, diversity=2.0), f"{GROUP}.diverse", of_group_one),
    (of(beam=4, coverage_penalty=0.5), (PlainSteps, "observed"), even),
    (of(beam=4), (Group, "_close"), hasty),
    (of(beam=3, stopping="full"), (Group, "_close"), never_full),
    (of(beam=2, stopping="likely"), (Group, "_close"), never_full),
    (of(beam=4), (Cache, "select"), swaps_two),
    (of(samples=4, top_k=2), f"{GROUP}.drawn", without_filters),
    (of(samples=4, top_p=0.3), f"{GROUP}.drawn", without_filters),
    (of(samples=4, temperature=2.0), f"{GROUP}.drawn", of_temperature_one),
    (Trial(DecodingConfig(beam=4), "a prefix"), f"{GROUP}.forbid_runs", nothing),
    (Trial(DecodingConfig(beam=4), "phrases"), f"{GROUP}.constrained", half_the_phrases),
    (Trial(DecodingConfig(beam=4), "least and most pieces"), f"{GROUP}.forbid_early_end", nothing),
    (Trial(DecodingConfig(beam=2), "two pieces only"), (Guard, "forbid"), nothing),
]


@pytest.mark.parametrize(("trial", "place", "fault"), FAULTS, ids=[str(trial) for trial, *_ in FAULTS])
def test_an_option_that_does_nothing_is_noticed(trial, place, fault, subject, monkeypatch):
    monkeypatch.setattr(searching, "TRIALS", (trial,))
    assert measure(BATCHED, subject).held
    if isinstance(place, str):
        module, _, name = place.rpartition(".")
        kept = getattr(__import__(module, fromlist=[name]), name)
        monkeypatch.setattr(place, fault(kept))
    else:
        monkeypatch.setattr(*place, fault(getattr(*place)))
    assert not measure(BATCHED, subject).held


def test_an_ensemble_of_one_is_noticed(subject, monkeypatch):
    members = [case for case in built_in_subject(seed=3).models if case.model.config.family == "encoder-decoder"]
    both = dataclasses.replace(subject, models=tuple(members))
    monkeypatch.setattr(searching, "TRIALS", ())
    assert measure(BATCHED, both).held
    monkeypatch.setattr(EnsembleSteps, "advance", of_the_first(None))
    assert not measure(BATCHED, both).held


def test_the_trials_meet_every_option_that_changes_an_answer():
    plain = DecodingConfig()
    met = {name for trial in TRIALS for name, value in vars(trial.options).items() if value != getattr(plain, name)}
    of_text = {"min_length", "min_ratio", "max_length", "max_ratio", "mbr", "forbid", "unknown", "alignment_heads"}
    of_batches = {"batch_rows", "batch_tokens", "seed", "guard", "precision"}
    assert met == set(vars(plain)) - of_text - of_batches
    assert {trial.asks for trial in TRIALS} == {
        "nothing more", "a prefix", "phrases", "least and most pieces", "two pieces only",
    }  # fmt: skip


def test_what_is_decided_too_narrowly_is_left_out(subject, monkeypatch):
    """Else two hypotheses that are as good would be an alarm; but if all is left out nothing was shown to hold."""
    monkeypatch.setattr(searching, "TRIALS", (of(beam=3),))
    monkeypatch.setattr(searching, "NARROW", float("inf"))
    assert measure(BATCHED, dataclasses.replace(subject, models=subject.models[-1:])) is None
    for one, other in itertools.pairwise(TRIALS):
        assert one != other
