"""`headway up` as a process, with jobs of many sorts to run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.flow.processes import Process, Processes
from tests.flow.waiting import block_until

TOKEN = "the-administrators-token-of-the-browser-tests"
PATIENCE = 60.0
_ADDRESS = re.compile(r"the API of \S+ at (http://\S+)")
_LINK = re.compile(r"(http://\S+#\S+)")

JOBS = '''
import asyncio, logging
from pathlib import Path

from headway import Headway, current

app = Headway({url!r})
log = logging.getLogger("headway.job.test")


@app.job(name="greet")
async def greet(name: str, times: int = 1, loud: bool = False) -> dict[str, str]:
    """Says hello."""
    log.info("hello %s", name)
    return {{"greeting": ("HELLO " if loud else "hello ") + name * times}}


@app.job(name="breaks")
async def breaks(reason: str) -> None:
    raise RuntimeError(f"it broke: {{reason}}")


@app.job(name="hostile")
async def hostile() -> dict[str, str]:
    evil = "<img src=x onerror=\\"window.hacked=1\\"><script>window.hacked=2</script>"
    log.info("%s", evil)
    log.info("\\x1b[31mred\\x1b[0m \\x1b]8;;javascript:window.hacked=3\\x07link\\x1b]8;;\\x07 \\x1b]0;title\\x07 end")
    return {{"html": evil}}


@app.job(name="creeps")
async def creeps(first: str, second: str) -> None:
    for step, gate in enumerate((first, second), 1):
        current().progress(step, 4, f"part {{step}}")
        while not Path(gate).exists():
            await asyncio.sleep(0.1)


@app.job(name="slow")
async def slow(steps: int) -> int:
    for step in range(steps):
        log.info("step %s", step)
        await asyncio.sleep(0.2)
    return steps
'''


class House:
    """A service of its own: its processes, its store, its directory."""

    def __init__(self, directory: Path, store: str, *flags: str, **variables: str) -> None:
        self._directory = directory
        self._processes = Processes(directory)
        self._flags = flags
        self._variables = {"HEADWAY_DATA": str(directory), **variables}
        if "--app" in flags:
            (directory / "jobs.py").write_text(JOBS.format(url=store))
        else:
            self._variables["HEADWAY_STORE"] = store
        self.port = "0"
        self.process: Process
        self.url = ""

    def start(self) -> None:
        """Returns when it answers. It comes back to the port that it had."""
        self.process = self._processes.headway(
            "up", *self._flags, "--log-level", "warning", HEADWAY_PORT=self.port, **self._variables
        )
        block_until(lambda: _ADDRESS.search(self.text()), "the address", PATIENCE)
        found = _ADDRESS.search(self.text())
        assert found is not None
        self.url = found.group(1)
        self.port = self.url.rpartition(":")[2]

    def stop(self) -> None:
        self.process.stop()

    def link(self) -> str:
        """The login link that it printed."""
        found = block_until(lambda: _LINK.search(self.text()), "the link", PATIENCE)
        return str(found.group(1))

    def text(self) -> str:
        assert self.process.running, self.process.text()
        return self.process.text()

    def close(self) -> None:
        self._processes.__exit__()
