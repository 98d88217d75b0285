"""The submission that a job body becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import msgspec

from headway.executors.call.arguments import finite
from headway.kinds.body import COMMON, Common
from headway.kinds.contract import Functions, Kind, Prepared, Safe
from headway.kinds.reading import known, read, refuse_unknown
from headway.model.errors import ConfigurationError, InvalidJob, TooLarge
from headway.model.sealed import CREDENTIAL, FILE, Attachment, Enclosed
from headway.model.submission import OnParentFailure, Submission, check_name
from headway.options import Base, build

UUID7 = 7


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a body comes from, and on whose behalf."""

    by: str | None = None
    id: UUID | None = None
    """The job's, if it stands beside the body."""
    correlation_id: str | None = None
    traceparent: str | None = None
    broker: bool = False
    """It has come through a broker: nothing private may be in it."""
    exposed: bool = False
    """It has come over a line that others can read: the same."""
    staged: bool = False
    """To be stored as `creating`: a SCHEDULE follows."""


class Asked(msgspec.Struct, frozen=True):
    """A submission, and what its submitter should know."""

    submission: Submission
    warnings: tuple[str, ...] = ()
    kept: tuple[tuple[tuple[str, ...], UUID], ...] = ()
    """Places in the body whose content is kept apart, as an attachment with this id."""


class Bodies:
    """Makes submissions of the bodies of all kinds."""

    def __init__(self, kinds: Mapping[str, Kind], functions: Functions, safe: Safe | None = None) -> None:
        self._kinds = kinds
        self._functions = functions
        self._safe = safe

    async def read(self, body: Mapping[str, Any], origin: Origin) -> Asked:
        """The submission that a body asks for. Raises InvalidJob, which names the field to mend."""
        kind = self.kind(body.get("kind"))
        _refuse_private(kind.private.intersection(body), origin)
        own = {name: value for name, value in body.items() if name not in COMMON}
        fields = _fields(kind, own)
        # Most say no more than their kind, which is known by now.
        said = _said(body) if len(own) + 1 < len(body) else {}
        fixed = _from(origin, said)
        prepared = await kind.prepare(fields, self._functions)
        _refuse_private({asked.at[0] for asked in prepared.attachments if isinstance(asked, Enclosed)}, origin)
        fixed["fingerprint"] = fingerprint(_without_credentials(body, prepared))
        return await self._asked(kind, prepared, said, fixed)

    async def of_kind(self, kind: Kind, fields: Mapping[str, Any], options: Mapping[str, Any]) -> Asked:
        """The submission of a kind's own fields, with options as the library takes them."""
        _refuse_unstorable(kind, fields)
        prepared = await kind.prepare(_fields(kind, fields), self._functions)
        return await self._asked(kind, prepared, options, {})

    async def _asked(
        self, kind: Kind, prepared: Prepared, options: Mapping[str, Any], fixed: Mapping[str, Any]
    ) -> Asked:
        name = options.get("name") or prepared.name
        if name is None:
            raise InvalidJob(f"a job of kind {kind.name!r} needs a name", field="name")
        fields = {**prepared.fields, **fixed}
        kept: tuple[tuple[tuple[str, ...], UUID], ...] = ()
        if prepared.attachments or prepared.target is not None:
            fields["attachments"] = attachments = await self._attached(prepared)
            places = zip(prepared.attachments, attachments, strict=True)
            kept = tuple((asked.at, each.id) for asked, each in places if asked.at)
        if prepared.secrets and self._safe is not None:
            await self._safe.require_secrets(prepared.secrets)
        base = Base(kind=kind.name, name=name, fields=fields, dedupe=prepared.dedupe, dedupe_key=prepared.dedupe_key)
        return Asked(build(base, prepared.payload, options), prepared.warnings, kept)

    async def _attached(self, prepared: Prepared) -> tuple[Attachment, ...]:
        if self._safe is None:
            raise ConfigurationError("jobs with scripts, files or credentials can't be made here: there is no vault")
        if prepared.target is not None:
            await self._safe.require_target(prepared.target)
        attached = tuple([await self._safe.attach(asked) for asked in prepared.attachments])
        if prepared.check is not None:
            await prepared.check(await self._safe.content(attached[0]))
        size = sum(each.size for each in attached if each.role == FILE)
        if prepared.files_limit is not None and size > prepared.files_limit:
            raise TooLarge(f"the files take {size:,} bytes, the limit is {prepared.files_limit:,}", field="files")
        return attached

    def kind(self, name: object) -> Kind:
        """The kind of that name. Raises InvalidJob."""
        if isinstance(name, str) and name in self._kinds:
            return self._kinds[name]
        wrong = "kind is missing" if name is None else f"there is no kind {name!r}"
        raise InvalidJob(f"{wrong}: use {', '.join(sorted(self._kinds))}", field="kind")


