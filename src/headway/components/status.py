"""STATUS: one job, or those that match, page by page."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, field

from headway.components.messages import Handled, Message, Reach, answered
from headway.components.shapes import JobShape, job_shape
from headway.kinds.body import A_TIME, Time
from headway.kinds.reading import names, read
from headway.model.errors import ConfigurationError, InvalidRequest, JobNotFound
from headway.model.filters import JobFilter, TimeField
from headway.model.job import JobRecord
from headway.model.sealed import SCRIPT
from headway.observe.logs import get_logger
from headway.output import make_outputs
from headway.store.contract import Store, Views

log = get_logger("headway.components")


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


async def describe(store: Store, job: JobRecord, place: str | None) -> JobShape:
    """The job as it is shown where it stands alone: also what its script is, and where its output lies. `place` is the
    URL of where output is kept, if that is not the store."""
    shape = job_shape(job)
    if job.attempt and place:
        shape = msgspec.structs.replace(shape, output_location=_location(store, job.id, place))
    if job.kind != SCRIPT:
        return shape
    for each in (await store.attachments([job.id])).get(job.id, []):
        if each.role == SCRIPT and each.sha256 is not None:
            return msgspec.structs.replace(shape, script_sha256=each.sha256, script_size=each.size)
    return shape


def _location(store: Store, job_id: UUID, place: str) -> str | None:
    try:
        return make_outputs(place, store).location(job_id)
    except ConfigurationError as error:
        # A place that can't be opened from here is no reason to hide the job.
        log.warning("output.unknown_place", error=str(error))
        return None


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
    name: Annotated[str | None, Meta(description="the name of jobs; mail.* for all that begin with mail.")] = None
    key: Annotated[str | None, Meta(description="the key of jobs")] = None
    schedule: Annotated[UUID | None, Meta(description="the id of the schedule that made them")] = None
    created_by: Annotated[str | None, Meta(description="who submitted them, such as token:ci")] = None
    error: Annotated[str | None, Meta(description="a text that their last error contains, in any case")] = None
    tags: Annotated[str | list[str], Meta(description="a tag, or a list of tags that a job must all have")] = []
    limit: Annotated[Annotated[int, Meta(ge=1, le=1000)], Meta(description="how many at most, from 1 to 1000")] = 50
    cursor: Annotated[UUID | None, Meta(description="the cursor of the page before")] = None

    def filter(self) -> JobFilter:
        prefix = self.name.removesuffix("*") if self.name and self.name.endswith("*") else None
        return JobFilter(
            states=_list(self.state),
            time=self.time,
            since=self.since,
            until=self.until,
            kind=self.kind,
            queue=self.queue,
            name=None if prefix is not None else self.name,
            name_prefix=prefix,
            key=self.key,
            schedule_id=self.schedule,
            created_by=self.created_by,
            error=self.error,
            tags=_list(self.tags),
            limit=self.limit,
            cursor=self.cursor,
        )


class GetJobs:
    """Acts on STATUS: `{"type": "STATUS", "payload": {"job_id": …}}`, or `{"all": true, "state"?: …, …}`."""

    handles = "STATUS"
    name = "status"

    def __init__(self, reach: Reach, output: str | None = None) -> None:
        self._reach = reach
        self._output = output

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
        shape = await self._reach.call(lambda store: describe(store, job, self._output))
        return Handled({"ok": True, "job": shape}, job_id=job_id)

    async def _page(self, wanted: JobFilter) -> Handled:
        page = await self._reach.call(lambda store: find_jobs(store, wanted))
        return Handled({"ok": True, "jobs": [job_shape(job) for job in page.jobs], "cursor": page.cursor})


_UNCLEAR = (
    'say which job: {"job_id": "…"}, or {"all": true} for all, with any of '
    f"{', '.join(sorted(names(Query)))} to choose among them"
)


def _list(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
