"""Minimum Bayes risk: of several answers, the one that all of them agree with most (Eikema and Aziz 2020)."""

from collections.abc import Sequence


def agreement(texts: Sequence[str]) -> list[float]:
    """For each text the mean chrF2 (0 to 100) with every text as its reference, itself left out; of one alone 100."""
    from sacrebleu.metrics.chrf import CHRF

    if len(texts) < 2:
        return [100.0 for _ in texts]
    metric = CHRF()
    known: dict[tuple[str, str], float] = {}  # samples repeat: the same two texts are compared once
    for text in set(texts):
        for reference in set(texts):
            known[text, reference] = 100.0 if text == reference else metric.sentence_score(text, [reference]).score
    return [(sum(known[text, other] for other in texts) - 100.0) / (len(texts) - 1) for text in texts]
