"""Whether a value fits a JSON Schema, as far as the schemas go that Python's types make.

Functions run elsewhere, in code that isn't here; their parameters are known by schema. What the schema doesn't say,
the worker finds out.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

Schema = dict[str, Any]
Path = tuple[str | int, ...]


class Misfit(NamedTuple):
    """Where in the value, and what should be there."""

    path: Path
    wanted: str


def misfit(value: Any, schema: Schema) -> Misfit | None:
    """The first place where the value doesn't fit; None if it does."""
    return _misfit(value, schema, schema, ())


def _misfit(value: Any, schema: Schema | bool, root: Schema, path: Path) -> Misfit | None:
    if isinstance(schema, dict) and "$defs" in schema:
        root = schema
    schema = _followed(schema, root)
    if isinstance(schema, bool):
        return None if schema else Misfit(path, "left out: there is no such one")
    if not _fits_itself(value, schema, root):
        return Misfit(path, wanted(schema, root))
    if isinstance(value, dict):
        return _in_object(value, schema, root, path)
    return _in_list(value, schema, root, path) if isinstance(value, list) else None


def _fits_itself(value: Any, schema: Schema, root: Schema) -> bool:
    """Whether the value fits, apart from what it contains."""
    if "anyOf" in schema:
        return any(_misfit(value, each, root, ()) is None for each in schema["anyOf"])
    if "enum" in schema:
        return any(value == each and type(value) is type(each) for each in schema["enum"])
    kind = schema.get("type")
    if kind is not None and not _TYPES[kind](value):
        return False
    if _RULES.keys().isdisjoint(schema):
        return True
    return all(rule(value, schema[word]) for word, rule in _RULES.items() if word in schema)


def _in_object(value: dict[str, Any], schema: Schema, root: Schema, path: Path) -> Misfit | None:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return Misfit((*path, name), f"given: {wanted(known.get(name, True), root)}")
    others = schema.get("additionalProperties", True)
    for name, each in value.items():
        if (found := _misfit(each, known.get(name, others), root, (*path, name))) is not None:
            return found
    return None


def _in_list(value: list[Any], schema: Schema, root: Schema, path: Path) -> Misfit | None:
    first: Sequence[Schema] = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for index, each in enumerate(value):
        fitting = first[index] if index < len(first) else rest
        if (found := _misfit(each, fitting, root, (*path, index))) is not None:
            return found
    return None


def wanted(schema: Schema | bool, root: Schema) -> str:
    """What the schema asks for, in words."""
    schema = _followed(schema, root)
    if isinstance(schema, bool):
        return "anything"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(wanted(each, root) for each in schema["anyOf"]))
    if "enum" in schema:
        return f"one of {', '.join(msgspec.json.encode(each).decode() for each in schema['enum'])}"
    form = schema.get("format") or schema.get("contentEncoding")
    words = _FORMATS[form].words if form in _FORMATS else _WORDS.get(schema.get("type", ""), "anything")
    limits = [
        f"{word} {schema[word]}" for word in _RULES if word in schema and word not in {"format", "contentEncoding"}
    ]
    return f"{words} ({', '.join(limits)})" if limits else words


def _followed(schema: Schema | bool, root: Schema) -> Schema | bool:
    while isinstance(schema, dict) and "$ref" in schema:
        schema = root.get("$defs", {}).get(schema["$ref"].removeprefix("#/$defs/"), True)
    return schema


class _Format(NamedTuple):
    words: str
    fits: Callable[[str], object]


def _as(kind: Any) -> Callable[[str], object]:
    return lambda text: msgspec.convert(text, kind)


_FORMATS = {
    "date-time": _Format('a time such as "2030-01-31T12:00:00Z"', _as(datetime)),
    "date": _Format('a date such as "2030-01-31"', _as(date)),
    "time": _Format('a time of day such as "12:00:00Z"', _as(time)),
    "duration": _Format('a duration such as "PT90S"', _as(timedelta)),
    "uuid": _Format("a UUID", UUID),
    "decimal": _Format('a number as text, such as "9.95"', _as(Decimal)),
    "base64": _Format("base64", lambda text: b64decode(text, validate=True)),
}


def _has_form(text: Any, form: str) -> bool:
    if form not in _FORMATS or not isinstance(text, str):
        return True
    try:
        _FORMATS[form].fits(text)
    except (ValueError, msgspec.ValidationError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_WORDS = {
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, least: value >= least,
    "maximum": lambda value, most: value <= most,
    "exclusiveMinimum": lambda value, least: value > least,
    "exclusiveMaximum": lambda value, most: value < most,
    "multipleOf": lambda value, step: value % step == 0,
    "minLength": lambda value, least: len(value) >= least,
    "maxLength": lambda value, most: len(value) <= most,
    "minItems": lambda value, least: len(value) >= least,
    "maxItems": lambda value, most: len(value) <= most,
    "minProperties": lambda value, least: len(value) >= least,
    "maxProperties": lambda value, most: len(value) <= most,
    "pattern": lambda value, pattern: re.search(pattern, value) is not None,
    "format": _has_form,
    "contentEncoding": _has_form,
}
