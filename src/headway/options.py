"""What a submission may say, as users write it, and the `Submission` it becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypedDict, TypeVar
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from headway.executors.call.functions import Options
from headway.executors.contract import current_or_none
from headway.model.errors import ConfigurationError, InvalidJob
from headway.model.retry import Retry, seconds
from headway.model.submission import Dedupe, OnConflict, OnParentFailure, Submission, texts
from headway.observe import traces

Settings = TypeVar("Settings", bound=msgspec.Struct)


class Identified(Protocol):
    """A job as users hold it, as far as a submission needs it."""

    @property
    def id(self) -> UUID: ...


class SubmitOptions(TypedDict, total=False):
    """Options of one submission; each overrules what the function's decorator says."""

    run_at: datetime | None
    delay: float | timedelta | None
    priority: int
    queue: str
    key: str | None
    on_conflict: str | OnConflict
    dedupe: Dedupe | float | timedelta | None
    after: Sequence[Identified | UUID]
    on_parent_failure: str | OnParentFailure
    retry: Retry | None
    timeout: float | timedelta | None
    expires: datetime | float | timedelta | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    retain: float | timedelta
    id: UUID
    hold: bool
    name: str
    correlation_id: str
    created_by: str
    traceparent: str
    connection: Any
    """Your own database connection: the job is stored in your transaction, and only if that commits."""
    notify: bool
    """With `connection`: whether to wake workers at the commit (True) or leave it to their polling."""


