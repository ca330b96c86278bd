"""The page's modules as one: imports are taken out, `export` is dropped, and what they need stands before them.

A bundler for one kind of module only, which docs/explorer-payload.md describes; anything else is refused with the name
of the module, so that a file never breaks where the live page works.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"(\./[\w./-]+\.js)";[ \t]*(?://[^\n]*)?$', re.MULTILINE)
DECLARED = re.compile(r"^(?:async\s+)?(?:function\s*\*?|const|let|class)\s+([A-Za-z_$][\w$]*)")
DESTRUCTURED = re.compile(r"^(?:const|let|var)\s*[\[{]|^var\b")
COMMENT = re.compile(r"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/[ \t]*|//[^\n]*)\n", re.MULTILINE)
"""whole lines of it: for readers of the modules, not for a file"""
STRAY = re.compile(r"^\s*(?:import\b(?!\()|export\b)", re.MULTILINE)


def bundled(modules: Mapping[str, str], entry: str) -> str:
    """One module of all that `entry` needs; `modules` are texts by file name."""
    done: dict[str, str] = {}
    names: dict[str, str] = {}
    _add(entry, modules, done, names, ())
    return "\n".join(f"// {name}\n{code.strip()}\n" for name, code in done.items())


def _add(
    name: str, modules: Mapping[str, str], done: dict[str, str], names: dict[str, str], above: tuple[str, ...]
) -> None:
    """Put a module behind those that it imports."""
    if name in done:
        return
    if name in above:
        raise ValueError(f"{name}: imports in a circle: {' -> '.join((*above, name))}")
    if name not in modules:
        raise ValueError(f"{name}: no such module; {above[-1] if above else 'the page'} needs it")
    code = modules[name]
    for listed, path in IMPORT.findall(code):
        other = str(PurePosixPath(name).parent / path)
        _add(other, modules, done, names, (*above, name))
        for wanted in filter(None, (word.strip() for word in listed.split(","))):
            if names.get(wanted) != other:
                raise ValueError(f"{name}: imports {wanted!r} from {other}, which does not declare it at its top level")
    done[name] = _plain(name, IMPORT.sub("", code), names)


def _plain(name: str, code: str, names: dict[str, str]) -> str:
    """The code without `export`; what it declares goes into `names`."""
    lines = []
    for line in code.splitlines():
        exported = re.sub(r"^export\s+(?=(?:async\s+)?(?:function|const|let|class)\b)", "", line)
        if DESTRUCTURED.match(exported):
            raise ValueError(f"{name}: {line.strip()!r}: declare one name at a time, with const or let")
        if found := DECLARED.match(exported):
            own = found[1]
            if own in names:
                raise ValueError(f"{name}: declares {own!r}, as {names[own]} does")
            names[own] = name
        lines.append(exported)
    plain = COMMENT.sub("", "\n".join(lines))
    if stray := STRAY.search(plain):
        raise ValueError(f"{name}: {stray[0].strip()!r}: a form of import or export that is not bundled")
    for forbidden in ("</script", "<!--"):
        if forbidden in plain.lower():
            raise ValueError(f"{name}: has {forbidden!r}, which would end the script that it stands in")
    return plain
