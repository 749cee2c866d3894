"""Held-out torque error on the real logs, of plain and of automatic settings, beside the published figures.

Run ``python tests/campaigns/real_data.py [data set ...]``; it reads ../shared/datasets and writes docs/real-data.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from real_logs import DATA, ROOT, SETS, DataSet, Floats, held_out_error, split, tx40

import dynid
from dynid.data.processing import Processing, resolve_cutoff, uniform_recording
from dynid.data.recording import Experiment, Recording
from dynid.estimation.least_squares import WLS
from dynid.estimation.problem import build_problem
from dynid.estimation.selection import ForwardSelection
from dynid.identification.links import Identification, identify
from dynid.robot.model import Robot
from dynid.tables import Table


@dataclass(frozen=True, kw_only=True)
class Result:
    """Held-out errors of one data set at one evaluation cutoff [%]."""

    data: DataSet
    cutoff: float | None
    plain: float
    """By the textbook chain."""
    free: float
    """By weighted least squares of the selected model, neither prior nor constraints."""
    consistent: float
    """By the physically consistent fit of the selected model, drawn to the prior."""
    target: float
    seconds: float
    """Of one core, to read, process, select and fit."""
    terms: tuple[str, ...]
    masses: str
    loads: str
    """Simulators that accepted the identified robot."""


def fit_plain(
    data: DataSet, robot: Robot, training: list[Recording], cutoff: float | None
) -> Callable[[Experiment], Floats]:
    """The textbook chain: one low-pass for everything, weighted least squares of base parameters."""
    problem = build_problem(robot, [data.processed(log, cutoff, training=True, plain=True) for log in training])
    values = WLS(rounds=2).solve(problem).values
    return lambda motion: problem.torque(values, motion)


def fit_automatic(data: DataSet, robot: Robot, training: list[Recording]) -> tuple[float | None, Identification]:
    """The automatic chain: both sides low-passed to the band, terms by selection, a physically consistent fit."""
    band = max(data.cutoffs_hz, default=None)
    cutoff = None if band is None else position_cutoff(data, training[0], band)
    runs = [data.processed(log, cutoff, training=True) for log in training]
    return cutoff, identify(robot, runs, features=data.features, select=ForwardSelection(), band_hz=band)


def position_cutoff(data: DataSet, log: Recording, band: float) -> float:
    """What the positions' noise suggests [Hz], within 1.5 and 3 times the band: flat in it, and not far beyond."""
    options = Processing(cleaning=data.cleaning)
    chosen, _ = resolve_cutoff(uniform_recording(log, options), options)
    assert isinstance(chosen.cutoff_hz, float)
    return float(np.clip(chosen.cutoff_hz, 1.5 * band, 3.0 * band))


def evaluate(data: DataSet) -> list[Result]:
    """All figures of a data set."""
    started = time.process_time()
    robot = data.robot()
    training, log, held = split(data, data.recordings(robot))
    cutoff, fit = fit_automatic(data, robot, training)
    seconds = time.process_time() - started
    motion = data.processed(log, cutoff, training=False)
    free = fit.problem.torque(WLS().solve(fit.problem).values, motion)
    assert fit.selection is not None
    loads = check_loads(fit)
    results = []
    for place, evaluation in enumerate(data.cutoffs_hz or (None,)):
        plain_motion = data.processed(log, evaluation, training=False, plain=True)
        plain = fit_plain(data, robot, training, evaluation)(plain_motion)
        predictions = ((plain_motion, plain), (motion, free), (motion, fit.torque(motion)))
        errors = [held_out_error(data, log, held, moved, torque, evaluation) for moved, torque in predictions]
        results.append(
            Result(
                data=data,
                cutoff=evaluation,
                plain=errors[0],
                free=errors[1],
                consistent=errors[2],
                target=data.targets[place],
                seconds=seconds,
                terms=tuple(step.candidate for step in fit.selection.steps if step.kept),
                masses=", ".join(f"{body.inertia.mass:.3g}" for body in fit.identified.bodies),
                loads=loads,
            )
        )
    return results


def check_loads(fit: Identification) -> str:
    """Which simulators accept the identified robot; an impossible body is refused here already."""
    for body in fit.identified.bodies:
        assert body.inertia.is_physical, f"{fit.robot.name}: body of {body.joint.name} is impossible"
    accepted = []
    with tempfile.TemporaryDirectory() as folder:
        urdf, mjcf = Path(folder) / "robot.urdf", Path(folder) / "robot.xml"
        dynid.write_urdf(fit.identified, urdf)
        dynid.write_mjcf(fit.identified, mjcf)
        if find_spec("pinocchio"):
            import pinocchio

            assert pinocchio.buildModelFromUrdf(str(urdf)).nv >= fit.robot.dof
            accepted.append("Pinocchio")
        if find_spec("mujoco"):
            import mujoco

            assert mujoco.MjModel.from_xml_path(str(mjcf)).nv >= fit.robot.dof
            accepted.append("MuJoCo")
    return ", ".join(accepted)


