"""What the page is given equals what a trace has: in a file to the digits that it keeps, and step by step."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.explorer.arrays import from_planes, unpacked
from regard.explorer.calculation import stacks
from regard.explorer.looks import Look, Question
from regard.explorer.pages import Framed, page_document, write_page
from regard.explorer.studio import Studio
from regard.nn import Trace, attention_formula

from .tiny import make_run

TEXT, TARGET = "the animal didn't cross the street", "je suis étudiant"
EVIL = '</script><img src=x onerror="alert(1)"><!-- \u2028 &amp;'


class Read:
    """A file as the page reads it."""

    def __init__(self, document):
        self.document = document
        self.payload = json.loads(self._script("regard-payload"))
        self.data = unpacked(self._script("regard-arrays"))

    def _script(self, name):
        (found,) = re.findall(f'<script type="[a-z/]+" id="{name}">(.*?)</script>', self.document, re.DOTALL)
        return found

    def array(self, holder, name):
        return from_planes(self.data, holder["arrays"][name])


@pytest.fixture
def read(run, bare_page):
    def make(*texts, **options):
        return Read(page_document(run, texts, **options))

    return make


def kept(value, decimals=3):
    """What a file keeps of a tensor."""
    return np.array([float(f"{x:.{decimals}f}") for x in value.flatten().tolist()]).reshape(tuple(value.shape))


def test_a_file_has_what_the_trace_has(run, read):
    page = read(Question(text=TEXT, target=TARGET, tag="<2fr>"))
    item = page.payload["items"][0]
    trace, source, written = run.trace(TEXT, TARGET, tag="<2fr>", kinds=("weights", "scores"))
    assert (item["sides"]["source"]["pieces"], item["sides"]["target"]["pieces"]) == (source, written)
    compared = 0
    for part in item["parts"]:
        for layer in range(part["layers"]):
            name = f"{part['part']}.{layer}"
            assert np.array_equal(page.array(item, f"{name}.weights"), trace[f"{name}.weights"][0].numpy())
            assert np.array_equal(page.array(item, f"{name}.scores"), kept(trace[f"{name}.scores"][0]))
            compared += 1
        mask = page.array(item, f"{part['part']}.mask")
        assert np.array_equal(mask > 0, page.array(item, f"{part['part']}.0.weights")[0] > 0)
    assert compared == 6
    assert page.array(item, "decoder.self.mask").tolist() == np.tril(np.ones((len(written),) * 2)).tolist()


@pytest.mark.parametrize(
    "shape",
    [
        {"norm": "post"},
        {"norm": "pre", "norm_kind": "rms", "activation": "swiglu", "positions": "rotary", "kv_heads": 2},
        {"positions": "shaw", "d_k": 3, "d_v": 5},
        {"positions": "alibi", "attention": "sliding", "window": 3},
        {"positions": "learned", "embedding_norm": True, "biases": False},
    ],
)  # fmt: skip
def test_the_calculation_is_the_models(tmp_path, shape):
    """Every step follows from the steps before by the formula that it states, and ends where the trace does."""
    run = make_run(tmp_path / "run", **shape)
    look = Look(run, Question(text=TEXT, target=TARGET))
    studio = Studio([run])
    holder = studio.look(look.question)
    kinds = ("weights", "scores", "queries", "keys", "values", "head_outputs", "residual")
    trace, _, _ = run.trace(TEXT, TARGET, kinds=kinds)
    pre = shape.get("norm") == "pre"
    for stack, (_, groups) in stacks(look).items():
        before = None
        for group in groups:
            if not group.steps:
                continue

            def of(step, group=group):
                return torch.from_numpy(holder.array(f"calculation.{group.name}.{step}").values())

            if before is not None:
                assert torch.equal(of("in"), before)
            if group.part:
                q, k, v = (trace[f"{group.name}.{kind}"][0] for kind in ("queries", "keys", "values"))
                assert torch.equal(of("queries"), q.transpose(0, 1))
                assert torch.equal(of("values"), v.transpose(0, 1))
                torch.testing.assert_close(of("products"), q @ k.mT)
                torch.testing.assert_close(of("scaled"), q @ k.mT / q.shape[-1] ** 0.5)
                last = "biased" if "biased" in group.steps else "scaled"
                torch.testing.assert_close(of(last), trace[f"{group.name}.scores"][0])
                related = shape.get("positions") in ("shaw", "alibi") and "self" in group.part
                assert ("biased" in group.steps) == related
                outputs = trace[f"{group.name}.head_outputs"][0].transpose(0, 1)
                assert torch.equal(of("mixed"), outputs)
                module = look.module(group.part, group.layer).join
                torch.testing.assert_close(of("joined"), outputs.flatten(1) @ module.weight.T + (
                    0 if module.bias is None else module.bias))  # fmt: skip
                torch.testing.assert_close(of("added"), of("in") + of("joined"))
            elif "inner" in group.steps:
                assert of("inner").shape[1] == 24
                torch.testing.assert_close(of("added"), of("in") + of("outer"))
            if group.name.endswith("input"):
                after = of("in")
            elif group.name.endswith("norm"):
                after = of("out")
            else:
                after = of("added" if pre else "out")
                torch.testing.assert_close(after, trace[f"{group.name}.residual"][0])
            before = after
        if stack == "decoder":
            torch.testing.assert_close(before, look.states[0])


def test_nothing_is_left_out_of_a_small_file(read):
    page = read(Question(text=TEXT, target=TARGET))
    item = page.payload["items"][0]
    for stack in item["sections"]["calculation"]["stacks"].values():
        assert stack["rows"] == list(range(len(item["sides"][stack["side"]]["pieces"])))
        for group in stack["groups"]:
            for step in group["steps"]:
                assert step["kind"] == "pieces" or step["array"] in item["arrays"]
    assert not any("rows" in entry or "heads" in entry for entry in item["arrays"].values())


def test_displacement_measures_the_residual_stream(run):
    holder = Studio([run]).look(Question(text=TEXT, target=TARGET))
    section, _ = holder.section("displacement")
    trace, _, _ = run.trace(TEXT, TARGET, kinds=("residual",))
    states = [trace[f"{name}.residual"][0] for name in ("encoder.self.0", "encoder.feed_forward.0", "encoder.self.1")]
    assert [place["name"] for place in section["encoder"]["places"]][:3] == [
        "encoder.input", "encoder.self.0", "encoder.feed_forward.0"
    ]  # fmt: skip
    lengths = torch.from_numpy(holder.array("displacement.encoder.lengths").values())
    torch.testing.assert_close(lengths[2], (states[1] - states[0]).norm(dim=-1))
    torch.testing.assert_close(lengths[3], (states[2] - states[1]).norm(dim=-1))
    assert lengths[0].count_nonzero() == 0
    assert 0 < sum(section["encoder"]["explained"]) <= 1
    points = holder.array("displacement.encoder.points").values()
    assert points.shape == (5, len(holder.facts["sides"]["source"]["pieces"]), 2)


def test_words_and_pieces(read):
    sides = read(Question(text=TEXT, target=TARGET, tag="<2fr>")).payload["items"][0]["sides"]
    source = sides["source"]
    assert source["word_texts"] == ["<2fr>", "the", "animal", "didn't", "cross", "the", "street", "</s>"]
    assert len(source["words"]) == len(source["pieces"]) == len(source["texts"]) == len(source["special"])
    assert "".join(source["texts"]).strip() == TEXT
    assert [source["special"][0], source["special"][1], source["special"][-1]] == [True, False, True]
    assert sides["target"]["next"][:-1] == sides["target"]["pieces"][1:]


def test_steps_and_alignment(run, read):
    page = read(Question(text=TEXT, target=TARGET))
    item = page.payload["items"][0]
    decoding = item["sections"]["decoding"]
    trace, _, _ = run.trace(TEXT, TARGET, kinds=("logits", "weights"))
    chances = trace["decoder.logits"][0].double().softmax(-1)
    ids = item["sides"]["target"]["ids"]
    for row, step in enumerate(decoding["steps"]):
        best = chances[row].topk(10)
        assert [candidate["id"] for candidate in step["candidates"]] == best.indices.tolist()
        assert [candidate["probability"] for candidate in step["candidates"]] == pytest.approx(best.values.tolist())
        if row + 1 < len(ids):
            assert step["chosen"]["id"] == ids[row + 1]
            assert step["chosen"]["probability"] == pytest.approx(float(chances[row, ids[row + 1]]))
            assert step["chosen"]["rank"] == int((chances[row] > chances[row, ids[row + 1]]).sum())
    assert len(decoding["steps"]) == len(ids)
    alignment = decoding["alignment"]
    found = page.array(item, alignment["array"])
    np.testing.assert_allclose(found, trace["decoder.cross.0.weights"][0].mean(0), atol=1e-7)
    assert alignment["links"] == [[row, int(keys.argmax())] for row, keys in enumerate(found)]


def test_what_the_model_writes_is_what_it_translates(run):
    studio = Studio([run])
    item = studio.look(Question(text=TEXT, tag="<2fr>"))
    answer = run.translate(TEXT, tag="<2fr>")
    section, _ = item.section("decoding")
    assert item.facts["written"]
    assert item.facts["target"] == answer.text
    assert section["answers"][0]["text"] == answer.text
    assert section["answers"][0]["score"] == pytest.approx(answer.score)
    ids = item.facts["sides"]["target"]["ids"][1:4]
    further = studio.decode(item.look.question, prefix=ids[:2], beam=1)
    assert further.facts["sides"]["target"]["ids"][1:3] == ids[:2]
    assert further.section("decoding")[0]["prefix"] == 2


def test_a_head_that_is_off_makes_exactly_the_difference_of_a_trace(run):
    studio = Studio([run])
    item = studio.look(Question(text=TEXT, target=TARGET))
    off = frozenset({("encoder.self", 1, 2), ("decoder.cross", 0, 3)})
    ids = [*item.look.sides["target"].ids[1:], run.tokenizer.specials.end]
    source = torch.tensor([item.look.sides["source"].ids])
    sums = []
    for heads in (frozenset(), off):
        trace = Trace(kinds=frozenset({"logits"}), heads_off=heads)
        with torch.no_grad():
            states = run.model(source, torch.tensor([source.shape[1]]), torch.tensor([item.look.sides["target"].ids]),
                               trace=trace)  # fmt: skip
            run.model.logits(states, trace=trace)
        logps = trace["decoder.logits"][0].double().log_softmax(-1)
        sums.append(sum(float(row[id]) for row, id in zip(logps, ids, strict=True)))
    found = studio.ablate(item.id, off).facts
    assert found["logp"] == sums
    assert found["change"] == sums[1] - sums[0] != 0
    assert sum(piece["logp"][1] for piece in found["pieces"]) == sums[1]
    assert found["item"]["heads_off"] == [["decoder.cross", 0, 3], ["encoder.self", 1, 2]]
    assert found["text"][0] == run.translate(TEXT).text
    same = studio.ablate(item.id, frozenset()).facts
    assert (same["change"], same["text"][0]) == (0.0, same["text"][1])


def test_measures(run):
    item = Studio([run]).look(Question(text=TEXT, target=TARGET))
    heads = item.section("measures")[0]["heads"]
    assert len(heads) == 2 * 4 * 3
    head = heads[5]
    assert (head["part"], head["layer"], head["head"]) == ("encoder.self", 1, 1)
    w = item.array("encoder.self.1.weights").values()[1].astype(np.float64)
    places = np.arange(len(w))
    assert head["entropy"] == pytest.approx(-(w * np.log2(w)).sum(1).mean(), rel=1e-6)
    assert head["distance"] == pytest.approx((w * abs(places - places[:, None])).sum(1).mean(), rel=1e-6)
    assert head["previous"] == pytest.approx(np.diagonal(w, -1).sum() / len(w), rel=1e-6)
    assert head["next"] == pytest.approx(np.diagonal(w, 1).sum() / len(w), rel=1e-6)
    assert head["self"] == pytest.approx(np.diagonal(w).mean(), rel=1e-6)
    assert head["first"] == pytest.approx(w[:, 0].mean(), rel=1e-6)
    one, other = w.max(1).mean(), w.max(0).mean()
    assert head["alignment"] == pytest.approx(2 * one * other / (one + other), rel=1e-6)
    assert heads[8]["next"] is None
    assert heads[16]["distance"] is None


class Elements(HTMLParser):
    """What a browser would make elements of."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize(
    "text", [EVIL, "שלום עולם", "你好，世界", "👩‍👩‍👧 naïve", "x" * 150 + "\ud7ff", "a\u0000\u2029b"]
)
def test_text_stays_text(read, text):
    page = read(Question(text=text, target=EVIL))
    item = page.payload["items"][0]
    assert (item["text"], item["target"]) == (text, EVIL)
    assert "".join(item["sides"]["source"]["texts"]).replace("\ufffd", "") in (text, f" {text}") or "�" in str(
        item["sides"]
    )
    elements = Elements(page.document).found
    assert [tag for tag, _ in elements] == [
        "html", "head", "meta", "meta", "meta", "meta", "link", "title", "style", "body", "div", "noscript", "p",
        "script", "script", "script",
    ]  # fmt: skip
    assert not any(name.startswith("on") or name == "src" for _, held in elements for name in held)


