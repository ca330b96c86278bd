"""Text from prompts: streamed parts make up the whole, stop strings end it, and half characters are never shown."""

import pytest
import torch

from regard.config import ModelConfig, Recipe, TokensConfig, recipe_from
from regard.decoding import PlainModel
from regard.decoding.fast import FastModel
from regard.decoding.kernel import kernel
from regard.decoding.stream import Sampling, write_on
from regard.models import DecoderOnly
from regard.tasks.writing import Part, Writer
from regard.text import Tokenizer, train_tokenizer

TEXT = ["the house and the day ışık", "water and house", "köpek gün yol"] * 20


def writer_of(kind: str = "bpe", *, continuous: bool = False, max_length: int = 64) -> Writer:
    tokenizer = train_tokenizer(TEXT, TokensConfig(kind=kind, size=290))  # type: ignore[arg-type]
    torch.manual_seed(4)
    config = ModelConfig(
        family="decoder-only", vocabulary=tokenizer.size, d_model=32, heads=2, d_ff=48, decoder_layers=1, norm="pre",
        positions="rotary", max_length=max_length, embeddings="separate",
    )  # fmt: skip
    recipe: Recipe = recipe_from({"task": "generate", "data": {"continuous": continuous, "max_length": 48}})
    return Writer(DecoderOnly(config).eval(), tokenizer, recipe)


def joined(parts: list[Part], row: int) -> str:
    return "".join(part.text for part in parts if part.row == row)


def test_streamed_parts_are_the_whole_text_of_every_sample() -> None:
    writer = writer_of("byte")
    parts = list(writer.stream(["the ", "ış"], samples=3, length=90, sampling=Sampling(seed=2), with_logp=True))
    wholes = {part.row: part.whole for part in parts if part.whole is not None}
    assert sorted(wholes) == list(range(6))
    for row, whole in wholes.items():
        assert joined(parts, row) == whole.text
        assert whole.prompt == ("the ", "ış")[row // 3]
        assert whole.ended in ("end", "length")
        assert whole.logp is not None
        assert len(whole.logp) == len(whole.tokens) <= 90
        assert max(whole.logp) <= 0
    assert len({whole.text for whole in wholes.values()}) == 6
    again = writer.write(["the ", "ış"], samples=3, length=90, sampling=Sampling(seed=2))
    assert [one.text for one in again] == [wholes[row].text for row in range(6)]


def test_a_stop_string_ends_the_text_and_is_never_shown() -> None:
    writer = writer_of("byte")
    free = writer.write(["the "], length=80)[0]
    stop = free.text[20:24]
    parts = list(writer.stream(["the "], length=80, stop=["never there", stop]))
    assert parts[-1].whole is not None
    assert parts[-1].whole.ended == "stop"
    assert parts[-1].whole.text == free.text[: free.text.index(stop)] == joined(parts, 0)


def prompt_ids(writer: Writer, prompt: str) -> list[int]:
    return writer._read(prompt)


def test_how_a_prompt_is_read_depends_on_how_the_text_was() -> None:
    tokenizer: Tokenizer = writer_of().tokenizer
    specials = tokenizer.specials
    assert prompt_ids(writer_of(), "house") == [specials.begin, *tokenizer.encode("house")]
    assert prompt_ids(writer_of(), "") == [specials.begin]
    assert prompt_ids(writer_of(continuous=True), "house") == tokenizer.encode("house")
    assert prompt_ids(writer_of(continuous=True), "") == tokenizer.encode("\n", continued=True)


def test_a_prompt_that_is_too_long_is_read_from_its_end_and_counted() -> None:
    writer = writer_of("byte", continuous=True)
    assert writer.context == 48
    long, end = "x" * 60 + "the house and the day ", "the house and the day "
    found = writer.write([long, end], length=10, sampling=Sampling(temperature=0))
    assert [one.unread for one in found] == [len(long) - 48, 0]
    assert found[0].text == writer.write([long[-48:]], length=10, sampling=Sampling(temperature=0))[0].text


def test_a_text_without_a_prompt_does_not_begin_with_the_tokenisers_space() -> None:
    writer = writer_of()
    assert writer.tokenizer.prefix == " "
    id_of = {writer.tokenizer.piece(id): id for id in range(writer.tokenizer.size)}
    wholes = writer.write([""], samples=40, length=6)
    assert any(whole.tokens[0].startswith("▁") for whole in wholes)
    for whole in wholes:
        assert whole.text == writer.tokenizer.decode(id_of[piece] for piece in whole.tokens)


def written_plainly(writer: Writer, prompt: str, length: int) -> tuple[str, ...]:
    """By the model's own steps."""
    specials = writer.tokenizer.specials
    never = sorted({specials.pad, specials.unknown, specials.begin} - {specials.end})
    steps = write_on(
        PlainModel(writer.model), [prompt_ids(writer, prompt)], sampling=Sampling(temperature=0), limits=[length],
        end=specials.end, context=writer.context, never=never,
    )  # fmt: skip
    return tuple(writer.tokenizer.piece(new.id) for step in steps for new in step)


@pytest.mark.skipif(kernel() is None, reason="no C compiler here")
def test_the_kernel_writes_what_the_models_own_steps_write() -> None:
    """In float32, past what the model reads at once too; and after the weights have changed."""
    writer = writer_of("byte", continuous=True)
    fast = Writer(writer.model, writer.tokenizer, writer.recipe, precision="float32")
    assert isinstance(fast.steps, FastModel)
    found = []
    for _ in range(2):
        found.append(fast.write(["the house"], length=90, sampling=Sampling(temperature=0))[0].tokens)
        assert found[-1] == written_plainly(writer, "the house", 90)
        with torch.no_grad():
            writer.model.pieces.weight.neg_()
    assert found[0] != found[1]
