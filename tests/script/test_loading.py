"""What scripts need is read for all that begin together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
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
from tests.script.far import PATIENCE
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


class Meeting(Counting):
    """Gives neither a job's attachments nor its target before it was asked for both."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._both = asyncio.Barrier(2)

    def __getattr__(self, name: str) -> Any:
        act = super().__getattr__(name)
        if name not in {"attachments", "open_target"}:
            return act

        async def met(*given: Any) -> Any:
            async with asyncio.timeout(PATIENCE):
                await self._both.wait()
            return await act(*given)

        return met


@pytest.fixture
async def app(sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Headway]:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    await app.vault.create_target(sshd.target(), sshd.by_password, by="test")
    yield app
    await app.aclose()


@pytest.fixture
async def store(app: Headway) -> AsyncIterator[Store]:
    store = make_store(app.url)
    yield store
    await store.close()


async def claimed(app: Headway, store: Store, count: int) -> list[Claim]:
    for number in range(count):
        await app.asubmit("script", {"target": "box", "script": f"echo {number}"}, name=f"job {number}")
    want = Want(worker_id=uuid7(), queue="default", limit=count, lease_id=uuid7(), ttl=30.0)
    return (await store.claim(want)).claims


def loader(app: Headway, store: Counting) -> Loader:
    return Loader(Vault(Direct(cast(Store, store)), app.vault._source), local=False)


@pytest.mark.parametrize("count", [1, MANY])
async def test_scripts_that_begin_together_ask_the_store_as_often_as_one(
    app: Headway, store: Store, count: int
) -> None:
    counting = Counting(store)
    past, load = StoredPast(cast(Store, counting)), loader(app, counting)

    async def begin(claim: Claim) -> bytes:
        before = await past(claim)
        task = await load(claim, before.since)
        assert await past.note(claim, task.access.place)
        return task.work.script

    scripts = await asyncio.gather(*map(begin, await claimed(app, store, count)))
    assert sorted(scripts) == sorted(b"echo %d" % number for number in range(count))
    assert dict(counting.calls) == {
        "get": 1,
        "attachments": 1,
        "open_attachments": 1,
        "open_target": 1,
        "note": 1,
    }


async def test_a_script_and_its_target_are_looked_up_at_the_same_time(app: Headway, store: Store) -> None:
    [claim] = await claimed(app, store, 1)
    task = await loader(app, Meeting(store))(claim)
    assert (task.work.script, task.access.target.name) == (b"echo 0", "box")
