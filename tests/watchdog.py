"""The last resort against a test that hangs: pytest-timeout's alarm is an exception, which code that swallows
exceptions, or that never comes back from C, doesn't hear. Some time after the alarm the process writes the stacks of
all its threads and ends; xdist counts the test as failed and goes on in a new process.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator

import pytest

GRACE = 60.0
"""Seconds between the alarm and the end."""


class Watchdog:
    """A plugin of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        # What is written to the standard error while a test runs would be lost with the process.
        with capture.global_and_fixture_disabled():
            self._stderr = os.dup(2)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if limit := _limit(item):
            faulthandler.dump_traceback_later(limit + GRACE, exit=True, file=self._stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def _limit(item: pytest.Item) -> float:
    """The seconds that pytest-timeout gives this test; 0 for as long as it takes."""
    if marker := item.get_closest_marker("timeout"):
        return float(marker.args[0])
    given = item.config.getoption("timeout")
    return float(item.config.getini("timeout") if given is None else given)
