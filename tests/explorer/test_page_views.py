"""Each view in a real browser: the values on the screen are the trace's, to the digits that are printed."""

import pytest
import torch
import torch.nn.functional as F

from regard.explorer.looks import Question
from regard.explorer.pages import write_page
from regard.explorer.studio import Studio

from .tiny import TARGET, TEXT, make_run


@pytest.fixture(scope="module")
def traced(run):
    trace, source, target = run.trace(TEXT, TARGET, tag="<2fr>", kinds=("weights", "scores", "logits"))
    return trace, source, target


def plain(pieces):
    """Pieces as the page writes them."""
    return [piece.replace("▁", " ").removeprefix(" ") or "␣" for piece in pieces]


def signed(value, digits):
    """A value as the page writes it."""
    return f"{value:.{digits}f}".replace("-", "−")


def share(weight, digits):
    """A weight as the page writes it: what is not nothing is not written as nothing."""
    least = 10**-digits
    return "0" if weight == 0 else f"<{least:.{digits}f}" if weight < least / 2 else f"{weight:.{digits}f}"


def percent(chance):
    """A probability as the page writes it."""
    return "<0.1 %" if chance < 0.001 else f"{100 * chance:.1f} %"


def by_words(weights, rows, cols):
    """Merged weights: summed over the pieces of a key's word, averaged over those of a query's."""
    merged = torch.zeros(rows[-1] + 1, cols[-1] + 1, dtype=torch.float64)
    for row, to in enumerate(rows):
        for col, onto in enumerate(cols):
            merged[to, onto] += weights[row, col].double() / rows.count(to)
    return merged


def test_heads(screen, file_page, traced):
    trace, source, _ = traced
    weights = trace["encoder.self.1.weights"][0]
    shown = screen().open(file_page, part="encoder.self", layer=1, heads="2", head=2, row=3)
    assert shown.texts(".tokens.row .text") == shown.texts(".tokens.col .text") == plain(source)
    amounts = [f"{weight:.2f}" if weight >= 0.005 else "" for weight in weights[2, 3].tolist()]
    assert shown.texts(".tokens.col .token") == [
        f"{piece}\n{amount}".strip() for piece, amount in zip(plain(source), amounts, strict=True)
    ]
    best = weights[2, 3].topk(10)
    assert shown.texts(".bar-amount") == [f"{weight:.3f}" for weight in best.values.tolist()]
    assert shown.texts(".bar-text") == [plain(source)[place] for place in best.indices]
    said = f"Reading “{plain(source)[3]}”, layer 1, head 2 looks most at “{plain(source)[best.indices[0]]}”"
    assert shown.text(".reading .sentence") == f"{said}, with {best.values[0]:.2f} of the weight."
    shown.page.locator(".tokens.row .token").nth(5).hover()  # the pointer goes before what is held
    shown.settle()
    assert shown.texts(".bar-amount")[0] == f"{weights[2, 5].max():.3f}"
    shown.page.locator(".tokens.col .token").nth(4).hover()
    shown.settle()
    assert shown.texts(".bar-amount")[0] == f"{weights[2, :, 4].max():.3f}"


def test_several_heads_a_threshold_and_words(screen, file_page, traced, run):
    trace, _, _ = traced
    shown = screen().open(file_page, part="encoder.self", layer=0)
    weights = trace["encoder.self.0.weights"][0]
    assert shown.drawn(".links-canvas")[1] == int((weights >= 0.004).sum())  # fainter ones are no lines
    shown.page.locator("#threshold").fill("0.2")
    shown.settle()
    assert shown.drawn(".links-canvas")[1] == int((weights >= 0.2).sum())
    shown.click(".chip >> nth=1")  # of all it alone, then another beside it
    shown.click(".chip >> nth=3")
    assert shown.drawn(".links-canvas")[1] == int((weights[[1, 3]] >= 0.2).sum())
    assert shown.state["heads"] == "1,3"
    shown.click(".chip >> nth=3")
    shown.choose("Tokens", "words")
    tokenizer = run.source_tokenizer
    numbers = tokenizer.words([tokenizer.tag_id("<2fr>"), *tokenizer.encode(TEXT), tokenizer.specials.end])
    merged = by_words(weights[1], numbers, numbers)
    assert merged.sum(1) == pytest.approx(1.0)
    shown.page.locator(".tokens.row .token").nth(3).hover()
    shown.settle()
    assert shown.texts(".tokens.row .text") == ["<2fr>", *TEXT.split(), "</s>"]
    assert shown.texts(".bar-amount") == [f"{w:.3f}" for w in sorted(merged[3].tolist(), reverse=True) if w >= 0.0005]


