"""Leaves of logs that were read before, kept in a folder: tomorrow only tomorrow's logs are read.

Each leaf is two files: ``KEY.information`` (see `dynid.information.storage`) and ``KEY.json``, written last. The key is
a digest of everything the leaf depends on. A file that is damaged or cut short is read as if it were not there.
A log that was refused has ``KEY.refused.json`` instead, with the reason. ``cutoff-SETTINGS.json`` holds the cutoff that
the first run with some settings chose: factors can only be merged where all logs were filtered alike.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Floats
from dynid.errors import DataError, DynidError, UnreachableLogError
from dynid.files import make_folder, write_atomically
from dynid.files.schema import check_content, either, list_of, mapping_of, number, one_of, table, text, whole
from dynid.files.small_files import read_json
from dynid.findings import CODES, Finding
from dynid.fleet.fleet_logs import FleetLog
from dynid.information import Information
from dynid.links.common.leaves import FIRST_BLOCK, MOST_BLOCKS, Leaf, LeafTask

_LEAF = table(
    {
        "log": text(),
        "start_s": number(),
        "samples": whole(0),
        "warnings": list_of(list_of(text(), least=3, most=3)),
        "dropped": mapping_of(whole(0)),
    },
    {"temperature_degC": list_of(either(one_of(None), number()))},
)
"""What ``KEY.json`` holds."""
_REFUSAL = table({"log": text(), "reason": text()})
"""What ``KEY.refused.json`` holds."""
_CUTOFF = table({"cutoff_hz": number(0.0)})


class LeafStore:
    """A folder of leaves."""

    def __init__(self, folder: Path) -> None:
        """The folder; it is made where it does not exist."""
        make_folder(folder)
        self._folder = folder

    def get(self, log: FleetLog, settings: str) -> Leaf | None:
        """The leaf of a log, if it was made before with the same settings and the file has not changed since."""
        key = self._key(log, settings)
        facts_path, information_path = self._folder / f"{key}.json", self._folder / f"{key}.information"
        if not facts_path.exists() or not information_path.exists():
            return None
        try:
            facts = read_json(facts_path)
            check_content(facts, _LEAF, path=facts_path)
            information = Information.load(information_path)
        except DataError:
            return None
        warnings = tuple(
            Finding(code=code, severity="warning", where=where, message=message)
            for code, where, message in facts["warnings"]
            if code in CODES
        )
        return Leaf(
            log=str(log.path), information=information, start_s=facts["start_s"], samples=facts["samples"],
            findings=warnings, dropped=dict(facts["dropped"]), temperature=_temperature(facts.get("temperature_degC")),
        )  # fmt: skip

    def put(self, log: FleetLog, settings: str, leaf: Leaf) -> None:
        """Keep a leaf."""
        key = self._key(log, settings)
        leaf.information.save(self._folder / f"{key}.information", force=True)
        facts: dict[str, Any] = {
            "log": leaf.log, "start_s": leaf.start_s, "samples": leaf.samples, "dropped": leaf.dropped,
            "warnings": [[finding.code, finding.where, finding.message] for finding in leaf.findings],
        }  # fmt: skip
        if leaf.temperature is not None:
            facts["temperature_degC"] = [value if np.isfinite(value) else None for value in leaf.temperature.tolist()]
        write_atomically(self._folder / f"{key}.json", json.dumps(facts) + "\n", force=True)

    def refusal(self, log: FleetLog, settings: str) -> str | None:
        """Why a log was refused before with the same settings, if the file has not changed since."""
        path = self._folder / f"{self._key(log, settings)}.refused.json"
        if not path.exists():
            return None
        try:
            content = read_json(path)
            check_content(content, _REFUSAL, path=path)
        except DataError:
            return None
        return str(content["reason"])

    def refuse(self, log: FleetLog, settings: str, error: DynidError, reason: str) -> None:
        """Remember that a log was refused, where the reason lies in the log itself; others are tried every time."""
        if isinstance(error, DataError) and not isinstance(error, UnreachableLogError):
            content = json.dumps({"log": str(log.path), "reason": reason})
            write_atomically(self._folder / f"{self._key(log, settings)}.refused.json", content + "\n", force=True)

    def cutoff_hz(self, settings: str) -> float | None:
        """The cutoff that an earlier run of these settings chose [Hz]: logs of all days must be processed alike."""
        path = self._folder / f"cutoff-{settings[:32]}.json"
        if not path.exists():
            return None
        content = read_json(path)
        check_content(content, _CUTOFF, path=path, remedy="Delete the file, or use another store.")
        return float(content["cutoff_hz"])

    def keep_cutoff(self, settings: str, hz: float) -> None:
        """Remember the cutoff of these settings [Hz]."""
        path = self._folder / f"cutoff-{settings[:32]}.json"
        write_atomically(path, json.dumps({"cutoff_hz": hz}) + "\n", force=True)

    @staticmethod
    def _key(log: FleetLog, settings: str) -> str:
        return hashlib.sha256(f"{log.path}\n{log.identity}\n{settings}".encode("utf-8", "surrogateescape")).hexdigest()


def _temperature(given: list[float | None] | None) -> Floats | None:
    return None if given is None else np.array([np.nan if value is None else value for value in given])


def settings_digest(task: LeafTask) -> str:
    """Digest of everything but the log that a leaf depends on; where it is made does not matter."""
    recipe = replace(task.recipe, engine="local", workers=None, scheduler=None)
    facts = (
        task.robot.fingerprint, task.columns, recipe.to_toml(), repr(task.channel_map), task.version, MOST_BLOCKS,
        FIRST_BLOCK,
    )  # fmt: skip
    return hashlib.sha256(repr(facts).encode()).hexdigest()
