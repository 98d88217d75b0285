"""The submission that a job body becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from headway.kinds.body import COMMON, Common
from headway.kinds.contract import Functions, Kind
from headway.kinds.reading import names, read, refuse_unknown
from headway.model.errors import InvalidJob
from headway.model.job import OnParentFailure, Submission
from headway.options import Base, build

UUID7 = 7


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a body comes from, and on whose behalf."""

    by: str | None = None
    id: UUID | None = None
    """The job's, if it stands beside the body."""
    correlation_id: str | None = None
    broker: bool = False
    """It has come through a broker: nothing private may be in it."""
    staged: bool = False
    """To be stored as `creating`: a SCHEDULE follows."""


class Asked(msgspec.Struct, frozen=True):
    """A submission, and what its submitter should know."""

    submission: Submission
    warnings: tuple[str, ...] = ()


class Bodies:
    """Makes submissions of the bodies of all kinds."""

    def __init__(self, kinds: Mapping[str, Kind], functions: Functions) -> None:
        self._kinds = kinds
        self._functions = functions

    async def read(self, body: Mapping[str, Any], origin: Origin) -> Asked:
        """The submission that a body asks for. Raises InvalidJob, which names the field to mend."""
        kind = self._kind(body.get("kind"))
        if origin.broker:
            _refuse_private(kind, body)
        own = {name: value for name, value in body.items() if name not in COMMON}
        fields = _fields(kind, own)
        said = read(Common, {name: value for name, value in body.items() if name in COMMON}).options()
        fixed = {"staged": origin.staged and _may_be_staged(said), "fingerprint": fingerprint(body)}
        return await self._asked(kind, fields, said | _from(origin, said), fixed)

    async def of_kind(self, kind: Kind, fields: Mapping[str, Any], options: Mapping[str, Any]) -> Asked:
        """The submission of a kind's own fields, with options as the library takes them."""
        return await self._asked(kind, _fields(kind, fields), options, {})

    async def _asked(self, kind: Kind, fields: Any, options: Mapping[str, Any], fixed: Mapping[str, Any]) -> Asked:
        prepared = await kind.prepare(fields, self._functions)
        name = options.get("name") or prepared.name
        if name is None:
            raise InvalidJob(f"a job of kind {kind.name!r} needs a name", field="name")
        base = Base(kind=kind.name, name=name, fields={**prepared.fields, **fixed}, dedupe=prepared.dedupe)
        return Asked(build(base, prepared.payload, options), prepared.warnings)

    def _kind(self, name: object) -> Kind:
        if isinstance(name, str) and name in self._kinds:
            return self._kinds[name]
        wrong = "kind is missing" if name is None else f"there is no kind {name!r}"
        raise InvalidJob(f"{wrong}: use {', '.join(sorted(self._kinds))}", field="kind")


def fingerprint(body: Mapping[str, Any]) -> bytes:
    """Equal for equal bodies, in whatever order their fields stand."""
    content = {name: value for name, value in body.items() if name != "id"}
    return hashlib.blake2b(msgspec.json.encode(content, order="deterministic"), digest_size=16).digest()


def _fields(kind: Kind, own: Mapping[str, Any]) -> Any:
    if kind.fields is None:
        return dict(own)
    refuse_unknown(own, (*names(kind.fields), *COMMON))
    return read(kind.fields, own)


def _from(origin: Origin, said: Mapping[str, Any]) -> dict[str, Any]:
    """What its origin says of a job."""
    job_id = said.get("id", origin.id)
    if origin.id is not None and job_id != origin.id:
        raise InvalidJob(f"the body says {job_id}, the message {origin.id}: give one id", field="id")
    if job_id is not None and job_id.version != UUID7:
        raise InvalidJob(
            f"{job_id} is no UUID of version 7: jobs are sorted by the time in their ids; leave it out to be given one",
            field="id",
        )
    told = {"id": job_id, "created_by": origin.by, "correlation_id": origin.correlation_id}
    return {name: value for name, value in told.items() if value is not None}


def _may_be_staged(said: Mapping[str, Any]) -> bool:
    """A job on hold is as good as staged. One that a parent's failure is to hold must not be: the SCHEDULE on its way
    couldn't be told from a person's word that lets it go."""
    held_by_parents = said.get("after") and said.get("on_parent_failure") is OnParentFailure.HOLD
    return not said.get("hold") and not held_by_parents


def _refuse_private(kind: Kind, body: Mapping[str, Any]) -> None:
    private = sorted(kind.private.intersection(body))
    if private:
        raise InvalidJob(
            f"{private[0]} is not taken from a broker, where others could read it: submit this job over HTTPS",
            field=private[0],
        )
