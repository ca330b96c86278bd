"""The fast steps: a whole step in one call of the compiled kernel, with beams that move by index.

The plain twin is `PlainModel`; in float32 the two agree to rounding. Every token that a row reads gets a slot of the
cache; a row is a list of slots, so continuing a row copies that list and nothing else. Rows of a sentence share its
source. Slots of sentences that have left are used again.

Shapes: B sentences, W rows of each, R = B·W, V pieces, A observed heads, M source pieces.
"""

from collections.abc import Sequence
from ctypes import byref
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.decoding import kernel as native
from regard.decoding.packing import Packed
from regard.decoding.steps import CrossHead
from regard.errors import InputError
from regard.models import DecoderOnly, EncoderDecoder
from regard.models.shared import at_most

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


BLOCK = 32
"""rows that the processor's tiles read together, whether all are there or not"""
ALONE = 1 << 22
"""weights times rows up to which a call takes one thread: more would mostly wait for each other"""


class FastModel:
    """A model that decodes by the compiled kernel, in float32, bf16 or int8 (weights, and inputs row by row)."""

    def __init__(
        self, model: EncoderDecoder | DecoderOnly, kind: str, kernel: native.Kernel, *, threads: int = 1
    ) -> None:
        """`threads` share the large calls; what they compute is the same for any number of them."""
        self.model, self.kernel, self.threads = model, kernel, threads
        self.packed = Packed(model, kind, kernel.panel)
        self.weights = sum(weight.numel() for weight in model.parameters())

    @property
    def pieces(self) -> int:
        """Size of the vocabulary."""
        return self.model.output[0].shape[0]

    @property
    def device(self) -> torch.device:
        """Always the processor."""
        return torch.device("cpu")

    def start(
        self, sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], *, capacity: int,
        observe: Sequence[CrossHead] = (),
    ) -> "FastSteps":  # fmt: skip
        """Encode the sources, read the prompts."""
        if observe and isinstance(self.model, DecoderOnly):
            raise InputError("a decoder alone has no cross-attention to observe")
        longest = max((len(source) for source in sources), default=0)
        self.packed.reach_to(max(capacity, longest))
        steps = FastSteps(self, len(prompts), capacity=capacity, observe=tuple(observe))
        if isinstance(self.model, EncoderDecoder):
            steps.remember(sources)
        if any(prompts):
            steps.read(prompts)
        return steps


