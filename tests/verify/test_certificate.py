"""The certificate's machinery: the worst case counts, and what cannot be measured does not hold."""

import dataclasses
import json
import math

import pytest
import torch

from regard.verify import EQUALITIES, Equality, built_in_subject, certify, difference
from regard.verify.certificate import COLUMNS, bound_in, ending, heading, measure, row
from regard.verify.subject import FAMILIES, KINDS, PATTERNS


@pytest.fixture(scope="module")
def subject():
    return built_in_subject(seed=7)


def equality(*cases, bound=0.1, error=None):
    def measured(subject):
        yield from cases
        if error:
            raise error

    return Equality(name="this = that", says="they are the same", bound=bound, measure=measured)


def test_a_difference_is_relative_only_above_one():
    one, other = torch.tensor([0.5, 100.0]), torch.tensor([0.4, 101.0])
    assert difference(one, other) == pytest.approx(0.1)
    assert difference(one * 10, other * 10) == pytest.approx(0.25)
    assert difference(torch.tensor([0.5, 1.0]), torch.tensor([0.4, 10.0]), by_largest=True) == pytest.approx(0.9)
    assert difference(torch.zeros(0), torch.zeros(0)) == 0
    assert math.isnan(difference(torch.tensor([1.0, math.nan]), torch.ones(2)))
    assert math.isnan(difference(torch.ones(2), torch.tensor([math.nan, 1.0])))
    with pytest.raises(ValueError, match=r"shapes \(1, 2\) and \(2, 1\) differ"):
        difference(torch.ones(1, 2), torch.ones(2, 1))


def test_the_worst_case_counts(subject):
    result = measure(equality(("a", 0.01), ("b", 0.1), ("c", 0.0)), subject)
    assert (result.cases, result.worst, result.difference, result.held) == (3, "b", 0.1, True)
    assert not measure(equality(("a", 0.01), ("b", 0.11)), subject).held
    assert measure(equality(("a", 0.0), bound=0.0), subject).held
    assert not measure(equality(("a", 1e-30), bound=0.0), subject).held


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (equality(("a", 0.0), ("b", math.nan), ("c", 0.0)), "b: not a number"),
        (equality(("a", math.inf)), None),
        (equality(error=RuntimeError("no\nmemory")), "after 0 cases: RuntimeError: no\nmemory"),
        (equality(("a", 0.0), error=ValueError("shapes differ")), "after 1 cases: ValueError: shapes differ"),
    ],
)
def test_what_cannot_be_measured_does_not_hold(broken, said, subject):
    certificate = certify(subject, [broken, equality(("a", 0.0))])
    assert not certificate.held
    assert [result.held for result in certificate.results] == [False, True]
    assert certificate.results[0].error == said
    assert ending(certificate) == "1 of 2 equalities hold"
    plain = json.loads(json.dumps(certificate.to_plain(), allow_nan=False))
    assert plain["results"][0]["difference"] is None
    lines = row(certificate.results[0], EQUALITIES).splitlines()
    assert lines[0].startswith("FAILS  this = that ")
    assert "they are the same" in lines[1]
    assert all(len(line) <= COLUMNS for line in lines)


def test_an_equality_without_cases_is_left_out(subject):
    told = []
    certificate = certify(subject, [equality(), equality(("a", 0.0))], told=told.append)
    assert list(certificate.results) == told
    assert [result.cases for result in told] == [1]


def test_figures_are_shown_whether_it_holds_or_not(subject):
    for bound, word in ((0.5, "holds"), (0.1, "FAILS")):
        told = dataclasses.replace(equality(("a: 9 of 10", 0.1), ("b: 8 of 10", 0.2), bound=bound), tells=True)
        result = measure(told, subject)
        assert result.figures == ("a: 9 of 10", "b: 8 of 10")
        lines = row(result, [told]).splitlines()
        assert lines[0].startswith(word)
        assert [line.strip() for line in lines[1:3]] == ["a: 9 of 10", "b: 8 of 10"]


def test_types_with_fewer_digits_may_differ_more_but_exact_is_exact():
    assert bound_in(torch.float32, 1e-5) == bound_in(torch.float64, 1e-5) == 1e-5
    assert bound_in(torch.bfloat16, 1e-5) == 16 * 2**-7
    assert bound_in(torch.bfloat16, 0.0) == 0.0


def test_the_plain_form(subject):
    plain = certify(subject, [equality(("a", 0.01))]).to_plain()
    assert plain.keys() == {"format", "subject", "held", "environment", "results"}
    assert plain["held"] is True
    assert plain["environment"].keys() == {
        "regard", "torch", "python", "system", "processor", "device", "threads", "dtype", "seed",
    }  # fmt: skip
    assert (plain["environment"]["dtype"], plain["environment"]["device"]) == ("float32", "cpu")
    assert (plain["environment"]["torch"], plain["environment"]["seed"]) == (torch.__version__, 7)
    (result,) = plain["results"]
    seconds = result.pop("seconds")
    assert seconds >= 0
    assert result == {
        "name": "this = that", "says": "they are the same", "cases": 1, "worst": "a", "difference": 0.01, "bound": 0.1,
        "held": True, "error": None, "figures": (),
    }  # fmt: skip


def test_the_built_in_models_are_every_combination(subject):
    assert len(subject.grid) == len(FAMILIES) * len(KINDS) * 2 * len(PATTERNS)
    configs = [case.model.config for case in subject.models]
    for family in FAMILIES:
        assert {config.positions for config in configs if config.family == family} == set(KINDS)
        assert {config.attention for config in configs if config.family == family} == set(PATTERNS)
        assert {config.norm for config in configs if config.family == family} == {"pre", "post"}
    assert len({case.name for case in subject.models}) == len(subject.models)


def test_a_seed_is_a_subject_and_random_numbers_outside_stay_as_they_are(subject):
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    again, other = built_in_subject(seed=7), built_in_subject(seed=8)
    assert torch.equal(torch.rand(3), expected)
    weights = [next(one.grid[3].model.parameters()) for one in (subject, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_what_people_read_fits(subject):
    assert len({each.name for each in EQUALITIES}) == len(EQUALITIES)
    for each in EQUALITIES:
        result = measure(Equality(name=each.name, says=each.says, bound=each.bound, measure=equality(("a", 0)).measure),
                         subject)  # fmt: skip
        assert len(row(result, EQUALITIES)) <= COLUMNS
        assert len(each.says) <= 110
    assert all(len(line) <= COLUMNS for line in heading(subject, EQUALITIES).splitlines())
