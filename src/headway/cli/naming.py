"""Jobs by their ids, or by beginnings of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from headway.model.errors import ConfigurationError
from headway.model.job import JobRecord
from headway.store.contract import Store

CANDIDATES = 8
_DIGITS = re.compile(r"[0-9a-fA-F-]+")
_FULL = 32


async def find_job(store: Store, text: str) -> JobRecord:
    """The one job that is meant. Says what is wrong if there is none, or more than one."""
    digits = text.replace("-", "")
    if not _DIGITS.fullmatch(text) or not 0 < len(digits) <= _FULL:
        raise ConfigurationError(f"{text!r} is no id of a job: ids look like 0198c5e2-7a1b-7c3d-9e4f-0123456789ab")
    ids = [UUID(digits)] if len(digits) == _FULL else await store.ids_starting(text, CANDIDATES + 1)
    found = [job for job in (await store.get(ids) if ids else []) if job is not None]
    if not found:
        whole = "there is no job" if len(digits) == _FULL else "there is no job whose id begins with"
        raise ConfigurationError(f"{whole} {text}: it was never accepted, was deleted, or retention removed it")
    if len(found) > 1:
        raise ConfigurationError(f"{text} is the beginning of several ids, write more of it:\n{_listed(found)}")
    return found[0]


async def named_jobs(store: Store, texts: Sequence[str]) -> list[JobRecord]:
    """The jobs that are meant, each once; before anything is done to any of them."""
    return list({job.id: job for job in [await find_job(store, text) for text in texts]}.values())


def _listed(found: Sequence[JobRecord]) -> str:
    lines = [f"  {job.id}  {job.label}  {job.name}" for job in found[:CANDIDATES]]
    return "\n".join(lines + ["  …"] * (len(found) > CANDIDATES))
