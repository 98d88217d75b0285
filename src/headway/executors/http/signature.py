"""Signed callbacks, as Standard Webhooks has it (symmetric, `v1`): the receiver can tell that a request is ours, whole,
and fresh. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from headway.model.errors import ConfigurationError

_PREFIX = b"whsec_"


def sign(message_id: str, at: datetime, body: bytes, secrets: Sequence[bytes]) -> dict[str, str]:
    """The three headers. While one secret replaces another, sign with both."""
    stamp = str(int(at.timestamp()))
    signed = b".".join((message_id.encode(), stamp.encode(), body))
    signatures = [hmac.digest(_key(secret), signed, hashlib.sha256) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signatures),
    }


def _key(secret: bytes) -> bytes:
    try:
        return base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ConfigurationError(
            "a secret for signatures must be base64, with or without 'whsec_' before it: make one with "
            "`echo whsec_$(openssl rand -base64 24)`"
        ) from None
