"""One call in this process: arguments unpacked, function run, result packed, every end made a value."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from headway.clock import Clock
from headway.executors.call.endings import ending_of, refused, timed_out
from headway.executors.call.functions import Function, Method
from headway.executors.call.provider import Provider
from headway.executors.contract import Completed, Context, Ending, enter, leave
from headway.executors.limit import Limit
from headway.model.errors import InvalidJob
from headway.model.job import Claim


class Runner(Protocol):
    """Runs plain functions: in threads, or where it stands."""

    def place(self) -> AbstractAsyncContextManager[None]:
        """Held during a run. Waiting for it is not running: a job's time begins after."""

    async def run(self, call: Callable[[], Any], claim: Claim, context: Context) -> Any:
        """What the call returns. A cancellation stops the call and is raised when it is seen stopped."""


class _Job:
    """A call that needs more than an await."""

    __slots__ = ("args", "claim", "context", "function", "kwargs", "limit")

    def __init__(self, function: Function, claim: Claim, context: Context) -> None:
        self.function = function
        self.claim = claim
        self.context = context
        self.limit: Limit | None = None
        self.args: Sequence[Any] = ()
        self.kwargs: dict[str, Any] = {}


class Calls:
    """Calls functions and says how it went."""

    def __init__(self, services: Provider, runner: Runner, clock: Clock) -> None:
        self._services = services
        self._runner = runner
        self._clock = clock

    async def run(self, function: Function, claim: Claim, context: Context) -> Ending:
        """How the call ended. Raises only CancelledError: someone cancelled us, and the job is seen stopped.

        A job that ends well although it was told to stop has ended well.
        """
        try:
            args, kwargs = function.arguments.unpack(claim.payload)
        except InvalidJob as error:
            return refused(error)
        job: _Job | None = None
        target = function.target
        entered = enter(context)
        try:
            if function.coroutine and context.timeout is None and not isinstance(target, Method):
                # The hot path: as little as possible stands between the worker and the coroutine.
                value = await target(*args, **kwargs)
            else:
                job = _Job(function, claim, context)
                job.args, job.kwargs = args, kwargs
                value = await self._value(job)
            return Completed(function.returns.encode(value))
        except GeneratorExit:
            raise
        except BaseException as error:
            return _end(error, job)
        finally:
            leave(entered)

    async def _value(self, job: _Job) -> Any:
        if job.function.coroutine:
            return await self._limited(job)
        async with self._runner.place():
            return await self._limited(job)

    async def _limited(self, job: _Job) -> Any:
        if job.context.timeout is None:
            return await self._served(job)
        with Limit(self._clock, job.context.timeout) as job.limit:
            return await self._served(job)

    async def _served(self, job: _Job) -> Any:
        """The call, with an instance of its service if it is a method."""
        target = job.function.target
        if not isinstance(target, Method):
            return await self._called(job, target)
        value: Any = None
        error: BaseException | None = None
        async with self._services.scope() as resolve:
            method = target.of(await resolve(target.service))
            try:
                value = await self._called(job, method)
            except BaseException as raised:
                error = raised
                raise
        if error is not None:
            raise error  # a service's context manager may clean up after a failure, not make it a success
        return value

    async def _called(self, job: _Job, target: Callable[..., Any]) -> Any:
        call = functools.partial(target, *job.args, **job.kwargs)
        value = call() if job.function.coroutine else await self._runner.run(call, job.claim, job.context)
        # A decorator may have hidden that the function is a coroutine.
        return await value if inspect.isawaitable(value) else value


def _end(error: BaseException, job: _Job | None) -> Ending:
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError("the job was stopped") from error
    if job is not None and job.limit is not None and job.limit.expired:
        assert job.context.timeout is not None
        return timed_out(job.context.timeout)
    return ending_of(error)
