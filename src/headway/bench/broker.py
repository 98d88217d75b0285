"""A RabbitMQ broker of our own, in a temporary directory, on free loopback ports.

It touches nothing of any other on the machine: it has its own ports, node name, cookie, data, and its own epmd,
Erlang's register of nodes, which a broker would otherwise start for itself and leave behind. When its owner ends,
however that happens, a guard (this module, run as a program) ends both and removes their files. Every call blocks.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from headway.bench.guard import command_of
from headway.bench.server import PATIENCE, free_port, wait_until
from headway.bus.contract import BusUnavailable
from headway.model.errors import ConfigurationError

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
"""Where Debian keeps them: those on the path are wrappers that change the user."""
GREETING = b"AMQP\x00\x00\x09\x01"
"""How a client of AMQP 0-9-1 begins; a broker that has come up answers it."""


class PrivateRabbit:
    """A private broker: started on construction, gone without a trace after `close`."""

    def __init__(self) -> None:
        self._program = find_rabbitmq()
        self.port, self._epmd_port, self._distribution_port = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self.directory = Path(tempfile.mkdtemp(prefix="headway-rabbit-", dir="/tmp"))
        self._data = self.directory / "data"
        self._output = self.directory / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self._environment = self._configure()
        self._guard = subprocess.Popen(  # noqa: S603 - our own script
            # Not by its path: the files beside this one would stand in for modules of the same names.
            [sys.executable, "-P", "-m", "headway.bench.broker", str(self.directory), str(self._epmd_port)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            # Before the broker, or it would start one that nobody ends.
            wait_until(lambda: answers(self._epmd_port), "epmd to answer")
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the broker and return when it takes connections."""
        if self.running:
            return
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the program that `find_rabbitmq` has found
                [self._program],
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_until(self._takes_connections, "RabbitMQ to take connections")

    def stop(self) -> None:
        """As an administrator would."""
        if self._process is not None and self.running:
            self._process.terminate()
            self._process.wait(PATIENCE)

    def kill(self) -> None:
        """As a power cut would, as far as the broker can tell."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(PATIENCE)

    def close(self) -> None:
        self.kill()
        self._guard.communicate(timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _configure(self) -> dict[str, str]:
        plugins, configuration = self.directory / "enabled_plugins", self.directory / "rabbitmq.conf"
        plugins.write_text("[].\n")
        configuration.write_text(f"listeners.tcp.1 = 127.0.0.1:{self.port}\n")
        # Nothing that was set for another broker may reach this one.
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("RABBITMQ_", "ERL_"))}
        return clean | {
            "HOME": str(self.directory),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"headway-{secrets.token_hex(4)}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self._data),
            "RABBITMQ_LOG_BASE": str(self.directory / "log"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(configuration),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
            # Without a shell in between that would have to be killed along with it.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _takes_connections(self) -> bool:
        if not self.running:
            raise BusUnavailable(f"RabbitMQ did not start: {self._output.read_text(errors='replace')[-2000:]}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
            line.sendall(GREETING)
            return bool(line.recv(1))
        return False


def find_rabbitmq() -> str:
    """The script that starts a broker as whoever calls it."""
    found = shutil.which("rabbitmq-server", path=str(SCRIPTS)) or shutil.which("rabbitmq-server")
    if found is None:
        raise ConfigurationError("RabbitMQ is not installed (Debian, Ubuntu: apt-get install rabbitmq-server)")
    return found


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def guard(directory: Path, epmd_port: int) -> None:
    """Run epmd until the owner closes our standard input, if only by dying; then remove all that was the broker's."""
    with (directory / "epmd").open("wb") as output:
        epmd = subprocess.Popen(  # noqa: S603 - fixed words and a number
            ["epmd", "-port", str(epmd_port), "-address", "127.0.0.1"],  # noqa: S607 - wherever Erlang is
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    sys.stdin.read()
    with suppress(OSError, ValueError):
        pid = int((directory / "pid").read_text())
        # The file outlives a killed broker, and its number may belong to a stranger by now.
        if str(directory) in command_of(pid):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not command_of(pid), "the broker to end")
    epmd.kill()
    epmd.wait()
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    guard(Path(sys.argv[1]), int(sys.argv[2]))
