"""Telling people: rules on what happens and what holds, delivered to real servers, at least once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from aiohttp import web
from standardwebhooks import Webhook as Verifier

from headway import Headway
from headway.alerts.courier import Courier
from headway.alerts.rules import Holding, Judge, Rule, draft_of, read_rule
from headway.alerts.watch import FIRST_WAIT, TRIES, Watch
from headway.clock import Clock, FakeClock, SystemClock
from headway.model.alerts import Cause, Decision, Happening, Standing
from headway.model.errors import InvalidJob
from headway.model.worker import WorkerInfo
from headway.outgoing.guard import Allowed, Guard
from headway.store import make_store
from headway.store.contract import Store
from tests.api.conftest import Site
from tests.flow.processes import Processes
from tests.mailbox import Mailbox, receiving

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = datetime(2030, 1, 1, tzinfo=UTC)
HERE = Guard(Allowed.parse(("127.0.0.1",)), ())


class Vault:
    """Secrets by name."""

    def __init__(self, **secrets: str) -> None:
        self._secrets = secrets

    async def reveal(self, name: str) -> bytes:
        return self._secrets[name].encode()


class Inbox:
    """What a webhook has received; `status` is what it answers."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.received: list[tuple[dict[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.received.append(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        return web.Response(status=self.status)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.received]


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    inbox, app = Inbox(), web.Application()
    app.router.add_post("/hook", inbox.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    inbox.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield inbox
    await runner.cleanup()


@pytest.fixture
async def mailbox() -> AsyncIterator[tuple[Mailbox, int]]:
    async with receiving(auth_require_tls=False) as opened:
        yield opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@asynccontextmanager
async def opened(url: str, clock: Clock | None = None) -> AsyncIterator[Store]:
    store = make_store(url, clock)
    await store.open()
    yield store
    await store.close()


def watch_of(vault: Vault | None = None, guard: Guard = HERE) -> Watch:
    async def unused(_act: Any) -> Any:
        raise AssertionError("turns are taken by hand here")

    clock = SystemClock()
    return Watch(unused, Courier(clock, guard, vault or Vault()), clock)


async def keep(store: Store, **rule: Any) -> UUID:
    kept = await store.put_alert_rule(draft_of(uuid4(), read_rule({"name": "rule", **rule})), by="ann")
    return kept.id


# What follows from what


def rule(**given: Any) -> Rule:
    return read_rule({"name": "r", "channel": {"type": "slack", "url": "https://hooks.example/x"}, **given})


def failed(number: int, name: str = "send", queue: str = "mail") -> Happening:
    error = json.dumps({"type": "ValueError", "message": "no address", "traceback": "secret lines"})
    return Happening(
        event="job_failed", subject=str(uuid4()), number=number, at=NOW, name=name, queue=queue, detail=error
    )


class Office:
    """A rule over time."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._id = uuid4()
        self._standings: dict[str, Standing] = {}

    def turn(self, seconds: float, happened: list[Happening] | None = None, *holding: Holding) -> list[str]:
        judge = Judge([(self._id, self._rule)], holding)
        now = NOW + timedelta(seconds=seconds)
        decided: Decision = judge(happened or [], list(self._standings.values()), now)
        self._standings |= {standing.subject: standing for standing in decided.standings}
        for standing in decided.forget:
            self._standings.pop(standing.subject, None)
        return [f"{body.state}: {body.summary}" for _, body in decided.send]

    @property
    def remembered(self) -> int:
        return len(self._standings)


def test_the_first_failure_is_told_at_once_and_those_after_it_are_counted_until_the_cooldown_is_over() -> None:
    office = Office(rule(on="job_failed", cooldown=300))
    assert office.turn(0, [failed(1)]) == ["happened: job send in queue mail failed: ValueError: no address"]
    assert office.turn(5, [failed(2), failed(3)]) == []
    assert office.turn(10, [failed(4, name="other")]) == [
        "happened: job other in queue mail failed: ValueError: no address"
    ]
    assert office.turn(299) == []
    assert office.turn(300) == ["happened: job send in queue mail failed 2 times: ValueError: no address"]
    assert office.turn(900) == []
    assert office.turn(3 * 86400) == []
    assert office.remembered == 0


def test_a_rule_concerns_the_queues_and_names_that_it_says() -> None:
    office = Office(rule(on="job_failed", queues=["mail*"], names=["send"]))
    assert office.turn(0, [failed(1, queue="reports"), failed(2, name="other")]) == []
    assert len(office.turn(1, [failed(3, queue="mail-urgent")])) == 1


def test_what_holds_is_told_when_it_has_held_and_when_it_is_over_and_does_not_flap() -> None:
    office = Office(rule(on="queue_backlog", due=100, after=60, cooldown=300))
    full = Holding(cause=Cause.QUEUE_BACKLOG, queue="mail", due=150, oldest=7)
    fine = Holding(cause=Cause.QUEUE_BACKLOG, queue="mail", due=3)
    assert office.turn(0, [], full) == []
    assert office.turn(30, [], fine) == []
    assert office.turn(40, [], full) == []
    assert office.turn(100, [], full) == ["firing: queue mail has 150 due jobs, the oldest waits for 7 s"]
    assert office.turn(110, [], full) == []
    assert office.turn(120, [], fine) == ["resolved: queue mail has caught up"]
    assert office.turn(130, [], full) == []
    assert office.turn(200, [], full) == [], "too soon after the last message"
    assert office.turn(401, [], full) == ["firing: queue mail has 150 due jobs, the oldest waits for 7 s"]


def test_a_worker_is_lost_once() -> None:
    office = Office(rule(on="worker_lost", cooldown=0))
    lost = Happening(event="worker_lost", subject=str(uuid4()), at=NOW, name="host-1")
    assert len(office.turn(0, [lost])) == 1
    assert office.turn(60, [lost]) == office.turn(70) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"on": "nothing"}, "on"),
        ({"on": "queue_backlog"}, None),
        ({"on": "job_failed", "due": 3}, None),
        ({"on": "job_failed", "colour": "red"}, None),
        ({"on": "job_failed", "cooldown": -1}, "cooldown"),
        ({"on": "job_failed", "channel": {"type": "pigeon"}}, "channel"),
        ({"on": "job_failed", "channel": {"type": "webhook", "url": "ftp://x"}}, "channel.url"),
        (
            {"on": "job_failed", "channel": {"type": "email", "host": "h", "sender": "a@b\nc", "to": ["d@e"]}},
            "channel.to",
        ),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_a_sentence(change: dict[str, Any], field: str | None) -> None:
    with pytest.raises(InvalidJob) as caught:
        rule(**change)
    assert field is None or (caught.value.field or "").startswith(field)


# From a real failure to a real server


async def test_a_failed_job_reaches_a_signed_webhook_once(store_url: str, inbox: Inbox) -> None:
    app = Headway(store_url)

    @app.job(name="broken")
    async def broken() -> None:
        raise ValueError("no address")

    async with opened(store_url) as store:
        rule_id = await keep(
            store, on="job_failed", channel={"type": "webhook", "url": inbox.url, "sign": {"secret": "key"}}
        )
        async with app.worker():
            job = await broken.asubmit()
            await job.finished(60)
        one, other = watch_of(Vault(key=KEY)), watch_of(Vault(key=KEY))
        assert await one.turn(store) == 1
        assert await one.turn(store) == await other.turn(store) == 0, "one of them has the duty, and all is told"
        [(headers, body)] = inbox.received
        told = Verifier(KEY).verify(body, headers)["data"]
        assert (told["rule"], told["state"], told["subject"]) == ("rule", "happened", "broken")
        assert told["details"][0] | {"at": ""} == {
            "id": str(job.id),
            "name": "broken",
            "queue": "default",
            "detail": "ValueError: no address",
            "at": "",
        }
        [message] = await store.notifications(rule_id)
        assert (message.attempts, message.error, message.due_at) == (1, None, None)
        assert message.delivered_at is not None
        await one.stop()
        await other.stop()
    await app.aclose()


async def test_words_of_a_job_call_nobody_in_slack(store_url: str, inbox: Inbox) -> None:
    app = Headway(store_url)

    @app.job(name="<!channel> & co")
    async def broken() -> None:
        raise ValueError("no address")

    async with opened(store_url) as store:
        await keep(store, name="a<b", on="job_failed", channel={"type": "slack", "url": inbox.url})
        async with app.worker():
            await (await broken.asubmit()).finished(60)
        watch = watch_of()
        assert await watch.turn(store) == 1
        [told] = inbox.bodies()
        assert told["text"].startswith("*a&lt;b* (happened): ")
        assert "&lt;!channel&gt; &amp; co" in told["text"]
        await watch.stop()
    await app.aclose()


async def test_what_is_refused_is_tried_again_under_the_same_id_and_given_up_at_last(
    store_url: str, inbox: Inbox, clock: FakeClock
) -> None:
    async with opened(store_url, clock) as store:
        rule_id = await keep(store, on="worker_lost", channel={"type": "webhook", "url": inbox.url})
        await lose_worker(store, clock)
        watch = watch_of()
        inbox.status = 503
        assert await watch.turn(store) == 0
        [message] = await store.notifications(rule_id)
        assert message.attempts == 1
        assert "503" in (message.error or "")
        assert message.due_at == clock.now() + timedelta(seconds=FIRST_WAIT)
        assert await watch.turn(store) == 0
        assert len(inbox.received) == 1, "not before its time"
        clock.advance(FIRST_WAIT)
        inbox.status = 200
        assert await watch.turn(store) == 1
        assert inbox.received[0][0]["webhook-id"] == inbox.received[1][0]["webhook-id"] == str(message.id)
        [message] = await store.notifications(rule_id)
        assert message.delivered_at is not None
        inbox.status = 503
        await lose_worker(store, clock)
        for _ in range(TRIES + 3):
            await watch.turn(store)
            clock.advance(3600)
        [given_up, _] = await store.notifications(rule_id)
        assert (given_up.attempts, given_up.due_at, given_up.delivered_at) == (TRIES, None, None)
        await watch.stop()


async def lose_worker(store: Store, clock: FakeClock) -> None:
    """One that shows itself, and then never again."""
    info = WorkerInfo(id=uuid4(), name=f"host-{uuid4().hex[:4]}", host="host", pid=1, queues=("mail",), slots=1)
    await store.renew(info, 30, [], held=[])
    clock.advance(300)
    await store.bury(120)


async def test_missed_times_backlogs_and_queues_without_a_worker_are_told(
    store_url: str, inbox: Inbox, clock: FakeClock
) -> None:
    app = Headway(store_url, clock=clock)

    @app.job(name="minutely", queue="mail")
    async def minutely() -> None: ...

    await app.aschedule("minutely", "* * * * *", minutely.call(), misfire="skip")
    async with opened(store_url, clock) as store:
        slack = {"type": "slack", "url": {"secret": "url"}}
        for cause, more in (
            ("schedule_missed", {}),
            ("queue_backlog", {"due": 2, "after": 0}),
            ("queue_unserved", {"after": 0}),
        ):
            await keep(store, name=cause, on=cause, channel=slack, **more)
        watch = watch_of(Vault(url=inbox.url))
        clock.advance(3600)
        await store.fire()
        for _ in range(3):
            await minutely.asubmit()
        await watch.turn(store)
        texts = sorted(body["text"].split("):")[0] for body in inbox.bodies())
        assert texts == ["*queue_backlog* (firing", "*queue_unserved* (firing", "*schedule_missed* (happened"]
        await app.acancel(*(job.id for job in await app.ajobs(queue="mail", state="pending")))
        clock.advance(10)
        inbox.received.clear()
        await watch.turn(store)
        texts = sorted(body["text"].split("):")[0] for body in inbox.bodies())
        assert texts == ["*queue_backlog* (resolved", "*queue_unserved* (resolved"]
        await watch.stop()
    await app.aclose()


async def test_mail_is_sent_with_a_password_from_the_vault_that_stands_nowhere(
    store_url: str, mailbox: tuple[Mailbox, int], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    box, port = mailbox
    channel = {
        "type": "email",
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "user": "headway",
        "password": {"secret": "smtp"},
        "sender": "headway@example.com",
        "to": ["ops@example.com", "boss@example.com"],
    }
    async with opened(store_url, clock) as store:
        rule_id = await keep(store, on="worker_lost", channel=channel)
        await lose_worker(store, clock)
        refused = watch_of(Vault(smtp="a wrong word"))
        assert await refused.turn(store) == 0
        [message] = await store.notifications(rule_id)
        assert "a wrong word" not in (message.error or "")
        assert "a wrong word" not in caplog.text
        await refused.stop()
        clock.advance(FIRST_WAIT + 20)
        watch = watch_of(Vault(smtp="open sesame"))
        assert await watch.turn(store) == 1
        [(recipients, mail)] = box.mails
        assert recipients == ["ops@example.com", "boss@example.com"]
        assert str(mail["Subject"]).startswith("[Headway] worker host-")
        assert mail["Message-ID"] == f"<{message.id}@headway.alerts>"
        assert box.logins[-1] == (b"headway", b"open sesame")
        await watch.stop()


async def test_no_message_goes_where_the_guard_lets_nothing_pass(
    store_url: str, inbox: Inbox, clock: FakeClock
) -> None:
    async with opened(store_url, clock) as store:
        channels = [
            {"type": "webhook", "url": inbox.url},
            {"type": "email", "host": "127.0.0.1", "port": 25, "sender": "a@b", "to": ["c@d"]},
        ]
        ids = [
            await keep(store, name=f"rule {number}", on="worker_lost", channel=channel)
            for number, channel in enumerate(channels)
        ]
        await lose_worker(store, clock)
        watch = watch_of(guard=Guard(Allowed.parse(()), ()))
        assert await watch.turn(store) == 0
        for rule_id in ids:
            [message] = await store.notifications(rule_id)
            assert "HEADWAY_ALLOW_PRIVATE" in (message.error or "")
        assert not inbox.received
        await watch.stop()


# For people: REST and the command line


async def test_rules_are_kept_over_rest_tried_and_removed(
    site: Site, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_ALLOW_PRIVATE", "127.0.0.1")
    body = {"name": "failures", "on": "job_failed", "channel": {"type": "webhook", "url": inbox.url}}
    made = await site.post("/alerts", body)
    assert made.status_code == 201, made.text
    rule = made.json()
    assert (rule["cooldown"], rule["enabled"], rule["version"]) == (300.0, True, 1)
    assert (await site.post("/alerts", body)).status_code == 409
    assert (await site.post("/alerts", {**body, "on": "x"})).status_code == 422
    changed = await site.ask("PUT", f"/alerts/{rule['id']}", json={**body, "enabled": False})
    assert (changed.json()["enabled"], changed.json()["version"]) == (False, 2)
    assert [item["name"] for item in (await site.get("/alerts")).json()["items"]] == ["failures"]
    tried = (await site.post(f"/alerts/{rule['id']}/test")).json()
    assert (tried["error"], tried["body"]["state"]) == (None, "test")
    assert inbox.bodies()[0]["data"]["state"] == "test"
    inbox.status = 500
    again = (await site.post(f"/alerts/{rule['id']}/test")).json()
    assert "500" in again["error"]
    assert again["due_at"] is None
    messages = (await site.get(f"/alerts/{rule['id']}/messages")).json()["items"]
    assert [message["id"] for message in messages] == [again["id"], tried["id"]]
    assert (await site.ask("DELETE", f"/alerts/{rule['id']}")).status_code == 204
    assert (await site.get(f"/alerts/{rule['id']}")).status_code == 404
    assert (await site.post(f"/alerts/{uuid4()}/test")).status_code == 404
    assert (await site.client.get("/api/v1/alerts", headers={"Authorization": ""})).status_code == 401


async def test_rules_are_kept_from_the_command_line(processes: Processes, tmp_path: Path, inbox: Inbox) -> None:
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    variables = {"HEADWAY_STORE": store, "HEADWAY_ALLOW_PRIVATE": "127.0.0.1"}

    async def run(*arguments: str) -> tuple[int, str]:
        process = processes.headway(*arguments, **variables)
        return await asyncio.to_thread(process.ended), process.text()

    rule = {"name": "failures", "on": "job_failed", "channel": {"type": "slack", "url": inbox.url}}
    (tmp_path / "rule.json").write_text(json.dumps(rule))
    async with opened(store):
        """Made, so that there is a store to keep rules in."""
    assert (await run("alerts", "create", "--from", "rule.json"))[0] == 0
    status, text = await run("alerts", "test", "failures")
    assert (status, text.strip()) == (0, "delivered")
    assert "test" in inbox.bodies()[0]["text"]
    status, text = await run("alerts", "list", "--json")
    assert [item["name"] for item in json.loads(text)["items"]] == ["failures"]
