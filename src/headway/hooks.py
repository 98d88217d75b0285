"""Functions of the user's that hear how jobs end.

| hook         | called when                                                                    |
|--------------|--------------------------------------------------------------------------------|
| `on_success` | a job completed                                                                |
| `on_failed`  | a job failed for good: failed, timed out, poison, unknown                      |
| `on_retry`   | an attempt failed or was lost, and another is to follow                        |

None of them is called for cancelled or snoozed jobs, or for jobs given back. Each is called at most once per change,
after the store has recorded it, in the process that recorded it; for what must follow surely, use `after=`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from headway.jobs import Job
from headway.model.job import Release
from headway.model.states import State
from headway.observe.logs import get_logger
from headway.store.scripts.tend import Rescued
from headway.worker.parts import Accepted
from headway.worker.parts import Hooks as WorkerHooks

Hook = Callable[[Job[Any]], Awaitable[None] | None]

LAST_CALLS = 30.0
"""Seconds for which a stopping worker waits for hooks."""

log = get_logger("headway.hooks")


class Hooks:
    """Subclass and pass to `Headway(hooks=…)`, or use the decorators `@app.on_success` and so on."""

    def on_success(self, job: Job[Any]) -> Awaitable[None] | None:
        """The job completed."""

    def on_failed(self, job: Job[Any]) -> Awaitable[None] | None:
        """The job failed for good."""

    def on_retry(self, job: Job[Any]) -> Awaitable[None] | None:
        """An attempt failed or was lost, and another is to follow."""


class HookList(Hooks):
    """Hooks given by decorators, besides those of a subclass."""

    def __init__(self, own: Hooks | None) -> None:
        self.success: list[Hook] = []
        self.failed: list[Hook] = []
        self.retry: list[Hook] = []
        if own is not None:
            self._add_overridden(own)

    def _add_overridden(self, own: Hooks) -> None:
        for name, hooks in (("on_success", self.success), ("on_failed", self.failed), ("on_retry", self.retry)):
            if getattr(type(own), name) is not getattr(Hooks, name):
                hooks.append(getattr(own, name))

    def __bool__(self) -> bool:
        """Whether anybody wants to hear of anything."""
        return bool(self.success or self.failed or self.retry)

    def for_state(self, state: State, *, tried: bool) -> list[Hook]:
        """Which hooks to call for a job that came into this state; `tried`: an attempt failed or was lost before."""
        match state:
            case State.COMPLETED:
                return self.success
            case State.FAILED:
                return self.failed
            case State.SCHEDULED if tried:
                return self.retry
            case _:
                return []


class HookCaller(WorkerHooks):
    """Calls an app's hooks for one worker, each in a task or a thread of its own; an error in one harms nothing."""

    def __init__(self, hooks: HookList, get: Callable[[UUID], Awaitable[Job[Any]]]) -> None:
        self._hooks = hooks
        self._get = get
        self._calls: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def ended(self, ends: Sequence[Accepted]) -> None:
        if not self._hooks:
            return
        for attempt, move, end in ends:
            tried = isinstance(move, Release) and move.reason in {"retry", "lost"}
            if end.state is not None and (hooks := self._hooks.for_state(end.state, tried=tried)):
                recorded = {"state": end.state, "outcome": end.outcome, "attempt": attempt.claim.attempt}
                self._start(attempt.claim.id, recorded, hooks)

    def rescued(self, jobs: list[Rescued]) -> None:
        """Called on the keeper's thread."""
        for job in jobs:
            if hooks := self._hooks.for_state(job.state, tried=True):
                recorded = {"state": job.state, "outcome": job.outcome}
                self._loop.call_soon_threadsafe(self._start, job.job_id, recorded, hooks)

    async def finish(self) -> None:
        """All calls made so far have ended, or have had time enough."""
        if self._calls:
            _, hanging = await asyncio.wait(self._calls, timeout=LAST_CALLS)
            if hanging:
                log.warning("hook.left_behind", calls=len(hanging))

    def _start(self, job_id: UUID, recorded: dict[str, Any], hooks: list[Hook]) -> None:
        call = self._loop.create_task(self._call(job_id, recorded, hooks))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    async def _call(self, job_id: UUID, recorded: dict[str, Any], hooks: list[Hook]) -> None:
        try:
            job = (await self._get(job_id)).as_of(recorded)
        except Exception as error:
            log.warning("hook.job_unreadable", job_id=str(job_id), error=repr(error))
            return
        for hook in hooks:
            try:
                result = hook(job) if inspect.iscoroutinefunction(hook) else await asyncio.to_thread(hook, job)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                log.exception("hook.failed", hook=getattr(hook, "__qualname__", repr(hook)), job_id=str(job_id))
