"""Text for a POSIX shell that means exactly itself."""

from __future__ import annotations

_PLAIN = frozenset(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 \n_-+=./,:;@#~^()[]{}<>|&$?*!"`')
_ESCAPED = [bytes([code]) if code in _PLAIN else b"\\0%03o" % code for code in range(256)]


def quoted(text: bytes | str) -> bytes:
    """One word of a command, whatever it contains but NUL."""
    data = text.encode() if isinstance(text, str) else text
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


def escaped(data: bytes) -> bytes:
    """One word that `printf '%b'` turns into these bytes, NUL included."""
    return b"'" + b"".join(_ESCAPED[code] for code in data) + b"'"
