"""A folder that keeps reduced logs, so that the next run of a fleet reads new logs alone.

A `Leaf` is one log, reduced to small triangular factors. Each is kept as two files: ``KEY.information`` (see
`dynid.data_reduction.storage`) and ``KEY.json``, written last. The key is a digest of everything the leaf depends on. A
file that is damaged or cut short counts as absent. ``cutoff-SETTINGS.json`` holds the cutoff that the first run with
some settings chose: factors can only be merged where all logs were filtered alike.

Files are written under another name first. Unfinished files of a killed process are removed when the next process opens
the store; a lock on the folder says whether other processes are writing to it now.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar
from weakref import finalize

import msgspec
import numpy as np

from dynid.data_reduction import Information
from dynid.errors import DataError
from dynid.findings import CODES, Finding, Severity
from dynid.fleet.fleet_logs import FleetLog
from dynid.identification.leaves import FIRST_BLOCK, MOST_BLOCKS, Leaf, LeafTask
from dynid.plain_data import json_values
from dynid.safe_files import make_folder, write_atomically
from dynid.safe_files.atomic_files import TEMPORARY
from dynid.safe_files.records import Whole, as_record
from dynid.safe_files.small_files import read_json

Record = TypeVar("Record", bound=msgspec.Struct)
UNFINISHED = re.compile(
    rf"\.([0-9a-f]{{64}}\.(information|json)|cutoff-[0-9a-f]{{32}}\.json)\.\w{{8}}{re.escape(TEMPORARY)}"
)
"""Names under which `write_atomically` begins the files of a store; no other file is removed."""


class Facts(msgspec.Struct, forbid_unknown_fields=True):
    """Content of ``KEY.json``: what a leaf holds beside its information."""

    log: str
    """Path of the log."""
    start_s: float
    """Start of the log [s]."""
    samples: Whole
    """Number of samples."""
    dropped: dict[str, Whole]
    """Reason -> number of samples that were left out."""
    findings: list[tuple[str, Severity, str, str]]
    """Code, severity, place and message of each finding."""
    temperature_degC: list[float | None] | None = None  # noqa: N815 (the unit as it is written)
    """Mean temperature of each joint [degC], null where it is not known; null where the log has none."""


class Cutoff(msgspec.Struct, forbid_unknown_fields=True):
    """Content of ``cutoff-SETTINGS.json``."""

    cutoff_hz: Annotated[float, msgspec.Meta(gt=0.0)]
    """Cutoff of the low-pass filter of all logs [Hz]."""


class LeafStore:
    """A folder of leaves."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, which is made where it does not exist; unfinished files of killed processes are removed."""
        self._folder = make_folder(folder)
        _lock_folder(self, folder)

    def get(self, log: FleetLog, settings: str) -> Leaf | None:
        """Read the leaf of a log; None unless it was made with the same settings and the log has not changed since.

        Args:
            log: The log.
            settings: Digest of the settings, see `settings_digest`.
        """
        key = self._key(log, settings)
        facts = self._read(f"{key}.json", Facts)
        if facts is None:
            return None
        try:
            information = Information.load(self._folder / f"{key}.information")
        except DataError:
            return None
        findings = [Finding(code=code, severity=severity, where=where, message=message)
                    for code, severity, where, message in facts.findings if code in CODES]  # fmt: skip
        warmth = facts.temperature_degC
        return Leaf(
            log=str(log.path), information=information, start_s=facts.start_s, samples=facts.samples,
            findings=tuple(findings), dropped=facts.dropped,
            temperature=None if warmth is None else np.array(warmth, dtype=float),
        )  # fmt: skip

    def put(self, log: FleetLog, settings: str, leaf: Leaf) -> None:
        """Keep the leaf of a log that was reduced with some settings."""
        key = self._key(log, settings)
        leaf.information.save(self._folder / f"{key}.information", force=True)
        findings = [(one.code, one.severity, one.where, one.message) for one in leaf.findings]
        self._write(
            f"{key}.json",
            Facts(leaf.log, leaf.start_s, leaf.samples, dict(leaf.dropped), findings, json_values(leaf.temperature)),
        )

    def cutoff_hz(self, settings: str) -> float | None:
        """Read the cutoff that an earlier run of these settings chose [Hz]; None where there was none."""
        found = self._read(f"cutoff-{settings[:32]}.json", Cutoff)
        return None if found is None else found.cutoff_hz

    def keep_cutoff(self, settings: str, hz: float) -> None:
        """Remember the cutoff of these settings [Hz]."""
        self._write(f"cutoff-{settings[:32]}.json", Cutoff(hz))

    def _read(self, name: str, kind: type[Record]) -> Record | None:
        """Read a record; None where the file is absent or damaged."""
        path = self._folder / name
        try:
            return as_record(read_json(path), kind, path=path) if path.exists() else None
        except DataError:
            return None

    def _write(self, name: str, record: msgspec.Struct) -> None:
        content = msgspec.to_builtins(record)
        write_atomically(self._folder / name, json.dumps(content) + "\n", force=True)

    @staticmethod
    def _key(log: FleetLog, settings: str) -> str:
        return hashlib.sha256(f"{log.path}\n{log.identity}\n{settings}".encode("utf-8", "surrogateescape")).hexdigest()


def _lock_folder(owner: LeafStore, folder: Path) -> None:
    """Hold a shared lock on a folder as long as its owner lives; without other processes, unfinished files go first.

    On systems without locks nothing is locked and nothing removed.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return
    finalize(owner, os.close, handle)
    with suppress(OSError):  # others are at work, or the file system has no locks: their files are not touched
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for left in folder.glob(f".*{TEMPORARY}"):
            if UNFINISHED.fullmatch(left.name):
                left.unlink(missing_ok=True)
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_SH)


def settings_digest(task: LeafTask) -> str:
    """Digest everything that a leaf depends on beside the log."""
    facts = (
        task.robot.fingerprint, task.columns, task.recipe.to_toml(), repr(task.channel_map), task.version, MOST_BLOCKS,
        FIRST_BLOCK,
    )  # fmt: skip
    return hashlib.sha256(repr(facts).encode()).hexdigest()
