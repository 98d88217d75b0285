"""The whole way of an engineer: add a server, send a script there, watch it, take what it left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import expect

from headway.model.target import fingerprint
from tests.browser.chrome import Visitor
from tests.browser.house import TOKEN, House
from tests.sshd import SshServer

Visit = Callable[..., Visitor]

SCRIPT = """#!/bin/sh
echo working
cat note.txt
while [ ! -e {gate} ]; do sleep 0.1; done
echo made by the script > report.txt
echo done with all of it
"""


@pytest.fixture(scope="module")
def sshd() -> Iterator[SshServer]:
    with SshServer() as server:
        yield server


@pytest.mark.timeout(240)
async def test_an_engineer_adds_a_server_and_runs_a_script_there(
    house: House, sqlite_house: House, visit: Visit, sshd: SshServer, tmp_path: Path
) -> None:
    target, name = f"box-{house.port}", f"backup-{house.port}"
    gate = sshd.home / f"gate-{house.port}"
    async with visit(house) as ann:
        await ann.log_in(TOKEN)
        await ann.go("/submit?kind=script")
        await ann.field("Name").fill(name)
        await _add_target(ann, target, sshd)
        await _write(ann, tmp_path, gate)
        await ann.field("Files to keep").fill("report.txt")
        if house is sqlite_house:
            await _for_the_next_minute(ann)
            await ann.button("Submit for later").click()
        else:
            await ann.button("Submit").click()

        await expect(ann.page.locator("h1")).to_contain_text(name)
        job = ann.page.url.rpartition("/")[2]
        await _is_warned(ann, name)
        await ann.go(f"/jobs/{job}")
        await expect(ann.page.locator("h1 [data-state=running]")).to_be_visible(timeout=120_000)
        await ann.page.get_by_role("tab", name="Output").click()
        await expect(ann.page.get_by_role("log")).to_contain_text("working")
        gate.touch()
        await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
        await _takes_what_it_left(ann)
        shown = await ann.call("GET", f"/jobs/{job}")
        started, desired = (datetime.fromisoformat(shown[name]) for name in ("started_at", "desired_at"))
        assert started >= desired
        await _runs_again(ann, job)
        await _tends(ann, target)


async def _add_target(ann: Visitor, name: str, sshd: SshServer) -> None:
    """The key that the server shows is looked at and confirmed."""
    await ann.button("Add a target").click()
    dialog = ann.page.get_by_role("dialog")
    for label, text in (("Name", name), ("Address", "127.0.0.1"), ("Port", str(sshd.port)), ("User", sshd.user)):
        await dialog.get_by_label(label).fill(text)
    await dialog.locator("input[type=password]").fill(sshd.password)
    await ann.button("Save and look at its key").click()
    await expect(ann.page.get_by_text(fingerprint(sshd.host_key))).to_be_visible()
    await ann.button("Yes, this is its key").click()
    await expect(ann.page.get_by_text("It answers, and the login works")).to_be_visible()
    await ann.button("Done").click()
    await expect(ann.page.get_by_role("dialog")).to_have_count(0)


async def _write(ann: Visitor, directory: Path, gate: Path) -> None:
    """A file, uploaded; the editor shows it. Another one goes along with it."""
    file = directory / "backup.sh"
    file.write_text(SCRIPT.format(gate=gate))
    await ann.page.locator("input[type=file]:not([multiple])").set_input_files(file)
    await expect(ann.page.locator(".cm-content")).to_contain_text("echo working")
    (directory / "note.txt").write_text("a note beside it\n")
    (directory / "left.txt").write_text("not wanted\n")
    brought = [directory / "note.txt", directory / "left.txt"]
    await ann.page.locator("input[type=file][multiple]").set_input_files(brought)
    await ann.button("Leave out the file left.txt").click()
    await expect(ann.page.get_by_role("button", name="Leave out the file")).to_have_count(1)


async def _for_the_next_minute(ann: Visitor) -> None:
    """Chosen in the calendar: today, unless the day ends with this minute."""
    await ann.page.get_by_text("Later", exact=True).click()
    await ann.field("Time zone").fill("Asia/Tokyo")
    await ann.page.get_by_role("option", name="Asia/Tokyo", exact=True).click()
    # What is left of this minute may not be enough to get through the form.
    soon = datetime.now(ZoneInfo("Asia/Tokyo")) + timedelta(seconds=75)
    await ann.page.get_by_label("Day and time").click()
    await ann.page.get_by_role("button", name=f"{soon.day} {soon:%B %Y}", exact=True).click()
    await ann.page.get_by_label("Hours").fill(f"{soon:%H}")
    await ann.page.get_by_label("Minutes").fill(f"{soon:%M}")
    await ann.button("Take this time").click()
    await expect(ann.page.get_by_text(f"{soon.astimezone(UTC):%Y-%m-%d %H:%M}:00 UTC")).to_be_visible()


async def _is_warned(ann: Visitor, name: str) -> None:
    """At once, while a job of the same name runs."""
    await ann.go("/submit?kind=script")
    await ann.field("Name").fill(name)
    await expect(ann.page.get_by_text(f"“{name}” has not ended")).to_be_visible()


async def _runs_again(ann: Visitor, job: str) -> None:
    """With other arguments; script, files and the rest are what they were."""
    await ann.page.get_by_role("link", name="Run again with changes").click()
    await expect(ann.page.get_by_text("which stays encrypted")).to_be_visible()
    await expect(ann.button("Leave out the file note.txt")).to_be_visible()
    await ann.field("Arguments").fill("--again")
    await ann.button("Submit").click()
    await ann.page.wait_for_url(re.compile(rf"/jobs/(?!{job})[0-9a-f-]+$"))
    await expect(ann.page.locator("h1 [data-state=completed]")).to_be_visible()
    await ann.page.get_by_role("tab", name="Output").click()
    await expect(ann.page.get_by_role("log")).to_contain_text("a note beside it")


async def _tends(ann: Visitor, name: str) -> None:
    """A look at the target, a word about it, and it is gone."""
    await ann.go("/targets")
    target = ann.page.get_by_role("row").filter(has_text=name)
    await target.get_by_role("button", name="Test").click()
    await expect(ann.page.get_by_text(re.compile(f"^{name} answers"))).to_be_visible()
    await target.get_by_role("button", name="Delete").click()
    await ann.button("Delete the target").click()
    await expect(target).to_have_count(0)


async def _takes_what_it_left(ann: Visitor) -> None:
    await ann.page.get_by_role("tab", name="Output").click()
    await expect(ann.page.get_by_role("log")).to_contain_text("done with all of it")
    async with ann.page.expect_download() as download:
        await ann.page.get_by_role("link", name="Download output").click()
    assert "working\na note beside it\ndone with all of it" in Path(await (await download.value).path()).read_text()
    await ann.page.get_by_role("tab", name="Artifacts").click()
    await expect(ann.page.get_by_role("cell", name="report.txt")).to_be_visible()
    async with ann.page.expect_download() as download:
        await ann.page.get_by_role("link", name="Download", exact=True).click()
    assert Path(await (await download.value).path()).read_text() == "made by the script\n"
