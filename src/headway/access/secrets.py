"""Secrets that we hand out: random, long enough that nobody guesses them, and kept as fingerprints only."""

from __future__ import annotations

import secrets

TOKEN_PREFIX = "hw_"  # noqa: S105 - by which scanners know a token of ours
"""What tokens begin with, so that people and scanners know one when they see it."""
_BYTES = 32


def new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(_BYTES)


def new_secret() -> str:
    """For a session or a login link."""
    return secrets.token_urlsafe(_BYTES)
