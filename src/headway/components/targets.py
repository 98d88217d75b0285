"""Targets as people write and see them, and a look at one by a worker: for REST and the command line alike."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from uuid_utils.compat import uuid7

from headway.clock import Clock, sleep
from headway.components.messages import Reach
from headway.kinds.bodies import Bodies, Origin
from headway.kinds.script import probe_wanted
from headway.model.errors import Conflict, InvalidJob, InvalidRequest
from headway.model.job import JobRecord
from headway.model.sealed import Credential
from headway.model.submission import OnConflict, Submission
from headway.model.target import Probed, Step, Target, TargetKind, TargetRecord, fingerprint
from headway.store.contract import Store
from headway.vault.vault import Vault

PROBE_PATIENCE = 5.0
"""Seconds within which a worker must have begun a probe."""
PROBE_LIMIT = 20.0
"""Seconds within which it must be over."""
LOOK_EVERY = 0.05

_LABELS = 'an object of short texts, such as {"zone": "a"}'


class CredentialBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What opens a target: a password, or a private key with its passphrase."""

    password: str | None = None
    private_key: str | None = None
    passphrase: str | None = None

    def credential(self) -> Credential:
        """Raises InvalidRequest."""
        if (self.password is None) == (self.private_key is None):
            raise InvalidRequest("credential must have either a password or a private_key", field="credential")
        if self.passphrase is not None and self.private_key is None:
            raise InvalidRequest("a passphrase is for a private_key only", field="credential.passphrase")
        for name in ("password", "private_key"):
            if getattr(self, name) == "":
                raise InvalidRequest(f"credential.{name} is empty", field=f"credential.{name}")
        return Credential(password=self.password, private_key=self.private_key, passphrase=self.passphrase)


class TargetChange(msgspec.Struct, kw_only=True):
    """Fields of a target; what isn't given stays as it is. With another host or port its credential and its host key
    are gone, unless a new credential comes along. A host key is saved by another act (`trust`)."""

    name: Annotated[str | UnsetType, Meta(description="1 to 100 letters, digits, '.', '_' or '-'")] = UNSET
    kind: Annotated[TargetKind | UnsetType, Meta(description="ssh, or local for the worker's own machine")] = UNSET
    host: Annotated[str | UnsetType, Meta(description="the name or address of a server")] = UNSET
    port: Annotated[Annotated[int, Meta(ge=1, le=65535)] | UnsetType, Meta(description="a number from 1 to 65535")] = (
        UNSET
    )
    user: Annotated[str | UnsetType, Meta(description="the name of a user there")] = UNSET
    labels: Annotated[dict[str, str] | UnsetType, Meta(description=_LABELS)] = UNSET
    max_connections: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | UnsetType, Meta(description="a number from 1 to 100, of each worker")
    ] = UNSET
    connect_timeout: Annotated[
        Annotated[float, Meta(gt=0, le=300)] | UnsetType, Meta(description="seconds, at most 300")
    ] = UNSET
    directory: Annotated[str | UnsetType, Meta(description="where runs get directories, such as ~/.headway")] = UNSET
    description: Annotated[str | UnsetType | None, Meta(description="a text for people, or null")] = UNSET
    credential: Annotated[
        CredentialBody | UnsetType | None,
        Meta(description='{"password": …} or {"private_key": …, "passphrase"?: …}; null takes it away'),
    ] = UNSET
    version: Annotated[int | UnsetType, Meta(description="the version that was seen; another one is refused")] = UNSET

    def fields(self) -> dict[str, Any]:
        """What is said of the target itself."""
        said = {name: getattr(self, name) for name in Target.__struct_fields__ if hasattr(self, name)}
        return {name: value for name, value in said.items() if value is not UNSET}


class TargetBody(TargetChange, kw_only=True):
    """A target to be made."""

    name: Annotated[str, Meta(description="1 to 100 letters, digits, '.', '_' or '-'")]
    host_key: Annotated[
        str | UnsetType, Meta(description='its public key in one line, "ssh-ed25519 AAAA…", if it is known')
    ] = UNSET


class TargetShape(msgspec.Struct, frozen=True, kw_only=True):
    """A target as anybody sees it. `credential` says what there is of one, and is never itself."""

    id: UUID
    name: str
    kind: TargetKind
    host: str
    port: int
    user: str
    host_key: str | None
    fingerprint: str | None
    labels: dict[str, str]
    max_connections: int
    connect_timeout: float
    directory: str
    description: str | None
    credential: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    updated_by: str | None


def target_shape(record: TargetRecord) -> TargetShape:
    told = {name: getattr(record, name) for name in ("credential", "version", "created_at", "updated_at", "updated_by")}
    return TargetShape(**msgspec.structs.asdict(record.target), fingerprint=record.target.host_fingerprint, **told)


async def create_target(vault: Vault, body: TargetBody, *, by: str | None) -> TargetRecord:
    """Raises InvalidRequest, NameTaken, VaultLocked."""
    target = Target(id=uuid7(), **body.fields())
    credential = body.credential.credential() if isinstance(body.credential, CredentialBody) else None
    return await vault.create_target(target, credential, by=by)


