"""How much a worker grows by what a script prints."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil

from headway import Headway
from tests.sshd import SshServer

WARM = 20_000_000
"""Bytes of a first script: what a worker needs once it has then."""
MOST = 50_000_000
PATIENCE = 600.0


async def grown(sshd: SshServer, directory: Path, size: int) -> tuple[int, int]:
    """By how many bytes a worker in this process grew at most while a script printed so many; how many were kept."""
    app = Headway(f"sqlite:///{directory / 'headway.db'}")
    await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
    async with app.worker():
        warm = await app.asubmit("script", {"target": "box", "script": f"head -c {WARM} /dev/zero"}, name="warm")
        await app.await_ended(warm.id, PATIENCE)
        process = psutil.Process()
        before, most = process.memory_info().rss, 0
        job = await app.asubmit("script", {"target": "box", "script": f"head -c {size} /dev/zero"}, name="big")
        async with asyncio.timeout(PATIENCE):
            while not (await app.aget(job.id)).ended:
                most = max(most, process.memory_info().rss)
                await asyncio.sleep(0.1)
        assert (await app.aget(job.id)).state == "completed"
        kept = len(await app.aoutput(job.id))
    await app.aclose()
    return most - before, kept
