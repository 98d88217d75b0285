"""What an app can do with jobs and queues that are there. Each act has a blocking form and an async one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from headway.client import Client
from headway.components.cancel import cancel_jobs, delete_jobs
from headway.components.schedule import retry_jobs, schedule_jobs
from headway.jobs import Job, id_of
from headway.model.errors import HeadwayError, InvalidRequest
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.states import State
from headway.model.submission import Moved
from headway.options import checked

T = TypeVar("T")


class Changing(ABC):
    """The part of an app that changes jobs, and what holds for queues."""

    name: str
    client: Client

    @abstractmethod
    def block(self, call: Coroutine[Any, Any, T], name: str) -> T:
        """Wait for a call from plain code."""

    def cancel(
        self, *jobs: Job[Any] | UUID, reason: str = "cancelled on request", by: str | None = None
    ) -> list[State]:
        """Cancel jobs: waiting ones at once, running ones as soon as they can be stopped. Returns their states now.

        Here and below, `by` is who asked, as the job's history tells it; where nobody says, the app's name.
        """
        return self.block(self.acancel(*jobs, reason=reason, by=by), "cancel")

    async def acancel(
        self, *jobs: Job[Any] | UUID, reason: str = "cancelled on request", by: str | None = None
    ) -> list[State]:
        """Cancel jobs; returns their states now."""
        act = partial(cancel_jobs, by=self._asker(by), reason=reason)
        return _states(await self.client.move([id_of(job) for job in jobs], act))

    def retry(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Run ended jobs again, under the same id."""
        return self.block(self.aretry(*jobs, by=by), "retry")

    async def aretry(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Run ended jobs again, under the same id."""
        return _states(await self.client.move([id_of(job) for job in jobs], partial(retry_jobs, by=self._asker(by))))

    def release(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Let jobs that were submitted with `hold=True` go."""
        return self.block(self.arelease(*jobs, by=by), "release")

    async def arelease(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Let jobs that were submitted with `hold=True` go."""
        return _states(await self.client.move([id_of(job) for job in jobs], partial(schedule_jobs, by=self._asker(by))))

    def delete(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Remove jobs with all that belongs to them; running ones are cancelled first."""
        return self.block(self.adelete(*jobs, by=by), "delete")

    async def adelete(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Remove jobs with all that belongs to them; running ones are cancelled first."""
        return _states(await self.client.move([id_of(job) for job in jobs], partial(delete_jobs, by=self._asker(by))))

    def _asker(self, by: str | None) -> str:
        if not isinstance(by, str | None):
            raise InvalidRequest(f"by must be the name of whoever asks, not {by!r}", field="by")
        return by or self.name

    # Settings

    def queue(self, name: str, **settings: Any) -> None:
        """Set a queue's limits, for all workers: paused, max_running, rate ("10/s"), key_max_running, key_rate,
        keep_completed, keep_failed."""
        self.block(self.aqueue(name, **settings), "queue")

    async def aqueue(self, name: str, **settings: Any) -> None:
        """Set a queue's limits, for all workers; what isn't given stays as it is."""
        changes = _queue_changes(settings)
        checked(QueueSettings, {"name": name, **changes})
        await self.client.call(lambda store: store.change_queue(name, changes, by=self.name))

    def limit(self, key: str, *, max_running: int | None = None, rate: str | None = None) -> None:
        """Limit the jobs of one key, for all workers and queues; without a limit, lift it."""
        self.block(self.alimit(key, max_running=max_running, rate=rate), "limit")

    async def alimit(self, key: str, *, max_running: int | None = None, rate: str | None = None) -> None:
        """Limit the jobs of one key, for all workers and queues."""
        limit = Limit(max_running=max_running, rate=Rate.parse(rate) if rate else None)
        await self.client.call(lambda store: store.set_key_limit(key, None if limit == Limit() else limit))


def _states(verdicts: Sequence[Moved | HeadwayError]) -> list[State]:
    for verdict in verdicts:
        if isinstance(verdict, HeadwayError):
            raise verdict
    return [verdict.state for verdict in verdicts if isinstance(verdict, Moved)]


def _queue_changes(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: Rate.parse(value) if name in {"rate", "key_rate"} and isinstance(value, str) else value
        for name, value in settings.items()
    }
