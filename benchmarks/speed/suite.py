"""Comparison of all peers with our kernels, and the table of speed ratios."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.speed.casadi_peer import Casadi
from benchmarks.speed.case import BOUND, Case, NotInstalled, Peer, Workload, function_workload
from benchmarks.speed.figaroh_peer import Figaroh
from benchmarks.speed.jax_peer import Jax
from benchmarks.speed.mujoco_peer import Mujoco
from benchmarks.speed.ours import Ours
from benchmarks.speed.pinocchio_cpp import PinocchioCpp
from benchmarks.speed.pinocchio_python import PinocchioPython
from dynid.tables import Table

PEERS: tuple[Callable[[], Peer], ...] = (PinocchioCpp, PinocchioPython, Figaroh, Casadi, Mujoco, Jax)

TARGETS: dict[tuple[Workload, str], float] = {
    ("regressor streamed", PinocchioCpp.name): 14.0,
    ("regressor streamed", PinocchioPython.name): 25.0,
    ("regressor streamed", Figaroh.name): 60.0,
    ("regressor dense", PinocchioPython.name): 14.0,
    ("logs to R", PinocchioPython.name): 25.0,
    ("inverse dynamics, batch", PinocchioCpp.name): 8.0,
    **{(function_workload(function, size), PinocchioPython.name): 2.0 for function in BOUND for size in (1, 10)},
    **{(f"{function}, bound", PinocchioPython.name): 5.0 for function in BOUND if function != "forward_dynamics"},
    ("forward_dynamics, bound", PinocchioPython.name): 3.0,
    ("forward_dynamics, 1000 states", PinocchioCpp.name): 6.0,
    ("base regressor VJP", Casadi.name): 40.0,
}
"""Targets: smallest ratio of the peer's time to ours; chosen when the kernels were designed."""

LIMITS: dict[Workload, float] = {
    "first use": 0.3,
    "first use, from cache": 0.03,
    "first torque in a new process": 0.25,
    "dynid --help": 0.2,
}
"""Targets: largest time [s]."""
EXCITATION_LIMITS = {"puma560": 2.0e-3, "panda": 2.8e-3}
"""Targets: largest time of an excitation's value and gradient [s]."""
PRIVATE = ("regressor streamed", "base regressor", "base regressor VJP")
"""Workloads that no public name reaches in this form; they come last."""

ROUNDS = 3
"""Turns in which every library is measured; the least time of each counts."""
VJP_RATIO = 2.6
"""Target: largest ratio of the time of the gradient to that of the base regressor."""


@dataclass(frozen=True, slots=True)
class Row:
    """One workload of one robot: our time beside that of a peer."""

    robot: str
    workload: str
    ours_s: float
    """Seconds per sample, per call, or in total for the first use."""
    peer: str
    peer_s: float | None
    """None if the peer is not installed."""
    ratio: float | None
    """Time of the peer divided by ours."""
    target: str
    met: bool | None
    """None if there is no target or no peer."""


def compare(case: Case, peers: Sequence[Callable[[], Peer]] = PEERS) -> list[Row]:
    """Measure our kernels and all peers for one robot, in turns: a slow minute of the machine hits all alike."""
    measured: dict[str, dict[Workload, float]] = {}
    missing: dict[str, str] = {}
    for make in (Ours, *peers) * ROUNDS:
        peer = make()
        try:
            seconds = {} if peer.name in missing else peer.measure(case)
        except NotInstalled as package:
            missing[peer.name] = str(package)
            continue
        least = measured.setdefault(peer.name, {})
        least.update({workload: min(value, least.get(workload, value)) for workload, value in seconds.items()})
    ours = measured.pop(Ours.name)
    rows = _compare_with_limits(case, ours)
    for name, what in missing.items():
        rows += [_row_without_peer(case, ours, name, workload, what) for workload in _targets(name)]
    for name, theirs in measured.items():
        rows += [_compare_times(case, w, s, name, theirs[w]) for w, s in ours.items() if w in theirs]
    compared = {row.workload for row in rows}
    alone = [workload for workload in ours if workload not in compared]
    rows += [Row(case.robot.name, workload, ours[workload], "", None, None, "", None) for workload in alone]
    order = [*(workload for workload in ours if workload not in PRIVATE), *PRIVATE]
    return sorted(rows, key=lambda row: order.index(row.workload))


def _targets(peer: str) -> list[Workload]:
    return [workload for workload, name in TARGETS if name == peer] or ["regressor streamed"]


def _compare_times(case: Case, workload: Workload, ours: float, peer: str, theirs: float) -> Row:
    ratio, target = theirs / ours, TARGETS.get((workload, peer))
    met = None if target is None else ratio >= target
    wanted = "" if target is None else f"at least {target:g}"
    return Row(case.robot.name, workload, ours, peer, theirs, ratio, wanted, met)


def _row_without_peer(case: Case, ours: dict[Workload, float], peer: str, workload: Workload, what: str) -> Row:
    return Row(case.robot.name, workload, ours[workload], f"{peer}: not installed ({what})", None, None, "", None)


def _compare_with_limits(case: Case, ours: dict[Workload, float]) -> list[Row]:
    """Compare our times with fixed targets."""
    name = case.robot.name
    rows = [
        Row(name, workload, ours[workload], "", None, None, f"at most {limit:g} s", ours[workload] <= limit)
        for workload, limit in (*LIMITS.items(), ("excitation value and gradient", EXCITATION_LIMITS.get(name, np.inf)))
    ]
    forward, backward = ours["base regressor"], ours["base regressor VJP"]
    wanted, met = f"at least 1/{VJP_RATIO:g}", backward <= VJP_RATIO * forward
    return [*rows, Row(name, "base regressor VJP", backward, OWN, forward, forward / backward, wanted, met)]


LABELS: dict[str, str] = {
    "inverse dynamics, batch": "inverse dynamics, batch (ours with base parameters)",
    "regressor streamed": "inside: regressor streamed",
    "base regressor": "inside: base regressor (its non-zero elements, ours in blocks)",
    "base regressor VJP": "inside: base regressor VJP (of its non-zero elements, ours in blocks)",
}
"""Longer names of workloads for the table."""


def speed_table(rows: Sequence[Row]) -> Table:
    """Make the table of times and speed ratios; the last column says where we miss a target or are slower."""
    header = ("robot", "workload", "dynid [us]", "peer", "peer [us]", "times as fast", "target", "met")
    cells = [
        (
            row.robot,
            LABELS.get(row.workload, row.workload),
            _shown(row.workload, row.ours_s),
            row.peer,
            _shown(row.workload, row.peer_s),
            row.ratio,
            row.target,
            verdict(row),
        )
        for row in rows
    ]
    return Table.of(header, cells, digits=3)


def _shown(workload: str, value: float | None) -> float | None:
    """Microseconds; of memory, megabytes."""
    return value if value is None or workload.endswith("[MB]") else 1e6 * value


def verdict(row: Row) -> str:
    """Whether a row meets its target; SLOWER where there is none and the peer is faster."""
    if row.met is not None:
        return "yes" if row.met else "NO"
    return "SLOWER" if is_slower(row) else ""


def is_slower(row: Row) -> bool:
    """Whether a peer is faster than we are."""
    return row.ratio is not None and row.ratio < 1.0 and row.peer != OWN


OWN = "our base regressor"
"""The name of our own time where it stands in the place of a peer's."""


def describe_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows and a description of the machine as plain data."""
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "clock": "processor time of the thread, the least of several repeats",
        "rows": [asdict(row) for row in rows],
    }
