"""Exported models answer in CTranslate2 as they do here, whatever they are built of; what it lacks is refused."""

import json
from dataclasses import replace

import pytest
import torch

pytest.importorskip("ctranslate2")

from regard.cli import main
from regard.config import DecodingConfig, ModelConfig, recipe_from
from regard.decoding import PlainModel, Request, Search, search, step_model
from regard.errors import InputError
from regard.interop.ctranslate2 import check_model, names, not_carried, search_arguments, specification
from regard.interop.ctranslate2_check import compare, random_samples
from regard.models import build_model
from regard.runs import save_run
from regard.text import train_tokenizer
from regard.text.spellings import spellings

LINES = "the cat sleeps a dog and dogs sleep red cats see now . in on under over blue green small big"

MODELS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre", "activation": "gelu", "embeddings": "separate", "output_bias": True},
    "rms": {"norm": "pre", "norm_kind": "rms", "activation": "gelu_tanh", "biases": False, "norm_epsilon": 1e-3},
    "gated": {"norm": "pre", "activation": "swiglu", "embedding_norm": True},
    "learned": {"positions": "learned", "activation": "silu", "scale_embeddings": False, "embeddings": "tied_output"},
    "index": {"positions": "index", "norm": "pre"},
    "binary": {"positions": "binary", "norm": "pre"},
    "none": {"positions": "none", "norm": "pre"},
    "rotary": {"positions": "rotary", "norm": "pre", "rotary_base": 500.0},
    "relative": {"positions": "relative", "norm": "pre", "relative_buckets": 8, "relative_distance": 6},
    "shaw": {"positions": "shaw", "relative_distance": 3},
    "shared keys": {"kv_heads": 2},
    "one key": {"kv_heads": 1, "norm": "pre"},
    "wide heads": {"d_k": 12, "d_v": 12, "norm": "pre"},
}


def made(noise=0.1, **values):
    """Random, with biases and norms that are not what they began as, and an end that comes."""
    tokenizer = train_tokenizer([LINES], recipe_from({"task": "translate", "tokens": {"kind": "word"}}).tokens, [])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        config = ModelConfig(
            vocabulary=tokenizer.size, encoder_layers=2, decoder_layers=2, dropout=0.0,
            **{"d_model": 32, "heads": 4, "d_ff": 48, "max_length": 60, **values},
        )  # fmt: skip
        model = build_model(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=noise)
    return model, tokenizer


def compared(model, tokenizer, folder, precision="float32"):
    spec = specification(model, tokenizer, tokenizer, precision=precision)
    folder.mkdir()
    spec.save(str(folder))
    called = names(tokenizer)
    return compare(
        model, folder, random_samples(model, tokenizer.specials), precision=precision, names=called,
        source_names=called, specials=tokenizer.specials,
    )  # fmt: skip


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_model_answers_the_same(kind, tmp_path):
    model, tokenizer = made(**MODELS[kind])
    check_model(model.config)
    certificate = compared(model, tokenizer, tmp_path / "made")
    assert certificate.held, certificate
    assert certificate.logp_largest < 1e-4, certificate


def test_int8_is_near(tmp_path):
    model, tokenizer = made(norm="pre", d_model=64)
    certificate = compared(model, tokenizer, tmp_path / "made", "int8")
    assert certificate.held
    assert 1e-4 < certificate.logp_spread < 0.2, certificate


def test_what_is_wrong_is_noticed(tmp_path):
    """An export whose weights are another's, by so little that most greedy answers stay, does not hold."""
    model, tokenizer = made(norm="pre")
    spec = specification(model, tokenizer, tokenizer, precision="float32")
    spec.save(str(tmp_path))
    with torch.no_grad():
        model.decoder.layers[1].cross.join.weight[3] += 0.05
    called = names(tokenizer)
    certificate = compare(
        model, tmp_path, random_samples(model, tokenizer.specials), precision="float32", names=called,
        source_names=called, specials=tokenizer.specials,
    )  # fmt: skip
    assert not certificate.held
    assert "log-probabilities of given pieces differ" in certificate.faults[0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"attention": "sliding"}, "model.attention = 'sliding'"),
        ({"positions": "alibi"}, "model.positions = 'alibi'"),
        ({"positions": "normalised_index"}, "model.positions = 'normalised_index'"),
        ({"d_k": 8, "d_v": 6}, "model.d_k = 8 and d_v = 6"),
    ],
)
def test_models_without_counterpart_are_refused_by_name(values, said):
    with pytest.raises(InputError, match=said):
        check_model(ModelConfig(vocabulary=9, **{"d_model": 32, "heads": 4, **values}))