def test_all_heads(screen, file_page, run):
    shown = screen().open(file_page, view="all", sort="entropy")
    heads = Studio([run]).look(Question(text=TEXT, target=TARGET, tag="<2fr>")).section("measures")[0]["heads"]
    order = sorted(heads, key=lambda head: -head["entropy"])
    assert shown.texts(".thumb-name b") == [f"{head['entropy']:.2f} bits" for head in order]
    shown.page.locator("#sort-heads").select_option("previous")
    shown.settle()
    known = sorted((head["previous"] for head in heads if head["previous"] is not None), reverse=True)
    assert shown.texts(".thumb-name b") == [f"{share:.3f} share" for share in known]
    shown.page.locator("#sort-heads").select_option("place")
    shown.settle()
    assert len(shown.texts(".thumb")) == 24
    names = ("encoder self-attention", "decoder self-attention", "cross-attention")
    assert shown.texts("h2") == [name.capitalize() for name in names]
    shown.click('[aria-label="cross-attention, layer 1, head 2"]')
    assert (shown.text(".reading h2"), shown.state["part"]) == ("Layer 1, head 2", "decoder.cross")


def test_matrix(screen, file_page, traced):
    trace, _, target = traced
    shown = screen().open(file_page, view="matrix", part="decoder.self", layer=1, head=3, row=2, col=1)
    weights, scores = (trace[f"decoder.self.1.{kind}"][0, 3] for kind in ("weights", "scores"))
    size = len(target)
    cells = [f"{weight:.2f}".removeprefix("0") for row in range(size) for weight in weights[row, : row + 1].tolist()]
    assert [text for text in shown.drawn(".matrix-base")[0] if text[-1].isdigit()] == cells
    at = f"At “{plain(target)[2]}”, about to write “{plain(target)[3]}”, layer 1, head 3"
    assert shown.text(".matrix-view .sentence") == (
        f"{at} gives “{plain(target)[1]}” the weight {weights[2, 1]:.4f}: that much of its value goes into the mix."
    )
    shown.page.locator(".matrix-frame").focus()
    shown.press("ArrowRight", "ArrowRight")
    hidden = f"{at} may not look at “{plain(target)[3]}”: the mask hides it, and its weight is 0."
    assert shown.text(".matrix-view .sentence") == hidden
    shown.choose("Numbers", "scores")
    assert shown.text(".matrix-view .sentence") == (
        f"{at} scores “{plain(target)[3]}” with {signed(scores[2, 3], 3)}; the mask then hides it."
    )
    assert "Struck through: hidden by the mask" in shown.text(".legend-line")
    assert shown.state["col"] == "3"


def test_calculation(screen, file_page, run):
    look = Studio([run]).look(Question(text=TEXT, target=TARGET, tag="<2fr>"))

    def of(name):
        return torch.from_numpy(look.array(f"calculation.encoder.self.1.{name}").values())

    shown = screen().open(file_page, view="calculation", part="encoder.self", layer=1, head=1, heads="1", row=4)
    steps = ["residual stream", "query", "keys", "values", "query · key", "divided by √d_k", "mask", "softmax",
             "weighted sum", "heads side by side, times W_O", "add", "norm"]  # fmt: skip
    assert shown.texts(".step-title") == steps
    residual = of("in")[4]
    assert f"length {residual.norm():.2f}" in shown.text(".step.now .vector-table + .note")
    box = shown.page.locator(".step.now canvas").bounding_box()
    shown.page.mouse.move(box["x"] + 6.5 / 16 * box["width"], box["y"] + 8)
    assert shown.texts(".tip > *") == [signed(float(f"{residual[6]:.3f}"), 3), "value 6"]
    for place, name in [(4, "products"), (5, "scaled")]:
        shown.click(f".step-head >> nth={place}")
        assert shown.texts(".step.now .bar-amount") == [signed(number, 3) for number in of(name)[1, 4].tolist()]
    shown.click(".transport .primary")
    assert shown.text(".step.now .step-title") == "mask"
    assert shown.page.locator(".step.now .seen").count() == of("products").shape[-1]
    shown.press("ArrowRight")
    weights = look.array("encoder.self.1.weights").values()[1, 4]
    assert shown.texts(".step.now .bar-amount") == [share(weight, 4) for weight in weights.tolist()]
    for _ in range(5):
        shown.click(".transport .primary")
    assert shown.state["group"] == "encoder.feed_forward.1"
    shown.click('[aria-label="One step back"]')
    assert (shown.state["group"], shown.text(".step.now .step-title")) == ("encoder.self.1", "norm")
    lengths = look.section("displacement") and look.array("displacement.encoder.lengths").values()[:, 4]
    assert shown.texts(".displacement-view .number")[2::2] == [f"{length:.2f}" for length in lengths[1:].tolist()]


