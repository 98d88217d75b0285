"""Whoever writes output dies at each line of it: run as a program, tells what is found afterwards, line by line.

Each death is a process of its own, forked from this one, which has no threads: what it had not yet written is lost."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from headway.model.job import Chunk
from headway.output import logbook
from headway.output.logbook import Logbook

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SIZE = 100


def chunk(seq: int) -> Chunk:
    return Chunk(seq=seq, stream="stderr" if seq % 3 else "stdout", data=bytes([65 + seq]) * SIZE)


def found(book: Logbook) -> list[tuple[int, str, str]]:
    return [(each.seq, each.stream, each.data.decode()) for each in book.read(None, -1, 100)]


ACTS = {
    "write": lambda book: book.write([chunk(seq) for seq in range(8, 12)], NOW),
    "cut": lambda book: book.cut(2, 5),
    "clear": lambda book: book.cut(0, 100),
}


def act(directory: Path, what: str, deadly: int) -> bool:
    """Whether it was over before it came to die."""
    child = os.fork()
    if not child:
        sys.settrace(_killer(deadly))
        ACTS[what](Logbook(directory))
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def _killer(deadly: int) -> Any:
    left = deadly

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename == logbook.__file__ and event == "line":
            left -= 1
            if not left:
                os._exit(0)
        return trace

    return trace


def main(root: Path, what: str) -> None:
    logbook.WORTH = 0
    pattern = root / "pattern"
    Logbook(pattern).write([chunk(seq) for seq in range(8)], NOW)
    deadly, over = 0, False
    while not over:
        deadly += 1
        directory = root / str(deadly)
        shutil.copytree(pattern, directory)
        over = act(directory, what, deadly)
        book = Logbook(directory)
        left = found(book)
        book.write([chunk(20)], NOW)
        later = found(book)
        book.cut(6, 6)
        book.cut(7, 7)
        print(json.dumps({"over": over, "left": left, "later": later, "end": found(book)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
