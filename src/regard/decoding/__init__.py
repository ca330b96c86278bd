"""Decoding: ids in, ids out, never text."""

from regard.decoding.beam import Hypothesis, SequenceModel, beam_search

__all__ = ["Hypothesis", "SequenceModel", "beam_search"]
