"""What operators and administrators do on the page: secrets, tokens, alerts, queues, jobs that wait."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from playwright.async_api import Locator, expect

from tests.browser.chrome import Visitor
from tests.browser.house import TOKEN, House
from tests.browser.site import web_server

Visit = Callable[..., Visitor]

SECRET = "s3cret-that-nobody-sees-again"


def row(ann: Visitor, text: str) -> Locator:
    return ann.page.get_by_role("row").filter(has_text=text)


async def test_a_secret_is_written_sent_in_a_header_and_never_shown(sqlite_house: House, visit: Visit) -> None:
    async with web_server() as site, visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/secrets")
        await ann.button("New secret").first.click()
        await ann.field("Name").fill("hook-key")
        await ann.field("Value").fill(SECRET)
        await ann.field("What it is for").fill("the hook")
        await ann.button("Keep it").click()
        await expect(row(ann, "hook-key")).to_contain_text("the hook")

        await ann.go("/submit?kind=http")
        await ann.field("URL").fill(f"{site.url}/tried")
        await ann.button("Add a header").click()
        await ann.field("Header 1, name").fill("Authorization")
        await ann.page.get_by_label("secret", exact=True).check()
        await ann.field("Header 1, before the secret").fill("Bearer ")
        await ann.field("Header 1, name of the secret").fill("hook-key")
        await ann.button("Try it now").click()
        await expect(ann.page.get_by_role("heading", name="What came back completed")).to_be_visible()
        await expect(ann.page.get_by_role("tree")).to_contain_text('body: "hello"')
        assert f"Authorization: Bearer {SECRET}" in site.asked[0]

        await ann.page.get_by_role("heading", name="What came back").locator("..").get_by_role("link").click()
        await ann.page.get_by_role("tab", name="Arguments").click()
        await expect(ann.page.get_by_role("tree")).to_contain_text("hook-key")
        await ann.go("/secrets")
        await ann.button("Replace").click()
        await expect(ann.field("Value")).to_have_value("")
        assert SECRET not in await ann.page.content()
        await ann.button("Leave it").click()
        await row(ann, "hook-key").get_by_role("button", name="Delete").click()
        await ann.button("Delete the secret").click()
        await expect(row(ann, "hook-key")).to_have_count(0)


async def test_a_token_is_shown_once_and_works_until_it_is_revoked(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house) as ann, visit(sqlite_house) as program:
        await ann.log_in(TOKEN)
        await ann.go("/access")
        await ann.button("New token").click()
        await ann.field("Name").fill("robot")
        await ann.button("Make the token").click()
        notice = ann.page.get_by_role("alert").filter(has_text="shown this once")
        token = (await notice.locator("code").inner_text()).strip()
        bearer = {"Authorization": f"Bearer {token}"}
        assert (await program.context.request.get("/api/v1/jobs", headers=bearer)).status == 200
        await ann.go("/queues")
        await ann.go("/access")
        await expect(row(ann, "robot")).to_contain_text("operator")
        assert token not in await ann.page.content()
        await row(ann, "robot").get_by_role("button", name="Revoke").click()
        await ann.button("Revoke the token").click()
        await expect(row(ann, "robot")).to_have_count(0)
        assert (await program.context.request.get("/api/v1/jobs", headers=bearer)).status == 401


async def test_a_rule_for_alerts_is_made_tried_changed_and_deleted(sqlite_house: House, visit: Visit) -> None:
    async with web_server() as site, visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/alerts")
        await ann.button("New rule").first.click()
        await ann.field("Name").fill("too much")
        await ann.field("When").click()
        await ann.page.get_by_role("option", name="a queue backs up").click()
        await ann.field("Or seconds that one waits").fill("90")
        await ann.field("URL").fill(f"{site.url}/alerts")
        await ann.button("Keep the rule").click()
        await expect(row(ann, "too much")).to_contain_text("1000 due or behind by 90 s")
        await row(ann, "too much").get_by_role("button", name="Test").click()
        await expect(ann.page.get_by_text("A test message of too much was delivered.")).to_be_visible()
        assert "POST /alerts" in site.asked[0]

        await row(ann, "too much").get_by_role("button", name="Change").click()
        await ann.field("Due jobs that are too many").fill("50")
        await ann.page.get_by_label("On", exact=True).click(force=True)
        await ann.button("Keep the rule").click()
        await expect(row(ann, "too much")).to_contain_text("50 due or behind by 90 s")
        await expect(row(ann, "too much")).to_contain_text("off")
        await row(ann, "too much").get_by_role("button", name="Delete").click()
        await ann.button("Delete the rule").click()
        await expect(row(ann, "too much")).to_have_count(0)


async def test_a_queue_is_paused_limited_and_let_go_on(house: House, visit: Visit) -> None:
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["first"]})
        await ann.go("/queues")
        default = row(ann, "default")
        await default.get_by_role("button", name="Pause").click()
        await expect(default).to_contain_text("paused")
        job = await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["later"]})
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.get_by_text("paused").first).to_be_visible()
        await expect(ann.page.locator("h1 [data-state=pending]")).to_be_visible()
        await ann.go("/queues")
        await ann.button("Limits of default").click()
        await ann.field("Running at once").fill("7")
        await ann.field("Rate").fill("1000/s")
        await ann.button("Set the limits").click()
        await expect(default).to_contain_text("7 at once")
        await ann.button("Limits of default").click()
        await ann.field("Running at once").fill("")
        await ann.field("Rate").fill("")
        await ann.button("Set the limits").click()
        await expect(default).to_contain_text("none")
        await default.get_by_role("button", name="Resume").click()
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()


async def test_jobs_that_wait_are_changed_let_go_and_run_again(house: House, visit: Visit) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        greet = {"kind": "call", "function": "greet"}
        parent = await ann.call("POST", "/jobs", {**greet, "name": "mother", "kwargs": {"name": "world"}, "hold": True})
        child = await ann.call("POST", "/jobs", {**greet, "name": "child", "args": ["you"], "after": [parent["id"]]})
        planned = await ann.call("POST", "/jobs", {**greet, "args": ["x"], "run_at": tomorrow.isoformat()})

        await ann.go(f"/jobs/{parent['id']}")
        await expect(ann.page.get_by_role("listitem").filter(has_text="lets go child")).to_contain_text("blocked")
        await ann.go(f"/jobs/{child['id']}")
        graph = ann.page.get_by_role("region", name="Graph of dependencies")
        await expect(graph.get_by_text("mother", exact=True)).to_be_visible()
        assert await graph.locator("path").count() == 1
        await ann.page.get_by_role("listitem").filter(has_text="waits for").get_by_role("link").click()
        await ann.button("Let it go").click()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await expect(ann.page.get_by_role("listitem").filter(has_text="lets go child")).to_contain_text("completed")

        await ann.page.get_by_role("link", name="Run again with changes").click()
        await expect(ann.field("name")).to_have_value("world")
        await ann.field("times").fill("2")
        await ann.button("Submit").click()
        await ann.page.wait_for_url(re.compile(rf"/jobs/(?!{parent['id']})[0-9a-f-]+$"))
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Result").click()
        await expect(ann.page.get_by_text('"hello worldworld"')).to_be_visible()

        await ann.go(f"/submit?from={planned['id']}")
        await expect(ann.field("name")).to_have_value("x")
        await ann.go(f"/jobs/{planned['id']}")
        await ann.button("Change").click()
        await ann.field("Priority").fill("12")
        await ann.button("Change the job").click()
        await expect(ann.page.get_by_role("dialog")).to_have_count(0)
        await ann.button("Run now").click()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        assert (await ann.call("GET", f"/jobs/{planned['id']}"))["priority"] == 12
