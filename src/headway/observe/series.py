"""Every series that Headway tells of, in one place. `docs/operating.md` explains them; a test compares the two.

The gauges of the second part tell of the whole store. Only schedulers and the API report them, each all of it: read
them with `max by (queue)`, never with `sum`.
"""

from __future__ import annotations

from headway.model.history import BOUNDS as LONG
from headway.observe.metrics import Counter, Gauge, Histogram

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# What this process has done

jobs_submitted = Counter(
    "headway_jobs_submitted_total", "Jobs stored, by submitters and by schedules.", ("kind", "queue")
)
jobs_claimed = Counter("headway_jobs_claimed_total", "Jobs taken by workers.", ("queue",))
jobs_finished = Counter("headway_jobs_finished_total", "Jobs that ended.", ("kind", "queue", "outcome"))
jobs_released = Counter(
    "headway_jobs_released_total", "Jobs that went back to wait: retry, snooze, give_back, parked, lost.",
    ("kind", "queue", "reason"),
)  # fmt: skip
jobs_withdrawn = Counter(
    "headway_jobs_withdrawn_total", "Jobs that ended before they began: cancelled, expired.", ("outcome",)
)
job_wait = Histogram(
    "headway_job_wait_seconds", "From when a job was due until it was claimed.", ("queue",), bounds=LONG
)
job_run = Histogram("headway_job_run_seconds", "How long attempts ran.", ("kind", "queue"), bounds=LONG)
claims = Counter("headway_claims_total", "Claims made, empty ones too.", ("queue",))
leases_lost = Counter("headway_leases_lost_total", "Leases that this worker could not renew in time.")
writes_fenced = Counter("headway_writes_fenced_total", "Ends that were refused because the job was another's by then.")
jobs_rescued = Counter(
    "headway_jobs_rescued_total", "Jobs taken back from workers that went silent.", ("queue", "outcome")
)
batch_size = Histogram("headway_batch_size", "Jobs in one transaction.", ("act",), bounds=SIZES)

occurrences = Counter(
    "headway_occurrences_total",
    "Nominal times: fired, or why not (missed, coalesced, overlap, duplicate, paused, limit, changed, error).",
    ("result",),
)
schedule_lateness = Histogram(
    "headway_schedule_lateness_seconds", "From a nominal time until its job was made.", bounds=LONG
)

store_transaction = Histogram(
    "headway_store_transaction_seconds", "Transactions, with the wait for their connection.", ("lane",), bounds=SHORT
)
store_failures = Counter("headway_store_failures_total", "Transactions that could not be carried out.", ("lane",))
store_connections = Gauge("headway_store_connections", "Open connections to the store.")
store_calls = Gauge(
    "headway_store_calls", "Transactions under way or waiting for the connection of their lane.", ("lane",)
)
bus_connected = Gauge("headway_bus_connected", "Connections to the bus that stand.", ("bus",))
bus_wanted = Gauge("headway_bus_wanted", "Connections to the bus that should stand.", ("bus",))
bus_reconnects = Counter("headway_bus_reconnects_total", "Connections to the bus that were made again.", ("bus",))
bus_messages = Counter(
    "headway_bus_messages_total",
    "Doorbells (rung, heard, refused, dropped_rings), events (emitted, received, dropped_events), what was malformed.",
    ("what",),
)
commands = Counter(
    "headway_commands_total",
    "Commands received, and what became of them: answered, refused, malformed, unanswered, tried_again, put_off.",
    ("what",),
)

worker_slots = Gauge("headway_worker_slots", "How many jobs may run at once.", ("queue",))
worker_slots_used = Gauge("headway_worker_slots_used", "How many jobs run.", ("queue",))
worker_jobs_held = Gauge("headway_worker_jobs_held", "Jobs claimed that run, or are to begin at once.", ("queue",))
heartbeat_age = Gauge(
    "headway_heartbeat_age_seconds", "Since the last sign of life that the store has taken.", ("process",)
)
loop_lag = Histogram("headway_loop_lag_seconds", "How late the event loop came to what was due.", bounds=SHORT)
process_memory = Gauge("headway_process_memory_bytes", "Memory in use (resident).", ("process",))
process_started = Gauge("headway_process_start_time_seconds", "When the process began, in Unix time.", ("process",))
process_restarts = Counter("headway_process_restarts_total", "Worker processes that died and were replaced.")

http_requests = Counter(
    "headway_http_requests_total", "Outgoing requests by status code, or `error` where there was no answer.",
    ("kind", "status"),
)  # fmt: skip
http_request = Histogram("headway_http_request_seconds", "Outgoing requests.", ("kind",), bounds=LONG)
alert_deliveries = Counter(
    "headway_alert_deliveries_total", "Notifications handed to their channel, or refused by it.", ("channel", "result")
)

# What the whole store looks like, told by schedulers and the API

store_up = Gauge("headway_store_up", "Whether the store answered when this page was made.")
queue_jobs = Gauge(
    "headway_queue_jobs", "Jobs that have not ended: due, later, running, cancelling, blocked, on_hold.",
    ("queue", "state"),
)  # fmt: skip
queue_oldest_due = Gauge(
    "headway_queue_oldest_due_seconds", "For how long the first due job has waited.", ("queue",), together=max
)
queue_workers = Gauge("headway_queue_workers", "Workers that serve the queue.", ("queue",))
queue_paused = Gauge("headway_queue_paused", "Whether the queue is paused.", ("queue",), together=max)
schedules = Gauge("headway_schedules", "Schedules: active, inactive.", ("state",))
schedule_late = Gauge("headway_schedule_late_seconds", "For how long the first due schedule has waited.")
schedulers = Gauge("headway_schedulers", "Processes that fire schedules.")
workers = Gauge("headway_workers", "Workers that gave a sign of life.")
worker_heartbeat_age = Gauge(
    "headway_worker_heartbeat_age_seconds", "Since the last sign of life of each worker.", ("worker",)
)

STORE_WIDE = frozenset(
    instrument.name
    for instrument in (
        store_up,
        queue_jobs,
        queue_oldest_due,
        queue_workers,
        queue_paused,
        schedules,
        schedule_late,
        schedulers,
        workers,
        worker_heartbeat_age,
    )
)
"""Told only by those who can see the whole store."""
