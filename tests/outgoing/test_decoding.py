"""Compressed content, whatever the pieces in which it comes."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from headway.outgoing.decoding import PIECE, Chain
from headway.outgoing.errors import BrokenResponse


def unpacked(encoding: str, content: bytes, step: int) -> bytes:
    chain = Chain(encoding)
    pieces = [piece for start in range(0, len(content), step) for piece in chain.feed(content[start : start + step])]
    chain.finish()
    assert all(len(piece) <= PIECE for piece in pieces)
    return b"".join(pieces)


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, PIECE * 2, PIECE * 5 + 7])
@pytest.mark.parametrize("step", [1 << 20, 1000, 7])
def test_deflate_of_any_length_is_unpacked_with_and_without_its_header(size: int, step: int) -> None:
    chance = random.Random(size)
    for content in (b"\0" * size, chance.randbytes(size // 64) * 64 + b"x" * (size % 64)):
        for packed in (raw_deflate(content), zlib.compress(content)):
            assert unpacked("deflate", packed, step) == content


@pytest.mark.parametrize("step", [1 << 20, 5])
def test_zeros_behind_gzip_are_padding_and_a_second_member_goes_on(step: int) -> None:
    packed = gzip.compress(b"hello ") + gzip.compress(b"world") + b"\0" * 600
    assert unpacked("gzip", packed, step) == b"hello world"
    with pytest.raises(BrokenResponse):
        unpacked("gzip", gzip.compress(b"hello") + b"\0more", step)
