"""The job bodies that a command line asks for."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from headway.model.errors import ConfigurationError

JSON = ("args", "kwargs", "payload")
"""Options whose value is JSON."""
SUBJECT = {"call": "function", "http": "callback_url", "fetch": "url", "script": "script"}
"""The field that what a command names becomes."""
FITTING = {
    "call": {"args", "kwargs"},
    "http": {"http_method", "payload", "headers"},
    "fetch": {"headers"},
    "script": {"args", "target"},
}
FLAGS = {"http_method": "method", "headers": "header"}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. Options that were not given are None."""

    kind: str
    what: Sequence[str]
    own: Mapping[str, Any]
    common: Mapping[str, Any]
    fields: Sequence[str]


def bodies_of(asked: Asked) -> list[dict[str, Any]]:
    """One body for each thing that was named. Raises ConfigurationError."""
    extra = dict(_field(text) for text in asked.fields)
    common = {name: value for name, value in asked.common.items() if value is not None} | extra
    if asked.kind == "body":
        _refuse_misfits(asked, set())
        return [{**body, **common} for path in asked.what or ["-"] for body in _bodies_in(path)]
    own = _own(asked)
    if asked.kind not in SUBJECT:
        return [{"kind": asked.kind, **own, **common}]
    if not asked.what:
        raise ConfigurationError(
            f"headway submit {asked.kind} needs a {SUBJECT[asked.kind]}: see headway submit --help"
        )
    return [{"kind": asked.kind, **_subject(asked.kind, word), **own, **common} for word in asked.what]


def _own(asked: Asked) -> dict[str, Any]:
    _refuse_misfits(asked, FITTING.get(asked.kind, set()))
    said = {name: value for name, value in asked.own.items() if value}
    return {name: _value(name, value) for name, value in said.items()}


def _refuse_misfits(asked: Asked, fitting: set[str]) -> None:
    for name, value in asked.own.items():
        if value and name not in fitting and asked.kind in {*SUBJECT, "body"}:
            raise ConfigurationError(f"--{FLAGS.get(name, name)} is not for jobs of kind {asked.kind}")


def _value(name: str, value: Any) -> Any:
    if name in JSON:
        return _json(value, f"--{name}")
    return dict(_header(text) for text in value) if name == "headers" else value


def _subject(kind: str, word: str) -> dict[str, Any]:
    return {SUBJECT[kind]: _read(word) if kind == "script" else word}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise ConfigurationError(f"--header {text!r} must look like 'Accept: text/html'")
    return name.strip(), value.strip()


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigurationError(f"--field {text!r} must look like name=JSON, e.g. dedupe=false")
    return name, _json(value, f"--field {name}")


def _json(text: str, what: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigurationError(f"{what} is no JSON: {error}") from error


def _bodies_in(path: str) -> list[dict[str, Any]]:
    """One body, a list of them, or one on each line."""
    text = _read(path)
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = [_json(line, f"line {number} of {path}") for number, line in enumerate(text.splitlines(), 1) if line]
    bodies = found if isinstance(found, list) else [found]
    if not bodies or not all(isinstance(body, dict) for body in bodies):
        raise ConfigurationError(f"{path} must hold a job body, a list of them, or one on each line")
    return bodies


def _read(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text()
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
