"""Names of files that scripts leave: whatever they are over there, here they are safe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.executors.script.collecting import NAME_LIMIT, safe_name, unique


@given(st.text(st.sampled_from("ab./\\\n\0\u202e\udcff"), max_size=2 * NAME_LIMIT + 20))
def test_a_name_never_leads_elsewhere(path: str) -> None:
    name = safe_name(path)
    assert not {"", ".", ".."} & set(name.split("/"))
    assert len(name) <= NAME_LIMIT
    assert name.isprintable()
    name.encode()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("out/report.txt", "out/report.txt"),
        ("/etc/hostname", "etc/hostname"),
        ("../../x", "x"),
        ("a..b", "a..b"),
        ("..", "unnamed"),
        ("bad\udcff", "bad\ufffd"),
        ("txt.\u202eexe", "txt._exe"),
        ("x" * 10 + "../" + "y" * (NAME_LIMIT - 3), "y" * (NAME_LIMIT - 3)),
    ],
)
def test_what_becomes_of_a_name(path: str, name: str) -> None:
    assert safe_name(path) == name


def test_the_same_name_twice_gets_a_number() -> None:
    taken: set[str] = set()
    assert [unique(name, taken) for name in ("a.txt", "a.txt", "b", "b", "a.txt")] == [
        *("a.txt", "a-2.txt", "b", "b-2", "a-3.txt")
    ]
