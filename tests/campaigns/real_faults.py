"""Faults planted in the six logs of real robots: named, or at least not accepted in silence?

Run ``python tests/campaigns/real_faults.py [cases] [first seed]``. A fault counts as *named* when a finding of its kind
appears that the untouched log does not have. It is *silent* when no error or warning appears beside those of the
untouched log and the fitted torque leaves that of the untouched log by more than three standard deviations, which
come from leaving out an eighth of the log at a time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
import real_data

import dynid
from campaigns import fault_injection as planted
from dynid.errors import DynidError
from dynid.findings import QualityReport
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples, with_friction, with_smooth_sign
from dynid.kernels import regressor
from dynid.logs.recording import Recording
from dynid.processing.process import process

Floats = NDArray[np.float64]
Rng = np.random.Generator
CHANNELS = ("time", "q", "dq", "effort")
BLOCKS = 8
CLOCK_FAULTS = ("gap", "lost bursts", "repeated stamps", "backward clock", "clock in ms, us, ns", "late torque")
"""What cannot be told from rows picked out of a log, whose time only counts."""
NEIGHBOUR_FAULTS = ("absurd positions", "absurd torques", "wrapped angle", "saturated", "velocities swapped",
                    "velocity flipped", "degrees per second")  # fmt: skip
"""What needs neighbouring samples."""


@dataclass(frozen=True, eq=False)
class RealLog:
    """One real log, what the gate says of it, and what a fit of it predicts."""

    data: real_data.DataSet

    @cached_property
    def robot(self) -> dynid.Robot:
        """What is believed of the robot."""
        return self.data.robot()

    @cached_property
    def recording(self) -> Recording:
        """The untouched log."""
        return self.data.recordings(self.robot)[0]

    @cached_property
    def report(self) -> QualityReport:
        """What the gate says of it."""
        return check_recording(self.recording, self.robot)

    @cached_property
    def states(self) -> Samples:
        """States of the log at which torques are compared."""
        samples = Samples.of(self.robot, process(self.recording), rows=100)
        assert samples is not None
        return samples

    def fit(self, log: Recording, keep: Callable[[Floats], NDArray[np.bool_]] | None = None) -> tuple[Floats, Floats]:
        """Parameters fitted to a log, and the torque (100 n,) that they predict at `states`."""
        model = with_friction(self.robot)
        samples = Samples.of(self.robot, process(log), rows=1500)
        if samples is None:
            raise dynid.errors.DataError("too few samples are left")
        Y = with_smooth_sign(regressor(model, samples.q, samples.dq, samples.ddq), samples.sign)
        rows = np.ones(len(Y), dtype=bool) if keep is None else keep(np.arange(len(Y)) / len(Y))
        A = (Y * samples.weight[None, :, None])[rows][:, samples.used].reshape(-1, Y.shape[2])
        b = (samples.effort * samples.weight)[rows][:, samples.used].reshape(-1)
        scale = np.maximum(np.linalg.norm(A, axis=0), 1e-12)
        theta = np.linalg.lstsq(A / scale, b, rcond=1e-3)[0] / scale
        there = self.states
        return theta, (regressor(model, there.q, there.dq, there.ddq) @ theta).reshape(-1)

    @cached_property
    def spread(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the predicted torque, by leaving out blocks."""

        def without(k: int) -> Callable[[Floats], NDArray[np.bool_]]:
            return lambda share: (share * BLOCKS).astype(int) != k

        fits = np.array([self.fit(self.recording, without(k))[1] for k in range(BLOCKS)])
        return fits.mean(axis=0), np.sqrt((BLOCKS - 1) * fits.var(axis=0))

    def gravity_torque(self, gravity: Floats) -> Floats:
        """(N, n) torque of a gravity on the robot as fitted to its log."""
        model = with_friction(self.robot)
        theta = self.fit(self.recording)[0].copy()
        theta[10 * model.dof :] = 0.0
        q = np.ascontiguousarray(np.nan_to_num(self.recording.q))
        return regressor(model.with_gravity(gravity), q, np.zeros_like(q), np.zeros_like(q)) @ theta

    def off(self, log: Recording) -> bool:
        """Whether a fit of the log is more than three standard deviations off, in the root mean square."""
        try:
            torque = self.fit(log)[1]
        except DynidError:
            return False
        mean, spread = self.spread
        floor = 1e-3 * float(np.abs(mean).max())
        return bool(np.sqrt(np.mean(((torque - mean) / np.maximum(spread, floor)) ** 2)) > 3.0)


