"""What is not shown to anybody, and how it stays when what was shown comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from headway.model.errors import InvalidSchedule

MASK = "•••"
_HIDDEN = frozenset({"script", "credential", "password", "private_key", "passphrase"})
_TELLING = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""Headers whose values are nobody's business, should somebody have written them out instead of naming a secret."""
_ADDRESSES = ("callback_url", "url")


def shown(value: Any) -> Any:
    """The same without what must not be shown."""
    if isinstance(value, dict):
        return {name: _shown(name, part) for name, part in value.items() if name not in _HIDDEN}
    return [shown(part) for part in value] if isinstance(value, list) else value


def masked(job: Mapping[str, Any]) -> dict[str, Any]:
    """A job's body with telling headers masked; all its fields are there."""
    return {**job, **({"headers": shown(job["headers"])} if isinstance(job.get("headers"), Mapping) else {})}


def unmasked(given: Any, stored: Mapping[str, Any]) -> Any:
    """A job's body as it is meant: what was sent back masked is what is stored. Raises InvalidSchedule where nothing
    is, or where it would go to another server: whoever may not read it must not have it sent to a place of theirs."""
    headers = given.get("headers") if isinstance(given, Mapping) else None
    if not isinstance(headers, Mapping) or MASK not in headers.values():
        return given
    kept = {name.lower(): value for name, value in (stored.get("headers") or {}).items()}
    moved = _server(given) != _server(stored)
    return {**given, "headers": {name: _unmasked(name, value, kept, moved=moved) for name, value in headers.items()}}


def _unmasked(name: str, value: Any, kept: Mapping[str, Any], *, moved: bool) -> Any:
    if value != MASK:
        return value
    if name.lower() not in kept or moved:
        why = "it goes to another server now" if name.lower() in kept else "there is none stored"
        raise InvalidSchedule(
            f"{MASK} stands for a value that is not shown, and {why}: write the header {name} out, or name a secret",
            field=f"job.headers.{name}",
        )
    return kept[name.lower()]


def _server(job: Mapping[str, Any]) -> tuple[str, str] | None:
    address = next((job[name] for name in _ADDRESSES if isinstance(job.get(name), str)), None)
    parts = urlsplit(address) if address else None
    return (parts.scheme.lower(), parts.netloc.lower()) if parts else None


def _shown(name: str, value: Any) -> Any:
    return MASK if name.lower() in _TELLING and isinstance(value, str) else shown(value)
