"""What the bench of scripts measures, it sees whole."""

from __future__ import annotations

from pathlib import Path

import msgspec

from headway.bench import scripts
from headway.bench.child import Parent
from headway.bench.server import free_port
from tests.flow.conftest import migrate
from tests.sshd import SshServer


class Slow(Parent):
    """Begins to read when the job has long ended."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._job = ""
        self.seen: list[float] = []

    def say(self, word: str) -> None:
        self._job = msgspec.json.decode(word)

    async def go(self) -> None:
        """It may begin at once."""

    async def hear(self) -> str:
        self.seen = [printed async for _, printed in scripts._lines(self._port, self._job)]
        return "seen"


async def test_the_service_stays_until_all_lines_were_read(sshd: SshServer, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'headway.db'}"
    await migrate(url)
    parent = Slow(free_port())
    place = {
        "port": sshd.port,
        "user": sshd.user,
        "host_key": sshd.host_key,
        "key": sshd.by_key.private_key,
        "directory": "~/.headway",
        "api": parent._port,
    }
    await scripts.serve(parent, url=url, data=str(tmp_path), place=place, count=3)
    assert len(parent.seen) == 3
