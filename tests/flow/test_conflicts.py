"""Jobs of the same key, and jobs that wait for others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway import Headway, Job
from headway.model.errors import Conflict, InvalidJob
from headway.model.states import Outcome, State
from tests.flow.waiting import until


class Stage:
    """A job function that tells what runs, and lets the test decide when and how each job ends."""

    def __init__(self, app: Headway, **options: Any) -> None:
        self.ran: list[str] = []
        self.running: set[str] = set()
        self.most_at_once = 0
        self._ends: dict[str, asyncio.Event] = {}
        self._fails: set[str] = set()

        @app.job(name="act", **options)
        async def act(name: str) -> str:
            self.ran.append(name)
            self.running.add(name)
            self.most_at_once = max(self.most_at_once, len(self.running))
            try:
                await self.end(name).wait()
            finally:
                self.running.discard(name)
            if name in self._fails:
                raise ValueError(name)
            return name

        self.act = act

    def end(self, name: str) -> asyncio.Event:
        return self._ends.setdefault(name, asyncio.Event())

    def let(self, *names: str, fail: bool = False) -> None:
        for name in names:
            if fail:
                self._fails.add(name)
            self.end(name).set()

    async def begun(self, name: str) -> None:
        await until(lambda: name in self.ran, f"{name} to begin")


async def test_allow_lets_both_run_and_says_so(app: Headway) -> None:
    stage = Stage(app)
    async with app.worker():
        first = await stage.act.options(key="k").asubmit("a")
        second = await stage.act.options(key="k").asubmit("b")
        assert str(first.id) in second.warnings[0]
        assert first.warnings == ()
        await stage.begun("a")
        await stage.begun("b")
        assert stage.running == {"a", "b"}
        stage.let("a", "b")


async def test_reject_refuses_and_names_the_other_job(app: Headway) -> None:
    stage = Stage(app, on_conflict="reject")
    async with app.worker():
        first = await stage.act.asubmit("a")
        await stage.begun("a")
        with pytest.raises(Conflict, match=f"job {first.id} with the key 'act' has not ended yet") as conflict:
            await stage.act.asubmit("b")
        assert conflict.value.conflicting_job_id == first.id
        await stage.act.options(key="another").asubmit("c")
        stage.let("a", "b", "c")
        await first.finished(60)
        assert (await (await stage.act.asubmit("b")).finished(60)).result == "b"


async def test_skip_answers_with_the_other_job(app: Headway) -> None:
    stage = Stage(app)
    skip = stage.act.options(on_conflict="skip")
    async with app.worker():
        first = await skip.asubmit("a")
        second = await skip.asubmit("b")
        assert (second.id, second.deduplicated) == (first.id, True)
        stage.let("a")
        assert (await second.finished(60)).result == "a"
        assert not (await skip.asubmit("a")).deduplicated


async def test_wait_runs_them_one_by_one_in_order_whatever_the_end_of_the_previous(app: Headway) -> None:
    stage = Stage(app, on_conflict="wait")
    names = [f"j{number}" for number in range(6)]
    async with app.worker():
        jobs = [await stage.act.asubmit(name) for name in names]
        assert [job.state for job in jobs] == [State.SCHEDULED] + [State.BLOCKED] * 5
        await stage.begun("j0")
        assert await app.acancel(jobs[3]) == [State.CANCELLED]
        stage.let("j0")
        await stage.begun("j1")
        stage.let("j1", fail=True)
        await stage.begun("j2")
        await app.acancel(jobs[2])
        await stage.begun("j4")
        stage.let("j4", "j5")
        ends = [(await job.finished(60)).state.value for job in jobs]
    assert stage.ran == ["j0", "j1", "j2", "j4", "j5"]
    assert stage.most_at_once == 1
    assert ends == ["completed", "failed", "cancelled", "cancelled", "completed", "completed"]


async def test_replace_cancels_those_that_wait_and_waits_for_the_end_of_a_running_one(app: Headway) -> None:
    stage = Stage(app, on_conflict="replace")
    async with app.worker():
        first = await stage.act.options(delay=60).asubmit("a")
        second = await stage.act.asubmit("b")
        ended = await first.finished(60)
        assert (ended.state, ended.outcome) == (State.CANCELLED, Outcome.CANCELLED)
        assert ended.error is not None
        assert str(second.id) in ended.error.message
        await stage.begun("b")
        third = await stage.act.asubmit("c")
        assert third.state is State.BLOCKED
        assert (await second.finished(60)).state is State.CANCELLED
        stage.let("c")
        assert (await third.finished(60)).result == "c"
    assert stage.most_at_once == 1


async def test_a_job_runs_after_all_that_it_waits_for(app: Headway) -> None:
    stage = Stage(app)
    async with app.worker():
        parents = [await stage.act.asubmit(name) for name in ("a", "b")]
        child = await stage.act.options(after=parents).asubmit("child")
        assert child.state is State.BLOCKED
        assert child.after == tuple(parent.id for parent in parents)
        stage.let("a")
        await parents[0].finished(60)
        assert (await child.arefresh()).state is State.BLOCKED
        stage.let("b", "child")
        assert (await child.finished(60)).result == "child"
        late = await stage.act.options(after=[parents[0].id]).asubmit("child")
        assert (await late.finished(60)).result == "child"
    assert stage.ran[-2:] == ["child", "child"]


async def test_a_chain_may_be_submitted_as_one_batch(app: Headway) -> None:
    stage = Stage(app)
    first = stage.act.call("a")
    second = stage.act.options(after=[first.submission.id]).call("b")
    third = stage.act.options(after=[first.submission.id, second.submission.id]).call("c")
    stage.let("a", "b", "c")
    async with app.worker():
        jobs = await app.asubmit_many([first, second, third])
        assert [(await job.finished(60)).result for job in jobs] == ["a", "b", "c"]
    assert stage.ran == ["a", "b", "c"]


async def test_a_failed_parent_cancels_runs_or_holds_its_children_as_they_chose(app: Headway) -> None:
    stage = Stage(app)

    async def child(name: str, policy: str, parent: Job[str]) -> Job[str]:
        job: Job[str] = await stage.act.options(after=[parent], on_parent_failure=policy).asubmit(name)
        return job

    async with app.worker():
        parent = await stage.act.asubmit("parent")
        cancel, run, hold = [await child(policy, policy, parent) for policy in ("cancel", "run", "hold")]
        grandchild = await child("grandchild", "cancel", cancel)
        stage.let("parent", fail=True)
        stage.let("run", "hold")
        assert (await run.finished(60)).result == "run"
        for job in (cancel, grandchild):
            ended = await job.finished(60)
            assert ended.state is State.CANCELLED
            assert ended.error is not None
            assert "did not complete" in ended.error.message
        held = await hold.arefresh()
        assert (held.state, held.wait_reason) == (State.BLOCKED, "parent_failed")
        assert await app.arelease(hold) == [State.SCHEDULED]
        assert (await hold.finished(60)).result == "hold"


async def test_a_parent_that_does_not_exist_is_refused(app: Headway) -> None:
    stage = Stage(app)
    gone = await stage.act.options(delay=60).asubmit("a")
    await app.adelete(gone)
    with pytest.raises(InvalidJob, match=f"can't run after job {gone.id}: there is no such job"):
        await stage.act.options(after=[gone]).asubmit("b")


async def test_the_deletion_of_a_parent_counts_as_its_cancellation(app: Headway) -> None:
    stage = Stage(app)
    async with app.worker():
        parent = await stage.act.options(delay=60).asubmit("a")
        child = await stage.act.options(after=[parent]).asubmit("b")
        other = await stage.act.options(after=[parent], on_parent_failure="run").asubmit("c")
        await app.adelete(parent)
        stage.let("c")
        assert (await child.finished(60)).state is State.CANCELLED
        assert (await other.finished(60)).result == "c"
