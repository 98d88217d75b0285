"""An OpenSSH server of our own, in a temporary directory, on a free loopback port, for one normal user.

Started by root it has a throw-away user, as no script should be measured as root; started by anybody else it is their
own. When its owner ends, however that happens, a guard (this module, run as a program) ends the server, what runs as
the throw-away user, and removes both. Every call blocks.
"""

from __future__ import annotations

import getpass
import os
import pwd
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
from headway.model.errors import ConfigurationError, HeadwayError

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
PidFile {directory}/pid
UsePAM no
PasswordAuthentication no
StrictModes no
AuthorizedKeysFile {directory}/user_key.pub
Subsystem sftp internal-sftp
UseDNS no
"""
PREFIX = "hwb"


class PrivateSshd:
    """A private server: started on construction, gone without a trace after `close`."""

    def __init__(self) -> None:
        self._program = find_sshd()
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="headway-sshd-", dir="/tmp"))
        # Its user reads the public key, and works below.
        self.directory.chmod(0o755)
        self._guard = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-P", "-m", "headway.bench.sshd", str(self.directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.user = self._user()
            self.host_key = " ".join(self._keygen("host_key").split()[:2])
            self._keygen("user_key")
            self.key = (self.directory / "user_key").read_text()
            self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._guard.communicate(timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> Path:
        """Where scripts may leave their directories."""
        return self.directory / "home" / "runs"

    def _user(self) -> str:
        home = self.directory / "home"
        if os.geteuid() != 0:
            home.mkdir()
            return getpass.getuser()
        user = f"{PREFIX}{secrets.token_hex(4)}"
        (self.directory / "user").write_text(user)
        _run("useradd", "--home-dir", str(home), "--create-home", "--shell", "/bin/sh", "--password", "*", user)
        return user

    def _keygen(self, name: str) -> str:
        path = self.directory / name
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path))
        return path.with_name(f"{name}.pub").read_text()

    def _start(self) -> None:
        configuration = self.directory / "sshd_config"
        configuration.write_text(CONFIG.format(port=self.port, directory=self.directory))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the program that `find_sshd` has found
                [self._program, "-D", "-e", "-f", str(configuration)], stderr=log, start_new_session=True
            )
        wait_until(self._answers, "sshd to answer")

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise ConfigurationError(f"sshd did not start: {(self.directory / 'log').read_text(errors='replace')}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as line:
            return line.recv(4) == b"SSH-"
        return False


def find_sshd() -> str:
    """The server's program: it insists on being started by its whole path."""
    found = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or shutil.which("sshd")
    if found is None or shutil.which("ssh-keygen") is None:
        raise ConfigurationError("OpenSSH is not installed (Debian, Ubuntu: apt-get install openssh-server)")
    return found


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)  # noqa: S603 - fixed words
    except FileNotFoundError:
        raise ConfigurationError(f"{command[0]} is not installed: a server of our own needs it") from None
    except subprocess.CalledProcessError as error:
        raise HeadwayError(f"{command[0]} failed: {error.stderr.decode(errors='replace')}") from error


def guard(directory: Path) -> None:
    """Wait until the owner closes our standard input, if only by dying; then remove all that was the server's."""
    sys.stdin.read()
    with suppress(OSError, ValueError):
        pid = int((directory / "pid").read_text())
        # The file outlives a killed server, and its number may belong to a stranger by now.
        if str(directory) in command_of(pid):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not command_of(pid), "sshd to end")
    with suppress(OSError, KeyError):
        user = (directory / "user").read_text()
        uid = pwd.getpwnam(user).pw_uid
        wait_until(lambda: not _end_all(uid), "what runs as the user to end")
        _run("userdel", "-f", user)
    shutil.rmtree(directory, ignore_errors=True)


def _end_all(uid: int) -> int:
    """Kill whatever runs as this user; how many there were."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid == uid and " Z " not in (process / "stat").read_text():
                os.kill(int(process.name), signal.SIGKILL)
                found += 1
    return found


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