def fingerprint(body: Mapping[str, Any]) -> bytes:
    """Equal for equal bodies, in whatever order their fields stand."""
    content = {name: value for name, value in body.items() if name != "id"}
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).digest()


def _without_credentials(body: Mapping[str, Any], prepared: Prepared) -> Mapping[str, Any]:
    """A digest of a body that is known but for a password would tell the password to whoever tries them all."""
    for asked in prepared.attachments:
        if isinstance(asked, Enclosed) and asked.role == CREDENTIAL and asked.at:
            body = replaced(body, asked.at, None)
    return body


def replaced(body: Mapping[str, Any], at: Sequence[str], value: Any) -> dict[str, Any]:
    """The body with another value at a place; the body itself stays as it is. Parts of a list are named by number."""
    changed: dict[str, Any] = _put(body, at, value)
    return changed


def _put(part: Any, at: Sequence[str], value: Any) -> Any:
    if not at:
        return value
    if isinstance(part, list):
        return [_put(each, at[1:], value) if str(index) == at[0] else each for index, each in enumerate(part)]
    return {**part, at[0]: _put(part.get(at[0], {}), at[1:], value)}


def _fields(kind: Kind, own: Mapping[str, Any]) -> Any:
    if kind.fields is None:
        return dict(own)
    refuse_unknown(own, _known(kind.fields))
    return read(kind.fields, own)


@cache
def _known(fields: type[msgspec.Struct]) -> frozenset[str]:
    """All that a body with these fields may have."""
    return known(fields) | COMMON


def _said(body: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a body gives."""
    return read(Common, {name: value for name, value in body.items() if name in COMMON}).options()


def _refuse_unstorable(kind: Kind, own: Mapping[str, Any]) -> None:
    """A body comes as JSON; what the library is given must be fit to become some."""
    check_name("kind", kind.name)
    if not isinstance(own, Mapping) or not all(isinstance(name, str) for name in own):
        raise InvalidJob(f"a job of kind {kind.name!r} takes a dict of its fields by name, not {own!r:.100}")
    for name, value in own.items():
        try:
            text = msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidJob(f"{name} can't be stored: {error}; pass plain data", field=name) from error
        if b"null" in text and not finite(value):
            raise InvalidJob(f"{name} holds NaN or an infinite number, which JSON can't store", field=name)


def _from(origin: Origin, said: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the submission that its origin decides."""
    job_id = said.get("id", origin.id)
    if origin.id is not None and job_id != origin.id:
        raise InvalidJob(f"the body says {job_id}, the message {origin.id}: give one id", field="id")
    if job_id is not None and job_id.version != UUID7:
        raise InvalidJob(
            f"{job_id} is no UUID of version 7: jobs are sorted by the time in their ids; leave it out to be given one",
            field="id",
        )
    told: dict[str, Any] = {"created_by": origin.by, "traceparent": origin.traceparent}
    if job_id is not None:
        told["id"] = job_id
    if origin.correlation_id is not None:
        told["correlation_id"] = origin.correlation_id
    if origin.staged:
        told["staged"] = _may_be_staged(said)
    return told


def _may_be_staged(said: Mapping[str, Any]) -> bool:
    """A job on hold is as good as staged. One that a parent's failure is to hold must not be: the SCHEDULE on its way
    couldn't be told from a person's word that lets it go."""
    held_by_parents = said.get("after") and said.get("on_parent_failure") is OnParentFailure.HOLD
    return not said.get("hold") and not held_by_parents


def _refuse_private(fields: Collection[str], origin: Origin) -> None:
    """Scripts, files and credentials don't travel where others could read them."""
    if fields and (origin.broker or origin.exposed):
        private = sorted(fields)
        where = "a broker" if origin.broker else "a line that is not encrypted"
        raise InvalidJob(
            f"{private[0]} is not taken from {where}, where others could read it: submit this job over HTTPS",
            field=private[0],
        )
