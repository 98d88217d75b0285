"""STATUS: one job, or those that match, page by page."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, field

from headway.components.messages import Handled, Message, Reach, answered
from headway.components.shapes import job_shape
from headway.kinds.body import A_TIME, Time
from headway.kinds.reading import names, read
from headway.model.errors import InvalidRequest, JobNotFound
from headway.model.filters import JobFilter, TimeField
from headway.model.job import JobRecord
from headway.store.contract import Views


class Page(msgspec.Struct, frozen=True):
    """Some of the jobs that match, newest first."""

    jobs: list[JobRecord]
    cursor: UUID | None
    """Where the next page begins; None: there is none."""


async def get_job(store: Views, job_id: UUID) -> JobRecord:
    """The job as it is now. Raises JobNotFound."""
    [record] = await store.get([job_id])
    if record is None:
        raise JobNotFound(job_id)
    return record


async def find_jobs(store: Views, wanted: JobFilter) -> Page:
    """A page of the jobs that match."""
    found = await store.find(msgspec.structs.replace(wanted, one_more=True))
    page = found[: wanted.limit]
    return Page(page, page[-1].id if len(found) > wanted.limit else None)


class _One(msgspec.Struct):
    job_id: Annotated[UUID, Meta(description="the id of a job")]


class Query(msgspec.Struct, kw_only=True):
    """Which jobs, as messages and URLs write it. All conditions must hold."""

    state: Annotated[str | list[str], Meta(description="a state or label, or a list of them")] = []
    time: Annotated[TimeField, Meta(description="created, run, started or finished")] = "created"
    since: Annotated[Time | None, Meta(description=A_TIME)] = field(default=None, name="from")
    until: Annotated[Time | None, Meta(description=A_TIME)] = field(default=None, name="to")
    kind: Annotated[str | None, Meta(description="a kind of job")] = None
    queue: Annotated[str | None, Meta(description="the name of a queue")] = None
    name: Annotated[str | None, Meta(description="the name of jobs")] = None
    tags: Annotated[str | list[str], Meta(description="a tag, or a list of tags that a job must all have")] = []
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="how many at most, from 1 to 1000")] = 50
    cursor: Annotated[UUID | None, Meta(description="the cursor of the page before")] = None

    def filter(self) -> JobFilter:
        return JobFilter(
            states=_list(self.state),
            time=self.time,
            since=self.since,
            until=self.until,
            kind=self.kind,
            queue=self.queue,
            name=self.name,
            tags=_list(self.tags),
            limit=self.limit,
            cursor=self.cursor,
        )


class GetJobs:
    """Acts on STATUS: `{"type": "STATUS", "payload": {"job_id": …}}`, or `{"all": true, "state"?: …, …}`."""

    handles = "STATUS"
    name = "status"

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def handle(self, message: Message) -> Handled | None:
        return await answered(self, message, self._status) if message.type == self.handles else None

    async def _status(self, message: Message) -> Handled:
        asked = dict(message.payload)
        if asked.pop("all", False) is True:
            return await self._page(read(Query, asked, InvalidRequest).filter())
        if "job_id" not in asked:
            raise InvalidRequest(_UNCLEAR, field="job_id")
        job_id = read(_One, asked, InvalidRequest).job_id
        job = await self._reach.call(lambda store: get_job(store, job_id))
        return Handled({"ok": True, "job": job_shape(job)}, job_id=job_id)

    async def _page(self, wanted: JobFilter) -> Handled:
        page = await self._reach.call(lambda store: find_jobs(store, wanted))
        return Handled({"ok": True, "jobs": [job_shape(job) for job in page.jobs], "cursor": page.cursor})


_UNCLEAR = (
    'say which job: {"job_id": "…"}, or {"all": true} for all, with any of '
    f"{', '.join(sorted(names(Query)))} to choose among them"
)


def _list(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
