"""`headway doctor`: is all well, and if not, how to mend it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.text import Text

from headway import compose
from headway.cli.access import PATIENCE, refuse_missing_file
from headway.cli.checks import CHECKS, Check, Patient
from headway.cli.options import Bus, Json, Store
from headway.cli.shapes import print_json
from headway.cli.tables import console
from headway.clock import SystemClock
from headway.model.errors import HeadwayError, SchemaError
from headway.model.findings import Finding, Level, fine, problem
from headway.model.words import count
from headway.store import make_store
from headway.store.contract import Store as StoreContract

_STYLES = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}


def doctor(store: Store = None, bus: Bus = None, json: Json = False) -> None:
    """Look for what is wrong or will be, and say how to mend it. Status 1 when there is a problem."""
    compose.configure_logs("error", as_json=False)
    findings = asyncio.run(examine(compose.store_url(store), bus))
    worst = Level.PROBLEM in {finding.level for finding in findings}
    if json:
        print_json({"ok": not worst, "findings": findings})
    else:
        print_findings(findings, console())
    sys.exit(1 if worst else 0)


async def examine(url: str, bus: str | None = None) -> list[Finding]:
    """All findings about the installation with this store, and this bus if it is not the one of the settings."""
    refuse_missing_file(url)
    store = make_store(url)
    try:
        findings, opened = await _reach(store)
        named = {"HEADWAY_BUS": bus} if bus else {}
        patient = Patient(url=url, store=store, clock=SystemClock(), environment={**os.environ, **named})
        for name, check in CHECKS.items() if opened else ():
            findings += await _carefully(name, check, patient)
    finally:
        await store.close()
    return findings


def print_findings(findings: Sequence[Finding], out: Console) -> None:
    """A line each, with the way to mend it below."""
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        line = Text.assemble((f"{finding.level:<8}", _STYLES[finding.level]), f"{finding.check:<{width}}  ")
        text = Text(finding.text)
        if finding.mend:
            text.append(f"\n→ {finding.mend}", style="dim")
        out.print(_hanging(line, text, out))
    numbers = [(level, sum(finding.level is level for finding in findings)) for level in (Level.PROBLEM, Level.WARNING)]
    told = [count(number, level.value) for level, number in numbers if number]
    typer.echo(f"\n{' and '.join(told) or 'all is well'}")


def _hanging(head: Text, text: Text, out: Console) -> Text:
    """Behind the head, wrapped, with further lines under the first."""
    indent = len(head)
    lines = text.wrap(out, max(out.width - indent, 20))
    return Text("\n").join([head + lines[0], *(Text(" " * indent) + line for line in lines[1:])])


async def _reach(store: StoreContract) -> tuple[list[Finding], bool]:
    """Whether the store can be opened; if not, nothing else can be said about it."""
    try:
        await store.open(PATIENCE)
    except SchemaError as error:
        return [fine("store", "can be reached"), problem("schema", str(error), "headway migrate")], False
    except HeadwayError as error:
        return [problem("store", str(error), "see the message")], False
    except Exception as error:
        return [problem("store", f"can't be opened: {type(error).__name__}: {error}", "see the message")], False
    return [fine("store", "can be reached"), fine("schema", "fits this version of headway")], True


async def _carefully(name: str, check: Check, patient: Patient) -> list[Finding]:
    try:
        return await check(patient)
    except Exception as error:
        said = str(error) if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
        return [problem(name, f"can't be looked at: {said}", "see the message; the other checks went on")]
