"""Log files of every format as tables of named columns; one adapter per format, imported when it is needed."""

from dynid.logs.readers.base import Options, Table
from dynid.logs.readers.dispatch import read_pieces, read_table
from dynid.logs.readers.log_formats import FORMATS, Format, detect_format

__all__ = ["FORMATS", "Format", "Options", "Table", "detect_format", "read_pieces", "read_table"]