async def change_target(vault: Vault, record: TargetRecord, body: TargetChange, *, by: str | None) -> TargetRecord:
    """Raises InvalidRequest, NameTaken, VersionConflict, VaultLocked."""
    target = msgspec.structs.replace(record.target, **body.fields())
    target = msgspec.convert(msgspec.structs.asdict(target), Target)  # `replace` asks no questions
    version = record.version if body.version is UNSET else body.version
    if body.credential is None:
        return await vault.forget_credential(target, version, by=by)
    credential = body.credential.credential() if isinstance(body.credential, CredentialBody) else None
    return await vault.change_target(target, credential, version, by=by)


async def trust(vault: Vault, record: TargetRecord, host_key: str, *, by: str | None) -> TargetRecord:
    """Pin the key that the server must show from now on. Raises InvalidRequest."""
    key = " ".join(host_key.split()[:2])
    fingerprint(key)
    target = msgspec.structs.replace(record.target, host_key=key)
    return await vault.change_target(target, None, record.version, by=by)


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to have a worker look at a target."""

    reach: Reach
    bodies: Bodies
    clock: Clock


class Probes:
    """For bodies that are submitted together: each target is looked at once for each queue, all at the same time."""

    def __init__(self, asking: Asking, *, by: str | None) -> None:
        self._asking = asking
        self._by = by
        self._found: dict[bytes, asyncio.Task[Probed]] = {}

    async def require(self, body: Mapping[str, Any], asked: Submission) -> None:
        """Unless the body says otherwise, a worker that serves the queue must reach its target. Raises InvalidJob, or
        Conflict: nobody should wait for a host only to hear of that."""
        if not probe_wanted(body):
            return
        await self._refuse_conflict(asked)
        queue = asked.queue
        key = msgspec.json.encode((body["target"], queue))
        if key not in self._found:
            looking = probe(self._asking, body["target"], queue=queue, by=self._by)
            self._found[key] = asyncio.ensure_future(looking)
        _require_ok(await self._found[key])

    async def _refuse_conflict(self, asked: Submission) -> None:
        """As it is now; the store decides when it accepts the job."""
        if asked.on_conflict is not OnConflict.REJECT or asked.dedupe:
            return
        other = await self._asking.reach.call(lambda store: store.open_job(asked.conflict_key))
        if other is not None and other != asked.id:
            raise Conflict(asked.conflict_key, other)


def _require_ok(found: Probed) -> None:
    if not found.ok:
        who = f"the worker {found.worker} tried and failed" if found.worker else "it failed"
        raise InvalidJob(
            f"the target can't be worked on: {found.message} ({who} at the step {found.failed}); to submit the job all "
            'the same, say "probe": false',
            field="target",
        )


async def probe(asking: Asking, target: Any, *, queue: str = "default", by: str | None = None) -> Probed:
    """What a worker that serves the queue finds when it tries to reach the target. The stored credential is used, and
    only against the stored host."""
    body = {"kind": "probe", "target": target, "queue": queue, "expires": PROBE_PATIENCE}
    asked = await asking.bodies.read(body, Origin(by=by))
    accepted = await asking.reach.submit(asked.submission)
    job = await _ended(asking, accepted.job_id)
    if not job.attempt or not job.state.terminal:
        await asking.reach.call(lambda store: store.cancel([job.id], by=by, reason="the probe took too long"))
        return Probed(ok=False, failed=Step.WORKER, message=_unserved(job, queue))
    return await asking.reach.call(lambda store: _found(store, job))


async def _ended(asking: Asking, job_id: UUID) -> JobRecord:
    """The job at its end, or when waiting for it is of no use."""
    began = asking.clock.monotonic()
    while True:
        [job] = await asking.reach.call(lambda store: store.get([job_id]))
        assert job is not None, "a probe is kept for a while"
        waited = asking.clock.monotonic() - began
        if job.state.terminal or waited > PROBE_LIMIT or (not job.attempt and waited > PROBE_PATIENCE):
            return job
        await sleep(asking.clock, LOOK_EVERY)


async def _found(store: Store, job: JobRecord) -> Probed:
    stored = await store.result(job.id)
    if stored is None or stored.data is None:
        said = job.error.message if job.error else f"the probe ended as {job.outcome}"
        return Probed(ok=False, failed=Step.WORKER, message=said, worker=job.worker)
    found = msgspec.json.decode(stored.data, type=Probed)
    return msgspec.structs.replace(found, worker=found.worker or job.worker)


def _unserved(job: JobRecord, queue: str) -> str:
    if job.attempt:
        return f"the worker {job.worker} has not come to an end within {PROBE_LIMIT:g} s"
    return (
        f"no worker took the probe within {PROBE_PATIENCE:g} s: see that one serves the queue {queue!r} "
        f"(headway worker --queue {queue})"
    )
