"""`headway secrets …` and `headway targets …`: what goes in by files, prompts and standard input never comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.conftest import sqlite_url
from tests.flow.terminal import Done, Terminal

VALUE = "correct horse battery"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFrBoDKCnmXmGiVxVGYLbBPpxDVJqTVCFXMbvwFbSKwc"


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "value").write_text(VALUE)
    (tmp_path / "password").write_text(f"{VALUE}\n")
    terminal = Terminal(tmp_path, sqlite_url(tmp_path))
    terminal.fine("migrate")
    return terminal


def discreet(*done: Done) -> None:
    assert [each for each in done if VALUE in each.out + each.err] == []


def test_secrets_are_set_listed_rotated_and_deleted(terminal: Terminal, tmp_path: Path) -> None:
    none, made, again, listed, doctor, rotated, data, gone, missing, key = done = terminal.each(
        "secrets list",
        "secrets set shop --from value --note 'for the shop'",
        "secrets set shop --from value",
        "secrets list",
        "doctor --json",
        "secrets rotate --json",
        "secrets list --json",
        "secrets delete shop",
        "secrets delete shop",
        "secrets key",
    )
    discreet(*done)
    assert "headway secrets set NAME" in none.out
    assert '{"secret": "shop"}' in made.out
    assert again.status == 0
    assert "for the shop" in listed.out
    [finding] = [each for each in doctor.data["findings"] if each["check"] == "vault"]
    assert finding["level"] == "ok"
    assert (rotated.data["rewrapped"], rotated.data["resumed"]) == (1, False)
    assert [item["name"] for item in data.data["items"]] == ["shop"]
    assert (gone.status, missing.status) == (0, 2)
    assert len(key.out.strip()) == 44
    assert (tmp_path / "headway.data" / "secret.key").stat().st_mode & 0o777 == 0o600


def test_a_secret_is_not_taken_from_the_command_line(terminal: Terminal) -> None:
    asked, missing, extra = terminal.each(
        "secrets set shop", "secrets set shop --from nowhere", f"secrets set shop '{VALUE}'"
    )
    assert "nobody is there to be asked" in asked.err
    assert "nowhere can't be read" in missing.err
    assert extra.status == 2


def test_an_unfinished_change_of_the_key_is_told(terminal: Terminal, tmp_path: Path) -> None:
    terminal.fine("secrets", "set", "shop", "--from", "value")
    file = tmp_path / "headway.data" / "secret.key"
    [key] = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    new = terminal.fine("secrets", "key").out.strip()
    file.write_text(f"{new}\n{key}\n")
    [before] = [each for each in terminal.json("doctor")["findings"] if each["check"] == "vault"]
    assert (before["level"], before["mend"]) == ("warning", "go on with it: headway secrets rotate")
    assert "has been completed" in terminal.fine("secrets", "rotate").out
    file.write_text(f"{key}\n")
    done = terminal.run("doctor", "--json")
    [lost] = [each for each in done.data["findings"] if each["check"] == "vault"]
    assert lost["level"] == "problem"
    assert "copy the file" in lost["text"]


def test_targets_are_made_changed_and_trusted(terminal: Terminal) -> None:
    made, listed, trusted, moved, entered, shown, gone, nothing, two = done = terminal.each(
        "targets create db-1 --host db.example --user ops --password-from password --label zone=a",
        "targets list",
        f"targets trust db-1 '{HOST_KEY}'",
        "targets set db-1 --port 2222",
        "targets set db-1 --key-from value",
        "targets show db-1",
        "targets delete db-1 --force",
        "targets set db-1",
        "targets create x --host h --user u --password-from password --key-from value",
    )
    discreet(*done)
    assert "headway targets probe db-1" in made.out
    assert "ops@db.example:22 password" in listed.words
    assert "SHA256:" in trusted.out
    assert "it has no credential" in moved.out
    assert "no credential" not in entered.out
    assert (shown.data["credential"], shown.data["host_key"], shown.data["port"]) == ("private_key", None, 2222)
    assert (gone.status, nothing.status, two.status) == (0, 2, 2)
