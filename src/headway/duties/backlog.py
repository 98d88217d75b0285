"""Tells CloudWatch once a minute how far behind the workers are; of several schedulers one does it."""

from __future__ import annotations

import sys
from typing import TextIO
from uuid import UUID

from headway.clock import Clock, sleep
from headway.model.errors import StoreUnavailable
from headway.observe import cloudwatch
from headway.observe.logs import get_logger
from headway.store.contract import Store

EVERY = 60.0

log = get_logger("headway.duties")


async def tell(store: Store, holder: UUID, clock: Clock, out: TextIO | None = None) -> None:
    """Until cancelled. The lines go to standard output; those of the log go to standard error."""
    while True:
        try:
            if await store.take_duty("backlog", holder, EVERY):
                told = cloudwatch.line(await store.queue_stats(), await store.worker_stats(), await store.now())
                print(told, file=out or sys.stdout, flush=True)
        except StoreUnavailable as error:
            log.warning("duties.backlog_untold", error=str(error))
        except Exception:
            log.exception("duties.backlog_untold")
        await sleep(clock, EVERY)
