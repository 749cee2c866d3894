"""Which constants of the menu serve robots that did not choose them: chosen on five robots, judged on the sixth.

Every robot's logs are split in all usual ways: halves swapped, quarters and interleaved blocks rotated, whole runs left
out. Each split is identified on one side and judged on the other, by textbook weighted least squares, by the plain and
by the rich model. ``python tests/campaigns/leave_one_robot_out.py`` prints the table (minutes).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import dynid
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.identification.identify import identify_experiments, prepare_robot
from dynid.identification.log_reader import LogReader
from dynid.identification.rich import selection
from dynid.processing.experiment import Experiment

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DYNID_DATASETS", ROOT.parent / "shared" / "datasets"))
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}


@dataclass(frozen=True)
class Case:
    """A robot with its logs."""

    name: str
    robot: Callable[[], dynid.Robot]
    logs: tuple[str, ...]
    settings: dict[str, object]


CASES = (
    Case("tx40", lambda: dynid.read_urdf(DATA / "tx40/tx40_mdh_modified.urdf"), ("tx40",),
         {"dead_band": 0.02, "band_hz": 30.0, "trim_s": 0.05}),
    Case("panda_gaz", lambda: dynid.read_urdf(DATA / "panda_gaz/panda.urdf", hold=FINGERS), ("panda_gaz",),
         {"max_gap_s": 0.02, "band_hz": 3.0, "trim_s": 0.5}),
    Case("panda_unisa", lambda: dynid.read_urdf(DATA / "panda_unisa/panda.urdf", hold=FINGERS), ("panda_unisa",),
         {"band_hz": 4.0, "trim_s": 0.5}),
    Case("ur10_unisa", lambda: dynid.read_urdf(DATA / "ur10_unisa/ur10_robot.urdf"), ("ur10_unisa",),
         {"band_hz": 6.0, "trim_s": 0.3}),
    Case("kuka_kr300", lambda: dynid.read_mjcf(ROOT / "robots/kuka_kr300.xml"),
         tuple(f"kuka_kr300/rec_FF_{run}.mat" for run in "ABC"),
         {"springs": ("joint2",), "band_hz": 5.0, "trim_s": 0.6}),
    Case("yumi_ft", lambda: dynid.read_mjcf(ROOT / "robots/yumi.xml"), ("yumi_ft/gravitylog.mat",),
         {"dead_band": 0.01}),
)  # fmt: skip
MENUS: tuple[dict[str, float], ...] = tuple(
    {"GAIN": gain, "LEVEL": level} for gain in (0.005, 0.01, 0.02) for level in (0.1, 0.2)
)
"""Constants of the menu that are tried; the rest of it is the same for all."""


Split = tuple[str, list[Experiment], list[Experiment]]
"""Name, training data and held-out data."""


def splits(runs: list[Experiment], proofs: list[Experiment], trim_s: float) -> Iterator[Split]:
    """Iterate over all splits of a robot's runs."""
    if len(runs) > 1:
        for k in range(len(runs)):
            others = [j for j in range(len(runs)) if j != k]
            yield f"run {k + 1} left out", [runs[j] for j in others], [proofs[k]]
            yield f"run {k + 1} alone", [runs[k]], [proofs[j] for j in others]
        return
    start, end = runs[0].time[[0, -1]]
    length = max(0.75, (end - start) / 60, 6.0 * trim_s)
    for parts, name in ((2, "half"), (4, "quarter"), (3, "third of blocks")):
        for k in range(parts):
            split = partial(is_held, start=start, span=end - start, length=length, parts=parts, place=k)
            yield f"{name} {k + 1}", [keep(runs[0], ~split(runs[0].time))], [keep(proofs[0], split(proofs[0].time))]


def is_held(time: np.ndarray, *, start: float, span: float, length: float, parts: int, place: int) -> np.ndarray:
    """(N,) whether samples are held out: a part of the log, or every third block."""
    if parts == 3:
        return ((time - start) // length).astype(int) % 3 == place
    return (parts * (time - start) / span).astype(int).clip(0, parts - 1) == place


def keep(run: Experiment, kept: np.ndarray) -> Experiment:
    """The run with some of its torques; ends without any are cut off."""
    inside = np.flatnonzero(kept)
    run = replace(run, effort=np.where(kept[:, None], run.effort, np.nan), valid=run.valid & kept[:, None])
    return run.rows(slice(int(inside[0]), int(inside[-1]) + 1))


def measure(case: Case) -> np.ndarray:
    """(splits, menus, 3) errors of weighted least squares, of the plain and of the rich model [%]."""
    settings = {"dead_band": 0.0, **case.settings}
    trim_s = settings.pop("trim_s", None)
    recipe = dynid.Recipe(gate=False, **settings)
    logs = [str(DATA / log) for log in case.logs]
    channel_map = ROOT / "channel_maps" / f"{case.name}.toml"
    robot = prepare_robot(case.robot(), recipe, channel_map)
    reader = LogReader(robot=robot, recipe=recipe, channel_map=channel_map)
    runs, proofs = reader.experiments(logs), reader.experiments(logs, for_validation=True)
    found = []
    for name, train, held in splits(runs, proofs, trim_s or 0.0):
        textbook = identify_experiments(robot, train, replace(recipe, friction="plain"), dynid.WLS())
        errors = []
        for menu in MENUS:
            for key, value in menu.items():
                setattr(selection, key, value)
            fit = identify_experiments(robot, train, recipe, FeasibleWLS())
            check = dynid.validate(fit, held, trim_s=trim_s)
            errors.append((check.plain_error, check.relative_error))
        wls = dynid.validate(textbook, held, trim_s=trim_s).relative_error
        found.append([(wls, plain, rich) for plain, rich in errors])
        pairs = "  ".join(f"{plain:6.2f} / {rich:6.2f}" for plain, rich in errors)
        print(f"  {case.name:12s} {name:20s} WLS {wls:6.2f}  plain / rich by menu: {pairs}", flush=True)
    return np.array(found)


def main() -> None:
    """Measure all robots, choose the menu on five and judge the sixth."""
    wanted = sys.argv[1:] or [case.name for case in CASES]
    table = {case.name: measure(case) for case in CASES if case.name in wanted}
    gains = {name: np.log(errors[..., 2] / errors[..., 1]) for name, errors in table.items()}
    judged = []
    for name, errors in table.items() if len(table) > 1 else ():
        others = np.mean([gains[other].mean(axis=0) for other in gains if other != name], axis=0)
        best = int(np.argmin(others))
        judged.append(gains[name][:, best])
        wls, plain, rich = np.exp(np.log(errors[:, best]).mean(axis=0))
        print(f"{name:12s} {len(errors)} splits, {MENUS[best]}: WLS {wls:.2f}, plain {plain:.2f}, rich {rich:.2f} %; "
              f"rich over plain {percent(judged[-1].mean())}, worst split {percent(judged[-1].max())}")  # fmt: skip
    if judged:
        mean, worst = np.mean([each.mean() for each in judged]), max(each.max() for each in judged)
        print(f"all: rich over plain {percent(mean)} in the mean of the robots, worst split {percent(worst)}")


def percent(logarithm: float) -> str:
    """A ratio as a change."""
    return f"{100.0 * np.expm1(logarithm):+.1f} %"


if __name__ == "__main__":
    main()