def test_the_policy_lets_only_the_pages_own_script_run(read):
    import base64
    import hashlib

    page = read(Question(text=TEXT, target=TARGET))
    policy = next(held["content"] for tag, held in Elements(page.document).found if "http-equiv" in held)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    for tag in ('script type="module"', "style"):
        code = re.search(f"<{tag}>(.*?)</", page.document, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_several_texts_two_runs_and_a_state(run, other, bare_page, tmp_path):
    state = {"view": "heads", "part": "encoder.self", "layer": 1, "heads": "2", "row": 3}
    path = write_page(run, ["a bank", Question(text="the bank", target="a")], tmp_path / "p.html", state=state,
                      against=other)  # fmt: skip
    payload = Read(path.read_text(encoding="utf-8")).payload
    assert payload["state"] == {**state, "layer": "1", "row": "3"}
    assert [(item["text"], item["run"]) for item in payload["items"]] == [
        ("a bank", 0), ("a bank", 1), ("the bank", 0), ("the bank", 1)
    ]  # fmt: skip
    assert [one["name"] for one in payload["runs"]] == ["tiny", "other"]
    told = payload["map"]["sections"]["map"]
    assert [text["text"] for text in told["texts"]] == ["a bank", "the bank"]
    assert [same["text"] for same in told["same"]] == ["bank"]
    with pytest.raises(InputError, match="there is no folder"):
        write_page(run, ["a"], tmp_path / "none" / "p.html")


def test_the_same_word_moves_to_two_places(run, read):
    page = read(Question(text="a bank, a bank", target="a"))
    whole = page.payload["map"]
    told = whole["sections"]["map"]
    bank = next(same for same in told["same"] if same["text"] == "bank")
    (_, one), (_, two) = bank["places"]
    along = page.array(whole, bank["cosines"])
    assert along[0] == pytest.approx(1.0)
    assert (along[1:] < 0.9999).all()
    square = page.array(whole, told["cosines"])
    assert square.shape == (3, len(told["texts"][0]["pieces"]), len(told["texts"][0]["pieces"]))
    assert square[1][one, two] == pytest.approx(along[1], abs=1e-4)
    points = page.array(whole, told["texts"][0]["points"])
    assert np.array_equal(points[0, one], points[0, two])
    assert not np.array_equal(points[1, one], points[1, two])
    table = run.model.target_pieces.weight.detach()
    row = told["neighbours"][one][0]
    cosines = torch.cosine_similarity(table, table[page.payload["items"][0]["sides"]["source"]["ids"][one]], dim=-1)
    assert row["cosine"] == pytest.approx(float(cosines.topk(2).values[1]), rel=1e-5)


def test_positions(run, read):
    page = read(Question(text=TEXT, target=TARGET))
    section = page.payload["runs"][0]["sections"]["positions"]
    assert [one["name"] for one in section["requirements"]] == [
        "unique", "distance", "longer", "bounded", "deterministic"
    ]  # fmt: skip
    assert all(one["met"] for one in section["requirements"])
    picture = page.array(page.payload["runs"][0], "positions.picture")
    angles = np.arange(50)[:, None] * 10_000.0 ** (-np.arange(0, 16, 2) / 16)
    np.testing.assert_allclose(picture[:, 0::2], np.sin(angles), atol=6e-4)


def test_a_decoder_alone_and_an_encoder_alone(tmp_path, bare_page):
    alone = make_run(tmp_path / "alone", family="decoder-only", positions="rotary", norm="pre")
    item = Read(page_document(alone, [TEXT])).payload["items"][0]
    assert (list(item["sides"]), [part["part"] for part in item["parts"]]) == (["target"], ["decoder.self"])
    assert (item["written"], item["target"]) == (False, TEXT)
    assert item["sections"]["decoding"]["alignment"] is None
    run = make_run(tmp_path / "labels", family="encoder-only", labels=3, pooling="attention", embeddings="tied_output")
    page = Read(page_document(run, [TEXT]))
    item = page.payload["items"][0]
    assert (list(item["sides"]), item["target"]) == (["source"], None)
    told = item["sections"]["classes"]
    ids = torch.tensor([item["sides"]["source"]["ids"]])
    with torch.no_grad():
        states = run.model(ids, torch.tensor([ids.shape[1]]))
        logits = run.model.logits(run.model.pool(states, torch.tensor([ids.shape[1]])))[0]
        shares = attention_formula(torch.zeros(1, 1, 1, 1), run.model.attend(states)[None], states[None]).weights
    assert [label["logit"] for label in told["labels"]] == pytest.approx(logits.tolist())
    assert sum(label["probability"] for label in told["labels"]) == pytest.approx(1.0)
    pooled = page.array(item, told["pooled"]["weights"])
    assert pooled.sum() == pytest.approx(1.0)
    assert shares.shape[-1] == len(pooled)
    assert item["sections"]["decoding"] is None


def test_in_a_notebook(run, bare_page):
    framed = Framed(page_document(run, [EVIL], frame="one"), "a <title>")
    (frame,) = Elements(framed._repr_html_()).found
    assert frame[0] == "iframe"
    assert frame[1]["sandbox"] == "allow-scripts allow-downloads"
    assert Read(frame[1]["srcdoc"]).payload["frame"] == "one"
    assert len(repr(framed)) < 100


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question(text="a", run=1), "run 1: there are runs 0 to 0"),
        (Question(text="a", weights="step-1"), "checkpoint 'step-1': .* has none"),
        (Question(text="a", target="a", heads_off=frozenset({("encoder.self", 9, 0)})), "2 layers of 4 heads"),
        (Question(text="a", tag="<2xx>"), "tag '<2xx>'"),
        (Question(text="a " * 5000), "pieces: the explorer takes 4,096"),
    ],
)
def test_wrong_questions(run, question, said):
    with pytest.raises(InputError, match=said):
        Studio([run]).look(question)
