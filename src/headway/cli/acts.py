"""`headway jobs cancel | retry | release | delete`: changing jobs, by id or by filter."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
import typer

from headway.cli.access import Change, put_down, who, with_store
from headway.cli.bulk import Target, carry_out, choose, confirm
from headway.cli.filters import From, Given, Kind, Name, Queue, States, Tags, Time, To
from headway.cli.options import By, JobIds, Json, Store, Yes
from headway.cli.reporting import Report, print_report
from headway.cli.times import moment
from headway.components.cancel import REASON, cancel_jobs, delete_jobs
from headway.components.schedule import retry_jobs, schedule_jobs
from headway.model.states import State
from headway.model.submission import Moved
from headway.store.contract import Store as StoreContract
from headway.store.scripts.cancel import Verdict

Reason = Annotated[str, typer.Option("--reason", help="Why, for the history and for the job's error.")]
At = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="When to run them; also moves jobs that are not due yet.")
]

_OPEN = [state.value for state in (State.CREATING, State.SCHEDULED, State.BLOCKED, State.RUNNING)]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One verb: what it asks of the store, and what its answer means."""

    verb: str
    by: str
    ask: Callable[[StoreContract, Sequence[UUID]], Awaitable[list[Verdict]]]
    told: Callable[[Moved], str]
    """What came of it, in a word or two."""
    refused: Callable[[Moved], str | None]
    """Why nothing came of it."""


def cancel(  # noqa: PLR0913 - one parameter per flag
    jobs: JobIds = None,
    state: States = None,
    time: Time = "created",
    since: From = None,
    until: To = None,
    kind: Kind = None,
    queue: Queue = None,
    name: Name = None,
    tag: Tags = None,
    reason: Reason = REASON,
    by: By = None,
    yes: Yes = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Cancel jobs: waiting ones at once, running ones as soon as they can be stopped.

    By id, or by filter: then all that have not ended, unless --state says which.
    """
    given = Given(states=state, kind=kind, queue=queue, name=name, tags=tag, time=time, since=since, until=until)
    asker = who(by)
    act = Act(
        verb="cancel",
        by=asker,
        ask=lambda opened, ids: cancel_jobs(opened, ids, by=asker, reason=reason),
        told=lambda moved: "cancelled" if moved.state is State.CANCELLED else "being cancelled, its worker is told",
        refused=lambda moved: f"has ended before ({moved.before})" if moved.before.terminal else None,
    )
    _run(act, Target(ids=jobs or [], given=given, default=_OPEN), _Manner(yes=yes, json=json, store=store))


def retry(  # noqa: PLR0913 - one parameter per flag
    jobs: JobIds = None,
    state: States = None,
    time: Time = "created",
    since: From = None,
    until: To = None,
    kind: Kind = None,
    queue: Queue = None,
    name: Name = None,
    tag: Tags = None,
    by: By = None,
    yes: Yes = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Run ended jobs again, under the same id.

    By id, or by filter: then those that failed, unless --state says which.
    """
    given = Given(states=state, kind=kind, queue=queue, name=name, tags=tag, time=time, since=since, until=until)
    asker = who(by)
    act = Act(
        verb="retry",
        by=asker,
        ask=lambda opened, ids: retry_jobs(opened, ids, by=asker),
        told=lambda moved: "to be run again" if moved.state is State.SCHEDULED else "waits for the other of its key",
        refused=lambda moved: None,
    )
    target = Target(ids=jobs or [], given=given, default=[State.FAILED.value])
    _run(act, target, _Manner(yes=yes, json=json, store=store))


def release(jobs: JobIds = None, at: At = None, by: By = None, store: Store = None, json: Json = False) -> None:
    """Let jobs on hold go, at once or at a time; also those held back because a parent failed."""
    asker = who(by)

    async def ask(opened: StoreContract, ids: Sequence[UUID]) -> list[Verdict]:
        run_at: datetime | None = moment(at, await opened.now(), "--at") if at else None
        return await schedule_jobs(opened, ids, run_at, by=asker)

    def refused(moved: Moved) -> str | None:
        return "is not on hold (scheduled)" if moved.before is State.SCHEDULED and not at else None

    act = Act(verb="release", by=asker, ask=ask, told=lambda moved: str(moved.state), refused=refused)
    _run(act, Target(ids=jobs or [], filterable=False), _Manner(json=json, store=store))


def delete(  # noqa: PLR0913 - one parameter per flag
    jobs: JobIds = None,
    state: States = None,
    time: Time = "created",
    since: From = None,
    until: To = None,
    kind: Kind = None,
    queue: Queue = None,
    name: Name = None,
    tag: Tags = None,
    by: By = None,
    yes: Yes = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Remove jobs with all that belongs to them; running ones are cancelled first.

    By id, or by filter: then --state must say which.
    """
    given = Given(states=state, kind=kind, queue=queue, name=name, tags=tag, time=time, since=since, until=until)
    asker = who(by)
    act = Act(
        verb="delete",
        by=asker,
        ask=lambda opened, ids: delete_jobs(opened, ids, by=asker),
        told=lambda moved: "to be removed when it has stopped" if moved.state is State.CANCELLING else "removed",
        refused=lambda moved: None,
    )
    _run(act, Target(ids=jobs or [], given=given), _Manner(yes=yes, asks=True, json=json, store=store))


class _Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a command goes about it. `asks`: it wants to be confirmed even for ids."""

    yes: bool = False
    asks: bool = False
    json: bool = False
    store: str | None = None


def _change(act: Act, target: Target, ids: Sequence[UUID]) -> Change:
    thing = f"jobs/{ids[0]}" if len(ids) == 1 else "jobs"
    detail = {"filter": str(target.filter)} if target.by_filter else {}
    return Change(act.by, f"jobs.{act.verb}", thing, detail, len(ids))


def _run(act: Act, target: Target, manner: _Manner) -> None:
    target.check(act.verb)

    async def do(opened: StoreContract) -> Report:
        ids = await choose(opened, target)
        if ids and (manner.asks or target.by_filter):
            confirm(act.verb, len(ids), target, yes=manner.yes)
        if ids:
            await put_down(opened, _change(act, target, ids))
        report = Report(act.verb, act.told, act.refused)
        await carry_out(opened, ids, act, report, silent=manner.json)
        return report

    report = with_store(manner.store, do)
    print_report(report, as_json=manner.json)
    sys.exit(1 if report.failed else 0)
