"""What scripts need is read for all that begin together."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from uuid_utils.compat import uuid7

from headway import Headway
from headway.executors.script.loading import Loader, StoredPast
from headway.model.job import Claim
from headway.store import make_store
from headway.store.contract import Store
from headway.store.scripts.work import Want
from headway.vault.vault import Direct, Vault
from tests.sshd import SshServer

MANY = 30


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._store, name)


@pytest.mark.parametrize("count", [1, MANY])
async def test_scripts_that_begin_together_ask_the_store_as_often_as_one(
    sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    await app.vault.create_target(sshd.target(), sshd.by_password, by="test")
    for number in range(count):
        await app.asubmit("script", {"target": "box", "script": f"echo {number}"}, name=f"job {number}")
    store = make_store(app.url)
    counting = Counting(store)
    past = StoredPast(cast(Store, counting))
    load = Loader(Vault(Direct(cast(Store, counting)), app.vault._source), local=False)

    async def begin(claim: Claim) -> bytes:
        before = await past(claim)
        task = await load(claim, before.since)
        assert await past.note(claim, task.access.place)
        return task.work.script

    want = Want(worker_id=uuid7(), queue="default", limit=count, lease_id=uuid7(), ttl=30.0)
    claims = (await store.claim(want)).claims
    scripts = await asyncio.gather(*map(begin, claims))
    assert sorted(scripts) == sorted(b"echo %d" % number for number in range(count))
    assert dict(counting.calls) == {
        "get": 1,
        "attachments": 1,
        "open_attachments": 1,
        "open_target": 1,
        "note": 1,
    }
    await store.close()
    await app.aclose()
