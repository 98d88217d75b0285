"""From plain data to a struct, with refusals that name the field and show its right form."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec

from headway.model.errors import InvalidJob
from headway.model.moments import check_moment

T = TypeVar("T", bound=msgspec.Struct)

_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`")
_LACKING = re.compile(r"Object (?P<how>missing required|contains unknown) field `(?P<field>[^`]*)`")


def read(form: type[T], given: Mapping[str, Any], error: type[InvalidJob] = InvalidJob, *, strict: bool = True) -> T:
    """The struct that `given` stands for. Raises `error`. Not `strict`: texts may stand for numbers and the like."""
    refuse_unknown(given, known(form), error)
    try:
        made = msgspec.convert(given, form, strict=strict)
    except msgspec.ValidationError as misfit:
        raise refused(form, misfit, error) from None
    for field, name in timed(form):
        if isinstance(moment := getattr(made, field), datetime):
            check_moment(name, moment, error)
    return made


def refuse_unknown(given: Iterable[str], known: frozenset[str], error: type[InvalidJob] = InvalidJob) -> None:
    """A field that nobody reads is a field that somebody counts on in vain."""
    if known.issuperset(given):
        return
    unknown = min(name for name in given if name not in known)
    near = difflib.get_close_matches(unknown, sorted(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(sorted(known))}"
    raise error(f"there is no field {unknown!r}: {hint}", field=unknown)


@cache
def known(form: type[msgspec.Struct]) -> frozenset[str]:
    """The names that may be written."""
    return frozenset(names(form))


def names(form: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a struct as they are written in JSON."""
    return form.__struct_encode_fields__


@cache
def timed(form: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """The fields that may be times, as they are called and as they are written: which times are known is no matter of
    types."""
    hints = typing.get_type_hints(form)
    written = zip(form.__struct_fields__, form.__struct_encode_fields__, strict=True)
    return tuple((field, name) for field, name in written if "datetime" in str(hints[field]))


@cache
def described(form: type[msgspec.Struct]) -> dict[str, str]:
    """What each field must be, in the words of its `msgspec.Meta(description=…)`."""
    hints = typing.get_type_hints(form, include_extras=True)
    written = zip(form.__struct_fields__, form.__struct_encode_fields__, strict=True)
    return {name: words for field, name in written for words in _descriptions(hints[field])}


def _descriptions(hint: Any) -> Iterator[str]:
    for note in getattr(hint, "__metadata__", ()):
        if isinstance(note, msgspec.Meta) and note.description:
            yield note.description


def refused(form: type[msgspec.Struct], misfit: msgspec.ValidationError, error: type[InvalidJob]) -> InvalidJob:
    """msgspec's words name place and type; what is wanted there is ours to say."""
    words = str(misfit)
    place = _PLACE.search(words)
    path = re.sub(r"\[[^\]]*\]", "", place["path"]).removeprefix(".") if place else ""
    said = _PLACE.sub("", words)
    lacking = _LACKING.fullmatch(said)
    if lacking:
        path = f"{path}.{lacking['field']}" if path else lacking["field"]
        said = "it is missing" if lacking["how"].startswith("missing") else "there is no such field"
    top = path.partition(".")[0]
    wanted = described(form).get(top)
    says = f"{path}: {said}"
    return error(f"{says}; {top} must be {wanted}" if wanted else says, field=path or None)
