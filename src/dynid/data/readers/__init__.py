"""Log files of every format as tables of named columns; one adapter per format, imported when it is needed."""

from dynid.data.readers.base import Options, Table
from dynid.data.readers.dispatch import read_pieces, read_table
from dynid.data.readers.registry import FORMATS, Format, detect_format

__all__ = ["FORMATS", "Format", "Options", "Table", "detect_format", "read_pieces", "read_table"]