_KNOWN = set(SubmitOptions.__annotations__)


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What a submission starts from: a function's own options, or a kind's."""

    kind: str
    name: str
    fields: Mapping[str, Any]
    """Fields of `Submission` that hold for every job of it."""
    dedupe: Dedupe | float | None = None
    dedupe_key: str | None = None
    """What jobs that ask for the same have in common; None: their name and payload."""


def base_of_call(name: str, options: Options, code_version: str | None) -> Base:
    """What every call of a function starts from: what `@app.job` was told of it."""
    fields: dict[str, Any] = {
        "queue": options.queue,
        "priority": options.priority,
        "timeout": options.timeout,
        "retry": options.retry,
        "key": options.key,
        "on_conflict": options.on_conflict,
        "on_parent_failure": options.on_parent_failure,
        "expires_in": options.expires,
        "tags": options.tags,
        "retain": options.retain,
        "code_version": code_version,
    }
    return Base(kind="call", name=name, fields=fields, dedupe=options.dedupe)


def build(base: Base, payload: str, given: Mapping[str, Any]) -> Submission:
    """A complete, checked submission."""
    fields: dict[str, Any] = dict(base.fields)
    if given:
        _refuse_unknown(given)
        fields.update(_fields(given))
    dedupe = given.get("dedupe", base.dedupe)
    if dedupe is not None:
        fields["dedupe"] = _dedupe(dedupe, base, payload)
    context = current_or_none()
    if context is not None and "correlation_id" not in fields:
        fields["correlation_id"] = context.correlation_id
    if fields.get("traceparent") is None:
        fields["traceparent"] = traces.current()
    job_id = fields.pop("id", None) or uuid7()
    return Submission(id=job_id, kind=base.kind, name=fields.pop("name", base.name), payload=payload, **fields)


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    unknown = sorted(given.keys() - _KNOWN)
    if unknown:
        raise InvalidJob(f"there is no option {unknown[0]!r}: use one of {', '.join(sorted(_KNOWN))}", field=unknown[0])


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("run_at") is not None and given.get("delay") is not None:
        raise InvalidJob("run_at and delay are both given: give one of them", field="delay")
    fields: dict[str, Any] = {}
    for name in given.keys() & _READERS.keys():
        fields.update(_READERS[name](given[name]))
    return fields


def _of(field: str, kind: type, form: str, *, optional: bool = False) -> Any:
    """Reads what must be of one type."""

    def read(value: Any) -> dict[str, Any]:
        fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not fits and not (optional and value is None):
            raise InvalidJob(f"{field} must be {form}, not {value!r}", field=field)
        return {field: value}

    return read


def _when(value: datetime | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, datetime):
        raise InvalidJob(f"run_at must be a datetime, not {value!r}; for a time from now use delay=", field="run_at")
    if value.tzinfo is None:
        raise InvalidJob(
            f"run_at needs a time zone, {value!r} has none: use datetime(…, tzinfo=UTC) or delay=", field="run_at"
        )
    return {"run_at": value}


def _expires(value: datetime | float | timedelta | None) -> dict[str, Any]:
    # Whichever form the function's decorator has chosen, this one counts.
    if value is None:
        return {"expires_at": None, "expires_in": None}
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidJob(f"expires needs a time zone, {value!r} has none", field="expires")
        return {"expires_at": value, "expires_in": None}
    return {"expires_at": None, "expires_in": seconds(value, "expires")}


def _choice(field: str, kind: type[OnConflict] | type[OnParentFailure]) -> Any:
    def read(value: str) -> dict[str, Any]:
        try:
            return {field: kind(value)}
        except ValueError:
            raise InvalidJob(f"{field} must be one of {', '.join(kind)}, not {value!r}", field=field) from None

    return read


def _after(value: Sequence[Identified | UUID] | Identified | UUID) -> dict[str, Any]:
    jobs: Any = [value] if isinstance(value, UUID) or hasattr(value, "id") else value
    ids = [getattr(job, "id", job) for job in jobs] if isinstance(jobs, Collection) else [jobs]
    if not all(isinstance(each, UUID) for each in ids):
        raise InvalidJob(f"after must be jobs, or their ids as UUID, not {value!r}", field="after")
    return {"after": tuple(dict.fromkeys(ids))}


def _dedupe(value: Dedupe | float | timedelta, base: Base, payload: str) -> Dedupe:
    if isinstance(value, Dedupe):
        return value
    window = seconds(value, "dedupe")
    if base.dedupe_key is not None:
        return Dedupe(base.dedupe_key, window)
    same = hashlib.blake2b(f"{base.name}\0{payload}".encode(), digest_size=16).hexdigest()
    return Dedupe(f"{base.name}:{same}", window)


def _metadata(value: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(value, Mapping | None):
        raise InvalidJob(f"metadata must be a dict, not {value!r}", field="metadata")
    return {"metadata": None if value is None else dict(value)}


def _optional_seconds(field: str) -> Any:
    return lambda value: {field: None if value is None else seconds(value, field)}


def _optional_text(field: str) -> Any:
    return _of(field, str, "a text", optional=True)


_on_conflict = _choice("on_conflict", OnConflict)

_READERS = {
    "run_at": _when,
    "delay": lambda value: {} if value is None else {"delay": seconds(value, "delay")},
    "priority": _of("priority", int, "a whole number from -100 to 100"),
    "queue": _of("queue", str, "the name of a queue"),
    "name": _of("name", str, "a text"),
    "id": _of("id", UUID, "a UUID", optional=True),
    "hold": _of("hold", bool, "True or False"),
    "retry": _of("retry", Retry, "a Retry such as Retry(max_attempts=3)", optional=True),
    "key": _optional_text("key"),
    "created_by": _optional_text("created_by"),
    "correlation_id": _optional_text("correlation_id"),
    "traceparent": _optional_text("traceparent"),
    "timeout": _optional_seconds("timeout"),
    "retain": _optional_seconds("retain"),
    "expires": _expires,
    "on_conflict": lambda value: {**_on_conflict(value), "curious": True},
    "on_parent_failure": _choice("on_parent_failure", OnParentFailure),
    "after": _after,
    "tags": lambda value: {"tags": texts("tags", value)},
    "metadata": _metadata,
}
"""What is not here is for others: `dedupe` needs the payload, `connection` and `notify` are about the way."""


def checked(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    """What is given by name, as one. Raises ConfigurationError."""
    unknown = sorted(given.keys() - set(kind.__struct_fields__))
    if unknown:
        raise ConfigurationError(
            f"there is no setting {unknown[0]!r}: use one of {', '.join(sorted(kind.__struct_fields__))}"
        )
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"a setting is wrong: {error}") from error
