"""Chunks as objects of a bucket: a name and a size tell all but the bytes."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from headway.model.job import Chunk
from headway.output.pieces import MOST, Piece, content, current, runs

NOW = datetime(2030, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)
streams = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16)


@given(st.lists(st.tuples(st.integers(0, 10**11), streams, st.binary(max_size=40)), max_size=30))
def test_whatever_is_added_comes_back(added: list[tuple[int, str, bytes]]) -> None:
    chunks = [Chunk(seq=seq, stream=stream, data=data) for seq, stream, data in sorted(added)]
    for run in runs(chunks):
        whole = content(run, NOW)
        piece = Piece.named(Piece.of(run).name, len(whole))
        assert piece == Piece.of(run)
        assert len(run) <= MOST
        assert [(each.seq, each.stream, each.data) for each in piece.chunks(whole)] == [
            (each.seq, each.stream, each.data) for each in run
        ]
        assert {each.at for each in piece.chunks(whole)} == {NOW}


def test_what_is_said_again_alone_has_the_last_word() -> None:
    long, alone, later = Piece(3, ("a", "note", "a"), (1, 2, 3)), Piece(3, ("a",), (9,)), Piece(4, ("note",), (7,))
    assert current([later, long, alone]) == {3: alone, 4: later, 5: long}
