"""FIRE: makes the jobs of schedules when their time has come. Any number of schedulers, no leader."""

from __future__ import annotations

from headway.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
