"""Readers of log files, one module per format; `formats` has the table of them."""

from __future__ import annotations

from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.pieces import read_pieces, read_table

__all__ = ["Options", "Table", "read_pieces", "read_table"]
