"""Headway: background jobs that are never lost, on SQLite or PostgreSQL.

from headway import Headway

app = Headway("sqlite:///headway.db")

@app.job
async def welcome(user_id: int) -> str: ...

welcome.submit(42)          # or: await welcome.asubmit(42)
"""

from headway.app import Headway
from headway.executors.call.provider import Services
from headway.executors.contract import current
from headway.hooks import Hooks
from headway.jobs import Job
from headway.model.errors import Cancel, Fail, HeadwayError, Snooze
from headway.model.retry import Retry, Rule
from headway.model.submission import Dedupe
from headway.model.when import at, cron, every
from headway.remote import RemoteClient
from headway.schedules import Schedule

__all__ = [
    "Cancel",
    "Dedupe",
    "Fail",
    "Headway",
    "HeadwayError",
    "Hooks",
    "Job",
    "RemoteClient",
    "Retry",
    "Rule",
    "Schedule",
    "Services",
    "Snooze",
    "at",
    "cron",
    "current",
    "every",
]
