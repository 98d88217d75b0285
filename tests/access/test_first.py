"""The first start: a token that nobody else has, in a file that nobody else can read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headway.access.first import ADMIN, ensure_admin, link, new_link, read
from headway.access.managing import create_user
from headway.access.trail import entry
from headway.model.access import Caller, Fingerprint, Role, Subject
from headway.model.errors import ConfigurationError
from tests.access.conftest import Desk

TEST = Caller("test")


async def test_the_first_start_makes_a_token_of_its_own(desk: Desk, tmp_path: Path) -> None:
    started = await ensure_admin(desk.reach, tmp_path / "data", None)
    assert started.first
    assert started.file is not None
    assert stat.S_IMODE(started.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(started.file.parent.stat().st_mode) == 0o700
    secret = read(started.file)
    token = await desk.store.token(Fingerprint.of(secret))
    assert token is not None
    assert (token.name, token.role) == (ADMIN, Role.ADMIN)
    assert [file.name for file in started.file.parent.iterdir()] == ["admin-token"]
    again = await ensure_admin(desk.reach, tmp_path / "data", None)
    assert not again.first


async def test_two_installations_share_no_secret(tmp_path: Path) -> None:
    from headway.access.first import keep

    secrets = {keep(tmp_path / name)[1] for name in ("one", "two", "three")}
    assert len(secrets) == 3
    assert keep(tmp_path / "one")[1] in secrets


async def test_a_start_that_died_between_file_and_store_is_made_good(desk: Desk, tmp_path: Path) -> None:
    from headway.access.first import keep

    _, secret = keep(tmp_path)
    started = await ensure_admin(desk.reach, tmp_path, None)
    assert started.first
    assert await desk.store.token(Fingerprint.of(secret))


async def test_the_given_token_takes_the_place_of_the_one_before(desk: Desk, tmp_path: Path) -> None:
    for given in ("first-given-token-000", "first-given-token-000", "second-given-token-00"):
        assert not (await ensure_admin(desk.reach, tmp_path, given)).first
    assert await desk.store.token(Fingerprint.of("second-given-token-00"))
    assert await desk.store.token(Fingerprint.of("first-given-token-000")) is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigurationError, match="HEADWAY_ADMIN_TOKEN has less than"):
        await ensure_admin(desk.reach, tmp_path, "short")


async def test_where_somebody_administers_already_no_token_is_made(desk: Desk, tmp_path: Path) -> None:
    await create_user(desk.reach, "ann", Role.ADMIN, None, TEST)
    assert not (await ensure_admin(desk.reach, tmp_path, None)).first
    await desk.store.change_user("ann", {"disabled": True}, entry(TEST, "users.change", "users/ann"))
    assert (await ensure_admin(desk.reach, tmp_path, None)).first


async def test_a_file_that_others_could_read_is_refused(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "admin-token").write_text("hw_known-to-all")
    (tmp_path / "admin-token").chmod(0o644)
    with pytest.raises(ConfigurationError, match="is not this user's alone"):
        await ensure_admin(desk.reach, tmp_path, None)
    with pytest.raises(ConfigurationError, match="HEADWAY_DATA"):
        await ensure_admin(desk.reach, tmp_path / "admin-token" / "below", None)


async def test_the_code_of_a_link_stands_in_its_fragment(desk: Desk, tmp_path: Path) -> None:
    await ensure_admin(desk.reach, tmp_path, None)
    code = await new_link(desk.reach, Subject(token=ADMIN), TEST)
    assert link("https://jobs.example/", code) == f"https://jobs.example/#code={code}"
    [line] = [line for line in await desk.store.audit_after(0) if line.action == "login-links.create"]
    assert code not in str(line)
