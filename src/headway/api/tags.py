"""ETags: what tells one representation from another."""

from __future__ import annotations

import hashlib

SQUEEZED = "-gzip"
"""Ends the tag of what was sent compressed: the same thing, but not the same bytes."""


def etag_of(content: bytes) -> str:
    """A strong tag: equal for equal bytes only."""
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def names_tag(header: str | None, tag: str, *, weak: bool = True) -> bool:
    """Whether an `If-None-Match` (or, not `weak`, an `If-Match`) names this tag."""
    if header is None:
        return False
    named = {part.strip().replace(f'{SQUEEZED}"', '"') for part in header.split(",")}
    if weak:
        named = {part.removeprefix("W/") for part in named}
    return "*" in named or tag in named
