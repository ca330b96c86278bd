"""C that is compiled on the machine it runs on: built once by its own compiler, kept in the user's cache.

It is an extra, never a need: without a compiler, or with `REGARD_KERNEL=off`, `compiled` answers None, and what the C
does faster is done by torch.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = ("-O2", "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC", "-pthread")
VECTORS = Path(__file__).with_name("vectors.c")
"""what all of the C takes in"""


def compiled(name: str, sources: tuple[Path, ...], *flags: str) -> ctypes.CDLL | None:
    """The library of the first source, which takes in the others; none where that is not possible or not wanted."""
    if os.environ.get("REGARD_KERNEL") == "off":
        return None
    compiler = next((found for each in ("cc", "gcc", "clang") if (found := shutil.which(each))), None)
    if compiler is None:
        return None
    try:
        return ctypes.CDLL(str(_built(compiler, name, sources, (*FLAGS, *flags))))
    except (OSError, subprocess.SubprocessError):
        return None


def _built(compiler: str, name: str, sources: tuple[Path, ...], flags: tuple[str, ...]) -> Path:
    """The library's file; its name holds what it was made of and for, so that another processor makes its own."""
    text = (file.read_text(encoding="utf-8") for file in sources)
    made_of = (*text, *flags, compiler, platform.machine(), _processor())
    file = f"{name}-{hashlib.sha256(chr(0).join(made_of).encode()).hexdigest()[:16]}.so"
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    for folder in (Path(home) / "regard", Path(tempfile.gettempdir()) / f"regard-{os.getuid()}"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if folder.stat().st_uid != os.getuid():  # another user's: nothing of theirs is loaded
                continue
            if not (folder / file).exists():
                _compile(compiler, flags, sources[0], folder / file)
            return folder / file
        except PermissionError:
            continue
    raise OSError(f"no folder to keep the {name} in")


def _compile(compiler: str, flags: tuple[str, ...], source: Path, path: Path) -> None:
    """Compile beside the place and put it there whole: several processes may start at once."""
    with tempfile.TemporaryDirectory(dir=path.parent) as beside:
        made = Path(beside) / "made.so"
        subprocess.run([compiler, *flags, "-o", str(made), str(source), "-lm"], check=True, capture_output=True)
        made.replace(path)


def _processor() -> str:
    """What tells processors apart whose code may differ."""
    if sys.platform != "linux":
        return platform.processor()
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), "")
