"""`headway users`, `tokens`, `login-link`, `audit`; and that commands leave their lines in the audit log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.terminal import Terminal

PASSWORD = "correct horse battery"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, "sqlite:///headway.db")


def stored(directory: Path) -> bytes:
    """All that lies on the disk."""
    return b"".join(file.read_bytes() for file in directory.glob("headway.db*") if file.is_file())


def test_users_are_made_changed_and_removed(terminal: Terminal, tmp_path: Path) -> None:
    migrated, made, again, changed, listed, removed, gone, audit = terminal.each(
        "migrate",
        "users create ann --role operator",
        "users create ann",
        "users change ann --role viewer --lock --by boss",
        "users list --json",
        "users delete ann",
        "users delete ann",
        "audit --object users/ann --json",
    )
    assert migrated.status == made.status == changed.status == removed.status == 0
    assert "the user ann (operator) is made" in made.out
    assert "there is a user 'ann' already" in again.err
    assert "no user 'ann'" in gone.err
    [user] = listed.data["items"]
    assert (user["role"], user["disabled"], user["has_password"]) == ("viewer", True, False)
    lines = audit.data["items"]
    assert [line["action"] for line in lines] == ["users.delete", "users.change", "users.create"]
    assert lines[1]["actor"] == "boss"
    assert lines[1]["detail"] == {"role": ["operator", "viewer"], "disabled": [False, True]}


def test_a_password_is_read_and_not_kept(terminal: Terminal, tmp_path: Path) -> None:
    terminal.fine("migrate")
    done = subprocess.run(
        [sys.executable, "-m", "headway", "users", "create", "ann", "--password"],
        cwd=tmp_path,
        input=f"{PASSWORD}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert PASSWORD not in done.stdout + done.stderr
    assert PASSWORD.encode() not in stored(tmp_path)
    assert b"$argon2id$" in stored(tmp_path)


def test_a_token_is_printed_once_and_kept_as_a_fingerprint(terminal: Terminal, tmp_path: Path) -> None:
    _, made, listed, link, no_link, removed, empty, odd = terminal.each(
        "migrate",
        "tokens create ci --kind http --queue mail --expires +30d",
        "tokens list",
        "login-link --user ann",
        "login-link",
        "tokens delete ci",
        "tokens list",
        "tokens create 'no name'",
    )
    secret = made.out.strip()
    assert secret.startswith("hw_")
    assert secret.encode() not in stored(tmp_path)
    assert "kind http, queue mail" in listed.out
    assert secret not in listed.out
    assert "no user 'ann'" in link.err
    assert "no token 'admin'" in no_link.err
    assert removed.status == 0
    assert "there is no token yet" in empty.words
    assert "can't be a name" in odd.err


def test_commands_leave_lines_in_the_audit_log(terminal: Terminal) -> None:
    *done, audit, verified, table, link = terminal.each(
        "migrate",
        "queues pause mail --by ann",
        "submit call nobody.knows",
        "jobs cancel --state scheduled --yes",
        "users create ann",
        "audit --json",
        "audit --verify",
        "audit --action queues.",
        "login-link --user ann",
    )
    assert {each.status for each in done} == {0}, [each.err for each in done]
    lines = audit.data["items"]
    assert [line["action"] for line in lines] == ["users.create", "jobs.cancel", "jobs.create", "queues.pause"]
    assert lines[-1]["actor"] == "ann"
    assert all(line["address"] for line in lines)
    assert "no line was changed" in verified.out
    assert "queues/mail" in table.out
    assert "jobs.cancel" not in table.out
    assert link.out.startswith("http://127.0.0.1:8000/#code=")
