"""CREATE: from a body to a job, however often and by whatever ways the message comes."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from headway.clock import FakeClock
from headway.components.identity import REMEMBERED, Names
from headway.components.messages import Message
from headway.duties.tending import Tending
from headway.executors.call.functions import Function, Options
from headway.kinds import load_kinds
from headway.kinds.contract import Functions, Prepared
from headway.model.limits import Retention
from headway.model.retry import Retry
from headway.model.states import State
from headway.model.submission import OnConflict
from tests.components.office import BODY, Office
from tests.contract.house import House
from tests.logs import Captured


async def test_a_create_stores_the_job_as_creating_and_sends_schedule(office: Office) -> None:
    reply = await office.tell("CREATE", BODY, correlation_id="c-1")
    job_id = reply["job"]["id"]
    assert (reply["ok"], reply["job"]["state"]) == (True, "creating")
    assert await office.house.state(UUID(job_id)) is State.CREATING
    assert await office.house.claim() == [], "it must not run before its SCHEDULE"

    [sent] = office.outbox
    assert (sent.type, sent.payload, sent.correlation_id) == ("SCHEDULE", {"job_id": job_id}, "c-1")
    other = await office.second()
    reply = await other.deliver(sent)
    assert reply["job"]["state"] == "scheduled"
    assert (await office.house.claim_one()).id == UUID(job_id)


async def test_the_job_is_what_the_body_says(office: Office) -> None:
    parent = await office.house.submit("parent", hold=True)
    job = await office.create(
        {
            "kind": "call",
            "function": "report.build",
            "args": [7],
            "kwargs": {"year": 2030},
            "name": "yearly report",
            "queue": "reports",
            "priority": 7,
            "key": "report 7",
            "timeout": 12.5,
            "retry": {"max_attempts": 4, "wait": 2, "rules": [{"on": "exception", "match": "ValueError"}]},
            "on_conflict": "wait",
            "after": [str(parent)],
            "on_parent_failure": "run",
            "expires": 3600,
            "retain": 60,
            "tags": ["daily", "vip"],
            "metadata": {"customer": 7},
            "dedupe": False,
            "run_at": "2030-01-01T06:00:00+01:00",
        },
        correlation_id="c-7",
    )
    record = await office.record(job["id"])
    assert msgspec.json.decode(record.payload) == {"function": "report.build", "args": [7], "kwargs": {"year": 2030}}
    assert (record.created_by, record.correlation_id, record.retry) == (
        "bus",
        "c-7",
        Retry(max_attempts=4, wait=2, rules=record.retry.rules if record.retry else ()),
    )
    assert {name: job[name] for name in ("name", "queue", "priority", "key", "timeout", "tags", "metadata")} == {
        "name": "yearly report",
        "queue": "reports",
        "priority": 7,
        "key": "report 7",
        "timeout": 12.5,
        "tags": ["daily", "vip"],
        "metadata": {"customer": 7},
    }
    assert (job["state"], job["after"], job["max_attempts"]) == ("blocked", [str(parent)], 4)
    assert job["run_at"] == job["desired_at"] == "2030-01-01T05:00:00Z"
    assert job["expires_at"] == msgspec.json.decode(msgspec.json.encode(office.house.after(3600)))


async def test_a_schedule_that_got_lost_is_made_good_by_the_sweep_after_five_seconds(office: Office) -> None:
    job_id = UUID((await office.tell("CREATE", BODY))["job"]["id"])
    office.outbox.clear()
    office.house.clock.advance(4.9)
    assert await office.house.store.sweep() == 0
    assert await office.house.state(job_id) is State.CREATING
    office.house.clock.advance(0.2)
    assert await office.house.store.sweep() == 1
    assert (await office.house.claim_one()).id == job_id
    told = [(line.what, line.by, line.detail) for line in await office.house.store.history(job_id)]
    assert told[:2] == [("creating", "bus", None), ("scheduled", None, "found by the sweep")]


async def test_whoever_looks_after_the_store_takes_a_lost_schedule_up_within_seconds(
    office: Office, lines: Captured
) -> None:
    tending = Tending(
        uuid4(), office.house.clock, retention=Retention(), ended=lambda: 0, on_rescued=lambda rescued: None
    )
    parent = await office.house.submit("parent", hold=True)
    lost = (await office.tell("CREATE", BODY, correlation_id="c-1"))["job"]["id"]
    child = (await office.tell("CREATE", {**BODY, "after": [str(parent)]}))["job"]["id"]
    office.outbox.clear()
    office.house.clock.advance(4.9)
    await tending.look(office.house.store)
    assert await office.house.states(UUID(lost), UUID(child)) == ["creating", "creating"]
    office.house.clock.advance(0.2)
    await tending.look(office.house.store)
    assert await office.house.states(UUID(lost), UUID(child)) == ["scheduled", "blocked"]
    assert not (await office.house.store.look()).stray
    [told] = [line for line in lines if line.get("from") == "creating" and line["job_id"] == lost]
    assert (told["component"], told["to"], told["correlation_id"]) == ("duties", "scheduled", "c-1")


async def test_a_schedule_that_comes_after_the_sweep_changes_nothing(office: Office) -> None:
    job_id = UUID((await office.tell("CREATE", BODY))["job"]["id"])
    office.house.clock.advance(6)
    assert await office.house.store.sweep() == 1
    before = await office.house.store.history(job_id)
    await office.post()
    assert await office.house.state(job_id) is State.SCHEDULED
    assert await office.house.store.history(job_id) == before


async def test_a_job_on_hold_stays_creating_until_somebody_schedules_it(office: Office) -> None:
    reply = await office.tell("CREATE", {**BODY, "hold": True})
    assert (reply["job"]["state"], reply["job"]["hold"], office.outbox) == ("creating", True, [])
    office.house.clock.advance(3600)
    assert await office.house.store.sweep() == 0
    reply = await office.tell("SCHEDULE", {"job_id": reply["job"]["id"]})
    assert (reply["job"]["state"], reply["job"]["hold"]) == ("scheduled", False)


# Repeats


async def test_the_same_id_and_body_is_the_same_job_and_another_body_a_conflict(office: Office) -> None:
    job_id = office.house.new_id()
    first = await office.tell("CREATE", BODY, id=job_id)
    again = await office.tell("CREATE", dict(reversed(BODY.items())), id=job_id)
    assert first["job"]["id"] == again["job"]["id"] == str(job_id)
    assert (await office.tell("CREATE", {**BODY, "id": str(job_id)}, id=job_id))["job"]["id"] == str(job_id)
    await office.post()
    for changed in ({"args": [43]}, {"run_at": "2031-01-01T00:00:00Z"}, {"tags": ["x"]}, {"hold": True}):
        error = await office.refuse("CREATE", {**BODY, **changed}, id=job_id)
        assert (error["type"], error["conflicting_job_id"]) == ("conflict", str(job_id)), changed
    assert (await office.house.store.counts()) == {"default": {State.SCHEDULED: 1}}


async def test_a_repeat_is_the_same_job_even_if_the_functions_defaults_have_changed(office: Office) -> None:
    await announce(office.house, queue="mail")
    job_id = office.house.new_id()
    first = await office.tell("CREATE", BODY, id=job_id)
    await announce(office.house, queue="slow", priority=9)
    office.house.clock.advance(60)
    again = await office.tell("CREATE", BODY, id=job_id, redelivered=True)
    assert (first["job"]["queue"], again["job"]["queue"]) == ("mail", "mail")
    await office.post()


async def test_a_repeat_tells_what_has_become_of_the_job_and_schedules_nothing(office: Office) -> None:
    job_id = office.house.new_id()
    await office.create(id=job_id)
    await office.house.complete(await office.house.claim_one())
    reply = await office.tell("CREATE", BODY, id=job_id, redelivered=True)
    assert (reply["job"]["state"], reply["job"]["attempt"], office.outbox) == ("completed", 1, [])
    assert await office.house.claim() == []


async def test_a_repeat_of_a_job_still_creating_sends_schedule_again(office: Office) -> None:
    await office.tell("CREATE", BODY, message_id="m-1")
    office.outbox.clear()
    await office.tell("CREATE", BODY, message_id="m-1", redelivered=True)
    assert [message.type for message in office.outbox] == ["SCHEDULE"]
    await office.post()


@pytest.mark.parametrize(
    "message_id", ["order 7 was paid", "6a496c26-8816-4895-9c64-4b17b1004af2", "01920000-0000-7000-8000-000000000001"]
)
async def test_without_an_id_the_message_id_tells_a_repeat(office: Office, message_id: str) -> None:
    first = await office.create(message_id=message_id)
    other = await office.second()
    replies = await asyncio.gather(
        *(each.tell("CREATE", BODY, message_id=message_id, redelivered=True) for each in (office, other) * 10)
    )
    assert {reply["job"]["id"] for reply in replies} == {first["id"]}
    assert UUID(first["id"]).version == 7
    error = await office.refuse("CREATE", {**BODY, "args": [43]}, message_id=message_id)
    assert error["type"] == "conflict"
    assert (await office.house.store.counts()) == {"default": {State.SCHEDULED: 1}}


async def test_a_message_id_is_remembered_for_a_day_and_its_job_sorts_by_time(office: Office) -> None:
    office.house.clock.advance(3599)
    first = await office.create(message_id="m")
    for _ in range(REMEMBERED):
        office.house.clock.advance(3600)
        assert (await office.create(message_id="m"))["id"] == first["id"]
    later = await office.create(message_id="another")
    assert later["id"] > first["id"]
    age = office.house.now.timestamp() - (UUID(later["id"]).int >> 80) / 1000
    assert 0 <= age < 3600, "jobs are listed and pruned by the time in their ids"


async def test_a_clock_that_is_ahead_does_not_make_a_second_job(office: Office) -> None:
    other = await office.second()
    other.house.clock = type(office.house.clock)(office.house.after(1800))
    ahead = Office(House(other.house.store, other.house.clock, other.house._open_another))
    first = await ahead.create(message_id="m")
    assert (await office.create(message_id="m"))["id"] == first["id"]


async def test_a_message_that_tells_when_it_was_sent_means_one_job_on_both_sides_of_a_full_hour(office: Office) -> None:
    """Two processes act on it at the same moment: neither finds what the other makes."""
    sent = office.house.after(3599)
    sides = [Names(office.client, FakeClock(office.house.after(seconds))) for seconds in (3599, 3601)]

    async def told(sent_at: datetime | None) -> list[UUID | None]:
        message = Message(type="CREATE", message_id="m", sent_at=sent_at)
        return [await names.of(message) for names in sides]

    before, after = await told(sent)
    assert before == after
    assert before is not None
    assert 0 <= sent.timestamp() - (before.int >> 80) / 1000 < 3600
    for useless in (None, sent - timedelta(days=3), sent + timedelta(days=3)):
        before, after = await told(useless)
        assert before != after, "it sorts by when it was seen"


async def test_other_messages_are_other_jobs(office: Office) -> None:
    jobs = [await office.create(message_id=message_id) for message_id in (None, None, "a", "b")]
    assert len({job["id"] for job in jobs}) == 4


async def test_creates_at_the_same_moment_share_a_commit(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    await announce(office.house)
    await office.create()
    batches: list[int] = []
    submit = office.house.store.submit

    async def noted(batch: Any, **options: Any) -> Any:
        batches.append(len(batch))
        return await submit(batch, **options)

    monkeypatch.setattr(office.house.store, "submit", noted)
    await asyncio.gather(*(office.tell("CREATE", BODY, id=office.house.new_id()) for _ in range(100)))
    assert sum(batches) == 100
    assert len(batches) <= 5
    await office.post()


# Functions


async def announce(house: House, name: str = "mail.welcome", **options: Any) -> None:
    async def welcome(user_id: int, greeting: str = "hello", *, urgent: bool = False) -> None: ...

    await house.store.announce([Function.of(welcome, name=name, options=Options.of(**options)).info()])


async def test_the_function_that_was_announced_gives_the_defaults_and_the_names_of_arguments(office: Office) -> None:
    await announce(office.house, queue="mail", priority=5, timeout=30, retry=Retry(max_attempts=3), tags=["all"])
    job = await office.create({"kind": "call", "function": "mail.welcome", "args": [42], "priority": -3})
    record = await office.record(job["id"])
    assert (job["queue"], job["priority"], job["timeout"], job["max_attempts"], job["tags"]) == (
        *("mail", -3, 30.0, 3),
        ["all"],
    )
    assert msgspec.json.decode(record.payload) == {"function": "mail.welcome", "kwargs": {"user_id": 42}}
    assert job["warnings"] == []


async def test_a_worker_that_has_just_come_is_heard_at_once(office: Office) -> None:
    reply = await office.tell("CREATE", BODY)
    assert "no worker has announced the function 'mail.welcome'" in reply["job"]["warnings"][0]
    await announce(office.house, queue="mail")
    assert (await office.tell("CREATE", BODY))["job"]["queue"] == "mail"
    await office.post()


@pytest.mark.parametrize(
    ("call", "field", "says"),
    [
        ({"args": ["x"]}, "args[0]", "mail.welcome: the argument 'user_id' must be a whole number"),
        ({"args": [1], "kwargs": {"greeting": 7}}, "kwargs.greeting", "the argument 'greeting' must be a text"),
        ({"args": [1, "hi", True]}, "args", "takes 2 arguments by position, not 3"),
        ({"args": [1], "kwargs": {"user_id": 1}}, "kwargs.user_id", "stands in args and in kwargs"),
        ({"kwargs": {}}, "kwargs.user_id", "must be given: a whole number"),
        ({"args": [1], "kwargs": {"gretting": "hi"}}, "kwargs.gretting", "must be left out"),
    ],
)
async def test_a_call_that_can_not_be_made_is_refused(
    office: Office, call: dict[str, Any], field: str, says: str
) -> None:
    await announce(office.house)
    error = await office.refuse("CREATE", {"kind": "call", "function": "mail.welcome", **call})
    assert (error["type"], error["field"]) == ("invalid_job", field)
    assert says in error["message"]
    assert await office.house.store.counts() == {}


# Refusals


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "kind", "kind is missing: use call"),
        ({"kind": "dance"}, "kind", "there is no kind 'dance': use call"),
        ({"kind": "call"}, "function", 'the name of a function, such as "mail.welcome"'),
        ({**BODY, "prioritty": 5}, "prioritty", "did you mean 'priority'?"),
        ({**BODY, "priority": "high"}, "priority", "a whole number from -100 (last) to 100 (first)"),
        ({**BODY, "priority": 101}, "priority", "a whole number from -100 (last) to 100 (first)"),
        ({**BODY, "run_at": "tomorrow"}, "run_at", '"2030-01-31T12:00:00Z"'),
        ({**BODY, "run_at": "2030-01-31T12:00:00"}, "run_at", "a time with its zone"),
        ({**BODY, "run_at": "2030-01-31T12:00:00Z", "delay": 5}, "delay", "give one of them"),
        ({**BODY, "delay": -5}, "delay", "seconds from now"),
        ({**BODY, "retry": {"max_atempts": 5}}, "retry.max_atempts", '{"max_attempts": 5, '),
        ({**BODY, "retry": {"max_attempts": 0}}, "retry.max_attempts", "a number from 1 to 10,000"),
        ({**BODY, "retry": {"rules": [{"on": "status", "mach": "4"}]}}, "retry.rules.mach", '"match": "400-499"'),
        ({**BODY, "on_conflict": "fight"}, "on_conflict", "one of allow, reject, wait, skip, replace"),
        ({**BODY, "dedupe": True}, "dedupe", '{"key": "order 7", "window": 3600}'),
        ({**BODY, "after": ["me"]}, "after", "a list of the ids of jobs"),
        ({**BODY, "after": [str(uuid4())]}, "after", "there is no such job"),
        ({**BODY, "tags": "daily"}, "tags", "a list of texts"),
        ({**BODY, "queue": ""}, "queue", "1 to 200 characters"),
        ({**BODY, "id": str(uuid4())}, "id", "version 7"),
        ({**BODY, "id": "me"}, "id", "a UUID of version 7"),
        ({**BODY, "args": {"user_id": 42}}, "args", "a list of arguments by position, such as [42]"),
    ],
)
async def test_what_is_wrong_with_a_body_is_said_with_the_field_and_its_right_form(
    office: Office, body: dict[str, Any], field: str, says: str
) -> None:
    error = await office.refuse("CREATE", body)
    assert (error["type"], error["field"]) == ("invalid_job", field)
    assert says in error["message"]
    assert await office.house.store.counts() == {}


async def test_a_job_that_is_too_large_is_refused_as_such(office: Office) -> None:
    for much in ({"args": ["x" * 300_000]}, {"metadata": {"x": "x" * 5000}}):
        assert (await office.refuse("CREATE", {**BODY, **much}))["type"] == "too_large"


async def test_an_id_beside_the_body_must_not_contradict_the_one_in_it(office: Office) -> None:
    error = await office.refuse("CREATE", {**BODY, "id": str(office.house.new_id())}, id=office.house.new_id())
    assert (error["type"], error["field"]) == ("invalid_job", "id")
    error = await office.refuse("CREATE", BODY, id=uuid4())
    assert (error["type"], error["field"]) == ("invalid_job", "id")


class ScriptFields(msgspec.Struct):
    script: str | None = None
    script_from: str | None = None


class ScriptKind:
    name = "script"
    fields: type[msgspec.Struct] | None = ScriptFields
    private = frozenset({"script"})

    async def prepare(self, fields: ScriptFields, functions: Functions) -> Prepared:
        return Prepared(payload=msgspec.json.encode(fields).decode(), name=None)


async def test_an_inline_script_is_not_taken_from_a_broker(office: Office) -> None:
    office = Office(office.house, kinds={**load_kinds(), "script": ScriptKind()})
    error = await office.refuse("CREATE", {"kind": "script", "name": "clean up", "script": "rm -rf secret"})
    assert (error["type"], error["field"]) == ("invalid_job", "script")
    assert "secret" not in error["message"]
    await office.create({"kind": "script", "name": "clean up", "script_from": str(office.house.new_id())})
    error = await office.refuse("CREATE", {"kind": "script", "script_from": "x"})
    assert (error["field"], error["message"]) == ("name", "a job of kind 'script' needs a name")


# Conflicts and parents


async def test_conflicts_are_judged_when_the_job_is_created(office: Office) -> None:
    first = await office.create({**BODY, "key": "k"})
    error = await office.refuse("CREATE", {**BODY, "key": "k", "on_conflict": "reject"})
    assert (error["type"], error["conflicting_job_id"]) == ("conflict", first["id"])
    reply = await office.tell("CREATE", {**BODY, "key": "k", "on_conflict": "skip"})
    assert (reply["job"]["id"], reply["job"]["deduplicated"], office.outbox) == (first["id"], True, [])
    reply = await office.tell("CREATE", {**BODY, "key": "k"})
    assert first["id"] in reply["job"]["warnings"][1], "the first one is about the unknown function"
    await office.post()
    waiting = await office.create({**BODY, "key": "k", "on_conflict": "wait"})
    assert waiting["state"] == "blocked"


async def test_a_job_created_within_the_window_of_another_is_answered_with_that(office: Office) -> None:
    first = await office.create({**BODY, "dedupe": 60})
    reply = await office.tell("CREATE", {**BODY, "dedupe": 60})
    assert (reply["job"]["id"], reply["job"]["deduplicated"], office.outbox) == (first["id"], True, [])
    other = await office.create({**BODY, "args": [43], "dedupe": 60})
    assert other["id"] != first["id"]
    assert "deduplicated" not in other


@pytest.mark.parametrize(
    ("policy", "state"), [("cancel", State.CANCELLED), ("run", State.SCHEDULED), ("hold", State.BLOCKED)]
)
async def test_a_parent_that_fails_before_the_schedule_arrives_is_minded(
    office: Office, policy: str, state: State
) -> None:
    parent = await office.house.running("parent")
    body = {**BODY, "after": [str(parent.id)], "on_parent_failure": policy}
    child = UUID((await office.tell("CREATE", body))["job"]["id"])
    await office.house.fail(parent)
    for message in office.outbox:
        await office.components.handle(message)
    assert await office.house.state(child) is state
    office.house.clock.advance(60)
    await office.house.store.sweep()
    assert await office.house.state(child) is state


async def test_the_history_of_a_staged_job_begins_with_creating(office: Office) -> None:
    for policy in (OnConflict.ALLOW, OnConflict.WAIT):
        body = {**BODY, "on_conflict": policy, "name": policy}
        done = await office.create(body)
        gone = UUID((await office.tell("CREATE", {**body, "name": f"{policy} gone"}))["job"]["id"])
        office.outbox.clear()
        assert [what for _, what in await office.house.told(UUID(done["id"]))] == ["creating", "scheduled"]
        assert [what for _, what in await office.house.told(gone)] == ["creating"]
        await office.house.cancel(gone)
        assert [what for _, what in await office.house.told(gone)] == ["creating", "cancelled"]
