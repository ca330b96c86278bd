"""Holders: what has arrays and sections that the page may ask for. Runs, items, maps, histories and ablations.

Nothing of it is computed before somebody wants it: live the page, for a file whoever writes it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from regard.errors import InputError, nearest
from regard.explorer.arrays import Array, Pack, Plain
from regard.explorer.looks import Look

Made = tuple[Plain | None, dict[str, Array]]
"""A section and the arrays that come with it; none if it does not apply."""


@dataclass(kw_only=True, eq=False)
class Holder:
    """One of them."""

    id: str
    facts: Plain = field(default_factory=dict)
    """what its JSON says beside"""
    arrays: dict[str, Array] = field(default_factory=dict)
    sections: dict[str, Plain | None] = field(default_factory=dict)
    """those that are made"""
    makers: dict[str, Callable[[], Made]] = field(default_factory=dict)
    """those that can be"""
    look: Look | None = None
    """what an item is of"""

    def array(self, name: str) -> Array:
        """The array of that name; those of sections come with them."""
        if name not in self.arrays:
            raise InputError(f"array {name!r}: {nearest(name, self.arrays) if self.arrays else 'there are none'}")
        return self.arrays[name]

    def section(self, name: str) -> Made:
        """The section of that name and its arrays, made now if it was not."""
        if name in self.sections:
            return self.sections[name], {}
        if name not in self.makers:
            known = {**self.sections, **self.makers}
            raise InputError(f"section {name!r}: {nearest(name, known) if known else 'there are none'}")
        section, arrays = self.makers[name]()
        self.sections[name] = section
        self.arrays.update(arrays)
        return section, arrays

    def live(self) -> Plain:
        """For a page that fetches the rest."""
        return {**self._head(), "arrays": {name: array.entry() for name, array in self.arrays.items()}}

    def packed(self, pack: Pack, *, sections: Iterable[str], arrays: Callable[[str, Array], Array | None]) -> Plain:
        """For a file: with these sections, and with those arrays that `arrays` gives back, cut as it cuts them."""
        for name in sections:
            self.section(name)
        table = {}
        for name, array in self.arrays.items():
            chosen = arrays(name, array)
            if chosen is not None:
                table[name] = pack.add(chosen)
        return {**self._head(), "arrays": table}

    def _head(self) -> Plain:
        return {"id": self.id, **self.facts, "sections": dict(self.sections)}
