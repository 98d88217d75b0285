"""Whatever is wrong, the message names it and says what to do; and no job is lost for it."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from uuid_utils.compat import uuid7

from headway import Headway, HeadwayError, Retry, Rule
from headway.model.errors import (
    ConfigurationError,
    InvalidJob,
    InvalidRequest,
    SchemaError,
    StoreUnavailable,
    UnknownFunction,
)
from headway.model.states import State
from headway.model.submission import Submission
from tests.flow.conftest import sqlite_url
from tests.flow.processes import Processes, Project
from tests.logs import captured
from tests.servers import Postgres, free_port

Settings = Sequence[tuple[dict[str, Any], str]]
"""What is wrong, and what is said about it."""


def test_a_function_that_is_not_registered(sqlite_app: Headway) -> None:
    sqlite_app.job(name="known")(len)
    with pytest.raises(UnknownFunction, match=r"no function 'nosuch' is registered in this app \(known: known\)"):
        sqlite_app.function("nosuch")


class Opaque:
    """Nothing that JSON could hold."""


async def test_arguments_that_do_not_fit(sqlite_app: Headway) -> None:
    @sqlite_app.job(name="mail.welcome")
    async def welcome(user: int, at: datetime | None = None) -> None: ...

    @sqlite_app.job(name="anything")
    async def anything(value: Any) -> None: ...

    for args, kwargs, words in (
        ((), {}, ["mail.welcome", "missing a required argument: 'user'"]),
        (("x",), {}, ["mail.welcome: the argument 'user' must be int, not str 'x'"]),
        ((1, 2, 3), {}, ["mail.welcome", "too many positional arguments"]),
        ((1,), {"colour": 2}, ["mail.welcome", "unexpected keyword argument 'colour'"]),
        ((1,), {"at": "tomorrow"}, ["the argument 'at' must be datetime", "'tomorrow'"]),
    ):
        with pytest.raises(InvalidJob) as refused:
            await welcome.asubmit(*args, **kwargs)
        for word in words:
            assert word in str(refused.value)
    with pytest.raises(
        InvalidJob, match=r"the argument 'value' can't be stored: .*Opaque.*pass an id, a path or plain"
    ):
        await anything.asubmit(Opaque())
    with pytest.raises(InvalidJob, match="NaN or an infinite number"):
        await anything.asubmit(float("nan"))
    assert await sqlite_app.ajobs() == []


async def test_arguments_that_are_too_large(app: Headway) -> None:
    @app.job(name="big")
    async def big(text: str) -> int:
        return len(text)

    with pytest.raises(InvalidJob, match=r"the arguments of 'big' take 300,\d\d\d bytes, the limit is 262,144: store"):
        await big.asubmit("x" * 300_000)
    with pytest.raises(InvalidJob, match="metadata must not exceed 4,096 bytes"):
        await big.options(metadata={"x": "y" * 5000}).asubmit("")
    async with app.worker():
        assert (await (await big.asubmit("x" * 262_000)).finished(60)).result == 262_000


async def test_options_that_do_not_exist_or_do_not_fit(sqlite_app: Headway) -> None:
    @sqlite_app.job
    async def f() -> None: ...

    options: Settings = (
        ({"colour": 1}, "there is no option 'colour': use one of after, "),
        ({"priority": 101}, "priority must be from -100 to 100, not 101"),
        ({"queue": ""}, "queue must be .*1 to 200 characters"),
        ({"delay": -1}, "delay must be seconds.* or a timedelta.*, not -1"),
        ({"timeout": "1 minute"}, "timeout must be seconds"),
        ({"run_at": datetime.fromisoformat("2030-01-01")}, "run_at needs a time zone"),
        ({"run_at": 5}, "run_at must be a datetime, not 5; for a time from now use delay="),
        ({"on_conflict": "explode"}, "on_conflict must be one of allow, reject, wait, skip, replace, not 'explode'"),
        ({"on_parent_failure": "cry"}, "on_parent_failure must be one of cancel, run, hold, not 'cry'"),
        ({"after": [uuid4()]}, "there is no such job"),
        ({"after": ["x"]}, r"after must be jobs, or their ids as UUID, not \['x'\]"),
        ({"after": 5}, "after must be jobs"),
        ({"priority": "high"}, "priority must be a whole number from -100 to 100, not 'high'"),
        ({"priority": 1.5}, "priority must be a whole number from -100 to 100, not 1.5"),
        ({"queue": 5}, "queue must be the name of a queue, not 5"),
        ({"key": 5}, "key must be a text, not 5"),
        ({"name": None}, "name must be a text, not None"),
        ({"id": "x"}, "id must be a UUID, not 'x'"),
        ({"hold": "yes"}, "hold must be True or False, not 'yes'"),
        ({"tags": [1]}, r"tags must be a text or a list of texts, not \[1\]"),
        ({"tags": 1}, "tags must be a text or a list of texts, not 1"),
        ({"metadata": {"x": object()}}, "metadata can't be stored as JSON: .*object"),
        ({"metadata": "x"}, "metadata must be a dict, not 'x'"),
        ({"retry": 3}, r"retry must be a Retry such as Retry\(max_attempts=3\), not 3"),
        ({"timeout": 0}, "timeout must be more than 0 seconds, or None for no limit, not 0"),
        ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 5}, "run_at and delay are both given: give one of them"),
    )
    for given, words in options:
        with pytest.raises(InvalidJob, match=words) as refused:
            await f.options(**given).asubmit()
        assert refused.value.field in given
    wrongs: Settings = (
        ({"colour": 1}, "there is no option 'colour': use one of dedupe, expires"),
        ({"priority": 500}, "priority must be from -100 to 100, not 500"),
        ({"memory_limit": 5}, "memory_limit needs process=True"),
        ({"retry": 3}, "an option of the job is wrong: .*retry"),
        ({"timeout": 0}, "timeout must be more than 0 seconds, or None for no limit, not 0"),
    )
    for wrong, words in wrongs:
        with pytest.raises(ConfigurationError, match=words):
            sqlite_app.job(name=f"wrong {wrong}", **wrong)
    with pytest.raises(InvalidJob, match="retry: max_attempts must be a number from 1 to 10,000, not 0"):
        Retry(max_attempts=0)
    with pytest.raises(InvalidJob, match="is no regular expression"):
        Rule(on="message", match="(")
    assert await sqlite_app.ajobs() == []


async def test_what_is_no_job_and_no_state_is_named(sqlite_app: Headway) -> None:
    for act in (sqlite_app.aget, sqlite_app.await_ended, sqlite_app.acancel, sqlite_app.aretry, sqlite_app.awhy):
        with pytest.raises(InvalidRequest, match="a job is named by its id, a UUID, or by the Job itself, not by 'x'"):
            await act("x")  # type: ignore[arg-type]  # what is wrong about it
    with pytest.raises(InvalidRequest, match="state must be a text or a list of texts, not 5"):
        await sqlite_app.ajobs(state=5)


async def test_none_lifts_what_the_decorator_says_or_says_nothing(app: Headway) -> None:
    @app.job(expires=0.001, key="k", timeout=5)
    async def f() -> None: ...

    job = await f.options(expires=None, key=None, timeout=None, delay=None, run_at=None).asubmit()
    kept = await job.arefresh()
    assert (kept.expires_at, kept.key, kept.record.timeout) == (None, kept.name, None)
    assert kept.run_at == kept.created_at
    later = await f.options(expires=datetime(2100, 1, 1, tzinfo=UTC)).asubmit()
    assert (await later.arefresh()).expires_at == datetime(2100, 1, 1, tzinfo=UTC)


class Unreadable(msgspec.Struct):
    """What a policy looks like after somebody changed it by hand."""

    max_attempts: str = "many"


async def test_a_policy_that_can_not_be_read_fails_its_job_and_hides_no_other(app: Headway) -> None:
    @app.job(name="fails")
    async def fails() -> None:
        raise RuntimeError("no luck")

    async with app.worker(queues={"default": 1}) as worker:
        bad = await by_hand(app, '{"function": "fails"}', retry=Unreadable())
        ended = await app.await_ended(bad, 60)
        good = await (await fails.asubmit()).finished(60)
        assert worker.worker is not None
        assert (worker.worker.running, worker.worker.in_hand) == (0, 0), "nothing is kept"
    assert ended.error is not None
    assert (ended.state, ended.error.type) == (State.FAILED, "RuntimeError")
    assert ended.error.message.startswith("no luck (whether to try again can't be told: ValidationError:")
    with captured() as logs:
        assert [job.id for job in await app.ajobs()] == [good.id, bad]
    [line] = [line for line in logs if line["event"] == "job.unreadable"]
    assert (line["job_id"], line["column"]) == (str(bad), "retry")


async def test_settings_of_queues_and_workers_that_do_not_fit(sqlite_app: Headway) -> None:
    queues: Settings = (
        ({"colour": 1}, "there is no setting 'colour': use one of keep_completed, "),
        ({"max_running": 0}, "max_running must be 1 or more, not 0; to stop a queue, pause it"),
        ({"max_running": "three"}, "a setting is wrong: .*max_running"),
        ({"rate": "often"}, "rate must look like '10/s', '100/m' or '5/10s', not 'often'"),
    )
    for settings, words in queues:
        with pytest.raises(HeadwayError, match=words):
            await sqlite_app.aqueue("mail", **settings)
    with pytest.raises(
        ConfigurationError, match="there is no setting 'colour': use one of children, components, concurrency"
    ):
        sqlite_app.worker(colour=1)
    workers: Settings = (
        ({"queues": {}}, "a worker needs at least one queue"),
        ({"queues": {"mail": 0}}, "queue 'mail' needs at least one slot, not 0"),
        ({"lease": 0}, "the lease must be a positive number"),
        ({"children": 0}, "a worker needs at least one child process, not 0"),
    )
    for settings, words in workers:
        worker = sqlite_app.worker(**settings)
        with pytest.raises(ConfigurationError, match=words):
            await worker.start()
    assert (await sqlite_app.client.call(lambda store: store.limits())).queues == {}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root@localhost/db", "'mysql://root@localhost/db' is no store: use sqlite:///"),
        ("headway.db", "'headway.db' is no store: use sqlite:///"),
        ("sqlite:////nosuch/directory/headway.db", "there is no directory /nosuch/directory: create it first"),
        ("sqlite:////tmp", "the store /tmp is a directory: name a file in it, such as /tmp/headway.db"),
    ],
)
def test_a_store_url_that_names_no_store(url: str, words: str) -> None:
    app = Headway(url)
    f = app.job(name="f")(lambda: None)
    with pytest.raises(ConfigurationError, match=words):
        f.submit()
    with pytest.raises(ConfigurationError, match=words):
        asyncio.run(f.asubmit())
    with pytest.raises(ConfigurationError, match=words):
        asyncio.run(app.worker().start())
    app.close()


async def test_a_store_that_can_not_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.store.postgres.postgres_store.__kwdefaults__", {"clock": None, "patience": 1.0})
    port = free_port()
    app = Headway(f"postgresql://ann:secret@127.0.0.1:{port}/shop")
    f = app.job(name="f")(lambda: None)
    slowest = 0.0

    async def beat() -> None:
        nonlocal slowest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            slowest = max(slowest, time.monotonic() - before)

    beating = asyncio.create_task(beat())
    with pytest.raises(StoreUnavailable) as refused:
        await f.asubmit()
    beating.cancel()
    message = str(refused.value)
    assert f"can't reach the store postgresql://ann:***@127.0.0.1:{port}/shop" in message
    assert "check that PostgreSQL runs there and the address is right" in message
    assert "secret" not in message
    assert slowest < 0.5, "the caller's loop goes on meanwhile"
    await app.aclose()


async def test_a_database_that_does_not_exist(postgres: Postgres) -> None:
    app = Headway(postgres.url("nosuch_database"))
    f = app.job(name="f")(lambda: None)
    with pytest.raises(StoreUnavailable, match=r"nosuch_database.*does not exist"):
        await f.asubmit()
    await app.aclose()


async def test_a_database_without_our_tables_says_what_to_run(postgres_url: str) -> None:
    app = Headway(postgres_url)
    f = app.job(name="f")(lambda: None)
    with pytest.raises(SchemaError, match="run `headway migrate`"):
        await f.asubmit()
    with pytest.raises(SchemaError, match="run `headway migrate`"):
        await app.worker().start()
    await app.aclose()


async def test_a_schema_that_is_newer_than_this_code(app: Headway) -> None:
    f = app.job(name="f")(lambda: None)
    await f.asubmit()
    await app.aclose()
    await add_step(app.url, 999, breaking=False)
    await f.asubmit()
    await app.aclose()
    await add_step(app.url, 1000, breaking=True)
    with pytest.raises(SchemaError, match="step 1000 locks out older code: upgrade headway in this environment"):
        await f.asubmit()
    with pytest.raises(SchemaError, match="upgrade headway"):
        await app.worker().start()


async def add_step(url: str, number: int, *, breaking: bool) -> None:
    """A migration of a later release."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute(
                "insert into headway_migration (number, name, breaking) values (?, 'later', ?)", (number, breaking)
            )
        connection.close()
        return
    database = await asyncpg.connect(url)
    await database.execute(
        "insert into headway.migration (number, name, breaking) values ($1, 'later', $2)", number, breaking
    )
    await database.close()


