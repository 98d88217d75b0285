"""Every page, full and empty, in light and dark: nothing that axe finds serious, nothing wider than a phone. With
HEADWAY_SCREENSHOTS=docs/images the pictures of the README are taken anew."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.async_api import ViewportSize, expect

from tests.browser.chrome import Visitor
from tests.browser.house import TOKEN, House

Visit = Callable[..., Visitor]

PLACES = (
    "/",
    "/jobs",
    "/jobs?state=blocked,creating",
    "/submit?kind=script",
    "/submit?kind=call",
    "/submit?kind=http",
    "/submit?kind=fetch",
    "/schedules",
    "/schedules/new",
    "/queues",
    "/workers",
    "/targets",
    "/secrets",
    "/alerts",
    "/access",
    "/audit",
)
DESK: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 780}
NARROW = """[...document.querySelectorAll("#content input:not([type=checkbox]):not([type=radio])")]
  .filter(field => field.offsetWidth && field.offsetWidth < 80).map(field => field.ariaLabel)"""
"""Fields that nobody can read what they enter in."""
HEAVIEST = 1_000_000
"""Bytes of data that a page may load."""
PICTURES = {"/": "overview-light", "/jobs": "jobs-light", "/submit?kind=script": "submit-light"}


async def places(ann: Visitor) -> list[str]:
    """All of them: also a job that failed, one that waits for others, and a schedule that has fired."""
    failed = (await ann.call("GET", "/jobs?state=failed&limit=1"))["items"]
    blocked = (await ann.call("GET", "/jobs?name=mail.digest&limit=1"))["items"]
    schedules = (await ann.call("GET", "/schedules?name=shop-visitors"))["items"]
    return [*PLACES, *(f"/jobs/{job['id']}" for job in [*failed, *blocked]), f"/schedules/{schedules[0]['id']}"]


@pytest.mark.timeout(400)
async def test_every_page_can_be_read_by_everybody_and_fits_a_phone(demo: House, visit: Visit) -> None:
    async with visit(demo) as ann:
        await ann.log_in(TOKEN)
        await _furnish(ann)
        await ann.go("/jobs?state=failed")
        await expect(ann.page.locator("[data-state=failed]").first).to_be_visible()
        found = {place: await wrong_with(ann, place) for place in await places(ann)}
        assert not {place: wrong for place, wrong in found.items() if wrong}
        await ann.page.set_viewport_size(PHONE)
        await ann.button("Open the menu").click()
        await expect(ann.page.get_by_role("link", name="Workers")).to_be_visible()


async def _furnish(ann: Visitor) -> None:
    """What the demo has none of."""
    hook = {"type": "webhook", "url": "https://example.com/hook"}
    await ann.call("PUT", "/secrets/hook-key", {"value": "for the looks only", "note": "the hook"})
    await ann.call("POST", "/targets", {"name": "db1", "host": "db1.example.com", "user": "deploy"})
    await ann.call("POST", "/alerts", {"name": "failures", "on": "job_failed", "channel": hook})
    await ann.call("POST", "/users", {"name": "ann", "role": "operator", "password": "correct horse battery"})


async def wrong_with(ann: Visitor, place: str) -> list[str]:
    """Looked at in light, in dark, and on a phone; only the colours differ between the first two."""
    ann.loaded = 0
    await ann.go(place)
    wrong = [f"{ann.loaded:,} bytes of data"] if ann.loaded > HEAVIEST else []
    wrong += await ann.serious()
    await _picture(ann, place, "light")
    await ann.page.emulate_media(color_scheme="dark")
    wrong += await ann.serious("color-contrast")
    await _picture(ann, place, "dark")
    await ann.page.set_viewport_size(PHONE)
    if (pixels := await ann.overflow()) > 0:
        wrong.append(f"{pixels} pixels too wide")
    await ann.page.emulate_media(color_scheme="light")
    await ann.page.set_viewport_size(DESK)
    return wrong


async def test_the_way_in_dialogs_and_tabs_are_for_everybody_too(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house, width=PHONE["width"]) as ann:
        await ann.page.goto("/")
        await expect(ann.button("Log in")).to_be_visible()
        assert (await ann.serious(), await ann.overflow()) == ([], 0)
        await ann.log_in(TOKEN)
        job = await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["you"]})
        await ann.page.reload()
        await expect(ann.page.locator("h1")).to_have_text("Overview")
        for place, opener in (("/alerts", "New rule"), ("/access", "New user"), ("/access", "New token")):
            await ann.go(place)
            await ann.button(opener).first.click()
            await expect(ann.page.get_by_role("dialog")).to_be_visible()
            assert (await ann.serious(), await ann.overflow()) == ([], 0), opener
            await ann.button("Leave it").click()
            await expect(ann.page.get_by_role("dialog")).to_have_count(0)
        await ann.go("/submit?kind=http")
        await ann.button("Add a header").click()
        await ann.page.get_by_label("secret", exact=True).check()
        assert await ann.page.evaluate(NARROW) == []
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        for tab in ("Output", "Result", "Arguments", "Artifacts"):
            await ann.page.get_by_role("tab", name=tab).click()
            await expect(ann.page.locator("[aria-busy=true]")).to_have_count(0)
            assert (await ann.serious(), await ann.overflow()) == ([], 0), tab


async def test_keys_lead_through_the_table(demo: House, visit: Visit) -> None:
    async with visit(demo) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/jobs?state=completed")
        await expect(ann.page.locator("tbody tr").nth(1)).to_be_visible()
        await ann.page.keyboard.press("j")
        await ann.page.keyboard.press("j")
        await ann.page.keyboard.press("k")
        await expect(ann.page.locator("tbody tr").first).to_have_attribute("data-current", "true")
        await ann.page.keyboard.press("x")
        await expect(ann.page.get_by_text("1 selected")).to_be_visible()
        await ann.page.keyboard.press("Enter")
        await expect(ann.page.get_by_role("tab", name="Output")).to_be_visible()
        await ann.page.keyboard.press("/")
        await ann.page.keyboard.type("error: issuer")
        await ann.page.keyboard.press("Enter")
        await ann.page.wait_for_url("**/jobs?q=*")
        await expect(ann.page.get_by_text("the issuer declined").first).to_be_visible()
        job = (await ann.call("GET", "/jobs?state=failed&limit=1"))["items"][0]
        await ann.page.keyboard.press("/")
        await ann.page.keyboard.press("ControlOrMeta+a")
        await ann.page.keyboard.type(job["id"].upper())
        await ann.page.keyboard.press("Enter")
        await expect(ann.page.locator("h1")).to_contain_text(job["name"])
        for letter in "gs":
            await ann.page.keyboard.press(letter)
        await expect(ann.page.locator("h1")).to_have_text("Schedules")


async def test_the_current_row_stays_the_same_job_while_others_come(demo: House, visit: Visit) -> None:
    async with visit(demo) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/jobs?state=completed")
        await ann.page.keyboard.press("j")
        current = ann.page.locator("tbody tr[data-current=true]")
        link = await current.get_by_role("link").get_attribute("href")
        await expect(ann.page.locator("tbody tr").first.get_by_role("link")).not_to_have_attribute("href", str(link))
        await expect(current.get_by_role("link")).to_have_attribute("href", str(link))
        await ann.page.keyboard.press("Enter")
        await ann.page.wait_for_url(f"**{link}")


async def test_the_overview_tells_of_hours_days_and_weeks_and_its_times_tick(demo: House, visit: Visit) -> None:
    async with visit(demo) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/")
        await ann.field("Queue of the charts").click()
        await ann.page.get_by_role("option", name="media").click()
        backlog = ann.page.locator("section", has=ann.page.get_by_role("heading", name="Backlog by queue"))
        await expect(backlog.get_by_role("listitem")).to_have_text([re.compile("^media")])
        await ann.button("Throughput a minute: show as a table").click()
        table = ann.page.get_by_role("region", name="Throughput a minute, as a table")
        await expect(table.get_by_role("row")).to_have_count(61)
        for period, steps in (("Day", 96), ("Week", 84)):
            await ann.page.get_by_text(period, exact=True).click()
            await expect(ann.page.get_by_text(f"Done, last {period.lower()}")).to_be_visible()
            table = ann.page.get_by_role("region", name=re.compile("^Throughput in .*, as a table$"))
            await expect(table.get_by_role("row")).to_have_count(steps + 1)
        visitors = ann.page.locator(".lanes").get_by_role("link", name="shop-visitors")
        await visitors.click()
        await expect(ann.page.get_by_role("img", name=re.compile("^([3-9]|[1-9][0-9]+) fired, 0 skip"))).to_be_visible()
        days = (await ann.call("GET", "/schedules/shop-visitors/occurrences?daily=true"))["items"]
        assert len(days) <= 2 < sum(day["count"] for day in days)
        changed = ann.page.locator("dd", has_text="headway, ").locator("time")
        await expect(changed).to_have_attribute("title", re.compile(r"\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))
        first = await ann.page.locator("ol.fires li time").first.inner_text()
        # Sooner than the fires themselves are asked for anew.
        await expect(ann.page.locator("ol.fires li time").first).not_to_have_text(first, timeout=20_000)
        await ann.page.get_by_text("Table", exact=True).click()
        await expect(ann.page.get_by_role("region", name="Ledger").get_by_role("link").first).to_have_text("a job")
        await ann.button("Change to dark colours").click()
        await ann.page.reload()
        await expect(ann.button("Change to light colours")).to_be_visible()


async def _picture(ann: Visitor, place: str, scheme: str) -> None:
    directory = os.environ.get("HEADWAY_SCREENSHOTS")
    name = PICTURES.get(place) or ("job-dark" if place.startswith("/jobs/") else None)
    if directory and name and name.endswith(scheme):
        Path(directory).mkdir(parents=True, exist_ok=True)
        await ann.page.screenshot(path=Path(directory) / f"{name}.png")
