"""The executor of kind `call`: functions and methods of the user's own code.

A coroutine runs on the worker's loop, a plain function in a thread, and one with `process=True` in a child process. So
does any job that is suspected of killing its worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from headway.clock import Clock, SystemClock
from headway.executors.call import capture
from headway.executors.call.arguments import called
from headway.executors.call.calls import Calls
from headway.executors.call.children import Children
from headway.executors.call.endings import refused
from headway.executors.call.functions import Function, Registry
from headway.executors.call.provider import Provider, Services
from headway.executors.call.threads import Threads
from headway.executors.contract import Answer, Context, Defaults, Ending, NoCode
from headway.model.errors import InvalidJob
from headway.model.job import Claim
from headway.observe.logs import get_logger

_log = get_logger("headway.call")


CHILDREN = max(2, os.cpu_count() or 2)
"""Child processes, where nobody says how many."""


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How plain functions and child processes are run."""

    threads: int = 1000
    """They are made as they are needed: how many jobs run at once is what the slots of the queues say."""
    children: int = CHILDREN
    """Processes take memory and a core each: beyond so many, jobs wait for one of them to be free, unbegun."""
    stuck_after: float = 5.0
    """A thread still alive so many seconds after it was told to stop is reported stuck."""
    on_stuck: Callable[[Claim], None] | None = None
    grace: float = 1.0
    """Seconds between asking a child process to stop and killing it."""
    recycle: int = 1000
    """A child process is replaced after so many jobs."""


class CallExecutor:
    """Runs the functions of one registry."""

    kind = "call"
    defaults = Defaults()

    def __init__(
        self,
        registry: Registry,
        services: Provider | None = None,
        *,
        app_reference: str | None = None,
        clock: Clock | None = None,
        settings: CallSettings | None = None,
    ) -> None:
        settings = settings or CallSettings()
        clock = clock or SystemClock()
        self._registry = registry
        self._services = services or Services()
        self._threads = Threads(
            clock, maximum=settings.threads, stuck_after=settings.stuck_after, on_stuck=settings.on_stuck
        )
        self._calls = Calls(self._services, self._threads, clock)
        self._children = app_reference and Children(
            app_reference, clock, maximum=settings.children, grace=settings.grace, recycle=settings.recycle
        )
        self._started = False

    async def start(self) -> None:
        """Begin to take what jobs log as their output."""
        if not self._started:
            self._started = True
            capture.install()

    async def submit(self, claim: Claim, context: Context) -> Answer:
        """Run the job. When this is cancelled, CancelledError comes once the job is seen stopped."""
        try:
            name = called(claim.payload)
        except InvalidJob as error:
            return refused(error)
        function = self._registry.get(name)
        if function is None:
            return NoCode(f"no function {name!r} is registered here")
        if function.mode == "process" or context.alone:
            return await self._run_in_child(function, claim, context)
        return await self._calls.run(function, claim, context)

    async def poll(self, claim: Claim, context: Context) -> Answer:
        raise NotImplementedError("a call is never left running: submit answers with its end")

    async def cancel(self, claim: Claim, context: Context) -> None:
        raise NotImplementedError("a call is stopped by cancelling submit")

    async def close(self) -> None:
        """End idle threads and all child processes, and close singletons."""
        if self._started:
            self._started = False
            capture.remove()
        self._threads.close()
        if self._children:
            await self._children.close()
        await self._services.close()

    async def _run_in_child(self, function: Function, claim: Claim, context: Context) -> Ending:
        required = function.mode == "process"
        if self._children:
            ending = await self._children.run(function, claim, context)
            if required or not isinstance(ending, NoCode):
                return ending
        elif required:
            return NoCode(
                f"{function.name} runs in a child process, which doesn't know how to import the app: "
                "set app.reference to its module:attribute"
            )
        # Alone in this process is the next best: should it die of the job, the loss is counted all the same.
        _log.warning("suspect.in_process", job_id=str(claim.id), function=function.name)
        return await self._calls.run(function, claim, context)
