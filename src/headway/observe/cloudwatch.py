"""How far behind the workers are, as lines that CloudWatch makes metrics of (its embedded metric format).

The names are those by which the stack in `deploy/aws` scales workers and raises alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from headway.model.overview import QueueStats, WorkerStats

SWITCH = "HEADWAY_CLOUDWATCH"
"""The variable that makes schedulers write such lines."""
NAMESPACE = "Headway"
BACKLOG = "Backlog"
BACKLOG_PER_WORKER = "BacklogPerWorker"
OLDEST_DUE = "OldestDueSeconds"
WORKERS = "Workers"

_UNITS = {BACKLOG: "Count", BACKLOG_PER_WORKER: "Count", OLDEST_DUE: "Seconds", WORKERS: "Count"}
_DIRECTIVE = {
    "Namespace": NAMESPACE,
    "Dimensions": [[]],
    "Metrics": [{"Name": name, "Unit": unit} for name, unit in _UNITS.items()],
}


def line(queues: Sequence[QueueStats], workers: Sequence[WorkerStats], now: datetime) -> str:
    """One line for this moment. Paused queues don't count: more workers would not help them."""
    going = [queue for queue in queues if not queue.settings.paused]
    backlog = sum(queue.due for queue in going)
    serving = sum(1 for worker in workers if worker.alive and worker.info.queues)
    told = {
        BACKLOG: backlog,
        BACKLOG_PER_WORKER: backlog / max(1, serving),
        OLDEST_DUE: max((queue.oldest_due or 0.0 for queue in going), default=0.0),
        WORKERS: serving,
    }
    milliseconds = int(now.timestamp() * 1000)
    return msgspec.json.encode(
        {"_aws": {"Timestamp": milliseconds, "CloudWatchMetrics": [_DIRECTIVE]}, **told}
    ).decode()
