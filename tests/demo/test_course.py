"""The demonstration from its corpus to its page, on a model so small that it learns nothing: the figures are what they
say they are, and the terminal and the report show them."""

from dataclasses import replace

import pytest
import torch

from regard.cli.demo import described, lecture_questions, place_of
from regard.demo import course
from regard.demo.course import FRENCH, TIRED, TURKISH, WIDE, exact_share, find_head, it_row, run_demo, tag_of
from regard.demo.grammar import LECTURE_SENTENCES, corpus, references
from regard.demo.page import outcome_section
from regard.explorer.report import write_report
from regard.tasks.run import load
from regard.tasks.start import Silent
from regard.training.checkpoint import Progress


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The demonstration with a tenth of its corpus and six updates."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    with pytest.MonkeyPatch.context() as patch:
        whole = course.demo_recipe

        def short(place, minutes):
            recipe = whole(place, minutes)
            shape = replace(recipe.model, d_model=16, d_ff=16)
            training = replace(recipe.training, steps=6, valid_every=6, precision="float32")
            return replace(recipe, model=shape, training=training)

        patch.setattr(course, "demo_recipe", short)
        patch.setattr(course, "corpus", lambda: corpus(size=4500, valid=30, test=60))
        patch.setattr(course, "REFERENCES", 10)
        outcome = run_demo(folder, minutes=3, watcher=Silent())
    return folder, outcome


def test_the_course(made):
    folder, outcome = made
    assert set(outcome.exact) == set(outcome.tested) == {"en-fr", "fr-en", "en-tr", "all"}
    assert outcome.tested == {"en-fr": 20, "fr-en": 20, "en-tr": 20, "all": 60}
    run = load(folder)
    assert outcome.lectures == tuple(
        (pair, run.translate(pair.source, tag=tag_of(pair.direction)).text) for pair in LECTURE_SENTENCES
    )
    for (text, row), expected in zip(outcome.rows, (TIRED, WIDE), strict=True):
        assert text == expected
        assert [word for word, _ in row] == [outcome.found.place[0], *expected.split(), "</s>"]
        assert sum(weight for _, weight in row) == pytest.approx(1, abs=1e-5)
        assert row == it_row(run, text, outcome.found.place)
    assert outcome.seconds > 0


class Parrot:
    """Translates into what it was told, or else into nothing."""

    def __init__(self, known):
        self.known = known

    def translate(self, texts, *, tag):
        return [type("Translation", (), {"text": self.known.get((text, tag), "")}) for text in texts]


def test_shares_are_of_what_is_right_to_the_letter():
    pairs = corpus(size=4500, valid=0, test=60).test
    known = {(pair.source, tag_of(pair.direction)): pair.target for pair in pairs}
    assert exact_share(Parrot(known), pairs) == {"en-fr": 1.0, "en-tr": 1.0, "fr-en": 1.0, "all": 1.0}
    for pair in [one for one in pairs if one.direction == "en-tr"][:5]:
        known[pair.source, tag_of("en-tr")] += "!"
    assert exact_share(Parrot(known), pairs) == {"en-fr": 1.0, "en-tr": 0.75, "fr-en": 1.0, "all": 55 / 60}


@pytest.mark.parametrize(("in_french", "tag", "much"), [(0.55, FRENCH, 0.55), (0.4, TURKISH, 0.6)])
def test_the_head_is_the_one_whose_antecedents_outweigh_most(in_french, tag, much, made, monkeypatch):
    """Weights made up for each head: one always looks at the place, one a little at the antecedent, one much, in
    Turkish more than in French."""
    folder, _ = made
    run = load(folder)
    monkeypatch.setattr(course, "REFERENCES", 10)
    antecedents = {one.sentence: one for one in references(count=10, seed=1)}

    def rows(run, text, tag):
        pieces = course._words(run, text, tag)
        names = {number: word.strip(".,").lower() for number, word in pieces}
        one = antecedents[text]
        animal, place = sorted((one.antecedent, one.other), key=[*names.values()].index)

        def row(wanted, much):
            numbers = [number for number, _ in pieces]
            target = next(number for number, word in names.items() if word == wanted)
            return torch.tensor([much / numbers.count(number) if number == target else 0.0 for number in numbers])

        return [
            (("encoder.self", 0, 0), row(place, 1.0)),
            (("encoder.self", 0, 1), row(one.antecedent, 0.2)),
            (("decoder.cross", 0, 0), row(animal, 1.0)),
            (("decoder.cross", 0, 1), row(one.antecedent, {FRENCH: in_french, TURKISH: 0.6}[tag])),
        ]

    monkeypatch.setattr(course, "_rows_of_it", rows)
    found = find_head(run)
    assert (found.place, found.sentences, found.right) == ((tag, ("decoder.cross", 0, 1)), 10, 1.0)
    assert found.means == (pytest.approx((much, 0, 0)), pytest.approx((0, much, 0)))


@pytest.mark.parametrize(
    ("tag", "written", "step"),
    [
        (FRENCH, ["<s>", "▁la", "▁rue", "▁parce", "▁qu'", "elle", "▁était"], 4),
        (FRENCH, ["<s>", "▁parce", "▁qu'il", "▁était"], 1),
        (FRENCH, ["<s>", "▁la", "▁rue"], 2),
        (TURKISH, ["<s>", "▁geçmedi", "▁çünkü", "▁hay", "van", "▁çok"], 2),
        (TURKISH, ["<s>", "▁geçmedi", "▁çün", "kü", "▁cadde"], 3),
        (TURKISH, ["<s>", "▁geçmedi"], 1),
    ],
)
def test_the_step_that_translates_it(tag, written, step):
    assert course._step_of_it(written, tag) == step


def test_the_terminal_and_the_report_say_it(made):
    folder, outcome = made
    told = described(outcome)
    report = write_report(folder, outcome_section(outcome)).read_text(encoding="utf-8")
    assert f"all                 {outcome.exact['all']:6.1%} of 60" in told
    assert f"{outcome.exact['all']:.1%}</td>" in report
    for text in (TIRED, WIDE):
        assert text in told
    assert report.index('id="demonstration"') < report.index('id="curves"')
    assert report.count('class="shaded"') == 2
    assert f'title="{dict(outcome.rows[0][1])["it"]:.2f}">it</span>' in report


def test_the_explorer_begins_at_it(made):
    folder, outcome = made
    for part, step in (("encoder.self", 9), ("decoder.cross", 4)):
        found = replace(outcome.found, place=(TURKISH, (part, 1, 3)))
        state = {"view": "heads", "part": part, "layer": "1", "heads": "3", "head": "3", "row": str(step)}
        assert place_of(replace(outcome, found=found, step=step)) == state
    questions = [(question.text, question.tag) for question in lecture_questions(TURKISH)]
    assert questions == [(TIRED, TURKISH), (WIDE, TURKISH), ("Je suis étudiant.", "<2en>")]
    run = load(folder)
    pieces = [word for _, word in course._words(run, TIRED, FRENCH)]
    assert [pieces[place] for place in course._places_of_it(run, TIRED, (FRENCH, ("encoder.self", 0, 0)))] == ["it"]
    place = (outcome.found.place[0], ("decoder.cross", 0, 0))
    (step,) = course._places_of_it(run, TIRED, place)
    assert step == course._step_of_it(run.trace(TIRED, tag=place[0])[2], place[0])


def test_stopped_it_says_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(course, "train", lambda *given, **more: Progress(step=3))
    monkeypatch.setattr(course, "corpus", lambda: corpus(size=4500, valid=0, test=0))
    assert run_demo(tmp_path, minutes=3, watcher=Silent()) is None
