"""Files and folders: atomic writes, groups of files that change together (transactions), digests, bounded reads."""

from dynid.safe_files.atomic_files import (
    file_digest,
    make_folder,
    size_mb,
    sync_folder,
    write_atomically,
)
from dynid.safe_files.transaction import MANIFEST, Transaction, begin, check_listed, recover, stage_of

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
