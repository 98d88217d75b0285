"""Keeps secrets out of what is written: output, errors, log lines.

A stream comes in pieces, and a secret may be cut anywhere. So the end of a piece that may be the beginning of a secret
is held back until the next piece tells. Line breaks are looked through, wherever they stand: tools wrap what is long.

What is looked for: the secret itself, each line of one with several, and the whole in base64 (at all three places of
its groups, both alphabets), in hexadecimal, as in URLs, in JSON and in Python's own words. Other disguises are not seen
through, and values shorter than `SHORTEST` are left alone: they would be found everywhere.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote, quote_plus

SHORTEST = 6
MASK = b"***"
_BREAKS = b"\r\n"
_BREAK = re.compile(rb"[\r\n]")
_SEEN = 3
"""So many characters of a secret may be shown before the rest is held back: otherwise every line that ends like a
secret begins would have to wait for the next one."""

Span = tuple[int, int]


def forms(secret: bytes) -> set[bytes]:
    """The ways in which a secret is written, without line breaks."""
    whole = secret.strip()
    lines = [line.strip() for line in secret.splitlines()]
    written = {whole, secret, *(line for line in lines if not line.startswith(b"-----"))}
    for value in {whole, secret}:
        written |= {value.hex().encode(), value.hex().upper().encode(), *_in_urls(value)}
        written |= {*_in_base64(value), *_in_json(value), *_in_python(value)}
    if len(_flat(whole)) < SHORTEST:
        return set()
    return {flat for form in written if len(flat := _flat(form)) >= SHORTEST}


class Redactor:
    """Takes secrets out of one stream; `feed` it piece by piece and `close` it at its end."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._forms = _looked_for(tuple(secrets))
        self._held = b""
        self._context = b""
        """The last few characters that were given out: a secret may have begun with them."""
        self._hidden = 0
        """So many characters of what is held belong to a secret of which a part was given out as a mask."""

    def feed(self, piece: bytes) -> bytes:
        """What may be shown by now."""
        if not self._forms:
            return piece
        return self._next(self._held + piece, last=False)

    def close(self) -> bytes:
        """The rest."""
        return self._next(self._held, last=True) if self._held else b""

    def clean(self, whole: bytes) -> bytes:
        """All of a text at once, apart from the stream."""
        flat = _flat(whole)
        if not any(form in flat for form in self._forms):
            return whole
        apart = object.__new__(Redactor)
        apart._forms, apart._held, apart._context, apart._hidden = self._forms, b"", b"", 0
        return apart._next(whole, last=True)

    def _next(self, work: bytes, *, last: bool) -> bytes:
        seen = len(self._context)
        flat = self._context + _flat(work)
        until = len(flat) if last else max(self._hold_from(flat), seen)
        begun = [(seen, seen + self._hidden)] if self._hidden else []
        spans = _merged([*self._found(flat), *begun])
        if not spans and until == len(flat):
            # The usual case, and gigabytes of it: nothing to hide, nothing to wait for.
            self._held, self._context = b"", flat[-_SEEN:]
            return work
        places = _Places(work)
        cut = len(work) if until == len(flat) else places.of(until - seen)
        inside = [(max(a, seen) - seen, min(b, until) - seen) for a, b in spans if b > seen and a < until]
        out = _masked(work[:cut], [(places.of(a), places.of(b - 1) + 1) for a, b in inside])
        if begun and inside:
            # Its mask was given out with what came before.
            out = out.replace(MASK, b"", 1)
        self._hidden = next((b - until for a, b in spans if a < until < b), 0)
        self._held = work[cut:]
        self._context = flat[max(until - _SEEN, 0) : until]
        return out

    def _found(self, flat: bytes) -> Iterator[Span]:
        for form in self._forms:
            at = flat.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = flat.find(form, at + 1)

    def _hold_from(self, flat: bytes) -> int:
        """Where the first secret may have begun that isn't all there."""
        return min((_begun(flat, form) for form in self._forms), default=len(flat))


@lru_cache(maxsize=16)
def _looked_for(secrets: tuple[bytes, ...]) -> list[bytes]:
    """Longer ones first. To work it out for each script of a target anew costs more than to look."""
    return sorted({form for secret in secrets for form in forms(secret)}, key=len, reverse=True)


class _Places:
    """Where the characters of a text without line breaks stand in the text with them."""

    def __init__(self, work: bytes) -> None:
        breaks = [found.start() for found in _BREAK.finditer(work)]
        self._before = [at - number for number, at in enumerate(breaks)]

    def of(self, flat: int) -> int:
        return flat + bisect_right(self._before, flat)


def _masked(text: bytes, spans: Sequence[Span]) -> bytes:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], MASK]
        at = end
    return b"".join([*parts, text[at:]])


def _begun(flat: bytes, form: bytes) -> int:
    """Where the end of the text is the beginning of the form, if that is long enough to be held back."""
    least = min(_SEEN, len(form) // 4) + 1
    tail_at = max(len(flat) - len(form) + 1, 0)
    at = flat.find(form[:least], tail_at)
    while at >= 0:
        if form.startswith(flat[at:]):
            return at
        at = flat.find(form[:least], at + 1)
    return len(flat)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _flat(text: bytes) -> bytes:
    return text.translate(None, _BREAKS)


def _in_urls(value: bytes) -> Iterator[bytes]:
    for text in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield text.encode()
        yield _lower_escapes(text).encode()


def _lower_escapes(text: str) -> str:
    first, *rest = text.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _in_json(value: bytes) -> Iterator[bytes]:
    text = value.decode(errors="replace")
    for ascii_only in (True, False):
        yield json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode()


def _in_python(value: bytes) -> Iterator[bytes]:
    """As `repr` writes it within some longer text, with whichever quotes."""
    text = value.decode(errors="replace")
    single = repr("\"'" + text)[4:-1]
    for written in (single, single.replace("\\'", "'"), repr(value)[2:-1]):
        yield written.encode(errors="replace")


def _in_base64(value: bytes) -> Iterator[bytes]:
    """What stands in base64 text wherever the value stands in what was encoded: groups of three bytes may begin
    before it, and only characters that depend on nothing but the value are looked for."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + value)
        core = encoded[-(-8 * before // 6) : 8 * (before + len(value)) // 6]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))
