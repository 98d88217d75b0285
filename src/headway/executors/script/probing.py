"""Kind `probe`: whether this worker can work on a target, and if not, at which step it fails."""

from __future__ import annotations

import os
import socket

import msgspec

from headway.clock import Clock, deadline
from headway.executors.contract import Answer, Completed, Context, Defaults, Failed
from headway.executors.script.fields import ProbeFields
from headway.executors.script.hosts import Access, Hosts
from headway.executors.script.link import LinkLost, Unreachable
from headway.executors.script.loading import Loader
from headway.model.errors import HeadwayError, VaultLocked
from headway.model.job import Claim, error_info, failure_of
from headway.model.retry import Retry
from headway.model.target import Probed, Step, TargetKind, fingerprint

LIMIT = 5.0
CONNECT_WITHIN = 4.0
"""Seconds of it for the connection: what takes longer is told by whoever knows how far it came."""

_decode = msgspec.json.Decoder(ProbeFields).decode


class ProbeExecutor:
    """Looks at targets. What it finds is its result, good or bad: the job itself completes."""

    kind = "probe"
    defaults = Defaults(timeout=2 * LIMIT, retry=Retry())

    def __init__(self, clock: Clock, loader: Loader, hosts: Hosts) -> None:
        self._clock = clock
        self._loader = loader
        self._hosts = hosts

    async def start(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        await self._hosts.close()

    async def poll(self, claim: Claim, context: Context) -> Answer:
        raise NotImplementedError("submit answers with what was found")

    async def cancel(self, claim: Claim, context: Context) -> None:
        raise NotImplementedError("a probe is stopped by cancelling submit")

    async def submit(self, claim: Claim, context: Context) -> Answer:
        said = _decode(claim.payload)
        try:
            access = await self._loader.access(claim.id, said.target)
        except VaultLocked:
            raise
        except HeadwayError as error:
            return Failed(error=error_info(error), failure=failure_of(error), permanent=True)
        began = self._clock.monotonic()
        probed = await self.probe(access)
        told = msgspec.structs.replace(
            probed,
            worker=f"{socket.gethostname()}-{os.getpid()}",
            seconds=round(self._clock.monotonic() - began, 3),
        )
        return Completed(msgspec.json.encode(told))

    async def probe(self, access: Access) -> Probed:
        """At most `LIMIT` seconds for the whole."""
        until = self._clock.monotonic() + LIMIT
        quick = _within(access, CONNECT_WITHIN)
        try:
            async with deadline(self._clock, LIMIT), self._hosts.of(quick).station() as station:
                await station.control.order(b"look", b"/nowhere")
        except Unreachable as error:
            return await self._failed(_within(access, until - self._clock.monotonic()), error.step, str(error))
        except TimeoutError:
            return await self._failed(access, Step.DIRECTORY, f"{access.target.name} took longer than {LIMIT:g} s")
        except (LinkLost, OSError) as error:
            return await self._failed(access, Step.DIRECTORY, str(error))
        key = access.target.host_key
        return Probed(ok=True, host_key=key, fingerprint=fingerprint(key) if key else None, trusted=key is not None)

    async def _failed(self, access: Access, step: Step, message: str) -> Probed:
        key: str | None = None
        if step is Step.HOST_KEY and access.target.kind is TargetKind.SSH:
            try:
                from headway.executors.script.ssh import shown_key

                key = await shown_key(access.target, self._clock)
            except Unreachable as error:
                if access.target.host_key is None:
                    step, message = error.step, str(error)
        elif step in (Step.LOGIN, Step.DIRECTORY):
            key = access.target.host_key
        return Probed(
            ok=False,
            failed=step,
            message=message,
            host_key=key,
            fingerprint=fingerprint(key) if key else None,
            trusted=key is not None and key == access.target.host_key,
        )


def _within(access: Access, seconds: float) -> Access:
    quick = min(access.target.connect_timeout, max(seconds, 0.1))
    return Access(msgspec.structs.replace(access.target, connect_timeout=quick), access.credential)