def test_decoding(screen, file_page, traced, run):
    trace, source, target = traced
    chances = trace["decoder.logits"][0].double().softmax(-1)
    shown = screen().open(file_page, view="decoding", t=2)
    best = chances[2].topk(10)
    assert shown.texts(".candidate .bar-amount")[0::2] == [percent(chance) for chance in best.values.tolist()]
    assert shown.texts(".candidate .bar-amount")[1::2] == [signed(logp, 3) for logp in best.values.log().tolist()]
    assert shown.text(".decoding-view > .sentence") == (
        f"The decoder has read 3 pieces and writes “{plain(target)[3]}”, to which it gives "
        f"{percent(chances[2, run.tokenizer.encode(TARGET)[2]])}."
    )
    mean = trace["decoder.cross.0.weights"][0, :, 2].mean(0)
    amounts = [f"{weight:.2f}" if weight >= 0.005 else "" for weight in mean.tolist()]
    assert shown.texts(".decoding-stage > div:nth-of-type(1) .chip-token") == [
        f"{piece}\n{amount}".strip() for piece, amount in zip(plain(source), amounts, strict=True)
    ]
    shown.page.locator("#time").fill("0")
    shown.settle()
    assert "only the beginning" in shown.text(".decoding-view > .sentence")
    shown.click('[aria-label="One step forward"]')
    assert shown.state["t"] == "1"
    shown.click("button:text-is('Play')")
    shown.page.wait_for_function("() => location.hash.includes('t=3')")
    shown.click("button:text-is('Pause')")


def test_the_beam_tree(screen, file_page, run):
    shown = screen().open(file_page, view="decoding", item=1)
    written = Studio([run]).look(Question(text="a bank, a bank", tag="<2en>", beam=3)).section("decoding")[0]
    nodes = written["tree"]["nodes"]
    assert shown.page.locator(".tree .node").count() == len(nodes)
    first = sorted((node for node in nodes if node["step"] == 1), key=lambda node: -node["total"])
    assert shown.texts(".tree-table .number")[1::2] == [signed(node["total"], 3) for node in first]
    assert shown.texts(".tree-table td b") == [node["state"] for node in first]
    assert {"kept", "dropped"} <= {node["state"] for node in first}
    scores = [answer["score"] for answer in written["answers"]]
    assert len(scores) == len(shown.texts(".answers li"))
    for text, score in zip(shown.texts(".answers li"), scores, strict=True):
        assert f"score {signed(score, 3)}" in text


def test_positions(screen, file_page, run):
    shown = screen().open(file_page, view="positions")
    section = Studio([run]).runs[0].section("positions")[0]
    verdicts = shown.texts(".verdict .note")
    assert shown.texts(".verdict-line b") == ["✓ met"] * 5
    for one, said in zip(section["requirements"], verdicts, strict=True):
        assert said.startswith(one["measures"])
        told = float(said.split(": ")[-1].split(" (")[0])
        assert told == pytest.approx(one["number"], rel=5e-3)
    shown.page.locator("#position-step").fill("7")
    shown.settle()
    assert "step 7" in shown.text(".positions-view section:nth-of-type(2) .note")


def test_embeddings(screen, file_page, run):
    shown = screen().open(file_page, view="map", find="1.3")
    item = Studio([run]).look(Question(text="a bank, a bank", tag="<2en>", beam=3))
    side = item.facts["sides"]["source"]
    ids = side["ids"]
    unit = F.normalize(run.model.target_pieces.weight.detach(), dim=-1)
    cosines = unit @ unit[ids[3]]
    cosines[ids[3]] = -2
    near = cosines.topk(8)
    assert shown.texts(".neighbours >> nth=0 >> .bar-amount") == [signed(cosine, 3) for cosine in near.values.tolist()]
    assert shown.texts(".neighbours >> nth=0 >> bdi") == plain(map(run.tokenizer.piece, near.indices.tolist()))
    bank = shown.page.locator(".same-word").filter(has_text="bank at 2 places")
    rows = [side["words"].index(number) for number, word in enumerate(side["word_texts"]) if word.strip(",") == "bank"]
    states = run.trace("a bank, a bank", "", tag="<2en>", kinds=("residual",))[0]
    alike = [1.0] + [float(F.cosine_similarity(*states[f"encoder.feed_forward.{layer}.residual"][0, rows], dim=0))
                     for layer in range(2)]  # fmt: skip
    assert bank.locator(".path span").all_inner_texts() == [f"{cosine:.2f}" for cosine in alike]
    shown.choose("Layer", "2")
    assert shown.state["depth"] == "2"


