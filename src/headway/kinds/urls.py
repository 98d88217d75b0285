"""URLs that mean the same, written the same. Pure."""

from __future__ import annotations

import re
import string
import unicodedata
from urllib.parse import urlsplit, urlunsplit

_DOTS = re.compile("[.\u3002]")
_PORTS = {"http": 80, "https": 443}
_UNRESERVED = frozenset((string.ascii_letters + string.digits + "-._~").encode())
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")
# What may stand unescaped somewhere in a path or a query; all else is escaped.
_PLAIN = _UNRESERVED | frozenset(b"!$&'()*+,;=:@/?%[]")


def normalised(url: str) -> str:
    """Host in lower case (and in its ASCII form), no default port, no fragment, percent-encoding in one form, no dots
    in the path, `/` for an empty one. The query stays in its order, for that may matter."""
    parts = urlsplit(url)
    host = _host(parts.hostname or "")
    port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
    return urlunsplit((parts.scheme, host + port, _path(_escaped(parts.path)) or "/", _escaped(parts.query), ""))


def _host(host: str) -> str:
    plain = host.lower() if host.isascii() else ".".join(_label(label) for label in _DOTS.split(_folded(host)))
    return f"[{plain}]" if ":" in plain else plain


def _folded(host: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", host).lower())


def _label(label: str) -> str:
    """As IDNA 2008 and those who send requests write it: Python's own codec is of 2003, to which `straße` and `strasse`
    are the same."""
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"


def _escaped(text: str) -> str:
    """Letters, digits and the like stand for themselves, everything else is escaped in capitals."""
    once = _ESCAPED.sub(_unescape, text.encode())
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in once)


def _unescape(match: re.Match[bytes]) -> bytes:
    byte = int(match[1], 16)
    return bytes([byte]) if byte in _UNRESERVED else b"%" + match[1].upper()


def _path(path: str) -> str:
    """Without `.` and `..`, as RFC 3986 says."""
    kept: list[str] = []
    *parents, last = path.split("/")
    for part in parents:
        _step(kept, part)
    if last in {".", ".."}:
        _step(kept, last)
        last = ""
    return "/".join([*kept, last])


def _step(kept: list[str], part: str) -> None:
    if part == "..":
        if len(kept) > 1:
            kept.pop()
    elif part != ".":
        kept.append(part)
