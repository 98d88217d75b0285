"""A claim becomes a task: payload, script, files, secrets and target, put together from where they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from uuid import UUID, uuid5

import msgspec

from headway.executors.contract import Secrets
from headway.executors.script.endings import SCRIPT_FAILED
from headway.executors.script.fields import Destination, ScriptPayload, SecretValue, command_of
from headway.executors.script.hosts import Access
from headway.executors.script.orders import Work
from headway.executors.script.task import Before, Task
from headway.model.access import Entry
from headway.model.errors import AttachmentNotFound, ConfigurationError, StoreUnavailable
from headway.model.job import Attempt, Change, Claim, JobRecord
from headway.model.sealed import CREDENTIAL, FILE, SCRIPT, Attachment, Credential
from headway.model.states import Outcome, State
from headway.model.target import Target, TargetKind
from headway.observe.logs import get_logger
from headway.store.contract import Store
from headway.store.service import Audit
from headway.store.together import Together
from headway.vault.redaction import Redactor

log = get_logger("headway.script")
LOAD = 4 * 1024 * 1024
"""Bytes of scripts and files that are read at once, about."""
_decode = msgspec.json.Decoder(ScriptPayload).decode


class Withheld:
    """Shows nothing."""

    def feed(self, piece: bytes) -> bytes:
        return b""

    def close(self) -> bytes:
        return b""


class Loader:
    """Asks the vault: once for all scripts that begin at the same time."""

    def __init__(self, secrets: Secrets | None, *, local: bool) -> None:
        self._secrets = secrets
        self._local = local
        self._attachments = Together(self._of_jobs, lambda job_id: job_id)
        self._content = Together(self._contents, lambda asked: asked[0], weigh=lambda asked: asked[1].size, limit=LOAD)
        self._destination = Together(self._destinations, lambda asked: asked[0])

    async def __call__(self, claim: Claim, begun_at: datetime | None = None) -> Task:
        secrets = self._vault()
        said = _decode(claim.payload)
        attachments, access = await self._both(claim.id, said.target)
        script = await self._content((claim.id, _only(attachments, SCRIPT)))
        files = {each.name: await self._content((claim.id, each)) for each in attachments if each.role == FILE}
        named = {name: await secrets.reveal(name) for name in said.secrets}
        plain = {name: value for name, value in said.env.items() if isinstance(value, str)}
        asked = {name: ref for name, ref in said.env.items() if isinstance(ref, SecretValue)}
        values = {name: await secrets.reveal(ref.secret) for name, ref in asked.items()}
        work = Work(
            script=script,
            command=command_of(script, said.interpreter),
            args=said.args,
            env=plain,
            secrets=named,
            secret_env={name: ref.prefix.encode() + values[name] for name, ref in asked.items()},
            files=files,
            cwd=said.cwd,
            collect=said.collect,
        )
        # Without their prefixes: a script may well take them apart.
        seen = [*named.values(), *values.values(), *_parts(access.credential)]
        names = {*named, *(ref.secret for ref in asked.values())}
        replaced = await secrets.replaced(names, begun_at) if names and begun_at is not None else []
        return Task(
            access=access, work=work, redactor=Withheld if replaced else lambda: Redactor(seen), replaced=replaced
        )

    async def access(
        self, job_id: UUID, target: Destination, attachments: Iterable[Attachment] | None = None
    ) -> Access:
        """The way to a target, for a job. Raises TargetNotFound, ConfigurationError."""
        secrets = self._vault()
        if isinstance(target, str):
            found, credential = await self._destination((job_id, target))
            if found.kind is TargetKind.LOCAL and not self._local:
                raise ConfigurationError(
                    f"the target {target} is the worker's own machine, and this worker runs no scripts there: start it "
                    "with HEADWAY_LOCAL_TARGET=true, or choose another target"
                )
            return Access(found, credential)
        attached = await self._attachments(job_id) if attachments is None else attachments
        sealed = [each for each in attached if each.role == CREDENTIAL][:1]
        place = target.target()
        for content in await secrets.contents(sealed, place.address):
            return Access(place, secrets.credential(content))
        return Access(place)

    async def _both(self, job_id: UUID, target: Destination) -> tuple[list[Attachment], Access]:
        """What a job has, and the way to its target: asked for at the same time, unless that is part of what it has."""
        if isinstance(target, str):
            return await asyncio.gather(self._attachments(job_id), self.access(job_id, target))
        attachments = await self._attachments(job_id)
        return attachments, await self.access(job_id, target, attachments)

    async def _of_jobs(self, job_ids: Sequence[UUID]) -> Sequence[list[Attachment]]:
        return await self._vault().attachments_of(job_ids)

    async def _contents(self, asked: Sequence[tuple[UUID, Attachment]]) -> Sequence[bytes]:
        return await self._vault().contents([attachment for _, attachment in asked])

    async def _destinations(self, asked: Sequence[tuple[UUID, str]]) -> list[tuple[Target, Credential | None]]:
        found = {name: await self._vault().destination(name) for name in {name for _, name in asked}}
        return [found[name] for _, name in asked]

    def _vault(self) -> Secrets:
        if self._secrets is None:
            raise ConfigurationError("this worker has no vault, where scripts and credentials are kept")
        return self._secrets


class StoredAlarm:
    """Into the audit log, once for each time that an attempt is held, and into the process's own."""

    def __init__(self, store: Audit) -> None:
        self._store = store

    async def __call__(self, claim: Claim, action: str, thing: str, words: str) -> None:
        log.error(action, job_id=str(claim.id), object=thing, error=words)
        entry = Entry(
            id=uuid5(claim.id, f"{action} {claim.token}"),
            actor="worker",
            action=action,
            object=thing,
            detail={"job_id": str(claim.id), "message": words},
        )
        try:
            await self._store.record([entry])
        except StoreUnavailable as error:
            log.warning("audit.line_lost", action=action, error=str(error))


