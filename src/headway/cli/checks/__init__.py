"""What `headway doctor` looks at, in this order. To add a check, write a function and put it on the list.

A check takes a `Patient` (the opened store, its URL, the environment, a clock) and returns findings. One that raises
becomes a problem of its own, and the others go on.
"""

from __future__ import annotations

from headway.cli.checks.access import audit, first_token, lines
from headway.cli.checks.bus import bus
from headway.cli.checks.contract import Check, Patient
from headway.cli.checks.jobs import cancels, growth, leases, queues, workers
from headway.cli.checks.output import output
from headway.cli.checks.schedules import schedules
from headway.cli.checks.store import clock, engine, write
from headway.cli.checks.vault import vault

__all__ = ["CHECKS", "Check", "Patient"]

CHECKS: dict[str, Check] = {
    "writing": write,
    "clock": clock,
    "engine": engine,
    "growth": growth,
    "workers": workers,
    "leases": leases,
    "cancels": cancels,
    "queues": queues,
    "schedules": schedules,
    "bus": bus,
    "output": output,
    "lines": lines,
    "audit": audit,
    "admin token": first_token,
    "vault": vault,
}
