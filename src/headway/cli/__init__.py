"""The command line: one file per command group, each command a few lines over the app."""

from __future__ import annotations

import sys

import typer

from headway.cli.tree import Branch, grow
from headway.model.errors import HeadwayError

TREE = Branch(
    "Background jobs that are never lost.",
    {
        "up": "up.up",
        "api": "api.api",
        "submit": "submit.submit",
        "worker": "worker.worker",
        "scheduler": "scheduler.scheduler",
        "demo": "worker.demo",
        "migrate": "store.migrate",
        "functions": "store.functions",
        "check": "store.check",
        "workers": "queues.workers",
        "doctor": "doctor.doctor",
        "bench": "bench.bench",
        "audit": "audit.audit",
        "login-link": "people.login_link",
        "jobs": Branch(
            "Look at jobs and change them.",
            {
                "list": "jobs.list_jobs",
                "show": "jobs.show",
                "why": "jobs.why",
                "output": "jobs.output",
                "artifacts": "artifacts.artifacts",
                "cancel": "acts.cancel",
                "retry": "acts.retry",
                "release": "acts.release",
                "delete": "acts.delete",
            },
        ),
        "users": Branch(
            "Look at users, make and change them.",
            {
                "list": "people.list_users",
                "create": "people.create",
                "change": "people.change",
                "delete": "people.delete",
            },
        ),
        "tokens": Branch(
            "Look at tokens, make them, take them back.",
            {
                "list": "people.list_tokens",
                "create": "people.create_token",
                "delete": "people.delete_token",
            },
        ),
        "queues": Branch(
            "Look at queues, pause them, set their limits.",
            {
                "list": "queues.list_queues",
                "pause": "queues.pause",
                "resume": "queues.resume",
                "set": "queues.set_queue",
            },
        ),
        "schedules": Branch(
            "Look at schedules, make and change them.",
            {
                "list": "schedules.list_schedules",
                "show": "schedules.show",
                "create": "planning.create",
                "preview": "schedules.preview",
                "occurrences": "schedules.occurrences",
                "pause": "planning.pause",
                "resume": "planning.resume",
                "run": "planning.run",
                "delete": "planning.delete",
            },
        ),
        "secrets": Branch(
            "Keep secrets that jobs use by name.",
            {
                "set": "secrets.set_secret",
                "list": "secrets.list_secrets",
                "delete": "secrets.delete",
                "rotate": "secrets.rotate",
                "key": "secrets.key",
            },
        ),
        "targets": Branch(
            "Keep servers that scripts run on.",
            {
                "list": "targets.list_targets",
                "show": "targets.show",
                "create": "targets.create",
                "set": "targets.change",
                "trust": "targets.trust",
                "probe": "targets.probe",
                "delete": "targets.delete",
            },
        ),
        "alerts": Branch(
            "Rules for telling people that something is wrong.",
            {
                "list": "alerts.list_rules",
                "show": "alerts.show",
                "create": "alerts.create",
                "delete": "alerts.delete",
                "test": "alerts.try_out",
                "messages": "alerts.messages",
            },
        ),
    },
)
"""Every command, with the function that carries it out: `module.function` of this package."""


def main() -> None:
    """The `headway` command. What goes wrong is said in one sentence; 2 is the status of a wrong setting."""
    try:
        grow(TREE)()
    except HeadwayError as error:
        typer.secho(f"headway: {error}", err=True, fg="red")
        sys.exit(2)
