"""A real OpenSSH server, started by the tests themselves on a port of its own, with a throw-away user to log in as."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self
from uuid import uuid4

import psutil

from headway.bench.server import free_port, wait_until
from headway.executors.script.hosts import GUARD_EVERY
from headway.model.sealed import Credential
from headway.model.target import Target

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
PidFile none
UsePAM no
PasswordAuthentication yes
PermitRootLogin yes
StrictModes no
AuthorizedKeysFile {directory}/authorized_keys
Subsystem sftp internal-sftp
MaxStartups 100:30:200
UseDNS no
"""


class SshServer:
    """Logs in its user by password and by key; root by key."""

    def __init__(self, shell: str = "/bin/sh") -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="headway-sshd-"))
        self._directory.chmod(0o755)
        self.port = free_port()
        self.user = f"hw{secrets.token_hex(4)}"
        self.password = secrets.token_urlsafe(12)
        self.home = self._directory / "home"
        self._make_user(shell)
        self.host_key = self.new_host_key()
        self.key = self._keygen(self._directory / "user_key")
        self.locked_key = self._keygen(self._directory / "locked_key", "open sesame")
        public = [self._directory / f"{name}.pub" for name in ("user_key", "locked_key")]
        (self._directory / "authorized_keys").write_text("".join(path.read_text() for path in public))
        (self._directory / "sshd_config").write_text(CONFIG.format(port=self.port, directory=self._directory))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def new_host_key(self) -> str:
        """Make another host key; a server that runs shows it after its next start."""
        for old in self._directory.glob("host_key*"):
            old.unlink()
        self._keygen(self._directory / "host_key")
        self.host_key = " ".join((self._directory / "host_key.pub").read_text().split()[:2])
        return self.host_key

    def start(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/usr/sbin/sshd", "-D", "-e", "-f", self._directory / "sshd_config"], stderr=log
            )
        wait_until(self._answers, "sshd to answer")

    def stop(self) -> None:
        """End the server with all its connections, as a crash of it would; what runs there goes on."""
        if self._process is None:
            return
        connections = psutil.Process(self._process.pid).children(recursive=True)
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        for process in connections:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("sshd"):
                    process.kill()
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def target(self, name: str = "box", **changes: object) -> Target:
        fields: dict[str, object] = {
            "id": uuid4(),
            "name": name,
            "host": "127.0.0.1",
            "port": self.port,
            "user": self.user,
            "host_key": self.host_key,
        }
        return Target(**(fields | changes))  # type: ignore[arg-type]

    def root_target(self) -> Target:
        return self.target("rootbox", user="root", directory=f"{self._directory}/root")

    @property
    def by_password(self) -> Credential:
        return Credential(password=self.password)

    @property
    def by_key(self) -> Credential:
        return Credential(private_key=self.key)

    def processes(self) -> list[psutil.Process]:
        """What runs there as its user, the server's own processes left out."""
        uid = pwd.getpwnam(self.user).pw_uid
        return [process for process in _living() if _uid(process) == uid and not _serves(process)]

    def commands(self) -> list[list[str]]:
        """Their command lines."""
        found = []
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(process.cmdline())
        return found

    @property
    def runs(self) -> Path:
        """Where runs leave their directories."""
        return self.home / ".headway" / "runs"

    def place(self) -> Path:
        """An empty directory into which its user and the test may both write."""
        made = Path(tempfile.mkdtemp(dir=self._directory))
        made.chmod(0o777)
        return made

    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def close(self) -> None:
        """Everything that was begun there ends with it, also what was left behind by a test that failed."""
        self.stop()
        kill_runs(self._directory / "root" / "runs")
        uid = pwd.getpwnam(self.user).pw_uid
        while left := [process for process in _living() if _uid(process) == uid]:
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=1)
        subprocess.run(["userdel", "-f", self.user], check=False, capture_output=True)
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_user(self, shell: str) -> None:
        hashed = subprocess.run(
            ["openssl", "passwd", "-6", "-stdin"], input=self.password, text=True, capture_output=True, check=True
        ).stdout.strip()
        subprocess.run(
            ["useradd", "--home-dir", self.home, "--create-home", "--shell", shell, "--password", hashed, self.user],
            check=True,
            capture_output=True,
        )

    def _keygen(self, path: Path, passphrase: str = "") -> str:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return path.read_text()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False


def kill_runs(runs: Path) -> None:
    """End the runs whose directories are here, with all of their sessions."""
    for noted in runs.glob("*/*/begun"):
        leader = int((*noted.read_text().split()[1:2], "0")[0])
        for process in _living():
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                if leader and os.getsid(process.pid) == leader:
                    process.kill()


def _living() -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _uid(process: psutil.Process) -> int | None:
    try:
        return int(process.uids().real)
    except psutil.NoSuchProcess:
        return None


def _serves(process: psutil.Process) -> bool:
    """sshd's own child for the user, and the shells that take our orders."""
    try:
        # The warden sleeps most of the time.
        ours = (["/bin/sh"], ["sh"], ["sleep", f"{GUARD_EVERY:.1f}"])
        return process.name().startswith(("sshd", "sftp-server")) or process.cmdline() in ours
    except psutil.NoSuchProcess:
        return True
