"""Kind `call`: functions and methods of the user's own code."""

from __future__ import annotations

import msgspec

from headway.executors.call.executor import CallExecutor, CallSettings
from headway.executors.contract import Setup


def make(setup: Setup) -> CallExecutor:
    """The entry point: an executor for the app's functions."""
    settings = CallSettings(on_stuck=setup.on_stuck)
    if setup.children is not None:
        settings = msgspec.structs.replace(settings, children=setup.children)
    return CallExecutor(
        setup.registry,
        setup.provider,
        app_reference=setup.reference,
        clock=setup.clock,
        settings=settings,
    )


__all__ = ["CallExecutor", "CallSettings", "make"]
