"""Files and folders: written whole or not at all, digested, measured."""

from dynid.files.atomic_files import (
    file_digest,
    make_folder,
    size_mb,
    sync_folder,
    write_atomically,
)
from dynid.files.transaction import MANIFEST, Transaction, begin, check_listed, recover, stage_of

__all__ = [
    "MANIFEST",
    "Transaction",
    "begin",
    "check_listed",
    "file_digest",
    "make_folder",
    "recover",
    "size_mb",
    "stage_of",
    "sync_folder",
    "write_atomically",
]
