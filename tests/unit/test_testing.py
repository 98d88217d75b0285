"""The stage for users' own tests: true engine, time by hand."""

from __future__ import annotations

from headway import Fail, Headway, Retry, cron, current, every
from headway.clock import SystemClock
from headway.model.states import State
from headway.testing import rehearsal

app = Headway("sqlite:///never-opened.db")
calls: list[str] = []


@app.job(queue="mail")
async def signup(address: str) -> str:
    calls.append(f"signup {address}")
    await reminder.options(delay=86_400).asubmit(address)
    return address


@app.job(queue="mail", retry=Retry(max_attempts=3, wait=60, jitter=0))
async def reminder(address: str) -> None:
    calls.append(f"reminder {current().attempt}")
    if current().attempt < 3:
        raise ConnectionError("mail server away")


@app.job
def hopeless() -> None:
    raise Fail("never")


async def test_time_passes_only_by_hand_and_jobs_run_at_their_own_time() -> None:
    calls.clear()
    async with rehearsal(app) as stage:
        await signup.asubmit("ann@example.org")
        await stage.settle()
        assert calls == ["signup ann@example.org"]
        await stage.advance(hours=23)
        assert len(calls) == 1
        await stage.advance(hours=1)
        assert calls[1:] == ["reminder 1"]
        await stage.advance(minutes=3)
        assert calls[1:] == ["reminder 1", "reminder 2", "reminder 3"]
        [job] = await app.ajobs(name=reminder.function.name)
        assert job.state is State.COMPLETED


async def test_failures_are_seen_as_in_production() -> None:
    async with rehearsal(app) as stage:
        job = await hopeless.asubmit()
        await stage.settle()
        ended = await job.arefresh()
        assert (ended.state, ended.error and ended.error.message) == (State.FAILED, "never")


async def test_after_the_rehearsal_the_app_is_itself_again() -> None:
    before = app.client
    async with rehearsal(app):
        assert app.client is not before
    assert app.client is before
    assert isinstance(app._clock, SystemClock)


async def test_schedules_fire_as_time_passes() -> None:
    app = Headway("sqlite://")
    ran: list[str] = []

    @app.job(name="morning", schedule=cron("0 6 * * *", tz="Europe/Berlin"))
    async def morning() -> None:
        ran.append(f"morning {stage.clock.now():%d %H:%M}")

    @app.job(name="hourly")
    async def hourly() -> None:
        ran.append("hourly")

    async with rehearsal(app) as stage:
        await app.aschedule("by hand", every(3600), hourly)
        await stage.advance(days=2)
    assert [run for run in ran if run != "hourly"] == ["morning 01 05:00", "morning 02 05:00"]
    assert ran.count("hourly") == 48
    async with rehearsal(app, schedules=False) as stage:
        await stage.advance(days=2)
    assert len(ran) == 50
