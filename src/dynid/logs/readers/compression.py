"""Unpacking a block whose size is declared: never more than that, never an absurd ratio."""

from __future__ import annotations

import bz2

from dynid.errors import LogReadError
from dynid.logs.readers.base import BOMB_BYTES, MAX_RATIO, bounded

__all__ = ["unpack", "unpack_beginning"]


def unpack(method: str, data: bytes, size: int) -> bytes:
    """Unpack a block of exactly `size` bytes.

    Args:
        method: "" or "none", "bz2", "lz4" (frame format), "zstd".
        data: The packed bytes.
        size: Declared size when unpacked [bytes].

    Raises:
        LogReadError: If the method is unknown, or the block is damaged or of another size.
    """
    bounded("a packed block", size, len(data))
    result = _unpacked(method, data, size + 1)
    if len(result) != size:
        raise LogReadError(f"a packed block holds {len(result)} bytes instead of {size}")
    return result


def unpack_beginning(method: str, data: bytes, size: int) -> bytes:
    """Unpack the beginning of a block that was cut off, as far as it goes; arguments as for `unpack`."""
    return _unpacked(method, data, min(size, max(BOMB_BYTES, MAX_RATIO * len(data))))


def _unpacked(method: str, data: bytes, most: int) -> bytes:
    """At most so many bytes of a block."""
    if method in ("", "none"):
        return data
    if method == "bz2":
        return bz2.BZ2Decompressor().decompress(data, max_length=most)
    if method == "lz4":
        import lz4.frame  # type: ignore[import-untyped]

        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=most))
    if method == "zstd":
        import zstandard

        with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(data) as stream:
            return bytes(stream.read(most))
    raise LogReadError(f"compression '{method[:20]}' is not known")
