"""What must not stand in a log line or an error: whoever reveals secrets in this process says here how to hide them."""

from __future__ import annotations

from collections.abc import Callable

Hide = Callable[[str], str]

_hide: Hide | None = None


def hide_with(hide: Hide) -> None:
    """From now on texts go through `hide` before anybody sees them."""
    global _hide  # noqa: PLW0603 - one for the process: a line may come from anywhere in it
    _hide = hide


def discreet(text: str) -> str:
    """The text without anything that was revealed in this process."""
    return text if _hide is None else _hide(text)
