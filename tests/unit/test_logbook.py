"""Output as plain files: whoever dies while writing it leaves it as it was, or as it should be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.model.errors import OutputUnavailable
from headway.model.job import Chunk
from headway.output.logbook import WORTH, Logbook
from tests.unit.dying import NOW, chunk

BEFORE = range(8)


def told(seqs: Any) -> list[Any]:
    return [[seq, chunk(seq).stream, chunk(seq).data.decode()] for seq in seqs]


@pytest.mark.parametrize(
    ("what", "after"), [("write", range(12)), ("cut", (0, 1, 6, 7)), ("clear", ())], ids=["write", "cut", "clear"]
)
def test_a_death_at_any_line_leaves_what_was_or_what_should_be(tmp_path: Path, what: str, after: Any) -> None:
    command = [sys.executable, "-m", "tests.unit.dying", str(tmp_path), what]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) > 10
    states = {"before": 0, "after": 0}
    for number, line in enumerate(lines, 1):
        state = "before" if line["left"] == told(BEFORE) else "after"
        states[state] += 1
        seqs = BEFORE if state == "before" else after
        assert line["left"] == told(seqs), f"death {number}"
        assert line["later"] == told([*seqs, 20]), f"death {number}"
        assert line["end"] == told([seq for seq in (*seqs, 20) if seq not in (6, 7)]), f"death {number}"
    assert all(states.values()), "it has died before and after what counts"
    assert lines[-1]["over"]
    assert lines[-1]["left"] == told(after)


def test_what_is_taken_out_is_given_back_to_the_disk_and_people_read_the_rest(tmp_path: Path) -> None:
    book = Logbook(tmp_path)
    data = b"x" * (WORTH // 4)
    for seq in range(40):
        book.write([Chunk(seq=seq, stream="stdout", data=b"%02d" % seq + data)], NOW)
        if seq >= 8:
            book.cut(2, seq - 6)
    kept = [0, 1, *range(34, 40)]
    assert [each.seq for each in book.read(None, -1, 100)] == kept
    assert [each.size for each in book.sizes()] == [len(data) + 2] * 8
    for name in ("output", "stdout"):
        shown = (tmp_path / name).read_bytes()
        assert len(shown) <= 16 * len(data)
        assert shown.startswith(b"00" + data + b"01" + data)
        assert shown.endswith(b"38" + data + b"39" + data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "output", "stdout"]


def test_output_that_somebody_has_removed_is_told(tmp_path: Path) -> None:
    book = Logbook(tmp_path)
    book.write([chunk(0)], NOW)
    (tmp_path / "output").unlink()
    with pytest.raises(OutputUnavailable, match="without its output"):
        book.read(None, -1, 100)
