"""Where settings come from, which counts more, and that every one is told of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headway
from headway import settings
from headway.model.errors import ConfigurationError
from headway.settings import Settings, load

ROOT = Path(headway.__path__[0])
DOCUMENT = ROOT.parent.parent / "docs" / "settings.md"


def test_a_flag_counts_more_than_a_variable_more_than_the_file_more_than_the_default(tmp_path: Path) -> None:
    (tmp_path / "headway.toml").write_text('host = "file"\nport = 1\nlease = 9\n')
    held = load(
        {"host": "flag", "port": None},
        environment={"HEADWAY_HOST": "variable", "HEADWAY_PORT": "2"},
        directory=tmp_path,
    )
    assert (held.host, held.port, held.lease, held.grace) == ("flag", 2, 9.0, 30.0)


def test_a_file_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text('trusted_proxies = ["10.0.0.1", "10.1.0.0/16"]\nlog_json = true\n')
    held = load(environment={"HEADWAY_CONFIG": str(file)}, directory=tmp_path)
    assert held.trusted_proxies == ("10.0.0.1", "10.1.0.0/16")
    assert held.log_json


def test_lists_in_variables_are_separated_by_commas(tmp_path: Path) -> None:
    held = load(environment={"HEADWAY_ALLOW_PRIVATE": "10.0.0.0/8, intranet.example ,"}, directory=tmp_path)
    assert held.allow_private == ("10.0.0.0/8", "intranet.example")


@pytest.mark.parametrize(
    ("environment", "file", "told"),
    [
        ({"HEADWAY_PORT": "http"}, "", "HEADWAY_PORT"),
        ({"HEADWAY_PORT": "70000"}, "", "HEADWAY_PORT"),
        ({"HEADWAY_LEASE": "soon"}, "", "HEADWAY_LEASE"),
        ({"HEADWAY_LOG_JSON": "maybe"}, "", "HEADWAY_LOG_JSON"),
        ({"HEADWAY_CONFIG": "missing.toml"}, "", "can't be read"),
        ({}, "port = ", "no TOML"),
        ({}, "prot = 1", "'prot', which is no setting"),
        ({}, "port = []", r"port in .*headway\.toml"),
    ],
)
def test_a_wrong_setting_is_named_with_its_source(
    environment: dict[str, str], file: str, told: str, tmp_path: Path
) -> None:
    if file:
        (tmp_path / "headway.toml").write_text(file)
    with pytest.raises(ConfigurationError, match=told):
        load(environment=environment, directory=tmp_path)


def test_secret_settings_are_not_shown(tmp_path: Path) -> None:
    secret = {f"HEADWAY_{name.upper()}": "canary-canary" for name in settings.secret_names()}
    assert len(secret) == 3
    held = load(environment=secret, directory=tmp_path)
    assert held.admin_token == "canary-canary"
    assert "canary" not in repr(held)


@pytest.mark.parametrize(
    ("store", "directory"),
    [
        ("sqlite:///jobs.db", "jobs.data"),
        ("sqlite:////var/lib/headway.db", "/var/lib/headway.data"),
        ("sqlite://", "headway.data"),
        ("postgresql://db/headway", "headway.data"),
    ],
)
def test_the_data_directory_lies_beside_the_file(store: str, directory: str) -> None:
    assert Settings(store=store).data_directory == Path(directory)
    assert Settings(store=store, data="/data").data_directory == Path("/data")


def test_every_setting_is_documented() -> None:
    """One that is missing: add a line with its variable, default and meaning to the table in docs/settings.md."""
    table = re.findall(r"^\| `(HEADWAY_\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(table) == sorted([settings.CONFIG, *(f"HEADWAY_{name.upper()}" for name in settings.descriptions())])


def test_every_variable_that_the_code_knows_is_a_setting() -> None:
    """One that is missing: make it a field of `headway.settings.Settings`, and document it."""
    code = "".join(file.read_text() for file in ROOT.rglob("*.py") if "bench" not in file.parts)
    known = {settings.CONFIG, *(f"HEADWAY_{name.upper()}" for name in settings.descriptions())}
    # What scripts find in their environment.
    known |= {"HEADWAY_JOB_ID", "HEADWAY_ATTEMPT", "HEADWAY_SECRETS", "HEADWAY_MASK"}
    assert set(re.findall(r"\bHEADWAY_[A-Z_]+[A-Z]\b", code)) <= known
