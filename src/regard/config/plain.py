"""Frozen dataclasses from plain values (TOML, JSON or the words of a command line), and back.

Unknown keys are refused with the nearest right one, and wrong values with the field, the value and what would be right.
"""

import ast
import dataclasses
import inspect
import math
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from regard.errors import InputError, nearest

T = TypeVar("T")


def build(kind: type[T], values: Mapping[str, object], *, where: str = "") -> T:
    """An instance of the dataclass `kind`; `where` is the section's name for messages."""
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in values:
        if name not in names:
            raise InputError(f"unknown key {where}{name}: {nearest(name, names)}")
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name not in values and _default(field) is dataclasses.MISSING:
            raise InputError(f"{where}{field.name} is not stated: it must be {describe_type(hints[field.name])}")
    return kind(**{name: convert(hints[name], value, where=f"{where}{name}") for name, value in values.items()})


def convert(hint: Any, value: object, *, where: str) -> Any:
    """`value` as the annotated type `hint`; text is read as the type needs it, since command lines only have text."""
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise InputError(f"{where} = {value!r}: must be a table")
        return build(hint, value, where=f"{where}.")  # type: ignore[arg-type]
    if origin is Literal:
        if value in arguments:
            return value
        raise InputError(f"{where} = {value!r}: {nearest(str(value), map(str, arguments))}")
    if origin in (Union, types.UnionType):
        rest = [part for part in arguments if part is not type(None)]
        if value is None or value == "none":
            return None
        return convert(rest[0], value, where=where)
    if origin is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            value = [value]
        return tuple(convert(arguments[0], item, where=where) for item in value)
    return _scalar(hint, value, where)


def _scalar(hint: type, value: object, where: str) -> object:
    if hint is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise InputError(f"{where} = {value!r}: must be true or false")
    if hint in (int, float) and not isinstance(value, bool):
        try:
            if hint is float and isinstance(value, (int, float, str)):
                number = float(value)
                if math.isfinite(number):
                    return number
            elif isinstance(value, (int, str)):
                return int(value)
        except (ValueError, OverflowError):
            pass
    if hint is str and isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value):
        return value
    wanted = {int: "a whole number", float: "a finite number", str: "Unicode text"}[hint]
    raise InputError(f"{where} = {value!r}: must be {wanted}")


def to_plain(record: Any) -> dict[str, object]:
    """The dataclass as plain values.

    TOML has no none: where it is the default it is left out, and elsewhere it is the word "none".
    """
    plain: dict[str, object] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value is not None:
            plain[field.name] = _plain_value(value)
        elif _default(field) is not None:
            plain[field.name] = "none"
    return plain


def _default(field: dataclasses.Field[Any]) -> Any:
    """What the field holds when nobody states it, or MISSING when somebody must."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _plain_value(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return to_plain(value)
    if isinstance(value, tuple):
        return [_plain_value(item) for item in value]
    return value


def to_toml(values: Mapping[str, object], *, section: str = "") -> str:
    """TOML text of nested plain values: the scalars first, then a section for each table."""
    lines = [f"{name} = {_toml_value(value)}" for name, value in values.items() if not isinstance(value, Mapping)]
    if section:
        lines.insert(0, f"\n[{section}]")
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines.append(to_toml(value, section=f"{section}.{name}" if section else name).rstrip("\n"))
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
        case Mapping():
            return "{" + ", ".join(f"{name} = {_toml_value(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(_toml_value(item) for item in value) + "]"
        case _:
            return repr(value)


@cache
def field_docs(kind: type) -> dict[str, str]:
    """The line that stands below each field of a dataclass: what a command's help says of it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    for statement, following in zip(body.body, body.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match following:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    docs[statement.target.id] = " ".join(text.split())
    return docs


def describe_type(hint: Any) -> str:
    """What a field takes, in a word or as its choices: the metavar of its option."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "|".join(map(str, arguments))
    if origin in (Union, types.UnionType):
        return "|".join("none" if part is type(None) else describe_type(part) for part in arguments)
    if origin is tuple:
        return f"{describe_type(arguments[0])} …"
    words = {int: "INT", float: "NUMBER", str: "TEXT", bool: "true|false"}
    return words.get(hint, "TABLE")