async def spoil(url: str, job_id: UUID, payload: str) -> None:
    """As a person with a database tool would. PostgreSQL itself keeps out what is no JSON."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("update headway_job set payload = ? where id = ?", (payload, job_id.bytes))
        connection.close()
        return
    database = await asyncpg.connect(url)
    stored = payload if payload != "{not json" else "null"
    await database.execute("update headway.job set payload = $1 where id = $2", stored, job_id)
    await database.close()


@pytest.mark.parametrize("payload", ["{not json", '"text"', "[]", '{"function": 5}', '{"args": []}'])
async def test_a_corrupt_row_fails_and_says_so_and_others_go_on(app: Headway, payload: str) -> None:
    @app.job
    async def f() -> int:
        return 1

    job, other = await f.asubmit(), await f.asubmit()
    await spoil(app.url, job.id, payload)
    async with app.worker():
        ended = await job.finished(60)
        assert (await other.finished(60)).result == 1
    assert (ended.state, ended.attempt) == (State.FAILED, 1)
    assert ended.error is not None
    assert "the payload is no call" in ended.error.message
    assert '{"function": "module.name", "args": […], "kwargs": {…}}' in ended.error.message
    assert len(await app.ajobs(state="failed")) == 1


async def by_hand(app: Headway, payload: str, **options: Any) -> UUID:
    """A job stored past all checks."""
    job = Submission(id=uuid7(), kind="call", name="by hand", payload=payload, **options)
    return (await app.client.submit(job)).job_id


async def test_a_call_stored_by_others_that_does_not_fit_fails_and_says_so(app: Headway) -> None:
    @app.job(name="welcome")
    async def welcome(user: int) -> int:
        return user

    async with app.worker():
        good = await by_hand(app, '{"function": "welcome", "args": [5]}')
        assert (await app.await_ended(good, 10)).result == 5
        wrong = await by_hand(app, '{"function": "welcome", "args": ["x"]}', retry=Retry(max_attempts=3))
        ended = await app.await_ended(wrong, 10)
    assert (ended.state, ended.attempt) == (State.FAILED, 1), "another attempt would not understand it either"
    assert ended.error is not None
    assert "welcome: the argument 'user' must be int" in ended.error.message
    with pytest.raises(InvalidJob, match="a job of kind 'elsewhere' needs a name"):
        await app.asubmit("elsewhere", {})


async def test_a_result_that_can_not_be_stored(app: Headway) -> None:
    @app.job(name="opaque", retry=Retry(max_attempts=5, wait=0.01))
    async def opaque() -> object:
        return {"it": Opaque()}

    @app.job(name="surrogate")
    async def surrogate() -> str:
        return "\ud800"

    @app.job(name="zero")
    async def zero() -> str:
        return "a\x00b"

    async with app.worker():
        ended = await (await opaque.asubmit()).finished(60)
        broken = await (await surrogate.asubmit()).finished(60)
        assert (await (await zero.asubmit()).finished(60)).result == "a\x00b"
    assert (ended.state, ended.attempt) == (State.FAILED, 1), "it would return the same again"
    assert ended.error is not None
    assert "opaque returned dict" in ended.error.message
    assert "which can't be stored" in ended.error.message
    assert "return plain data, or nothing" in ended.error.message
    assert broken.state is State.FAILED


async def test_texts_that_a_database_can_not_hold_fail_only_their_own_caller(app: Headway) -> None:
    @app.job
    async def f(text: str) -> str:
        return text

    async with app.worker():
        good = [f.asubmit(str(n)) for n in range(20)]
        bad = [f.options(name="a\x00b").asubmit("x"), f.options(tags=["\x00"]).asubmit("x")]
        answers = await asyncio.gather(*good, f.asubmit("a\x00b"), *bad, return_exceptions=True)
        for answer in answers[:21]:
            assert not isinstance(answer, BaseException)
            assert (await answer.finished(60)).state is State.COMPLETED
    for answer in answers[21:]:
        assert isinstance(answer, InvalidJob) or not isinstance(answer, BaseException)


def test_a_worker_whose_app_can_not_be_loaded_says_why_and_ends(processes: Processes, tmp_path: Path) -> None:
    for name, text in {
        "broken": "1 / 0",
        "needy": "import nosuch_library",
        "plain": "number = 5",
        "faraway": "from headway import Headway\napp = Headway('mysql://x')",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    started = [
        (processes.headway("worker", "--app", app), words)
        for app, words in (
            ("nosuch:app", "there is no module 'nosuch' here or among the installed packages: start in the directory"),
            ("shop", "--app 'shop' must look like module:attribute, for example myproject.jobs:app"),
            ("broken:app", "broken could not be imported: ZeroDivisionError: division by zero"),
            ("needy:app", "needy could not be imported: it needs the module 'nosuch_library', which is missing"),
            ("plain:nosuch", "plain has no 'nosuch'"),
            ("plain:number", "plain:number is int, not a Headway app"),
            ("faraway:app", "is no store: use sqlite:///"),
        )
    ]
    for worker, words in started:
        assert worker.ended() == 2
        assert words in worker.text()
        assert "Traceback" not in worker.text()
        assert len(worker.text().strip().splitlines()) == 1, "one sentence"


def test_several_processes_that_can_not_start_end_together(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from headway import Headway\napp = Headway('sqlite:////nosuch/x.db')")
    worker = processes.headway("worker", "--app", "jobs:app", "--processes", "2")
    assert worker.ended() == 2
    assert "there is no directory /nosuch: create it first" in worker.text()
    assert "Traceback" not in worker.text()


def test_wrong_flags_are_named(processes: Processes, sqlite_project: Project) -> None:
    sqlite_project.write("")
    started = [
        (processes.headway("worker", "--app", "jobs:app", *arguments, **variables), words)
        for arguments, variables, words in (
            (("--queue", "mail=many"), {}, "--queue 'mail=many' must look like mail or mail=10"),
            (
                ("--store", "sqlite:///other.db"),
                {},
                "--store (or HEADWAY_STORE) says sqlite:///other.db: leave the one",
            ),
            (("--lease", "0"), {}, "the lease must be a positive number of seconds, not 0.0"),
            (("--log-level", "loud"), {}, "the log level must be debug, info, warning or error, not 'loud'"),
            (("--queue", "mail=0"), {}, "queue 'mail' needs at least one slot, not 0"),
            ((), {"HEADWAY_LEASE": "soon"}, "'HEADWAY_LEASE'"),
        )
    ]
    for worker, words in started:
        assert worker.ended() == 2, worker.text()
        assert words in worker.text()
        assert "Traceback" not in worker.text()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "headway.db").write_text("this is a letter, not a database " * 50)
    app = Headway(sqlite_url(tmp_path))
    with pytest.raises(StoreUnavailable, match="it is not an SQLite database: name another file"):
        app.job(name="f")(lambda: None).submit()
    app.close()