def _compensated(log: RealLog, rng: Rng) -> Recording:
    return replace(log.recording, effort=log.recording.effort - log.gravity_torque(log.robot.gravity))


def _wall(log: RealLog, rng: Rng) -> Recording:
    there = log.robot.gravity / np.linalg.norm(log.robot.gravity)
    choices = [g for g in np.vstack([np.eye(3), -np.eye(3)]) if g @ there < 0.5]
    other = 9.81 * choices[rng.integers(len(choices))]
    change = log.gravity_torque(other) - log.gravity_torque(log.robot.gravity)
    return replace(log.recording, effort=log.recording.effort + change)


def _late(log: RealLog, rng: Rng) -> Recording:
    time, effort = log.recording.time, log.recording.effort
    period = float(np.median(np.diff(time)))
    late = rng.choice([-1, 1]) * rng.uniform(max(0.02, 1.5 * period), max(0.05, 2.0 * period))
    return replace(log.recording, effort=np.column_stack([np.interp(time - late, time, x) for x in effort.T]))


WHOLE: dict[str, Callable[[RealLog, Rng], Recording]] = {
    "nothing": lambda log, rng: log.recording,
    "gravity-compensated": _compensated,
    "wall mounted": _wall,
    "late torque": _late,
}
"""Faults that need more than the arrays of the log."""


def applicable(log: RealLog, fault: str) -> bool:
    """Whether a fault can be planted in this log, and could be seen in it at all."""
    if fault not in WHOLE and fault not in planted.EDITS:
        return False
    recording = log.recording
    if recording.dq is None and fault in ("velocities swapped", "velocity flipped", "degrees per second"):
        return False
    return not (recording.isolated and fault in (*CLOCK_FAULTS, *NEIGHBOUR_FAULTS))


def plant(log: RealLog, fault: str, rng: Rng) -> Recording:
    """The log with the fault."""
    if fault in WHOLE:
        return WHOLE[fault](log, rng)
    present = [name for name in CHANNELS if getattr(log.recording, name) is not None]
    arrays = {name: np.array(getattr(log.recording, name)) for name in present}
    arrays.setdefault("dq", np.zeros_like(arrays["q"]))
    planted.EDITS[fault](arrays, rng)
    wrench = log.recording.wrench
    kept = len(arrays["time"]) == log.recording.time.size
    return replace(log.recording, wrench=wrench if kept else None, **{name: arrays[name] for name in present})


def run_case(log: RealLog, fault: str, seed: int) -> tuple[bool, bool]:
    """Whether the fault was named, and whether it got through in silence."""
    wanted = planted.FAULTS[fault].names
    before = {str(finding) for finding in log.report.findings}
    known = {(f.code, f.where, f.joint) for f in log.report.findings}
    try:
        faulty = plant(log, fault, np.random.default_rng(seed))
        report = check_recording(faulty, log.robot)
    except DynidError as error:
        return any(word in str(error) for word in wanted), False
    news = [f for f in report.findings if str(f) not in before]
    graver = [f for f in news if f.severity != "note" and (f.code, f.where, f.joint) not in known]
    named = not graver if fault == "nothing" else any(f.code in wanted for f in news)
    return named, not named and not graver and log.off(faulty)


@cache
def logs() -> tuple[RealLog, ...]:
    """The six data sets."""
    return tuple(RealLog(data) for data in real_data.SETS)


def main(cases: int, first: int) -> int:
    """Run the campaign and print a table; the exit code says whether it passed."""
    pairs = [(fault, log) for fault in planted.FAULTS for log in logs() if applicable(log, fault)]
    named, silent, count = Counter[str](), Counter[str](), Counter[str]()
    for case in range(cases):
        fault, log = pairs[case % len(pairs)]
        hit, quiet = run_case(log, fault, first + case)
        for key in (fault, log.data.name):
            count[key] += 1
            named[key] += hit
            silent[key] += quiet
        if not hit or quiet:
            print(
                f"    {fault} in {log.data.name}, seed {first + case}: {'SILENT' if quiet else 'not named'}", flush=True
            )
        if (case + 1) % 100 == 0:
            totals = [sum(counter[kind] for kind in planted.FAULTS) for counter in (named, silent)]
            print(f"{case + 1} cases: {totals[0]} named, {totals[1]} silent", flush=True)
    keys = [*planted.FAULTS, *(log.data.name for log in logs())]
    return planted.print_table(keys, count, named, silent, cases)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers or [600]), *([0] if len(numbers) < 2 else [])))
