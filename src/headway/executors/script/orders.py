"""What is to be run, and the order that begins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from headway.executors.script.quoting import escaped, quoted
from headway.executors.script.runner import nonce

LONGEST_START = 64 * 1024
"""Bytes of arguments and variables that need no file on their way: a process takes no word of more than 128 KiB."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A script with all that it needs on the far side. Never shown, never logged."""

    script: bytes
    command: Sequence[str]
    """The interpreter and its own arguments; the script's path follows."""
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    secrets: Mapping[str, bytes] = {}
    """By the names of their files."""
    secret_env: Mapping[str, bytes] = {}
    """Environment variables that were asked for although others may see them."""
    files: Mapping[str, bytes] = {}
    """By their names in the run's own directory, where the script starts."""
    cwd: str | None = None
    collect: Sequence[str] = ()

    def __repr__(self) -> str:
        return f"Work({len(self.script)} bytes)"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is, and which earlier ones must not have begun."""

    job: str
    attempt: int
    earlier: Sequence[int] = ()
    again: bool = False
    """Others have held this very attempt, so that it may have begun, or may be about to."""


def begin(work: Work, place: Place, base: str, number: int) -> bytes:
    """The order to begin this run, if it has not begun."""
    mark = nonce()
    parts = b" &&\n".join(_parts(work, place, base, mark))
    call = b"begin %d %s %d %s %s parts" % (
        number,
        quoted(f"{base}/{place.job}"),
        place.attempt,
        quoted(" ".join(map(str, place.earlier))),
        mark.encode(),
    )
    return b"parts() {\n" + parts + b"\n}\n" + call


def run_directory(base: str, job: str, attempt: int) -> str:
    return f"{base}/{job}/{attempt}"


def _parts(work: Work, place: Place, base: str, mark: str) -> list[bytes]:
    """Commands that write down what the run needs. All builtins: nothing of it is ever seen in a list of processes."""
    written = [b'printf %%s %s >"$run/script-%s"' % (quoted(work.script), mark.encode())]
    directories = sorted({name.rpartition("/")[0] for name in work.files} - {""})
    if directories:
        written.append(b"mkdir -p " + b" ".join(b'"$run/work/"' + quoted(name) for name in directories))
    written += [b'put "$run/work/"%s %s' % (quoted(name), escaped(data)) for name, data in work.files.items()]
    if work.secrets or work.secret_env:
        written.append(b"memory %s-%d-%s" % (place.job.encode(), place.attempt, mark.encode()))
        written += [b'put "$vault/"%s %s' % (quoted(name), escaped(data)) for name, data in work.secrets.items()]
    if work.secret_env:
        exports = b"".join(b"export %s=%s\n" % (name.encode(), quoted(data)) for name, data in work.secret_env.items())
        written.append(b'put "$vault/.environment" %s' % escaped(exports))
    start = _start(work, run_directory(base, place.job, place.attempt), place, mark)
    if len(start) > LONGEST_START:
        written.append(b'printf %%s %s >"$run/start-%s"' % (quoted(start), mark.encode()))
        start = b'. "$1/start-$2"'
    return [*written, b"start=" + quoted(start)]


def _start(work: Work, run: str, place: Place, mark: str) -> bytes:
    """What the supervisor is told of this run before all else."""
    env = {"HEADWAY_JOB_ID": place.job, "HEADWAY_ATTEMPT": str(place.attempt), **work.env}
    words = [b"%s=%s" % (name.encode(), quoted(value)) for name, value in env.items()]
    words += [b"exec", *(quoted(word) for word in work.command)]
    words += [quoted(f"{run}/script-{mark}"), *(quoted(word) for word in work.args)]
    return b"\n".join(
        (
            b"headway_cwd=" + _directory(work.cwd, run),
            b"headway_script() {",
            # In a process of its own from the first: what the shell says of its end is no output of the script.
            b"( " + b" ".join(words) + b' </dev/null >"$headway_run/out" 2>"$headway_run/err" 3>&- 4>&- )',
            b"}",
        )
    )


def _directory(cwd: str | None, run: str) -> bytes:
    if cwd is None:
        return quoted(f"{run}/work")
    if cwd == "~" or cwd.startswith("~/"):
        return b'"$HOME"' + quoted(cwd[1:])
    return quoted(cwd)
