"""Train a Transformer on your own data on the machine you have, see what every head looks at, and ship it.

    import regard
    run = regard.load("runs/fr-en")
    run.translate("Je suis étudiant.").text

What is named here is imported when it is first used, so that `import regard` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.config import DecodingConfig, Recipe, read_recipe
    from regard.errors import InputError
    from regard.nn import Trace
    from regard.tasks.run import Run, load
    from regard.tasks.start import train
    from regard.tasks.translation import Translation
    from regard.tasks.translator import Wanted

_HOME = {
    "DecodingConfig": "regard.config",
    "InputError": "regard.errors",
    "Recipe": "regard.config",
    "Run": "regard.tasks.run",
    "Trace": "regard.nn",
    "Translation": "regard.tasks.translation",
    "Wanted": "regard.tasks.translator",
    "load": "regard.tasks.run",
    "read_recipe": "regard.config",
    "train": "regard.tasks.start",
}

__all__ = [
    "DecodingConfig", "InputError", "Recipe", "Run", "Trace", "Translation", "Wanted", "load", "read_recipe", "train",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
