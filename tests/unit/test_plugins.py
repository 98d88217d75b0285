"""Stores, buses and places for output, found by the schemes of their URLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import plugins
from headway.bus import BUSES, make_bus
from headway.bus.local import LocalBus
from headway.model.errors import ConfigurationError
from headway.output import OUTPUTS
from headway.plugins import Seam, redacted
from headway.store import STORES

SEAMS = {"bus": BUSES, "store": STORES, "place for output": OUTPUTS}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a bus that works, and one whose library is missing."""
    info = tmp_path / "headway_pigeon-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headway-pigeon\nVersion: 1.0\n")
    points = "[headway.buses]\npigeon = headway.bus.local:from_terms\nraven = headway_raven:from_terms\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()


@pytest.mark.usefixtures("package")
def test_a_package_adds_a_bus_by_the_scheme_of_its_url() -> None:
    assert isinstance(make_bus("pigeon://loft"), LocalBus)
    with pytest.raises(
        ConfigurationError, match=r"'gull://x' is no bus: use local://.*installed: .*pigeon://, .*raven://"
    ):
        make_bus("gull://x")


@pytest.mark.usefixtures("package")
def test_a_package_whose_library_is_missing_says_which() -> None:
    with pytest.raises(ConfigurationError, match=r"the bus raven:// needs the package 'headway_raven'"):
        make_bus("raven://x")


@pytest.mark.parametrize(("what", "seam"), SEAMS.items())
def test_a_url_of_no_known_scheme_is_refused_without_its_password(what: str, seam: Seam) -> None:
    for url, shown in {"gull://ann:secret@x?key=secret": "gull://ann:***@x", "nonsense": "nonsense"}.items():
        with pytest.raises(ConfigurationError) as refusal:
            seam.maker(url)
        assert str(refusal.value).startswith(f"{shown!r} is no {what}: ")
        assert "secret" not in str(refusal.value)


def test_an_address_is_shown_without_what_opens_it() -> None:
    assert redacted("amqp://ann:pw@host:5672/v?password=pw") == "amqp://ann:***@host:5672/v"
    assert redacted("postgresql://ann@host/db?sslmode=require") == "postgresql://ann@host/db"
    assert redacted("sqlite:///headway.db") == "sqlite:///headway.db"
