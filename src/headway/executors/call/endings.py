"""How a call ended, in the contract's words: exceptions stop here and become values."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from headway.executors.call.arguments import UnstorableResult
from headway.executors.contract import Cancelled, Ending, Failed, Snoozed, TimedOut
from headway.model.errors import Cancel, Fail, InvalidJob, Snooze
from headway.model.job import ErrorInfo, error_info, failure_of
from headway.model.retry import Failure

_OURS = str(Path(__file__).parent)
_TRACEBACK_LIMIT = 16 * 1024
_MESSAGE_LIMIT = 4 * 1024


def ending_of(error: BaseException) -> Ending:
    """What an exception raised by a job means for it."""
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Cancel():
            return Cancelled(_text(error) or "the job ended itself")
        case Fail() | UnstorableResult():
            return failed(error, permanent=True)
        case _:
            return failed(error)


def failed(error: BaseException, *, permanent: bool = False) -> Failed:
    """The attempt failed by this exception."""
    return Failed(error=described(error), failure=_failure(error), permanent=permanent)


def refused(error: InvalidJob) -> Failed:
    """The payload can't be understood: another attempt would not understand it either."""
    return Failed(error=error_info(error), failure=failure_of(error), permanent=True)


def timed_out(seconds: float) -> TimedOut:
    """The job's time was over."""
    return TimedOut(ErrorInfo("TimeoutError", f"the job was stopped: it did not end within {seconds:g} s"))


def described(error: BaseException) -> ErrorInfo:
    """An exception with its traceback, which begins at the user's code."""
    shown = traceback.TracebackException(type(error), error, _users_part(error.__traceback__))
    message = _clean(_text(error)) or type(error).__qualname__
    return ErrorInfo(type(error).__qualname__, _middle_cut(message, _MESSAGE_LIMIT), _traceback_text(shown))


def _traceback_text(shown: traceback.TracebackException) -> str:
    return _middle_cut(_clean("".join(shown.format())), _TRACEBACK_LIMIT)


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    user = trace
    while user is not None and user.tb_frame.f_code.co_filename.startswith(_OURS):
        user = user.tb_next
    return user


def _failure(error: BaseException) -> Failure:
    try:
        failure = failure_of(error)
    except Exception:  # an exception may have a broken __str__ or property: it is still a failure
        return Failure(type=type(error).__qualname__, message=_text(error))
    return Failure(
        type=failure.type,
        bases=failure.bases,
        message=_middle_cut(_clean(failure.message), _MESSAGE_LIMIT),
        status=_number(failure.status),
        exit=_number(failure.exit),
    )


def _number(value: object) -> int | None:
    # Any exception may have an attribute of that name that means something else.
    return value if isinstance(value, int) else None


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a broken __str__ must not turn a failure into a crash of ours
        return f"a {type(error).__qualname__} whose text can't be shown"


def _clean(text: str) -> str:
    """Text that can be stored: lone surrogates written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _middle_cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n… {len(text) - limit:,} characters left out …\n{text[head - limit :]}"
