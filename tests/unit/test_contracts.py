"""The suites as other packages use them."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from headway.contracts import buses, stores

FOREIGN = {
    "conftest.py": 'pytest_plugins = ["headway.contracts.fixtures"]',
    "test_bus.py": """
import pytest
from headway.contracts.buses import *

@pytest.fixture
def bus_url():
    return "local://elsewhere"
""",
    "test_outputs.py": """
import pytest
from headway.contracts.outputs import *
from headway.output.files import from_url
from headway.store import make_store as store_of

@pytest.fixture
def make_store(clock):
    return lambda: store_of("sqlite://", clock)

@pytest.fixture
def outputs(house, tmp_path):
    return from_url(f"file://{tmp_path}/output", house.store)
""",
    "test_store.py": """
import pytest
from headway.contracts.stores import *
from headway.store import make_store as store_of

@pytest.fixture
def make_store(clock, tmp_path):
    return lambda: store_of(f"sqlite:///{tmp_path}/headway.db", clock)
""",
}


@pytest.mark.parametrize("suite", [stores, buses], ids=lambda suite: suite.__name__)
def test_no_test_of_a_suite_hides_another(suite: ModuleType) -> None:
    parts = [import_module(f"{suite.__name__}.{part.name}") for part in pkgutil.iter_modules(suite.__path__)]
    names = [name for part in parts for name in vars(part) if name.startswith("test_")]
    assert len(names) == len(set(names)) > 20
    assert set(names) == {name for name in vars(suite) if name.startswith("test_")}


def test_a_package_runs_them_with_a_few_fixtures_of_its_own(tmp_path: Path) -> None:
    for name, text in FOREIGN.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    some = "test_bus or test_outputs or claim or token"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", some],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
