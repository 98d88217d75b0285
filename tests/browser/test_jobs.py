"""Jobs on the page, against the real service on each kind of store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.browser.chrome import Visitor
from tests.browser.house import TOKEN, House
from tests.browser.site import web_server

Visit = Callable[..., Visitor]

CARRIED = """() => {
  const carried = new DataTransfer();
  carried.items.add(new File(["#!/bin/sh\\necho dropped\\n"], "dropped.sh"));
  return carried;
}"""


async def test_a_function_is_called_by_a_form_made_from_its_signature(house: House, visit: Visit) -> None:
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/submit?kind=call")
        await ann.field("Function").fill("greet")
        await ann.field("name").fill("world")
        await ann.field("times").fill("one")
        await ann.button("Submit").click()
        await expect(ann.page.get_by_text("not a number")).to_be_visible()
        await ann.field("times").fill("2")
        await ann.button("Submit").click()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Result").click()
        await expect(ann.page.get_by_text('"hello worldworld"')).to_be_visible()
        await ann.page.get_by_role("tab", name="Output").click()
        await expect(ann.page.get_by_role("log")).to_contain_text("hello world")
        await ann.page.get_by_role("tab", name="Arguments").click()
        await expect(ann.page.get_by_text('"world"')).to_be_visible()


async def test_urls_are_fetched_as_a_batch_and_known_ones_are_told(house: House, visit: Visit) -> None:
    async with web_server() as site, visit(house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/submit?kind=fetch")
        await ann.field("URLs").fill(f"{site.url}/a\n{site.url}/b\n{site.url}/a")
        await ann.button("Submit all").click()
        await expect(ann.page.get_by_role("heading", name="2 new jobs, 1 address already fetched")).to_be_visible()
        await ann.button("Submit all").click()
        await expect(ann.page.get_by_role("heading", name="0 new jobs, 3 addresses already fetched")).to_be_visible()
        await ann.page.get_by_role("cell").get_by_role("link").first.click()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Result").click()
        await expect(ann.page.get_by_text("hello", exact=True)).to_be_visible()


async def test_a_picture_is_shown_and_a_script_dropped_into_the_editor(sqlite_house: House, visit: Visit) -> None:
    async with web_server() as site, visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        job = await ann.call("POST", "/jobs", {"kind": "fetch", "url": f"{site.url}/dot.png"})
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Result").click()
        picture = ann.page.get_by_role("img", name="Result of")
        await expect(picture).to_be_visible()
        assert await picture.evaluate("shown => shown.decode().then(() => shown.naturalWidth)") == 1

        await ann.go("/submit?kind=script")
        await expect(ann.page.locator(".cm-content")).to_be_visible()
        carried = await ann.page.evaluate_handle(CARRIED)
        await ann.page.locator("[data-drop]").dispatch_event("drop", {"dataTransfer": carried})
        await expect(ann.page.locator(".cm-content")).to_contain_text("echo dropped")
        await expect(ann.field("Name")).to_have_value("dropped")


async def test_an_http_schedule_is_made_previewed_and_run(house: House, visit: Visit) -> None:
    async with web_server() as site, visit(house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/schedules/new")
        await ann.field("Name of the schedule").fill(f"hourly-{house.port}")
        await ann.field("Cron expression").fill("not cron")
        await expect(ann.page.get_by_role("alert")).to_be_visible()
        await ann.field("Cron expression").fill("30 2 * * MON-FRI")
        await expect(ann.page.get_by_test_id("in-words")).to_contain_text("At 02:30, every weekday")
        await expect(ann.page.locator("ol.fires li")).to_have_count(10)
        await ann.field("URL").fill(f"{site.url}/hook")
        await ann.button("Make the schedule").click()
        await expect(ann.page.locator("h1")).to_contain_text(f"hourly-{house.port}")
        await ann.button("Run now").click()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Result").click()
        await expect(ann.page.get_by_text("HTTP 200")).to_be_visible()


async def test_a_change_of_a_schedule_leaves_the_rest_of_it_alone(sqlite_house: House, visit: Visit) -> None:
    job = {
        "kind": "http",
        "callback_url": "https://example.com/hook",
        "headers": {"Authorization": "Bearer nobody-sees-this"},
        "queue": "ops",
        "retry": {"max_attempts": 2},
    }
    # Late in March clocks in Berlin jump over half past two.
    body = {"name": "late-in-march", "schedule": "30 2 25-31 3 *", "timezone": "Europe/Berlin", "gap": "skip"}
    async with visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        made = await ann.call("POST", "/schedules", {**body, "job": job})
        await ann.go(f"/schedules/{made['id']}")
        await ann.button("Edit").click()
        await ann.field("Description").fill("told anew")
        await ann.field("URL").fill("https://example.com/other")
        await ann.button("Save the changes").click()
        await expect(ann.page.get_by_text("told anew")).to_be_visible()
        changed = await ann.call("GET", f"/schedules/{made['id']}")
        assert changed["gap"] == "skip"
        assert changed["job"] == {
            **job,
            "callback_url": "https://example.com/other",
            "headers": {"Authorization": "•••"},
            "http_method": "POST",
        }

        await ann.go("/schedules/new")
        await ann.field("Cron expression").fill(body["schedule"])
        await ann.field("Time zone").fill("Europe/Berlin")
        await ann.page.get_by_role("option", name="Europe/Berlin", exact=True).click()
        await expect(ann.page.get_by_text("clocks jump ahead here").first).to_be_visible()


async def test_all_failed_jobs_of_a_name_are_retried_with_their_count(house: House, visit: Visit) -> None:
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        for number in range(3):
            await ann.call("POST", "/jobs", {"kind": "call", "function": "breaks", "args": [f"{house.port} {number}"]})
        await ann.go("/jobs?state=failed&name=breaks")
        await expect(ann.page.locator("tbody tr")).to_have_count(3)
        await expect(ann.page.get_by_text(f"it broke: {house.port} 2")).to_be_visible()
        await ann.button("Retry all").click()
        await ann.button("Retry 3 jobs").click()
        await expect(ann.page.get_by_text("3 jobs to be retried.")).to_be_visible()
        again = await _twice_tried(ann)
        assert [job["attempt"] for job in again] == [2, 2, 2]
        # One of them, looked at: its error, its attempts.
        await ann.go(f"/jobs/{again[0]['id']}")
        await expect(ann.page.get_by_role("button", name="Attempt 2")).to_be_visible()
        await ann.page.get_by_text("Traceback", exact=True).click()
        await expect(ann.page.get_by_text("raise RuntimeError").first).to_be_visible()


async def _twice_tried(ann: Visitor) -> list[dict[str, Any]]:
    """The jobs, once all have failed again."""
    while True:
        found = (await ann.call("GET", "/jobs?state=failed&name=breaks"))["items"]
        if len(found) == 3 and all(job["attempt"] == 2 for job in found):
            return list(found)
        await asyncio.sleep(0.1)


async def test_progress_and_places_go_on_while_one_looks(house: House, visit: Visit, tmp_path: Path) -> None:
    gates = [tmp_path / "first", tmp_path / "second"]
    queue = f"narrow-{house.port}"
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        body = {"kind": "call", "function": "creeps", "args": [str(gate) for gate in gates]}
        job = await ann.call("POST", "/jobs", body)
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.get_by_text("1 of 4 · part 1", exact=True)).to_be_visible()
        gates[0].touch()
        await expect(ann.page.get_by_text("2 of 4 · part 2", exact=True)).to_be_visible()
        await ann.go("/")
        await expect(ann.page.get_by_role("row").filter(has_text="creeps")).to_be_visible()
        gates[1].touch()

        await ann.call("POST", f"/queues/{queue}/pause")
        waiting = {"kind": "call", "function": "greet", "args": ["you"], "queue": queue}
        before, after = [await ann.call("POST", "/jobs", waiting) for _ in range(2)]
        await ann.go(f"/jobs/{after['id']}")
        await expect(ann.page.get_by_text("1 job of its queue before it")).to_be_visible()
        await ann.call("POST", f"/jobs/{before['id']}/cancel")
        await expect(ann.page.get_by_text("It is the next of its queue")).to_be_visible()


async def test_what_was_selected_is_forgotten_with_the_list_it_was_in(sqlite_house: House, visit: Visit) -> None:
    async with visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        for name in ("picked-a", "picked-b"):
            await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["you"], "name": name})
        await ann.go("/jobs?name=picked-*")
        picked = ann.page.get_by_role("row").filter(has_text="picked-a").get_by_role("checkbox")
        await picked.check()
        await expect(ann.page.get_by_text("1 selected")).to_be_visible()
        await ann.page.get_by_label("Find jobs by name, id or error text").fill("picked-b")
        await ann.page.keyboard.press("Enter")
        await ann.page.wait_for_url("**/jobs?*q=picked-b")
        await expect(ann.page.get_by_role("row").filter(has_text="picked-a")).to_have_count(0)
        await expect(ann.page.get_by_text("All that match:")).to_be_visible()
        await ann.go("/jobs?name=picked-*")
        await picked.check()
        await ann.button("Delete").click()
        await ann.button("Delete 1 job").click()
        await expect(ann.page.get_by_text("1 job deleted.")).to_be_visible()
        await expect(ann.page.locator("tbody tr")).to_have_count(1)
        await expect(ann.page.get_by_role("link", name="picked-b")).to_be_visible()


async def test_a_schedule_for_once_is_chosen_in_the_calendar(sqlite_house: House, visit: Visit) -> None:
    then = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).replace(day=15, hour=6, minute=45)
    async with visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/schedules/new")
        await ann.field("Name of the schedule").fill("once-next-month")
        await ann.page.get_by_text("Once", exact=True).click()
        await ann.page.get_by_text("Function", exact=True).click()
        await ann.field("Function").fill("greet")
        await ann.field("name").fill("you")
        await ann.button("Make the schedule").click()
        await expect(ann.page.get_by_text("Say when it fires.")).to_be_visible()
        await ann.page.get_by_label("Day and time").click()
        assert await ann.serious() == []
        await ann.button("Next month").click()
        await ann.page.get_by_role("button", name=f"15 {then:%B %Y}", exact=True).click()
        await ann.page.get_by_label("Hours").fill("06")
        await ann.page.get_by_label("Minutes").fill("45")
        await ann.button("Take this time").click()
        await expect(ann.page.locator("ol.fires li")).to_have_count(1)
        await expect(ann.page.locator("ol.fires li")).to_contain_text(f"{then:%d %b %Y} 06:45")
        await ann.button("Make the schedule").click()
        await expect(ann.page.locator("h1")).to_contain_text("once-next-month")
        assert (await ann.call("GET", "/schedules?name=once-next-month"))["items"][0]["next_at"][:16] == (
            f"{then:%Y-%m-%dT06:45}"
        )
        await expect(ann.page.get_by_text("It has not fired yet")).to_be_visible()
        await ann.button("Pause").click()
        await expect(ann.page.locator("h1")).to_contain_text("paused")
        await ann.button("Resume").click()
        await expect(ann.page.locator("h1")).to_contain_text("active")
        await ann.button("Delete").click()
        await ann.button("Delete the schedule").click()
        await expect(ann.page.locator("h1")).to_have_text("Schedules")


async def test_what_few_jobs_need_is_asked_for_too(sqlite_house: House, visit: Visit) -> None:
    """Held, after another, with rules of retrying; refused, nothing of it is lost."""
    async with visit(sqlite_house) as ann:
        await ann.log_in(TOKEN)
        parent = await ann.call("POST", "/jobs", {"kind": "call", "function": "greet", "args": ["x"], "hold": True})
        await ann.go("/submit?kind=call")
        await ann.field("Function").fill("breaks")
        await ann.field("reason").fill("for good")
        await ann.page.get_by_text("More options").click()
        await ann.field("Key").fill("k" * 300)
        await ann.field("Runs after").fill(parent["id"])
        await ann.page.keyboard.press("Enter")
        await ann.field("Expires after (s)").fill("600")
        await ann.field("Attempts").fill("5")
        await ann.button("Add a rule").click()
        await ann.field("Rule 1, what it looks for").fill("RuntimeError")
        await ann.button("Submit").click()
        await expect(ann.page.get_by_role("alert")).to_contain_text("key")
        await expect(ann.field("reason")).to_have_value("for good")
        await ann.field("Key").fill("own-key")
        await ann.button("Submit").click()
        await expect(ann.page.locator("h1 [data-state=blocked]")).to_be_visible()
        await expect(ann.page.get_by_text("waits for other jobs")).to_be_visible()
        await ann.call("POST", f"/jobs/{parent['id']}/schedule", {})
        await expect(ann.page.locator("h1 [data-state=failed]")).to_be_visible()
        job = await ann.call("GET", f"/jobs/{ann.page.url.rpartition('/')[2]}")
        assert (job["key"], job["attempt"], job["max_attempts"], job["after"]) == ("own-key", 1, 5, [parent["id"]])


async def test_hostile_output_and_results_stay_text(house: House, visit: Visit) -> None:
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        job = await ann.call("POST", "/jobs", {"kind": "call", "function": "hostile"})
        await ann.go(f"/jobs/{job['id']}")
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await ann.page.get_by_role("tab", name="Output").click()
        log = ann.page.get_by_role("log")
        await expect(log).to_contain_text("<img src=x onerror=")
        await expect(log.get_by_text("red", exact=True)).to_have_css("color", "rgb(255, 143, 115)")
        assert await log.locator("img, script, a").count() == 0
        await ann.page.get_by_role("tab", name="Result").click()
        await expect(ann.page.get_by_role("tree")).to_contain_text("<script>")
        assert await ann.page.evaluate("window.hacked") is None


async def test_live_output_is_followed_searched_and_the_job_cancelled(house: House, visit: Visit) -> None:
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        job = await ann.call("POST", "/jobs", {"kind": "call", "function": "slow", "args": [3000]})
        await ann.go(f"/jobs/{job['id']}")
        await ann.page.get_by_role("tab", name="Output").click()
        log = ann.page.get_by_role("log")
        await expect(log).to_contain_text("step 3")
        await ann.button("Pause").click()
        await expect(ann.button("Follow")).to_be_visible()
        await ann.field("Search the output").fill("step 2")
        await expect(ann.page.get_by_role("status").filter(has_text="1 of")).to_be_visible()
        await ann.button("Cancel").click()
        await ann.button("Cancel the job").click()
        await expect(ann.page.locator("h1 [data-state=cancelled]")).to_be_visible()