@pytest.mark.parametrize(
    "options",
    [
        {"groups": 5},
        {"min_ratio": 0.5},
        {"min_p": 0.1},
        {"mbr": True},
        {"length_norm": "gnmt"},
        {"coverage_penalty": 0.2},
        {"stopping": "likely"},
        {"max_ratio": 3.0},
        {"alignment_heads": ("1.0",), "unknown": "replace"},
    ],
    ids=str,
)
def test_searches_without_counterpart_are_refused_by_name(options):
    tokenizer = made()[1]
    with pytest.raises(InputError, match=f"decoding.{next(iter(options))}"):
        search_arguments(DecodingConfig(**options), tokenizer)


SEARCHES = [
    {"beam": 1}, {"beam": 4}, {"beam": 2, "repetition_penalty": 1.5}, {"beam": 1, "no_repeat_ngram": 2},
    {"beam": 1, "min_length": 5},
    {"beam": 1, "repetition_penalty": 1.5}, {"beam": 1, "forbid": ("cat", "a dog")}, {"beam": 2, "max_length": 7},
    {"beam": 1, "unknown": "forbid"},
]  # fmt: skip
"""What is forbidden is taken out before their softmax, and after ours: only greedy answers are the same then."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """A model that ends early and late, its tokeniser, and theirs of it."""
    import ctranslate2

    model, tokenizer = made(noise=0.5, positions="learned", output_bias=True, embeddings="separate")
    with torch.no_grad():
        model.output_bias[:260] -= 9  # specials and bytes
        model.output_bias[tokenizer.specials.end] += 11
    place = tmp_path_factory.mktemp("theirs")
    specification(model, tokenizer, tokenizer, precision="float32").save(str(place))
    return model, tokenizer, ctranslate2.Translator(str(place), intra_threads=1)


def both(sides, decoding, *, nbest=1, fast=False):
    """Each sample's answers of both sides, theirs with the arguments that decoding.json has."""
    model, tokenizer, theirs = sides
    arguments = json.loads(json.dumps(search_arguments(decoding, tokenizer)))
    given, called = random_samples(model, tokenizer.specials), names(tokenizer)
    sources = [[called[id] for id in each.source] for each in given]
    its = theirs.translate_batch(sources, num_hypotheses=nbest, return_scores=True, **arguments)
    unknown = ((tokenizer.specials.unknown,),) if decoding.unknown == "forbid" else ()
    requests = [
        Request(source=each.source, read=each.read, limit=decoding.max_length, least=decoding.min_length)
        for each in given
    ]
    ours = search(
        step_model(model) if fast else PlainModel(model), requests,
        Search(
            end=tokenizer.specials.end, options=decoding, nbest=nbest,
            forbidden=(*spellings(tokenizer, decoding.forbid), *unknown),
        ),
    )  # fmt: skip
    for own, other in zip(ours, its, strict=True):
        yield own.answers, [([called[id] for id in answer.ids]) for answer in own.answers], other


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_searches_are_carried(options, sides):
    """With decoding.json's arguments theirs writes what ours does; without a penalty of length, which they end by."""
    decoding = DecodingConfig(**{"length_penalty": 0.0, "max_length": 20, "guard": False, **options})
    ended = set()
    for answers, written, other in both(sides, decoding):  # theirs ranks those cut at the limit as if they had ended
        assert not answers[0].ended or written[0] == other.hypotheses[0]
        ended |= {tuple(written[0])} if answers[0].ended else set()
    assert len(ended) > 1


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("penalty", [0.3, 1.0])
@pytest.mark.parametrize("beam", [2, 3])
def test_scores_and_stopping_are_theirs(beam, penalty, fast, sides):
    """All answers of a beam and their scores, where it stops when so many have ended, as theirs does."""
    decoding = DecodingConfig(beam=beam, length_penalty=penalty, stopping="full", max_length=40, guard=False)
    compared = 0
    for answers, written, other in both(sides, decoding, nbest=beam, fast=fast):
        if all(answer.ended for answer in answers) and all(len(each) < 39 for each in other.hypotheses):
            assert written == other.hypotheses
            assert [answer.score for answer in answers] == pytest.approx(other.scores, abs=2e-4)
            compared += 1
    assert compared >= 8


