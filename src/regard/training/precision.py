"""Which numbers to multiply in: chosen by a short trial on the machine itself, and said in a line."""

import ctypes
import platform
import time
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F

FASTER = 1.3
"""bf16 must multiply this many times as fast as float32 to be worth its rounding"""


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The choice and its reason."""

    dtype: torch.dtype
    reason: str

    @property
    def name(self) -> Literal["float32", "bf16"]:
        """As a recipe calls it."""
        return "bf16" if self.dtype == torch.bfloat16 else "float32"


def choose_precision(wanted: Literal["auto", "float32", "bf16"], device: torch.device) -> Precision:
    """What the recipe says; for auto, bf16 where a trial of some 50 ms finds it clearly faster."""
    if wanted != "auto":
        dtype = torch.bfloat16 if wanted == "bf16" else torch.float32
        return Precision(dtype=dtype, reason=f"{wanted}, as the recipe says")
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported()
        dtype = torch.bfloat16 if able else torch.float32
        return Precision(
            dtype=dtype,
            reason=f"{'bf16' if able else 'float32'}, what {torch.cuda.get_device_name(device)} is made for",
        )
    fast, plain = product_rate(torch.bfloat16, device), product_rate(torch.float32, device)
    chosen = torch.bfloat16 if fast > FASTER * plain else torch.float32
    name = "bf16" if chosen == torch.bfloat16 else "float32"
    rates = f"products run at {fast / 1e9:.0f} GFLOP/s in bf16 and {plain / 1e9:.0f} in float32"
    return Precision(dtype=chosen, reason=f"{name}, since here {rates}")


def product_rate(dtype: torch.dtype, device: torch.device, *, rows: int = 1024, width: int = 512) -> float:
    """Floating-point operations a second of a layer's product: the best of a few trials, the first not counted."""
    x = torch.ones(rows, width, dtype=dtype, device=device)
    weight = torch.ones(2 * width, width, dtype=dtype, device=device)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        out = F.linear(x, weight)
        out[0, 0].item()  # waits for a device that computes in the background
        best = min(best, time.perf_counter() - start)
    return 2 * rows * width * 2 * width / best


def keep_memory() -> None:
    """Ask the C library to keep freed memory for the next step instead of giving it back to the system.

    A step frees and takes the same hundreds of megabytes again and again; with glibc's defaults each time as fresh
    pages that the kernel fills with zeros: a tenth of the step's time. Other C libraries know no such request.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h
    library.mallopt(mmap_threshold, 1 << 30)
    library.mallopt(trim_threshold, (1 << 31) - 1)
