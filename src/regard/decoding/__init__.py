"""Decoding: ids in, ids out, never text."""

from regard.decoding.beam import Hypothesis, SequenceModel, beam_search
from regard.decoding.steps import CrossHead, PlainModel, PlainSteps, StepModel, Steps
from regard.decoding.tree import Candidate, Fate, SearchTree

__all__ = [
    "Candidate", "CrossHead", "Fate", "Hypothesis", "PlainModel", "PlainSteps", "SearchTree", "SequenceModel",
    "StepModel", "Steps", "beam_search",
]  # fmt: skip
