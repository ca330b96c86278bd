"""The kernel that decodes, called through ctypes.

It is an extra, never a need: where `regard.nn.compiler` cannot make it, models decode by their own steps. Measured with
PyTorch's int8 products (oneDNN, one thread, 160 rows): 288 to 430 billion operations a second, and quantising, norms,
attention and choosing by single operations cost as much again; here all of a step is one call.
"""

import functools
from ctypes import CDLL, POINTER, Structure, c_float, c_int32, c_int64, c_void_p
from pathlib import Path

from regard.nn.compiler import VECTORS, compiled

SOURCES = (*(Path(__file__).with_name(name) for name in ("kernel.c", "team.c", "products.c", "beam.c")), VECTORS)
"""the first is compiled, and takes in the others"""
KINDS = ("float32", "bf16", "int8")
"""as the kernel numbers them"""
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "swiglu")
"""as the kernel numbers them"""
STOPPING = ("safe", "likely", "full")
"""as the kernel numbers them"""
PERIODS = 16
"""loops that the kernel's guard knows, as `restrict.PERIODS`"""


class Linear(Structure):
    """A product's packed weights."""

    _fields_ = (
        ("weight", c_void_p), ("bias", c_void_p), ("scale", c_void_p), ("offset", c_void_p),
        ("outputs", c_int32), ("words", c_int32),
    )  # fmt: skip


class Norm(Structure):
    """A norm's weights."""

    _fields_ = (("gamma", c_void_p), ("beta", c_void_p))


class Layer(Structure):
    """A layer's products and norms."""

    _fields_ = (
        ("project", Linear), ("join", Linear), ("query", Linear), ("remember", Linear), ("across", Linear),
        ("inner", Linear), ("outer", Linear), ("attention_norm", Norm), ("cross_norm", Norm),
        ("feed_forward_norm", Norm),
    )  # fmt: skip


class Stack(Structure):
    """An encoder's or a decoder's layers and tables."""

    _fields_ = (
        ("layers", POINTER(Layer)), ("last", Norm), ("embedded", Norm), ("pieces", c_void_p), ("positions", c_void_p),
        ("turns", c_void_p), ("distances", c_void_p), ("count", c_int32), ("reach", c_int32), ("cross", c_int32),
    )  # fmt: skip


class Model(Structure):
    """A whole model."""

    _fields_ = (
        ("encoder", Stack), ("decoder", Stack), ("output", Linear), ("kind", c_int32), ("d_model", c_int32),
        ("heads", c_int32), ("key_heads", c_int32), ("key_width", c_int32), ("value_width", c_int32),
        ("turned", c_int32), ("d_ff", c_int32), ("activation", c_int32), ("pre", c_int32), ("epsilon", c_float),
        ("embedding_scale", c_float),
    )  # fmt: skip


class Batch(Structure):
    """The rows of one call, and where its answer goes."""

    _fields_ = (
        ("tokens", c_void_p), ("places", c_void_p), ("slots", c_void_p), ("first", c_void_p), ("counts", c_void_p),
        ("cache", c_void_p), ("memory", c_void_p), ("memory_tokens", c_void_p), ("memory_layer", c_void_p),
        ("observe", c_void_p), ("seen", c_void_p), ("x", c_void_p), ("wide", c_void_p), ("scores", c_void_p),
        ("packed", c_void_p), ("scales", c_void_p), ("out", c_void_p), ("best", c_void_p), ("whole", c_void_p),
        ("block", c_void_p), ("best_ids", c_void_p), ("room", c_int64), ("rows", c_int32), ("stride", c_int32),
        ("observed", c_int32), ("widest", c_int32), ("keep", c_int32), ("threads", c_int32), ("span", c_int32),
    )  # fmt: skip


class Sentence(Structure):
    """A sentence of a compiled search."""

    _fields_ = (
        ("memory", c_void_p), ("memory_layer", c_int64), ("memory_tokens", c_int32), ("begin", c_int32),
        ("limit", c_int32), ("least", c_int32), ("bounds", c_int32 * PERIODS), ("count", c_int32), ("first", c_int32),
        ("rows", c_int32), ("answers", c_int32),
    )  # fmt: skip


class Answer(Structure):
    """One of its answers."""

    _fields_ = (
        ("score", c_float), ("logp", c_float), ("pieces", c_int32), ("ended", c_int32), ("guarded", c_int32),
    )  # fmt: skip


class Rows(Structure):
    """The rows of a compiled search."""

    _fields_ = (
        ("totals", c_void_p), ("slots", c_void_p), ("written", c_void_p), ("runs", c_void_p), ("tokens", c_void_p),
        ("acted", c_void_p),
    )  # fmt: skip


class Search(Structure):
    """A compiled search."""

    _fields_ = (
        ("sentences", POINTER(Sentence)), ("active", c_void_p), ("left", c_void_p), ("answers", POINTER(Answer)),
        ("ids", c_void_p), ("now", Rows), ("next", Rows), ("barred", c_void_p), ("bars", c_void_p), ("free", c_void_p),
        ("marks", c_void_p), ("penalty", c_float), ("width", c_int32), ("stride", c_int32), ("most_barred", c_int32),
        ("end", c_int32), ("guard", c_int32), ("stopping", c_int32), ("gnmt", c_int32), ("needed", c_int32),
        ("active_count", c_int32), ("left_count", c_int32), ("free_count", c_int32), ("rows", c_int32),
    )  # fmt: skip


class Kernel:
    """The loaded library."""

    def __init__(self, library: CDLL) -> None:
        self.step, self.encode = library.regard_step, library.regard_encode
        for call in (self.step, self.encode):
            call.argtypes, call.restype = (POINTER(Model), POINTER(Batch)), None
        self.search = library.regard_search
        self.search.argtypes, self.search.restype = (POINTER(Model), POINTER(Batch), POINTER(Search), c_int32), c_int32
        self.product = library.regard_product
        self.product.argtypes = (c_int32, POINTER(Linear), c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p)
        self.product.restype = None
        self.tiles = bool(library.regard_start())
        """whether the processor's tiles (AMX) are used"""
        own = int(library.regard_multiplies())
        self.multiplies = tuple(name for bit, name in enumerate(KINDS) if own >> bit & 1)
        """the kinds that the processor has products of their own for"""
        self.panel, self.tile = int(library.regard_panel()), int(library.regard_tile())


@functools.cache
def kernel() -> Kernel | None:
    """The kernel, compiled if it is not there yet; none where that is not possible or not wanted."""
    library = compiled("kernel", SOURCES)
    return None if library is None else Kernel(library)
