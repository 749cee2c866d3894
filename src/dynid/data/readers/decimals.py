"""Interim."""

from __future__ import annotations

import io
import mmap

import numpy as np

from dynid.data.readers.base import Floats
from dynid.data.readers.dialect import BLANK, Dialect


def parse_rows(data: mmap.mmap, start: int, end: int, dialect: Dialect, strict: bool) -> tuple[Floats, bool]:
    text = data[start:end]
    if dialect.decimal == ",":
        text = text.replace(b",", b".")
    use = [k for k, n in enumerate(dialect.numeric) if n]
    values = np.loadtxt(
        io.BytesIO(text), delimiter=None if dialect.delimiter == BLANK else dialect.delimiter, usecols=use, ndmin=2
    )
    return np.ascontiguousarray(values.T), False
