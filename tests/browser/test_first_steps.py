"""The way in, the empty page, what each role sees, and live updates that come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.chrome import Visitor
from tests.browser.house import TOKEN, House
from tests.browser.test_looks import wrong_with
from tests.servers import Postgres

Visit = Callable[..., Visitor]

EMPTY = ("/", "/jobs", "/submit?kind=call", "/schedules", "/targets", "/secrets", "/alerts", "/access", "/workers")
"""Pages that look otherwise where nothing is yet."""


async def test_a_newcomer_logs_in_by_the_link_and_sees_a_living_system(tmp_path: Path, visit: Visit) -> None:
    house = House(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}")
    house.start()
    try:
        async with visit(house) as ann:
            await ann.page.goto(house.link())
            await expect(ann.page.locator("h1")).to_have_text("Overview")
            assert "code=" not in ann.page.url
            await expect(ann.page.get_by_text("Nothing has happened here yet")).to_be_visible()
            found = {place: await wrong_with(ann, place) for place in EMPTY}
            assert not {place: wrong for place, wrong in found.items() if wrong}
            await ann.go("/")
            await ann.button("Show me a demo").click()
            await ann.go("/jobs")
            await expect(ann.page.locator("[data-state=completed]").first).to_be_visible()
            await ann.go("/schedules")
            await expect(ann.page.get_by_text("At 06:00, every weekday, Berlin time")).to_be_visible()
    finally:
        house.close()


async def test_a_wrong_password_is_told_and_what_was_entered_stays(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house) as ann:
        await ann.page.goto("/")
        await ann.field("User").fill("nobody")
        await ann.field("Password").fill("wrong")
        await ann.button("Log in").click()
        await expect(ann.page.get_by_role("alert")).to_be_visible()
        await expect(ann.field("User")).to_have_value("nobody")


async def test_what_was_entered_outlives_the_session_and_goes_at_logout(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/alerts")
        await ann.button("New rule").first.click()
        await ann.field("Name").fill("half written")
        await ann.field("URL").fill("https://example.com/hook")
        await ann.call("DELETE", "/session")
        await ann.button("Keep the rule").click()
        await _log_in_again(ann)
        await expect(ann.field("Name")).to_have_value("half written")
        await ann.button("Leave it").click()

        await ann.go("/submit?kind=http")
        await ann.field("URL").fill("https://example.com/entered")
        await ann.call("DELETE", "/session")
        await ann.button("Submit").click()
        await _log_in_again(ann)
        await expect(ann.field("URL")).to_have_value("https://example.com/entered")
        await ann.page.goto("/submit?kind=http")
        await expect(ann.field("URL")).to_have_value("https://example.com/entered")
        await ann.button("You").click()
        await ann.page.get_by_role("menuitem", name="Log out").click()
        await expect(ann.button("Log in")).to_be_visible()
        assert "entered" not in await ann.page.evaluate("JSON.stringify(sessionStorage)")


async def _log_in_again(ann: Visitor) -> None:
    """Over what they were doing."""
    over = ann.page.get_by_role("dialog").filter(has_text="Your session has ended")
    await over.get_by_role("button", name="Use an API token instead").click()
    await over.locator("input[type=password]").fill(TOKEN)
    await over.get_by_role("button", name="Log in", exact=True).click()
    await expect(over).to_have_count(0)


async def test_a_viewer_may_look_and_nothing_else(house: House, visit: Visit) -> None:
    name = f"viewer-{house.port}"
    async with visit(house) as admin:
        await admin.log_in(TOKEN)
        await admin.go("/access")
        await admin.button("New user").click()
        await admin.field("Name").fill(name)
        await admin.field("Password").fill("correct horse battery")
        await admin.button("Make the user").click()
        await expect(admin.page.get_by_role("cell", name=name)).to_be_visible()
        job = await admin.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["you"]})
    async with visit(house) as ben:
        await ben.page.goto("/")
        await ben.field("User").fill(name)
        await ben.field("Password").fill("correct horse battery")
        await ben.button("Log in").click()
        pages = ben.page.get_by_role("navigation", name="Pages")
        await expect(pages.get_by_role("link", name="Jobs")).to_be_visible()
        for hidden in ("Submit", "Secrets", "Users and tokens", "Audit log"):
            await expect(pages.get_by_role("link", name=hidden)).to_have_count(0)
        await ben.go("/submit")
        await expect(ben.page.get_by_text("Your role may look, but not submit")).to_be_visible()
        for closed in ("/access", "/secrets", "/audit"):
            await ben.go(closed)
            await expect(ben.page.get_by_text("Your role has no access to this page")).to_be_visible()
            await expect(ben.page.get_by_role("button", name="New")).to_have_count(0)
        await ben.go(f"/jobs/{job['id']}")
        await expect(ben.button("Retry")).to_have_count(0)
        answer = await ben.context.request.post(f"/api/v1/jobs/{job['id']}/cancel", data={})
        assert answer.status == 403
        async with visit(house) as admin:
            await admin.log_in(TOKEN)
            await admin.go("/access")
            user = admin.page.get_by_role("row").filter(has_text=name)
            await user.get_by_role("button", name="Change").click()
            await admin.page.get_by_label("Disabled").click(force=True)
            await admin.button("Save").click()
            await expect(user).to_contain_text("disabled")
            await user.get_by_role("button", name="Delete").click()
            await admin.button("Delete the user").click()
            await expect(user).to_have_count(0)
        await ben.page.reload()
        await expect(ben.button("Log in")).to_be_visible()


async def test_an_operator_manages_secrets_but_nobodys_access(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house) as admin, visit(sqlite_house) as otto:
        await admin.log_in(TOKEN)
        made = await admin.call("POST", "/tokens", {"name": "otto", "role": "operator"})
        await otto.log_in(made["token"])
        await otto.go("/secrets")
        await expect(otto.button("New secret").first).to_be_visible()
        pages = otto.page.get_by_role("navigation", name="Pages")
        await expect(pages.get_by_role("link", name="Submit")).to_be_visible()
        await expect(pages.get_by_role("link", name="Users and tokens")).to_have_count(0)
        await otto.go("/access")
        await expect(otto.page.get_by_text("Your role has no access to this page")).to_be_visible()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_live_updates_come_back_when_the_service_does(
    kind: str, tmp_path: Path, visit: Visit, postgres: Postgres
) -> None:
    store = f"sqlite:///{tmp_path / 'headway.db'}" if kind == "sqlite" else postgres.create_database()
    house = House(tmp_path, store, "--app", "jobs:app", HEADWAY_ADMIN_TOKEN=TOKEN)
    house.start()
    try:
        async with visit(house) as ann:
            await ann.log_in(TOKEN)
            await ann.go("/jobs")
            await expect(ann.page.get_by_text("live", exact=True)).to_be_visible()
            house.stop()
            await expect(ann.page.get_by_text("reconnecting", exact=True)).to_be_visible()
            house.start()
            await expect(ann.page.get_by_text("live", exact=True)).to_be_visible()
            await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["again"]})
            await expect(ann.page.get_by_role("link", name="greet")).to_be_visible()
            await ann.page.reload()
            await expect(ann.page.get_by_role("link", name="greet")).to_be_visible()
            await ann.page.keyboard.press("?")
            await expect(ann.page.get_by_text("next, previous row")).to_be_visible()
    finally:
        house.close()
        if kind == "postgres":
            postgres.drop_database(store)
