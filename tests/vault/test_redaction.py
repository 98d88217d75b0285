"""Nothing of a secret is left in a stream, however it is cut and written."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.observe import rendering
from headway.observe.logs import get_logger
from headway.vault.known import KNOWN, Known
from headway.vault.redaction import MASK, SHORTEST, Redactor, forms

CANARY = b'c4n4ry/+?&=%zebra 12\\"q'
KEY = (
    b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
    + b"\n".join(base64.b64encode(bytes(range(start, start + 48))) for start in range(0, 144, 16))
    + b"\n-----END OPENSSH PRIVATE KEY-----\n"
)

DISGUISES = {
    "raw": CANARY,
    "hex": CANARY.hex().encode(),
    "HEX": CANARY.hex().upper().encode(),
    "url": quote(CANARY, safe="").encode(),
    "url path": quote(CANARY).encode(),
    "form": quote_plus(CANARY).encode(),
    "json": json.dumps({"token": CANARY.decode()}).encode(),
    "base64": base64.b64encode(CANARY),
    "base64 behind one": base64.b64encode(b"x" + CANARY + b"yz"),
    "base64 behind two": base64.b64encode(b"xy" + CANARY + b"z"),
    "base64 of a header": base64.b64encode(b"user:" + CANARY),
    "base64url": base64.urlsafe_b64encode(b"~~" + CANARY),
    "wrapped base64": base64.encodebytes(b"a longer text before it that fills a line or so " + CANARY),
    "repr": repr(f"it's {CANARY.decode()}").encode(),
    "repr of bytes": repr(CANARY).encode(),
    "folded": b"\n".join(CANARY[at : at + 5] for at in range(0, len(CANARY), 5)),
    "with carriage returns": b"\r\n".join(CANARY[at : at + 7] for at in range(0, len(CANARY), 7)),
}


def traces(output: bytes, secret: bytes = CANARY) -> list[bytes]:
    """The forms of a secret that stand in the output, line breaks left out."""
    flat = output.replace(b"\n", b"").replace(b"\r", b"")
    return [form for form in forms(secret) if form in flat]


def stream(pieces: Sequence[bytes], *secrets: bytes) -> bytes:
    redactor = Redactor(secrets or [CANARY])
    return b"".join([*map(redactor.feed, pieces), redactor.close()])


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_secret_is_found_wherever_it_is_cut(disguise: str) -> None:
    text = b"before " + DISGUISES[disguise] + b" behind"
    for cut in range(len(text) + 1):
        shown = stream([text[:cut], text[cut:]])
        assert traces(shown) == []
        assert shown.startswith(b"before ")
        assert shown.endswith(b" behind")
        assert MASK in shown


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_secret_is_found_byte_by_byte(disguise: str) -> None:
    text = b"before " + DISGUISES[disguise] * 2 + b" behind"
    assert traces(stream([bytes([byte]) for byte in text])) == []


def test_a_key_of_many_lines_is_found_whole_and_line_by_line() -> None:
    for text in (KEY, KEY.replace(b"\n", b"\r\n"), base64.encodebytes(KEY), json.dumps(KEY.decode()).encode()):
        shown = stream([text[:100], text[100:]], KEY)
        assert traces(shown, KEY) == []
    [*_, line, _] = KEY.splitlines()
    assert line not in stream([b"look: " + line + b"\n"], KEY)
    assert b"-----BEGIN" in stream([b"-----BEGIN OPENSSH PRIVATE KEY-----\nof another\n"], KEY)


@given(
    secrets=st.lists(st.binary(min_size=SHORTEST, max_size=40), min_size=1, max_size=4),
    texts=st.lists(st.binary(max_size=30), min_size=1, max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
@example(secrets=[b"aaaaaa"], texts=[b"a" * 20], cuts=[3, 7])
@example(secrets=[b"secret", b"secret-long"], texts=[b"-long"], cuts=[6])
@example(secrets=[b"abcabcabd"], texts=[b"abcabc"], cuts=[5])
def test_no_cut_and_no_overlap_lets_a_secret_through(secrets: list[bytes], texts: list[bytes], cuts: list[int]) -> None:
    parts = [part for number, text in enumerate(texts) for part in (text, secrets[number % len(secrets)])]
    whole = b"".join(parts)
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    shown = stream([whole[a:b] for a, b in pairwise(edges)], *secrets)
    # A mask between what is left may make up a secret anew only if the mask is part of it.
    assert [found for secret in secrets if MASK[:1] not in secret for found in traces(shown, secret)] == []


@given(texts=st.lists(st.binary(max_size=60), max_size=8))
def test_what_holds_no_secret_comes_out_as_it_went_in(texts: list[bytes]) -> None:
    whole = b"".join(texts)
    if not traces(whole):
        assert stream(texts) == whole


def test_little_is_held_back() -> None:
    """A line that happens to end as a secret begins is not kept from readers."""
    redactor = Redactor([CANARY])
    assert redactor.feed(b"it is at c4") == b"it is at c4"
    assert redactor.feed(b" o'clock\n") == b" o'clock\n"
    assert redactor.feed(CANARY[:8]) == b""
    assert redactor.feed(b" no\n") == CANARY[:8] + b" no\n"


def test_what_was_shown_of_the_beginning_doesnt_help() -> None:
    redactor = Redactor([CANARY])
    shown = redactor.feed(CANARY[:2]) + redactor.feed(CANARY[2:]) + redactor.close()
    assert shown == CANARY[:2] + MASK


def test_short_values_are_left_alone() -> None:
    assert stream([b"yes or no, 12345"], b"no", b"12345", b"") == b"yes or no, 12345"


def test_a_long_stream_is_not_gathered_in_memory() -> None:
    redactor = Redactor([b"aaaaaaaa"])
    for _ in range(100):
        redactor.feed(b"a" * 1000)
        assert len(redactor._held) < 100


def test_log_lines_dont_show_what_was_revealed() -> None:
    KNOWN.add(CANARY)
    log = get_logger("headway.test_redaction")
    for as_json in (True, False):
        out = StringIO()
        rendering.set_up(logging.INFO, as_json=as_json, stream=out)
        try:
            log.info("sent", header=f"Bearer {CANARY.decode()}", encoded=base64.b64encode(CANARY).decode())
            log.error("failed", exc_info=ValueError(f"denied for {CANARY.decode()}"))
            logging.getLogger("another.library").warning("it is %s", CANARY.decode())
        finally:
            root = logging.getLogger()
            root.removeHandler(next(each for each in root.handlers if isinstance(each, rendering.Lines)))
        assert traces(out.getvalue().encode()) == []
        assert out.getvalue().count("***") >= 4


def test_the_latest_revealed_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.vault.known.MOST", 2)
    monkeypatch.setattr("headway.observe.discretion._hide", None)
    known = Known()
    for secret in (b"first one", b"second one", b"third one"):
        known.add(secret)
    assert known.hide("first one, second one, third one") == "first one, ***, ***"
