"""Is the work done: workers, leases, cancels, queues, growth?"""

from __future__ import annotations

from headway.cli.checks.contract import Patient
from headway.model.findings import Finding, fine, problem, warning
from headway.model.limits import Retention
from headway.model.overview import QueueStats
from headway.model.words import ago, count, duration, listed, moment

LAPSED_PATIENCE = 15.0
"""Workers look every few seconds; leases that are lapsed for longer are rescued by nobody."""
PRUNE_PATIENCE = 3600.0
"""Old jobs go every few minutes, a good many at a time."""
RETENTION = Retention()


async def workers(patient: Patient) -> list[Finding]:
    found = await patient.store.worker_stats()
    alive = [worker for worker in found if worker.alive and worker.info.queues]
    silent = [worker for worker in found if not worker.alive]
    findings: list[Finding] = []
    if alive:
        slots, held = sum(worker.info.slots for worker in alive), sum(worker.held for worker in alive)
        serve = listed(sorted({queue for worker in alive for queue in worker.info.queues}), 5)
        alive_text = f"{count(len(alive), 'worker')} with {slots:,} slots, {held:,} jobs in hand, serving {serve}"
        findings.append(fine("workers", alive_text))
    else:
        findings.append(warning("workers", "none is alive", "start one: headway worker --app MODULE:APP"))
    for worker in silent:
        process = f"process {worker.info.pid} on {worker.info.host}"
        text = f"{worker.info.name} ({process}) is silent for {duration(worker.silent)}"
        findings.append(warning("workers", text, "see whether the process lives; its jobs are taken back by others"))
    return findings


async def leases(patient: Patient) -> list[Finding]:
    upkeep = await patient.store.upkeep(RETENTION)
    if upkeep.lapsed_for <= LAPSED_PATIENCE:
        return [fine("leases", "none is stale")]
    text = f"{count(upkeep.lapsed, 'lease')} lapsed, the first {duration(upkeep.lapsed_for)} ago: nobody rescues jobs"
    return [problem("leases", text, "start a worker, of whatever queue: every one rescues lost jobs")]


async def cancels(patient: Patient) -> list[Finding]:
    stuck = (await patient.store.upkeep(RETENTION)).stuck
    if not stuck:
        return [fine("cancels", "none waits to be carried out")]
    return [
        warning(
            "cancels",
            f"job {job.job_id} ({job.name}) should be cancelled for {duration(job.seconds)} and runs on {job.worker}",
            "a thread must look at current().cancelled; run such functions with process=True, or restart the worker",
        )
        for job in stuck
    ]


async def queues(patient: Patient) -> list[Finding]:
    """Due jobs that nobody will run."""
    found = await patient.store.queue_stats()
    findings = [_unserved(queue) for queue in found if queue.due and not queue.workers and not queue.settings.paused]
    findings += [_paused(queue) for queue in found if queue.settings.paused]
    return findings or [
        fine("queues", f"every due job is in a queue that a worker serves ({count(len(found), 'queue')})")
    ]


async def growth(patient: Patient) -> list[Finding]:
    """What is kept for how long, and whether old jobs do go."""
    upkeep = await patient.store.upkeep(
        Retention(completed=RETENTION.completed + PRUNE_PATIENCE, failed=RETENTION.failed + PRUNE_PATIENCE)
    )
    limits = await patient.store.limits()
    kept = f"completed jobs are kept {duration(RETENTION.completed)}, failed and cancelled {duration(RETENTION.failed)}"
    apart = [
        name
        for name, queue in limits.queues.items()
        if queue.keep_completed is not None or queue.keep_failed is not None
    ]
    text = f"{kept} by default" + (f", otherwise in {listed(apart)}" if apart else "")
    if upkeep.oldest_created:
        now = await patient.store.now()
        text += f"; the oldest job is of {moment(upkeep.oldest_created)} ({ago(upkeep.oldest_created, now)})"
    if not upkeep.overdue:
        return [fine("retention", text)]
    overdue = f"at least {count(upkeep.overdue, 'job')} should have been removed; {text}"
    return [warning("retention", overdue, "see that a worker runs: it prunes every five minutes")]


def _unserved(queue: QueueStats) -> Finding:
    oldest = duration(queue.oldest_due or 0.0)
    return problem(
        "queues",
        f"{count(queue.due, 'job')} due in the queue {queue.name} for up to {oldest}, and no worker serves it",
        f"start one: headway worker --app MODULE:APP --queue {queue.name}",
    )


def _paused(queue: QueueStats) -> Finding:
    by = f" by {queue.pause.by}" if queue.pause and queue.pause.by else ""
    text = f"the queue {queue.name} is paused{by}, {count(queue.due, 'job')} due in it"
    return warning("queues", text, f"to go on: headway queues resume {queue.name}")
