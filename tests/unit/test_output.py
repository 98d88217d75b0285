"""What is kept of a job's output: all of it, or its beginning and its end."""

from __future__ import annotations

from headway.executors.contract import Written
from headway.model.job import CHUNK, Chunk
from headway.worker.output import NOTE, Output


def kept(chunks: dict[int, Chunk]) -> bytes:
    return b"".join(chunks[seq].data for seq in sorted(chunks) if chunks[seq].stream != NOTE)


class Place:
    """Where parcels go, as a store would keep them."""

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] = {}

    def take(self, output: Output, *, last: bool = False) -> None:
        parcel = output.take(last=last)
        if parcel.trim:
            first, end = parcel.trim
            self.chunks = {seq: chunk for seq, chunk in self.chunks.items() if not first <= seq <= end}
        self.chunks |= {chunk.seq: chunk for chunk in parcel.chunks}


def test_short_output_is_kept_whole_and_streams_keep_their_order() -> None:
    output, place = Output(), Place()
    for stream, data in (("stdout", b"a"), ("stdout", b"b"), ("stderr", b"c"), ("stdout", b"d")):
        output.emit(Written(stream, data))
    place.take(output)
    assert [(place.chunks[seq].stream, place.chunks[seq].data) for seq in sorted(place.chunks)] == [
        ("stdout", b"ab"),
        ("stderr", b"c"),
        ("stdout", b"d"),
    ]
    assert not output.waiting


def test_of_long_output_head_and_tail_are_kept_also_while_it_runs() -> None:
    cap = 8 * CHUNK
    output, place = Output(cap), Place()
    whole = b""
    for number in range(2000):
        piece = b"%06d\n" % number * 100
        whole += piece
        output.emit(Written("stdout", piece))
        if number % 7 == 0:
            place.take(output)
            stored = sum(len(chunk.data) for chunk in place.chunks.values())
            assert stored <= cap + CHUNK
    while_running = kept(place.chunks)
    assert whole.startswith(while_running[: cap // 2 - CHUNK])
    place.take(output, last=True)
    text = kept(place.chunks)
    head = cap // 2 - CHUNK
    assert text[:head] == whole[:head]
    assert whole.endswith(text[-(cap // 2 - CHUNK) :])
    [note] = [chunk for chunk in place.chunks.values() if chunk.stream == NOTE]
    left_out = len(whole) - len(text)
    assert f"{left_out:,} bytes left out".encode() in note.data


def test_discarded_output_leaves_nothing() -> None:
    output, place = Output(), Place()
    output.emit(Written("log", b"a"))
    place.take(output)
    output.emit(Written("log", b"b"))
    output.discard()
    place.take(output, last=True)
    assert place.chunks == {}
