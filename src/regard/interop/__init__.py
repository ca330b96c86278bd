"""Interchange: models of other programs read into run folders. A format is one file with one table."""

from regard.interop.formats import import_run
from regard.interop.imported import Imported

__all__ = ["Imported", "import_run"]
