"""Unpacking a block whose size is declared: never more than that, never an absurd ratio."""

from __future__ import annotations

import bz2

from dynid.data.readers.base import bounded
from dynid.errors import LogReadError

__all__ = ["unpack"]


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
    if method in ("", "none"):
        result = data
    elif method == "bz2":
        result = bz2.BZ2Decompressor().decompress(data, max_length=size + 1)
    elif method == "lz4":
        import lz4.frame  # type: ignore[import-untyped]

        result = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size + 1)
    elif method == "zstd":
        import zstandard

        with zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(data) as stream:
            result = stream.read(size + 1)
    else:
        raise LogReadError(f"compression '{method[:20]}' is not known")
    if len(result) != size:
        raise LogReadError(f"a packed block holds {len(result)} bytes instead of {size}")
    return result
