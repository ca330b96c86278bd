"""The payload's outermost record, live or in a file."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

from regard.explorer.arrays import Plain
from regard.explorer.studio import Studio

FORMAT = 1


def payload_of(
    studio: Studio, *, live: bool, state: Mapping[str, str], frame: str | None = None, runs: Sequence[Plain],
    items: Sequence[Plain] = (), token_map: Plain | None = None, asks: Sequence[Plain] = (),
) -> Plain:  # fmt: skip
    """What the page reads first; docs/explorer-payload.md says what is in it."""
    return {
        "format": FORMAT,
        "regard": version("regard"),
        "live": live,
        "embedded": frame is not None,
        "frame": frame,
        "title": " and ".join(str(holder.facts["name"]) for holder in studio.runs),
        "runs": list(runs),
        "items": list(items),
        "map": token_map,
        "asks": list(asks),
        "state": dict(state),
    }
