"""Decoding: ids in, ids out, never text.

    found = search(PlainModel(model), [Request(source=(5, 3, 9, 2), read=(1,), limit=40)], Search(end=2))
    found[0].answers[0].ids

`Request` says what is wanted of a sentence and `Search` how all are searched; `Steps` is all that a search knows of a
model. docs/decoding.md defines every option.
"""

from regard.decoding.chosen import choose_steps, step_model
from regard.decoding.ensemble import Ensemble
from regard.decoding.forced import Forced, Given, force
from regard.decoding.request import Found, Hypothesis, Request, Search
from regard.decoding.search import search, search_stream
from regard.decoding.steps import CrossHead, PlainModel, PlainSteps, StepModel, Steps
from regard.decoding.tree import Candidate, Fate, SearchTree

__all__ = [
    "Candidate", "CrossHead", "Ensemble", "Fate", "Forced", "Found", "Given", "Hypothesis", "PlainModel", "PlainSteps",
    "Request", "Search", "SearchTree", "StepModel", "Steps", "choose_steps", "force", "search", "search_stream",
    "step_model",
]  # fmt: skip
