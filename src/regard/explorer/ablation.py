"""What heads are worth: the same text with some of them switched off, and the exact difference that it makes."""

from dataclasses import replace

from regard.explorer.arrays import Plain
from regard.explorer.classes import classes
from regard.explorer.decoding import target_logps
from regard.explorer.looks import Look, Question, with_target
from regard.explorer.writing import write
from regard.models import EncoderDecoder, EncoderOnly
from regard.nn import Head

FEW_HEADS = 16
"""up to so many heads it is measured, unasked, what each is worth: each takes a forward and a search"""
SHORT = 128
"""pieces up to which it is"""


def without(look: Look, heads_off: frozenset[Head]) -> Look:
    """The same text and target with these heads off (and no others)."""
    question: Question = replace(look.question, heads_off=heads_off)
    if "target" in look.sides:
        question = with_target(question, look.sides["target"].ids[1:])
    return Look(look.run, question, model=look.model)


def changed(before: Look, after: Look) -> Plain:
    """What the second look's heads change: the log-probability of the same target, and what the model writes."""
    if isinstance(before.model, EncoderOnly):
        one, other = (classes(look)[0] for look in (before, after))
        return {"labels": [one["labels"] if one else None, other["labels"] if other else None]}
    tokenizer = before.run.tokenizer
    end = tokenizer.specials.end
    logps = [target_logps(look, end) for look in (before, after)]
    sums = [sum(each) for each in logps]
    pieces = [*before.sides["target"].ids[1:], end]
    facts: Plain = {
        "logp": sums,
        "change": sums[1] - sums[0],
        "pieces": [
            {"piece": tokenizer.piece(id), "logp": [one, other]} for id, one, other in zip(pieces, *logps, strict=True)
        ],
        "text": [],
    }
    if isinstance(before.model, EncoderDecoder):
        facts["text"] = [text_of(look) for look in (before, after)]
    return facts


def text_of(look: Look) -> str:
    """What the model writes with the look's heads off."""
    question = look.question
    written = write(look.run, look.model, question.text, tag=question.tag, heads_off=question.heads_off)
    return look.run.tokenizer.decode(written.ids)


def each_head(look: Look) -> Plain | None:
    """The section `ablation`: what each head alone is worth for the target; none if nothing is written, or too much."""
    count = sum(shape.layers * shape.heads for shape in look.parts)
    if isinstance(look.model, EncoderOnly) or count > FEW_HEADS or max(map(len, look.sides.values())) > SHORT:
        return None
    end = look.run.tokenizer.specials.end
    whole = sum(target_logps(look, end))
    heads = []
    for shape in look.parts:
        for layer in range(shape.layers):
            for head in range(shape.heads):
                other = without(look, look.question.heads_off | {(shape.part, layer, head)})
                logp = sum(target_logps(other, end))
                text = text_of(other) if isinstance(look.model, EncoderDecoder) else None
                heads.append({"part": shape.part, "layer": layer, "head": head, "logp": logp,
                              "change": logp - whole, "text": text})  # fmt: skip
    return {"logp": whole, "heads": heads}
