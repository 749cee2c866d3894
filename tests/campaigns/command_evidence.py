"""Faults planted in 27 real logs of servos, legs and a slide: what the gate says of them, and of the logs as they are.

Run ``python tests/campaigns/command_evidence.py`` (a minute); it reads ../shared/datasets and ends with status 1 if a
log as it is raises an objection. A fault that a log cannot show, such as exchanged joints that were commanded alike, is
not found in that log: the table counts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.gate.command_checks import check_commands
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.tables import Table

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))


def real_logs() -> list[tuple[str, Recording]]:
    """Every given log with commands."""
    paths = [(path, "go2") for path in sorted((DATA / "go2").glob("*.pt"))]
    paths += [(path, "xl330") for path in sorted((DATA / "xl330").glob("*.json"))]
    paths += [(path, "so101") for path in sorted((DATA / "so101").iterdir()) if path.is_dir()]
    paths += [(path, "emps") for path in sorted((DATA / "emps").glob("*.mat"))]
    return [(f"{name}/{path.name}", read_recording(path, channel_map=name)) for path, name in paths]


def changed(log: Recording, q: object = None, **commands: object) -> Recording:
    assert log.commands is not None
    told = replace(log.commands, **commands)  # type: ignore[arg-type]
    return replace(log, q=log.q if q is None else q, dq=None, commands=told)


def with_joint(values: np.ndarray, joint: int, column: object) -> np.ndarray:  # type: ignore[type-arg]
    out = np.array(values, dtype=float)
    out[:, joint] = column
    return out


def busiest(log: Recording) -> int:
    """The joint that moves most."""
    return int(np.argmax(np.ptp(log.q, axis=0)))


def exchange(log: Recording) -> Recording | None:
    told = log.commands
    if told is None or told.position.shape != log.q.shape:
        return None
    return changed(log, told.position, position=log.q)


def swap(log: Recording) -> Recording | None:
    """The two joints that move most exchanged."""
    if log.q.shape[1] < 2:
        return None
    places = np.arange(log.q.shape[1])
    first, second = np.argsort(np.ptp(log.q, axis=0))[-2:]
    places[[first, second]] = places[[second, first]]
    return changed(log, position=log.commands.position[:, places])  # type: ignore[union-attr]


def invert(log: Recording) -> Recording | None:
    """Flags of the drives inverted, where a log has both states."""
    flags = None if log.commands is None else log.commands.enabled
    return None if flags is None or flags.all() or not flags.any() else changed(log, enabled=~flags)


def late(log: Recording) -> Recording | None:
    told = log.commands
    return None if told is None else changed(log, time=told.time - 1.0)


FAULTS: dict[str, tuple[Callable[[Recording], Recording | None], set[str]]] = {
    "command and measurement exchanged": (exchange, {"exchanged", "unit"}),
    "commands in degrees": (lambda log: changed(log, position=np.degrees(log.commands.position)), {"unit"}),  # type: ignore[union-attr]
    "positions in degrees": (lambda log: changed(log, np.degrees(log.q)), {"unit"}),
    "sign of one joint": (
        lambda log: changed(log, with_joint(log.q, busiest(log), -log.q[:, busiest(log)])), {"flipped"}
    ),
    "two joints swapped": (swap, {"swapped"}),
    "stuck encoder": (lambda log: changed(log, with_joint(log.q, busiest(log), log.q[0, busiest(log)])), {"frozen"}),
    "positions a second late": (late, {"late-motion", "flipped", "command-clock"}),
    "measured positions as commands": (
        lambda log: changed(log, position=log.q) if log.commands.position.shape == log.q.shape else None,  # type: ignore[union-attr]
        {"copied-command"},
    ),
    "drives never on": (
        lambda log: changed(log, enabled=np.zeros(log.commands.position.shape, dtype=bool)),  # type: ignore[union-attr]
        {"never-enabled"},
    ),
    "flags of the drives inverted": (invert, {"inverted-enable"}),
}  # fmt: skip
"""Fault -> how it is planted, and the codes that name it."""


def main() -> int:
    if not DATA.is_dir():
        print(f"the data are not at {DATA}")
        return 0
    logs = real_logs()
    accused = [(name, finding) for name, log in logs for finding in check_commands(log)]
    for name, finding in accused:
        print(f"FALSE: {name}: {finding}")
    rows = []
    for fault, (plant, codes) in FAULTS.items():
        planted = [(name, made) for name, log in logs if (made := plant(log)) is not None]
        missed = [name for name, log in planted if not codes & {finding.code for finding in check_commands(log)}]
        rows.append((fault, len(planted), len(planted) - len(missed), ", ".join(missed)[:160]))
    print(Table.of(["fault", "logs", "named", "not in"], rows))
    print(f"objections to the {len(logs)} logs as they are: {len(accused)}")
    return int(bool(accused))


if __name__ == "__main__":
    sys.exit(main())