class Work:
    """Memory for the numbers between a call's products, taken anew only to grow."""

    def __init__(self) -> None:
        self.batch = native.Batch()
        self._taken: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Room for this many numbers, with whatever they held before."""
        size = int(np.prod(shape))
        held = self._taken.get(name)
        if held is None or held.numel() < size:
            held = self._taken[name] = torch.empty(size + size // 4)
        return held[:size].view(shape)

    def prepare(self, owner: "FastModel", tokens: Ints, places: Ints, longest: int) -> native.Batch:
        """A call's rows, and memory for its numbers; `longest` is what a row looks at, at most."""
        packed, batch, rows = owner.packed, self.batch, len(tokens)
        batch.tokens, batch.places, batch.rows = tokens.ctypes.data, places.ctypes.data, rows
        in_attention, in_tile = packed.wide
        tile = min(rows, owner.kernel.tile)
        batch.x = self.take("x", rows, packed.config.d_model).data_ptr()
        batch.wide = self.take("wide", max(rows * in_attention, tile * in_tile)).data_ptr()
        batch.threads = owner.threads if rows * owner.weights > ALONE else 1
        batch.span = max(longest + 32, packed.words)
        batch.scores = self.take("scores", batch.threads, batch.span).data_ptr()
        batch.packed = self.take("packed", -(-rows // BLOCK) * BLOCK, packed.words).data_ptr()
        batch.scales = self.take("scales", rows).data_ptr()
        return batch


class FastSteps:
    """Rows as lists of slots. Per sentence: its number of read pieces, its first row, its source."""

    def __init__(self, owner: FastModel, sentences: int, *, capacity: int, observe: tuple[CrossHead, ...]) -> None:
        self.owner, self.packed, self.kernel = owner, owner.packed, owner.kernel
        self.capacity, self.observe = capacity, observe
        self.cache = torch.empty(self.packed.config.decoder_layers, 0, self.packed.slot)
        self.free: Ints = np.empty(0, dtype=np.int32)
        self.slot_of: Longs = np.empty(0, dtype=np.int64)
        """for each slot the number of the sentence that uses it, or -1"""
        self.numbers: Longs = np.arange(sentences)
        self.next_number = sentences
        self.first: Longs = np.arange(sentences)
        self.count: Ints = np.zeros(sentences, dtype=np.int32)
        self.rows: Ints = np.empty((sentences, 0), dtype=np.int32)
        """(R, longest) the slots of each row, in order"""
        self.memory: Longs = np.zeros((3, sentences), dtype=np.int64)
        """each sentence's source: address, pieces, distance of layers"""
        self.held: list[Tensor] = []
        self.work = Work()
        self.seen: Tensor | None = None
        self._heads: Ints = np.array(observe, dtype=np.int32).reshape(-1, 2)

    @property
    def sentences(self) -> int:
        """How many there are."""
        return len(self.numbers)

    def advance(self, tokens_BW: Tensor, parents_BW: Tensor) -> Tensor:
        """One call; the logits are in memory that the next call writes again."""
        width = tokens_BW.shape[1]
        tokens = tokens_BW.reshape(-1).to(torch.int32).numpy()
        parents = (self.first[:, None] + parents_BW.numpy()).ravel()
        longest = self._room_for(int(self.count.max(initial=0)) + 1)
        self.rows = self._continued(parents, longest)
        places = np.repeat(self.count, width)
        self.rows[np.arange(len(tokens)), places] = self._slots(np.repeat(self.numbers, width))
        self.first = np.arange(0, len(tokens), width)
        self.count = self.count + np.int32(1)
        logits = self.work.take("logits", len(tokens), self.owner.pieces)
        memory = np.repeat(self.memory, width, axis=1)
        self._call(tokens, places, self.rows, memory, logits)
        return logits

    def keep(self, sentences: Tensor) -> None:
        """The others' slots are free again."""
        chosen = sentences.numpy()
        self.numbers, self.first, self.count = self.numbers[chosen], self.first[chosen], self.count[chosen]
        self.memory = self.memory[:, chosen]
        gone = (self.slot_of >= 0) & ~np.isin(self.slot_of, self.numbers)
        self.slot_of[gone] = -1
        self.free = np.flatnonzero(self.slot_of < 0).astype(np.int32)
        addresses = set(self.memory[0].tolist())
        self.held = [memory for memory in self.held if _holds(memory, addresses)]

    def add(self, other: Self) -> None:
        """The other's rows under these, what they have read in slots of this cache."""
        longest = max(self.rows.shape[1], other.rows.shape[1])
        used = np.unique(other.rows)
        used = used[other.slot_of[used] >= 0]  # rows of sentences that have left are still in the list
        moved = np.zeros(max(1, len(other.slot_of)), dtype=np.int32)
        if used.size:
            moved[used] = self._slots(other.slot_of[used] + self.next_number)
            slots = torch.from_numpy(moved[used]).long()
            self.cache[:, slots] = other.cache[:, torch.from_numpy(used).long()]
        self.numbers = np.concatenate([self.numbers, other.numbers + self.next_number])
        self.next_number += other.next_number
        self.first = np.concatenate([self.first, other.first + len(self.rows)])
        self.rows = np.concatenate([_wider(self.rows, longest), _wider(moved[other.rows], longest)])
        self.count = np.concatenate([self.count, other.count])
        self.memory = np.concatenate([self.memory, other.memory], axis=1)
        self.held += other.held
        self.capacity = max(self.capacity, other.capacity)

    def observed(self) -> Tensor:
        """Told by the kernel in the last step."""
        assert self.seen is not None, "nothing is observed"
        return self.seen.view(self.sentences, -1, *self.seen.shape[1:])

    def remember(self, sources: Sequence[Sequence[int]]) -> None:
        """Encode the sources, one behind the other with no padding, into what the decoder's layers look at."""
        lengths = np.array([len(source) for source in sources], dtype=np.int32)
        if self.packed.config.positions == "learned":
            at_most(int(lengths.max()), self.packed.config)
        first = np.concatenate([[0], lengths[:-1].cumsum()]).astype(np.int32)
        tokens = np.array([id for source in sources for id in source], dtype=np.int32)
        places = np.arange(len(tokens), dtype=np.int32) - np.repeat(first, lengths)
        layers, slot = self.packed.config.decoder_layers, self.packed.slot
        memory = torch.empty(layers, len(tokens), slot)
        batch = self.work.prepare(self.owner, tokens, places, int(lengths.max()))
        starts, counts = np.repeat(first, lengths), np.repeat(lengths, lengths)
        batch.slots, batch.first, batch.counts = None, starts.ctypes.data, counts.ctypes.data
        batch.cache, batch.out = self.work.take("keys", len(tokens), slot).data_ptr(), memory.data_ptr()
        batch.seen, batch.observed = None, 0
        self.kernel.encode(byref(self.packed.form), byref(batch))
        address = memory.data_ptr() + 4 * slot * first.astype(np.int64)
        self.memory = np.stack([address, lengths.astype(np.int64), np.full(len(lengths), len(tokens) * slot)])
        self.held.append(memory)

    def read(self, prompts: Sequence[Sequence[int]]) -> None:
        """All pieces of all prompts in one call: each looks at those before it."""
        lengths = np.array([len(prompt) for prompt in prompts], dtype=np.int32)
        longest = self._room_for(int(lengths.max()))
        sentence = np.repeat(np.arange(len(prompts)), lengths)
        tokens = np.array([id for prompt in prompts for id in prompt], dtype=np.int32)
        places = (np.arange(len(tokens)) - np.repeat(lengths.cumsum() - lengths, lengths)).astype(np.int32)
        self.rows = np.zeros((len(prompts), longest), dtype=np.int32)
        self.rows[sentence, places] = self._slots(self.numbers[sentence])
        self.count = lengths
        self._call(tokens, places, self.rows[sentence], self.memory[:, sentence], None)

    def _call(self, tokens: Ints, places: Ints, rows: Ints, memory: Longs, logits: Tensor | None) -> None:
        """A step of the kernel."""
        config = self.packed.config
        at_most(int(places.max()) + 1, config)
        widest = int(memory[1].max(initial=0))
        batch = self.work.prepare(self.owner, tokens, places, max(widest, rows.shape[1]))
        batch.slots, batch.stride = rows.ctypes.data, rows.shape[1]
        batch.cache, batch.room = self.cache.data_ptr(), self.cache.shape[1]
        addresses, pieces, layers = memory[0].copy(), memory[1].astype(np.int32), memory[2].copy()
        batch.memory, batch.memory_tokens = addresses.ctypes.data, pieces.ctypes.data
        batch.memory_layer = layers.ctypes.data
        batch.out = None if logits is None else logits.data_ptr()
        batch.seen, batch.observed = None, len(self._heads)
        if len(self._heads):
            self.seen = torch.zeros(len(tokens), len(self._heads), widest)
            batch.seen, batch.observe, batch.widest = self.seen.data_ptr(), self._heads.ctypes.data, widest
        self.kernel.step(byref(self.packed.form), byref(batch))

    def _continued(self, parents: Longs, longest: int) -> Ints:
        """The rows that are continued, with a place for one more slot."""
        rows = np.zeros((len(parents), longest), dtype=np.int32)
        rows[:, : min(self.rows.shape[1], longest)] = self.rows[parents, :longest]
        return rows

    def _room_for(self, pieces: int) -> int:
        """`pieces`, if a row may hold so many."""
        if pieces > self.capacity:
            raise InputError(f"cache of {self.capacity} tokens a row: {pieces} are asked for")
        return pieces

    def _slots(self, numbers: Longs) -> Ints:
        """A free slot for each of these, which are the numbers of their sentences."""
        wanted, room = len(numbers), self.cache.shape[1]
        if wanted > len(self.free):
            more = max(wanted - len(self.free), room, 1024)
            grown = torch.empty(self.cache.shape[0], room + more, self.packed.slot)
            grown[:, :room] = self.cache
            self.cache = grown
            self.free = np.concatenate([self.free, np.arange(room, room + more, dtype=np.int32)])
            self.slot_of = np.concatenate([self.slot_of, np.full(more, -1)])
        slots, self.free = self.free[:wanted], self.free[wanted:]
        self.slot_of[slots] = numbers
        return slots


def _wider(rows: Ints, width: int) -> Ints:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


def _holds(memory: Tensor, addresses: set[int]) -> bool:
    """Whether one of the addresses lies in the tensor's first layer."""
    begin, size = memory.data_ptr(), memory[0].numel() * memory.element_size()
    return any(begin <= address < begin + size for address in addresses)