PLACED = "placed"
"""The line of a job's history that says where its script is about to be begun."""
_OPEN = frozenset({Outcome.LOST, Outcome.UNKNOWN, Outcome.POISON})
"""How attempts end whose scripts may go on."""


class StoredPast:
    """What the store knows: earlier attempts that nobody saw through, and whether a cancel was asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # Made when the first script comes: executors are made without a store where none will.
    @cached_property
    def _get(self) -> Together[UUID, JobRecord | None]:
        return Together(self._store.get, lambda job_id: job_id)

    @cached_property
    def _note(self) -> Together[tuple[Claim, str, str], bool]:
        return Together(self._store.note, lambda line: line[0].id)

    async def __call__(self, claim: Claim) -> Before:
        job = await self._get(claim.id)
        cancelling = job is not None and job.state is State.CANCELLING
        if claim.token == 1:
            return Before(cancelling=cancelling)
        earlier = [each for each in await self._store.attempts(claim.id) if each.number < claim.attempt]
        history = await self._store.history(claim.id)
        found = _open(earlier)
        again = any(change.what == "give_back" for change in _since(history, earlier))
        closed = [each for each in earlier if each.number not in found]
        if not found and not again:
            return Before(cancelling=cancelling)
        placed = [change for change in _since(history, closed) if change.what == PLACED]
        places = tuple(dict.fromkeys(change.detail or "" for change in placed))
        return Before(found, again, cancelling, places, placed[0].at if placed else None)

    async def note(self, claim: Claim, place: str) -> bool:
        return await self._note((claim, PLACED, place))

    async def served(self, machine: str, queue: str) -> bool:
        return any(each.host == machine and queue in each.queues for each in await self._store.workers())


def _since(history: Sequence[Change], attempts: Sequence[Attempt]) -> list[Change]:
    """What happened after these."""
    ends = [each.finished_at for each in attempts if each.finished_at is not None]
    return [change for change in history if all(change.at >= end for end in ends)]


def _open(earlier: Sequence[Attempt]) -> tuple[int, ...]:
    """Those behind the last one that saw the script end; what failed before it came to the script saw nothing."""
    found: list[int] = []
    for each in sorted(earlier, key=lambda each: each.number, reverse=True):
        if each.outcome in _OPEN:
            found.append(each.number)
        elif each.outcome is not Outcome.FAILED or each.error is None or each.error.type == SCRIPT_FAILED:
            break
    return tuple(reversed(found))


def _only(attachments: Iterable[Attachment], role: str) -> Attachment:
    for each in attachments:
        if each.role == role:
            return each
    raise AttachmentNotFound(role, role)


def _parts(credential: Credential | None) -> list[bytes]:
    return [part.encode() for part in credential.parts()] if credential else []