def test_heads_switched_off(screen, tmp_path):
    run = make_run(tmp_path / "few", heads=2)
    page = write_page(run, [Question(text=TEXT, target=TARGET, tag="<2fr>")], tmp_path / "page.html").as_uri()
    shown = screen().open(page, view="whatif")
    studio = Studio([run])
    item = studio.look(Question(text=TEXT, target=TARGET, tag="<2fr>"))
    grid = shown.texts(".off-head")
    places = [(part, layer, head) for part in ("encoder.self", "decoder.self", "decoder.cross")
              for layer in range(2) for head in range(2)]  # fmt: skip
    assert len(grid) == len(places)
    for place in (2, 7, 10):
        told = studio.ablate(item.id, frozenset({places[place]})).facts
        assert grid[place] == signed(told["change"], 3)
    shown.click(".off-head >> nth=10")
    assert shown.state["off"] == "decoder.cross.1.0"
    assert shown.text(".result .made") == told["text"][1]
    assert f"log-probability {signed(told['logp'][1], 3)} (" in shown.text(".result p:first-child")


def test_two_runs_side_by_side(screen, run, other, tmp_path):
    texts = [Question(text=TEXT, target=TARGET)]
    page = write_page(run, texts, tmp_path / "page.html", against=other).as_uri()
    shown = screen().open(page, view="whatif", other=1, part="decoder.cross", layer=1, head=2)
    one, two = (each.trace(TEXT, TARGET)[0]["decoder.cross.1.weights"][0, 2] for each in (run, other))
    assert f"at most {(two - one).abs().max():.4f}" in shown.texts("figcaption")[2]
    shown.page.locator("figure canvas").nth(2).scroll_into_view_if_needed()
    box = shown.page.locator("figure canvas").nth(2).bounding_box()
    shown.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] - 8)
    assert shown.texts(".tip b") == [signed((two - one)[-1, -1], 4)]


@pytest.fixture(scope="module")
def classifier_page(tmp_path_factory):
    home = tmp_path_factory.mktemp("classes")
    run = make_run(home / "labels", family="encoder-only", labels=3, pooling="attention", embeddings="tied_output")
    return run, write_page(run, [TEXT], home / "page.html").as_uri()


def test_classes(screen, classifier_page):
    run, page = classifier_page
    shown = screen().open(page, view="classes")
    told, arrays = Studio([run]).look(Question(text=TEXT)).section("classes")
    assert shown.texts(".tabs button") == [
        "Heads", "All heads", "Matrix", "Calculation", "Classes", "Positions", "Embeddings", "What if"
    ]  # fmt: skip
    assert shown.texts(".bar-amount")[0::2] == [f"{100 * label['probability']:.1f} %" for label in told["labels"]]
    assert shown.texts(".bar-amount")[1::2] == [signed(label["logit"], 3) for label in told["labels"]]
    shares = arrays["classes.pooled"].values().tolist() if arrays else []
    assert shown.texts(".chip-amount") == [f"{share:.3f}" if share >= 0.0005 else "" for share in shares]
    shown.click(".chip-token >> nth=2")
    assert shown.page.locator(".tokens.row .chosen").get_attribute("id") == "tokens-row-2"


def test_a_decoder_alone(screen, tmp_path):
    run = make_run(tmp_path / "alone", family="decoder-only", positions="rotary", norm="pre")
    page = write_page(run, [TEXT], tmp_path / "page.html").as_uri()
    shown = screen().open(page, view="decoding", t=3)
    ids = torch.tensor([[run.tokenizer.specials.begin, *run.tokenizer.encode(TEXT)]])
    with torch.no_grad():
        chances = run.model.logits(run.model(ids))[0, 3].double().softmax(-1).sort(descending=True).values
    assert shown.texts(".candidate .bar-amount")[0::2] == [percent(chance) for chance in chances[:10].tolist()]
    for view in ("all", "matrix", "calculation", "positions", "map", "whatif"):
        shown.click(f"#tab-{view}")
        assert shown.state["view"] == view
