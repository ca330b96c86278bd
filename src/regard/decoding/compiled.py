"""The compiled search: whole beam searches in one call of the kernel, on as many threads as are wanted.

It knows the options of most searches (`knows` says which); the plain twin, `Group`, knows all. A thread takes waiting
sentences, the longest first, lets the kernel write them until enough are over, and takes others. No row depends on
which others are there, so neither do the answers, nor on the number of threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_int32
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from regard.decoding import kernel as native
from regard.decoding.fast import FastModel, FastSteps, Ints, Work
from regard.decoding.request import Found, Hypothesis, Request, Search
from regard.decoding.restrict import PERIODS, Guard
from regard.decoding.steps import StepModel
from regard.models import EncoderDecoder

REFILL = 0.75
"""waiting sentences enter when so large a share of those that were written, or a smaller one, is left"""
FIRST_ROOM = 8
"""slots for each row at first; they grow with what the rows need"""


def knows(model: StepModel, requests: Sequence[Request], options: Search) -> bool:
    """Whether the kernel can search all of this."""
    asked = options.options
    if asked.samples or asked.groups > 1 or options.tree or options.forbidden:
        return False
    if asked.coverage_penalty or asked.repetition_penalty != 1 or asked.no_repeat_ngram:
        return False
    if not isinstance(model, FastModel) or not isinstance(model.model, EncoderDecoder):
        return False
    most = model.model.config.max_length
    return all(len(each.read) == 1 and not each.phrases and each.limit <= most for each in requests)


def compiled_search(model: FastModel, requests: Sequence[Request], options: Search, *, workers: int = 1) -> list[Found]:
    """The answers to each request, in the order of the requests."""
    if not requests:
        return []
    waiting = _Waiting(requests, options, workers)
    model.packed.reach_to(max(waiting.longest, waiting.limit))
    found: dict[int, Found] = {}
    with ThreadPoolExecutor(waiting.workers) as threads:
        turns = [threads.submit(_Places(model, options, waiting).all) for _ in range(waiting.workers - 1)]
        try:
            found |= _Places(model, options, waiting).all()
            for turn in turns:
                found |= turn.result()
        except BaseException:  # interrupted: the others end with what they have
            waiting.forget()
            raise
    return [found[number] for number in range(len(requests))]


class _Waiting:
    """Requests that nobody has taken yet, the longest at the end, from where they are taken."""

    def __init__(self, requests: Sequence[Request], options: Search, workers: int) -> None:
        self.workers = max(1, min(workers, len(requests)))
        self.longest = max(len(each.source) for each in requests)
        self.limit = max(each.limit for each in requests)
        self.places = max(1, min(options.options.batch_rows // options.width, -(-len(requests) // self.workers)))
        """sentences that a worker writes together"""
        self._most_read = options.options.batch_tokens
        self._requests = sorted(enumerate(requests), key=lambda each: (len(each[1].source), each[1].limit))
        self._lock = Lock()

    def __bool__(self) -> bool:
        return bool(self._requests)

    def forget(self) -> None:
        """Let nobody take any more."""
        with self._lock:
            self._requests.clear()

    def take(self, room: int, pieces: int) -> list[tuple[int, Request]]:
        """The longest, at most `room` of them, towards the end no more than a worker's share, and so many that those
        taken with the `pieces` already held are not too many together; but one, if none are held.
        """  # fmt: skip
        with self._lock:
            held = self._requests
            most = min(room, -(-len(held) // self.workers))
            if held:
                most = min(most, max(int(pieces == 0), (self._most_read - pieces) // len(held[-1][1].source)))
            taken = held[len(held) - most :]
            del held[len(held) - most :]
            return taken[::-1]


class _Places:
    """One worker's places for sentences, and the memory of their search."""

    def __init__(self, model: FastModel, options: Search, waiting: _Waiting) -> None:
        self.model, self.options, self.waiting = model, options, waiting
        places, width = waiting.places, options.width
        rows, stride, keep = places * width, waiting.limit + 1, width + 2 + PERIODS
        self.encoder = FastSteps(model, 0, capacity=0, observe=())
        self.work = Work()
        self.numbers = [0] * places
        self.memory: list[Tensor | None] = [None] * places
        self.empty = list(range(places))
        self.read = 0
        """source pieces of those that are written"""
        self.sentences, self.answers = (native.Sentence * places)(), (native.Answer * rows)()
        self.ids: Ints = np.empty((places, width, stride), dtype=np.int32)
        self.active: Ints = np.empty(places, dtype=np.int32)
        self.left: Ints = np.empty(places, dtype=np.int32)
        self.free: Ints = np.empty(0, dtype=np.int32)
        self._held: list[object] = []
        asked = options.options
        self.search = native.Search(
            sentences=self.sentences, answers=self.answers, ids=self.ids.ctypes.data, active=self.active.ctypes.data,
            left=self.left.ctypes.data, now=self._rows(rows, stride), next=self._rows(rows, stride),
            barred=self._room(rows * (1 + PERIODS)), bars=self._room(rows), penalty=asked.length_penalty, width=width,
            stride=stride, most_barred=1 + PERIODS, end=options.end, guard=asked.guard,
            stopping=native.STOPPING.index(asked.stopping), gnmt=asked.length_norm == "gnmt",
            needed=min(options.nbest, width),
        )  # fmt: skip
        unused: Ints = np.empty(rows, dtype=np.int32)
        batch = self.batch = self.work.prepare(model, unused, unused, max(stride, waiting.longest))
        batch.places, batch.stride, batch.observed, batch.seen = self._room(rows), stride, 0, None
        batch.memory, batch.memory_layer = self._room(2 * rows), self._room(2 * rows)
        batch.memory_tokens = self._room(rows)
        batch.best, batch.best_ids = self._room(rows * keep), self._room(2 * rows * keep)
        batch.whole, batch.block = self._room(rows), self._room(rows * model.kernel.panel)
        self.cache = torch.empty(model.packed.config.decoder_layers, 0, model.packed.slot)
        self._grow(FIRST_ROOM * rows)

    def all(self) -> dict[int, Found]:
        """Search until nothing waits and all are over; the answers under the numbers of their requests."""
        found: dict[int, Found] = {}
        search = self.search
        while True:
            if taken := self.waiting.take(len(self.empty), self.read):
                self._enter(taken)
            if not search.active_count:
                return found
            least = int(REFILL * search.active_count) if self.waiting else 0
            form = byref(self.model.packed.form)
            while self.model.kernel.search(form, byref(self.batch), byref(search), least):
                self._collect(found)
                self._grow(self.batch.room)
            self._collect(found)

    def _enter(self, taken: Sequence[tuple[int, Request]]) -> None:
        """Encode the sources, and put each sentence into an empty place."""
        encoder, search = self.encoder, self.search
        encoder.remember([request.source for _, request in taken])
        memory = encoder.held.pop()
        bounds = Guard([request.source for _, request in taken], torch.device("cpu")).bounds.tolist()
        for (number, request), (address, pieces, layer), bound in zip(
            taken, encoder.memory.T.tolist(), bounds, strict=True
        ):
            place = self.empty.pop()
            self.numbers[place], self.memory[place] = number, memory
            self.sentences[place] = native.Sentence(
                memory=address, memory_layer=layer, memory_tokens=pieces, begin=request.read[0], limit=request.limit,
                least=request.least, bounds=(c_int32 * PERIODS)(*bound),
            )  # fmt: skip
            self.read += pieces
            self.active[search.active_count] = place
            search.active_count += 1

    def _collect(self, found: dict[int, Found]) -> None:
        """The answers of those that are over, whose places are empty now."""
        for place in self.left[: self.search.left_count].tolist():
            first = place * self.search.width
            answers = []
            for rank, answer in enumerate(self.answers[first : first + self.sentences[place].answers]):
                ids = self.ids[place, rank, : answer.pieces].tolist()
                answers.append(Hypothesis(ids, answer.score, answer.logp, bool(answer.ended), bool(answer.guarded)))
            answers.sort(key=lambda each: (not each.ended, -each.score))
            found[self.numbers[place]] = Found(answers[: self.options.nbest], None)
            self.read -= self.sentences[place].memory_tokens
            self.memory[place] = None
            self.empty.append(place)

    def _grow(self, more: int) -> None:
        """More slots, all of them free."""
        layers, room, slot = self.cache.shape
        grown = torch.empty(layers, room + more, slot)
        grown[:, :room] = self.cache
        self.cache, held = grown, self.free[: self.search.free_count]
        self.free = np.empty(room + more, dtype=np.int32)
        self.free[: len(held)] = held
        self.free[len(held) : len(held) + more] = np.arange(room + more - 1, room - 1, -1)
        self.marks = np.empty(room + more, dtype=np.uint8)
        self.batch.cache, self.batch.room = grown.data_ptr(), room + more
        self.search.free, self.search.marks = self.free.ctypes.data, self.marks.ctypes.data
        self.search.free_count = len(held) + more

    def _rows(self, rows: int, stride: int) -> native.Rows:
        return native.Rows(
            totals=self._room(rows), slots=self._room(rows * stride), written=self._room(rows * stride),
            runs=self._room(rows * PERIODS), tokens=self._room(rows), acted=self._room(rows),
        )  # fmt: skip

    def _room(self, words: int) -> int:
        """Where memory for so many words of four bytes stands, as long as this object lives."""
        held = np.empty(words, dtype=np.int32)
        self._held.append(held)
        return held.ctypes.data
