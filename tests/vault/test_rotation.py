"""The key is changed while others work, is interrupted anywhere, and goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headway.model.errors import ConfigurationError, VaultLocked
from headway.settings import Settings
from headway.store import make_store
from headway.store.contract import Store
from headway.vault.envelope import Key
from headway.vault.keys import FILE, Keys, encode
from headway.vault.rotation import rotate
from headway.vault.source import KeySource
from headway.vault.vault import Direct, Vault

COUNT = 40


class Safe:
    """A vault with some secrets in it."""

    def __init__(self, store: Store, url: str, directory: Path, given: str | None = None) -> None:
        self.store = store
        self.url = url
        self.directory = directory
        self.source = KeySource(url, Settings(data=str(directory), secret_key=given))
        self.vault = Vault(Direct(store), self.source)

    def anew(self, given: str | None = None) -> Safe:
        """As another process sees it."""
        return Safe(self.store, self.url, self.directory, given)

    async def fill(self, count: int = COUNT) -> None:
        for number in range(count):
            await self.vault.set_secret(f"s{number}", f"secret number {number}".encode(), by=None)

    async def readable(self, count: int = COUNT) -> None:
        for number in range(count):
            assert await self.vault.reveal(f"s{number}") == f"secret number {number}".encode()

    async def keys_in_use(self) -> list[str]:
        return [key.id for key in await self.store.vault_keys() if key.uses]


@asynccontextmanager
async def opened(url: str, directory: Path) -> AsyncIterator[Safe]:
    store = make_store(url)
    await store.migrate()
    await store.open()
    try:
        yield Safe(store, url, directory)
    finally:
        await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def safe(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Safe]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if postgres else f"sqlite:///{tmp_path / 'headway.db'}"
    async with opened(url, tmp_path / "data") as made:
        yield made


async def test_everything_is_readable_after_the_change_and_only_by_the_new_key(safe: Safe) -> None:
    await safe.fill()
    old = safe.source.keys.first()
    assert old is not None
    done = await rotate(safe.store, safe.anew().source)
    assert (done.rewrapped, done.retired, done.resumed) == (COUNT, (old.id,), False)
    await safe.readable()
    assert await safe.keys_in_use() == [done.key_id]
    assert list(Keys(None, safe.directory).ring()) == [done.key_id]
    with pytest.raises(VaultLocked):
        await safe.anew(encode(old)).vault.reveal("s0")
    assert (await rotate(safe.store, safe.anew().source)).retired == (done.key_id,)
    await safe.anew().readable()


async def test_those_who_work_meanwhile_notice_nothing(safe: Safe) -> None:
    """A process that has read its key long ago goes on to read and to write."""
    await safe.fill()
    over = asyncio.Event()

    async def work() -> int:
        turns = 0
        while not over.is_set() or not turns:
            await safe.vault.set_secret(f"w{turns % 5}", f"written {turns}".encode(), by=None)
            assert await safe.vault.reveal(f"w{turns % 5}") == f"written {turns}".encode()
            turns += 1
        return turns

    working = asyncio.create_task(work())
    for _ in range(3):
        await rotate(safe.store, safe.anew().source)
    over.set()
    assert await working
    await safe.readable()
    assert len(await safe.keys_in_use()) == 1


async def test_the_key_of_the_variable_is_changed_by_putting_another_before_it(safe: Safe) -> None:
    old, new = Key.fresh(), Key.fresh()
    before = safe.anew(encode(old))
    await before.fill(3)
    with pytest.raises(ConfigurationError, match="put a new one"):
        await rotate(safe.store, before.source)
    both = safe.anew(f"{encode(new)},{encode(old)}")
    await both.vault.set_secret("s3", b"secret number 3", by=None)
    await both.readable(4)
    assert await safe.keys_in_use() == [old.id]
    assert (await rotate(safe.store, both.source)).rewrapped == 4
    assert (await rotate(safe.store, both.source)).rewrapped == 0
    await safe.anew(encode(new)).readable(4)
    assert not (safe.directory / FILE).exists()


async def test_what_is_sealed_with_a_lost_key_stops_the_change_and_nothing_is_lost(safe: Safe) -> None:
    lost, held = Key.fresh(), Key.fresh()
    await safe.anew(encode(lost)).fill(1)
    both = safe.anew(f"{encode(held)},{encode(lost)}")
    await both.vault.reveal("s0")
    with pytest.raises(VaultLocked, match=lost.id):
        await rotate(safe.store, safe.anew(f"{encode(held)}").source)
    await both.readable(1)


KILLED = """
import asyncio, os, signal, sys
from headway.settings import Settings
from headway.store import make_store
from headway.vault import rotation
from headway.vault.keys import Keys
from headway.vault.source import KeySource

url, directory, where, step = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
rotation.STEP = 7

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    store = make_store(url)
    await store.open()
    calls = 0

    def dies(holder, name, at):
        act = getattr(holder, name)
        async def counted(*args, **more):
            nonlocal calls
            if calls == at:
                die()
            calls += 1
            return await act(*args, **more)
        setattr(holder, name, counted)

    if where == "file":
        replace = Keys.replace
        def counted(self, keys):
            nonlocal calls
            if calls == step:
                self._write_part(keys)
                die()
            calls += 1
            replace(self, keys)
        Keys.replace = counted
    else:
        dies(store, where, step)
    await rotation.rotate(store, KeySource(url, Settings(data=directory)))

asyncio.run(main())
"""
POINTS = [
    ("file", 0),
    ("change_key", 0),
    ("rewrap", 3),
    ("retire_keys", 0),
    ("file", 1),
]


async def test_a_change_that_is_killed_anywhere_is_gone_on_with(safe: Safe) -> None:
    """By kill -9, at every step between two that belong together."""
    await safe.fill()
    for where, step in POINTS if safe.url.startswith("sqlite") else POINTS[1:3] + POINTS[-1:]:
        before = await safe.keys_in_use()
        run = await asyncio.to_thread(_killed, safe, where, step)
        assert run == -signal.SIGKILL, (where, step)
        await safe.readable()
        await safe.anew().readable()
        await safe.vault.set_secret("s0", b"secret number 0", by=None)
        done = await rotate(safe.store, safe.anew().source)
        assert done.resumed is (where != "file" or step == 1), (where, step)
        assert await safe.keys_in_use() == [done.key_id] != before
        assert list(Keys(None, safe.directory).ring()) == [done.key_id]
        assert sorted(each.name for each in safe.directory.iterdir()) == [FILE, f"{FILE}.lock"]
        await safe.anew().readable()


def _killed(safe: Safe, where: str, step: int) -> int:
    command = [sys.executable, "-c", KILLED, safe.url, str(safe.directory), where, str(step)]
    return subprocess.run(command, check=False, timeout=60).returncode


async def test_two_cant_change_the_key_at_once(safe: Safe, monkeypatch: pytest.MonkeyPatch) -> None:
    await safe.fill(1)

    async def meanwhile() -> object:
        monkeypatch.undo()
        with pytest.raises(ConfigurationError, match="another process"):
            await rotate(safe.store, safe.anew().source)
        return await safe.store.current_key()

    monkeypatch.setattr(safe.store, "current_key", meanwhile)
    assert (await rotate(safe.store, safe.source)).rewrapped == 1