def test_what_is_not_the_same_there_is_told():
    assert len(not_carried(DecodingConfig())) == 3
    alike = DecodingConfig(stopping="full", guard=False, max_length=80)
    assert not_carried(alike) == ()
    assert not_carried(replace(alike, stopping="safe", length_penalty=0.0)) == ()
    for options, said in (
        ({"samples": 4}, "decoding.seed"), ({"unknown": "replace"}, "other heads"), ({"guard": True}, "guard"),
        ({"forbid": ("a",), "min_length": 3}, "decoding.forbid, min_length"),
    ):  # fmt: skip
        assert said in " ".join(not_carried(replace(alike, **options)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    def saved(name="run", decoding=None, **values):
        model, tokenizer = made(**values)
        plain = {"task": "translate", "tokens": {"kind": "word"}, "decoding": decoding or {}}
        folder = tmp_path_factory.mktemp("runs") / name
        save_run(folder, replace(recipe_from(plain), model=model.config), tokenizer, model)
        return folder

    return saved


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_command(precision, run, tmp_path, capsys):
    folder, out = run(norm="pre"), tmp_path / "out"
    assert main(["export", str(folder), "--to", "ctranslate2", "--out", str(out), "--precision", precision]) == 0
    said = capsys.readouterr().out
    assert "on 24 random sources log-probabilities differ by at most" in said
    certificate = json.loads((out / "certificate.json").read_text())
    assert certificate["held"]
    assert certificate["precision"] == precision
    assert [f"not the same there: {each}" for each in certificate["not_carried"]] == said.splitlines()[1:]
    assert len(certificate["not_carried"]) == 3
    tokens = {file.name for file in folder.glob("tokens.*")}
    assert {"model.bin", "decoding.json", *tokens} <= {file.name for file in out.iterdir()}
    assert main(["export", str(folder), "--to", "ctranslate2", "--out", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_nothing_is_left_of_what_disagrees(run, tmp_path, monkeypatch, capsys):
    from regard.interop import ctranslate2_check

    monkeypatch.setattr(ctranslate2_check, "BOUNDS", {"float32": 0.0})
    assert main(["export", str(run()), "--to", "ctranslate2", "--out", str(tmp_path / "out")]) == 2
    assert "CTranslate2 answers otherwise" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_wrong_weights_do_not_pass_for_rounding(run, tmp_path, monkeypatch, capsys):
    """In int8 a little is always different: the weights are compared before they are rounded."""
    from regard.interop import ctranslate2

    kept = ctranslate2.specification

    def wrong(model, *given, **more):
        with torch.no_grad():
            model.decoder.layers[1].cross.join.weight[3] += 0.02
            made = kept(model, *given, **more)
            model.decoder.layers[1].cross.join.weight[3] -= 0.02
        return made

    monkeypatch.setattr(ctranslate2, "specification", wrong)
    out = tmp_path / "out"
    assert main(["export", str(run(norm="pre")), "--to", "ctranslate2", "--out", str(out), "--precision", "int8"]) == 2
    assert "CTranslate2 answers otherwise" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_search_without_counterpart_is_told(run, tmp_path, capsys):
    folder = run(decoding={"beam": 4, "groups": 2})
    assert main(["export", str(folder), "--to", "ctranslate2", "--out", str(tmp_path / "out")]) == 2
    assert "decoding.groups = 2" in capsys.readouterr().err
