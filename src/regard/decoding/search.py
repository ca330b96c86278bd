"""Searching many sentences: grouped by length, those that are over leave and waiting ones enter."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import torch

from regard.decoding.compiled import compiled_search, knows
from regard.decoding.fast import FastModel
from regard.decoding.group import Group
from regard.decoding.request import Found, Request, Search
from regard.decoding.steps import StepModel

WINDOW = 2048
"""requests of a stream that are sorted by length together, and so held at once"""
REFILL = 0.5
"""waiting sentences enter when so large a share of the rows, or a smaller one, is in use"""


@torch.no_grad()
def search(model: StepModel, requests: Sequence[Request], options: Search, *, workers: int = 1) -> list[Found]:
    """The answers to each request, in the order of the requests. Nobody's depend on who else is there.

    Compiled steps are taken by as many threads as there are `workers`; a model's own steps by torch's.
    """
    if not isinstance(model, FastModel):
        return _search(model, requests, options)
    if knows(model, requests, options):
        return compiled_search(model, requests, options, workers=workers)
    with ThreadPoolExecutor(max(1, workers)) as threads:  # requests of all lengths to each
        turns = [threads.submit(_search, model, requests[turn::workers], options) for turn in range(workers)]
        parts = [iter(turn.result()) for turn in turns]
    return [next(parts[number % workers]) for number in range(len(requests))]


@torch.no_grad()
def _search(model: StepModel, requests: Sequence[Request], options: Search) -> list[Found]:
    """The same, step by step."""
    found: dict[int, Found] = {}
    waiting = sorted(enumerate(requests), key=lambda each: _order(each[1]))
    group: Group | None = None
    while waiting or group:
        if waiting and (group is None or _room(group, waiting[-1][1], options)):
            fresh = Group(model, _taken(waiting, options, group), options)
            if group is not None:
                fresh.step()
                found |= fresh.leave()
                if fresh.sentences:
                    group.add(fresh)
            else:
                group = fresh
        assert group is not None
        group.step()
        found |= group.leave()
        if not group.sentences:
            group = None
    return [found[number] for number in range(len(requests))]


def search_stream(
    model: StepModel, requests: Iterable[Request], options: Search, *, window: int = WINDOW, workers: int = 1
) -> Iterator[Found]:
    """The same for any number of requests, in bounded memory: `window` of them are searched, then the next."""
    rest = iter(requests)
    while block := list(islice(rest, window)):
        yield from search(model, block, options, workers=workers)


def _order(request: Request) -> tuple[bool, int, int, int]:
    """Those with phrases last, and the longest at the end, from where they are taken."""
    return not request.phrases, len(request.source), len(request.read), request.limit


def _room(group: Group, following: Request, options: Search) -> bool:
    """Whether enough have left for others to enter, of the same kind."""
    alike = bool(following.phrases) == bool(group.requests[0].phrases)
    return alike and group.sentences * options.width <= REFILL * options.options.batch_rows


def _taken(waiting: list[tuple[int, Request]], options: Search, group: Group | None) -> list[tuple[int, Request]]:
    """The longest that wait, as many as there is room for, and of one kind; at least one."""
    room = options.options.batch_rows - (group.sentences * options.width if group else 0)
    longest = max(len(waiting[-1][1].source), len(waiting[-1][1].read), 1)
    most = max(1, min(room // options.width, options.options.batch_tokens // longest))
    phrases = bool(waiting[-1][1].phrases)
    taken: list[tuple[int, Request]] = []
    while waiting and len(taken) < most and bool(waiting[-1][1].phrases) == phrases:
        taken.append(waiting.pop())
    return taken
