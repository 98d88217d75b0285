"""What a script's end means for its job."""

from __future__ import annotations

import signal as signals

import msgspec

from headway.executors.contract import Completed, Ending, Failed, TimedOut
from headway.executors.script.link import LinkLost, Unreachable
from headway.model.job import ErrorInfo, failure_of
from headway.model.retry import Failure
from headway.model.target import Step

SCRIPT_FAILED = "ScriptFailed"
"""The error of a script that has ended with an exit code other than 0."""
SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""


class ScriptResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job of kind `script`, whether it succeeded or not."""

    exit_code: int
    signal: str | None = None
    """The signal that ended it; its exit code is then what a shell makes of that."""
    duration: float
    """Seconds, as this attempt saw them."""
    attached: bool = False
    """It was begun by an earlier attempt, or by another worker."""
    artifacts: int = 0

    @classmethod
    def of(cls, code: int, duration: float, *, attached: bool, artifacts: int) -> ScriptResult:
        return cls(
            exit_code=code if code >= 0 else SIGNALLED - code,
            signal=_signal(-code) if code < 0 else None,
            duration=round(duration, 3),
            attached=attached,
            artifacts=artifacts,
        )


def ended(result: ScriptResult) -> Ending:
    """Completed by exit code 0, failed by any other."""
    told = msgspec.json.encode(result)
    if result.exit_code == 0:
        return Completed(told)
    by = f", signal {result.signal}" if result.signal else ""
    message = f"the script ended with exit code {result.exit_code}{by}"
    failure = Failure(type=SCRIPT_FAILED, message=message, exit=result.exit_code)
    return Failed(error=ErrorInfo(SCRIPT_FAILED, message), failure=failure, result=told)


def timed_out(timeout: float, *, begun: bool) -> TimedOut:
    ran = f"the script ran for {timeout:g} s; it was stopped and seen dead"
    waited = f"the script had not begun after {timeout:g} s, and never will"
    return TimedOut(ErrorInfo("TimeoutError", ran if begun else waited))


def unreachable(error: Unreachable | LinkLost) -> Failed:
    """The script never began."""
    step = error.step if isinstance(error, Unreachable) else Step.DIRECTORY
    permanent = isinstance(error, Unreachable) and error.permanent
    told = ErrorInfo("Unreachable", f"{error} (step {step})")
    return Failed(error=told, failure=failure_of(error), permanent=permanent)


def _signal(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        # Of real time, or of another system.
        return f"SIG{number}"