CIRCULATED = {
    "FV": (8.05, 5.53, 1.97, 1.11, 1.86, 0.65),
    "FC": (7.14, 8.26, 6.34, 2.48, 3.03, 0.282),
    "OFF": (0.392, 1.37, 0.326, -0.102, -0.0288, 0.127),
}
"""The TX40's viscous and dry friction and offsets as circulated with its log [N m s/rad, N m, N m]."""


def tx40_friction() -> str:
    """The plain friction model of the whole log, both sides low-passed to 30 Hz, beside the circulated values."""
    data, robot = SETS[0], tx40()
    run = data.processed(data.recordings(robot)[0], 60.0, training=True)
    problem = build_problem(robot, run, band_hz=30.0)
    estimate = WLS().solve(problem)
    found = {
        name: (value, std) for name, value, std in zip(estimate.names, estimate.values, estimate.stderr, strict=True)
    }
    rows = []
    for symbol, reference in CIRCULATED.items():
        for joint, value in enumerate(reference, start=1):
            mine, std = found[f"{symbol}{joint}"]
            rows.append((f"{symbol}{joint}", value, float(mine), float(std), f"{100 * (mine / value - 1):+.0f} %"))
    table = Table.of(["tx40", "circulated", "found", "std", "difference"], rows)
    return "\n## tx40, plain friction\n\n" + table.to_markdown() + "\n"


HEADER = """# Real logs

Held-out torque error, 100 |measured - predicted| / |measured| over all joints [%], measured as the data sets' own notes
prescribe: training data choose everything, the held-out part is predicted from its positions alone. Written by
`python tests/campaigns/real_data.py`.

- *plain*: one low-pass for positions and torques, rest kept, the log's clock as it is, weighted least squares of base
  parameters, rotor inertia, viscous and Coulomb friction, offsets. *baseline* is what others reached with such a
  recipe.
- *selected*: terms by forward selection with block cross-validation inside the training part, weighted least squares.
- *consistent*: the same model with every body possible and drawn towards the prior robot, as `identify` gives it; this
  column is held against what is *wanted*. *loss* is what that costs against *selected* (negative: it gains).
- *s*: seconds of one core to read, process, select and fit.
- *attainable*: what an exploration by others showed: memoryless / with friction memory / physically consistent.

"""

REMARKS = """
One log by itself: `python tests/campaigns/real_data.py panda_unisa`.

Terms, weights and cutoffs are chosen inside the training part of each log. The rule that chooses them (which terms are
tried, in which order, how folds are cut) was developed with these figures in view, so they are no blind test: for tx40
small changes of the rule moved the result between 4.4 and 5.2, and differences of 5 % mean little.

What made the difference lately:

- panda_unisa: a relay of 30 Hz passed on samples of a robot that sampled at 29.4 Hz. Every fiftieth row repeats the one
  before, and velocities are 2 % off in between. With the robot's own clock read off the motion (`Cleaning.relayed`,
  positions only) the error falls from 2.9 to below 1.6 %; predicted torques are compared row by row under the log's own
  stamps. panda_gaz repeats rows too, but its samples cannot be counted safely, so its stamps stand.
- yumi_ft: dry friction that changes with the joint's angle. kuka_kr300, panda_gaz: gains of single drives.

ur10_unisa was smoothed by its publisher, so part of its gain imitates that smoothing. kuka_kr300's run C differs from A
and B in a way nobody has explained. Masses of kuka_kr300 and yumi_ft start from rough guesses; what the motion cannot
reveal stays there.
"""


def report(results: list[Result]) -> str:
    """The Markdown page."""
    rows = [
        (
            r.data.name + (f" {r.cutoff:g} Hz" if len(r.data.cutoffs_hz) > 1 and r.cutoff else ""),
            r.data.baseline,
            f"{r.plain:.2f}",
            f"{r.free:.2f}",
            f"{r.consistent:.2f}",
            f"{100.0 * (r.consistent / r.free - 1.0):+.1f} %",
            r.data.attainable,
            f"< {r.target:g}: {'yes' if r.consistent < r.target else 'no'}",
            f"{r.seconds:.1f}",
            ", ".join(r.terms) or "none",
            r.masses,
            r.loads,
        )
        for r in results
    ]
    heads = [
        "log",
        "baseline",
        "plain",
        "selected",
        "consistent",
        "loss",
        "attainable",
        "wanted",
        "s",
        "terms",
        "masses [kg]",
        "loads in",
    ]
    return HEADER + Table.of(heads, rows).to_markdown() + "\n" + REMARKS


def main(names: list[str]) -> None:
    """Evaluate the named data sets, all by default; write the page when all were."""
    if not DATA.is_dir():
        print(f"no data sets in {DATA}")
        return
    results = []
    for data in SETS:
        if not names or data.name in names:
            results += evaluate(data)
            print(f"{data.name}: {[(r.plain, r.free, r.consistent) for r in results if r.data is data]}", flush=True)
    page = report(results) + (tx40_friction() if not names else "")
    print(page)
    if not names:
        (ROOT / "docs").mkdir(exist_ok=True)
        (ROOT / "docs" / "real-data.md").write_text(page)


if __name__ == "__main__":
    main(sys.argv[1:])
