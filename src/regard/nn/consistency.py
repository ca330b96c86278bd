"""How far two passes over the same tokens disagree: the second half of R-Drop's loss (Liang et al. 2021).

Dropout makes each pass a network of its own. R-Drop asks both to tell the same next piece: to the mean of their
cross-entropies it adds α/4 times KL(p || q) + KL(q || p). That is half of the paper's loss, which has the sum of the
cross-entropies, so that the learning rate means what it means without.

Shapes: N tokens, D d_model, V pieces.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.nn.loss import SLICE


def divergence(first_ND: Tensor, second_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """KL(p || q) + KL(q || p) of the pieces told from both states, summed over the tokens.

    Only a slice of the logits is held: backward computes each slice again.
    """
    rows = max(1, SLICE // (2 * weight_VD.shape[0]))
    total = first_ND.new_zeros((), dtype=torch.float32)
    for start in range(0, first_ND.shape[0], rows):
        here = slice(start, start + rows)
        total = total + checkpoint(
            divergence_formula, first_ND[here], second_ND[here], weight_VD, bias_V, use_reentrant=False,
            preserve_rng_state=False,
        )  # fmt: skip
    return total


def divergence_formula(first_ND: Tensor, second_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """The plain twin, on all logits: the sum of (p - q) (log p - log q)."""
    log_p, log_q = (F.linear(states, weight_VD, bias_V).float().log_softmax(-1) for states in (first_ND, second_ND))
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum()
