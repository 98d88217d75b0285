"""SQL is a file: named statements with declared parameters, the same names in both dialects.

    -- name: finish_jobs(id, token; now)
    -- Why it is written as it is.
    update …

Parameters before the semicolon stand for one row each (PostgreSQL gets arrays, SQLite runs the statement row by row),
those behind it for the whole statement. `:name` in the text becomes the driver's numbered placeholder.

What several statements of a file have in common is a part: written once, before them, under `-- part: asked`, and
used as `@asked`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_HEADER = re.compile(r"^-- (?:name: (\w+)\(([^)]*)\)|part: (\w+))\n", re.MULTILINE)
_USE = re.compile(r"@(\w+)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class Statement(msgspec.Struct, frozen=True):
    """One named statement, ready for a driver."""

    name: str
    text: str
    row_parameters: tuple[str, ...]
    parameters: tuple[str, ...]


class Query(msgspec.Struct, frozen=True):
    """A step of a script: run this statement and send back its rows."""

    name: str
    rows: Sequence[tuple[Any, ...]] | None
    parameters: Mapping[str, Any]


Row = Any
"""A row as the driver gives it: by name (`row["id"]`) and by position."""
Script = Generator[Query, list[Row], T]
"""A transaction, written once for all dialects: yields queries, receives rows, returns its result.

A driver may run a script again from the start (after a deadlock, or when the outcome of a commit is unknown), so every
script leaves the store as it would after one run.
"""


def one(name: str, /, **parameters: Any) -> Query:
    """A statement without row parameters."""
    return Query(name, None, parameters)


def many(name: str, rows: Sequence[tuple[Any, ...]], /, **parameters: Any) -> Query:
    """A statement for a batch of rows, given in the order its header declares."""
    return Query(name, rows, parameters)


def load(package: str, placeholder: str) -> dict[str, Statement]:
    """All statements in the package's `*.sql` files; `placeholder` is `$` or `?`."""
    return dict(_read(package, placeholder))


@cache
def _read(package: str, placeholder: str) -> Mapping[str, Statement]:
    texts = [file.read_text() for file in files(package).iterdir() if file.name.endswith(".sql")]
    return {s.name: s for text in texts for s in _parse(text, placeholder)}


def _parse(text: str, placeholder: str) -> list[Statement]:
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    parts: dict[str, str] = {}

    def whole(given: str) -> str:
        return _USE.sub(lambda use: parts[use[1]], given)

    found = []
    for header, end in zip(headers, ends, strict=True):
        body = whole(text[header.end() : end])
        if header[3]:
            parts[header[3]] = body.strip()
        else:
            found.append(_statement(header[1], whole(header[2]), body, placeholder))
    return found


def _statement(name: str, declared: str, body: str, placeholder: str) -> Statement:
    row_part, _, shared_part = declared.partition(";") if ";" in declared else (declared, "", "")
    row_names, shared_names = _names(row_part), _names(shared_part)
    numbers = {parameter: number for number, parameter in enumerate(row_names + shared_names, start=1)}
    sql = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("--")).strip().rstrip(";")
    missing = {match[1] for match in _PARAMETER.finditer(sql)} - numbers.keys()
    if missing:
        raise ValueError(f"statement {name} uses undeclared parameters: {', '.join(sorted(missing))}")
    return Statement(name, _PARAMETER.sub(lambda m: f"{placeholder}{numbers[m[1]]}", sql), row_names, shared_names)


def _names(part: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in part.split(",") if name.strip())
