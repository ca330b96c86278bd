"""What an encoder alone concludes: the probabilities of its labels, and each token's share of the pooled vector."""

import torch
from torch import Tensor

from regard.explorer.arrays import Array, Plain, fixed
from regard.explorer.looks import Look
from regard.models import EncoderOnly


@torch.no_grad()
def classes(look: Look) -> tuple[Plain | None, dict[str, Array]]:
    """The section of that name; none for models that write."""
    model = look.model
    if not isinstance(model, EncoderOnly):
        return None, {}
    kind = model.config.pooling
    shares = pooled_shares(model, look.states)
    labels = None
    if model.label is not None:
        logits = model.logits(model.pool(look.states, torch.tensor([look.states.shape[1]], device=look.device)))[0]
        several = bool(look.run.recipe.data.several_labels)
        chances = (logits.double().sigmoid() if several else logits.double().softmax(-1)).tolist()
        names = label_names(look, len(chances))
        labels = [
            {"name": name, "logit": logit, "probability": chance}
            for name, logit, chance in zip(names, logits.tolist(), chances, strict=True)
        ]
    pooled: Plain = {"kind": kind, "row": 0 if kind == "first" else None, "weights": "classes.pooled"}
    return {"labels": labels, "pooled": pooled}, {"classes.pooled": fixed(shares, ("row",))}


def pooled_shares(model: EncoderOnly, states_1SD: Tensor) -> Tensor:
    """How much each token's vector counts in the text's one, (S)."""
    tokens = states_1SD.shape[1]
    if model.attend is not None:
        shares: Tensor = model.attend(states_1SD)[0, :, 0].softmax(-1)
        return shares
    if model.config.pooling == "first":
        return torch.eye(1, tokens)[0]
    return torch.full((tokens,), 1 / tokens)


def label_names(look: Look, count: int) -> list[str]:
    """The labels by name; a model that was built by hand may have none."""
    names = look.run.recipe.data.labels
    return list(names) if len(names) == count else [f"label {number}" for number in range(count)]
