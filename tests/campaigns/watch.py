"""Watches over the real logs: false alarms beside the stated rate, and planted pushes found in time.

Run ``python tests/campaigns/watch.py`` (``--only NAME`` for one log, ``--write`` for docs/watch.svg); `make watch`.
Needs the data sets of `real_logs`. Models and held-out parts are those of docs/real-data.md; the watch is calibrated on
the training part alone, with parts of it left out in turn. The clean held-out parts are 3 to 11 s long, so that one
alarm a minute cannot be counted in them: the rate is that of the law that is fitted to the block maxima of the held-out
part, at the level that was set on the training part. ``counted`` are the alarms at one a minute. Pushes are steps.

The usual practice beside it: a momentum observer without friction and a fixed threshold for each joint, tuned on the
same training part to the same rate by the same law.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from real_logs import DATA, ROOT

import dynid
from dynid.links.whole_model import WholeModel
from dynid.monitor.alarm_tails import Tail, block_maxima, fit_tail
from dynid.monitor.alarms import first_excesses
from dynid.monitor.calibration import KINDS, Calibration, Statistics, calibrate, follow
from dynid.monitor.jumps import WINDOW_S
from dynid.monitor.observer import GAIN, momentum_differences
from dynid.monitor.observer_model import ObserverModel
from dynid.monitor.planted_pushes import PushCurve, plant_pushes
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.report.chart import Chart, Line, arrange_charts
from dynid.runs.identification_run import IdentificationRun, run_identification
from dynid.tables import Table
from dynid.terms.base import Dependence

Floats = NDArray[np.float64]
FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
SETS = {
    "panda_gaz": ("panda.urdf", FINGERS, {"hold_out": "40%", "max_gap_s": 0.02, "band_hz": 3.0, "trim_s": 0.5}),
    "panda_unisa": ("panda.urdf", FINGERS, {"hold_out": "40%", "band_hz": 4.0, "trim_s": 0.5}),
    "ur10_unisa": ("ur10_robot.urdf", {}, {"hold_out": "40%", "band_hz": 6.0, "trim_s": 0.3}),
    "tx40": (
        "tx40_mdh_modified.urdf",
        {},
        {"hold_out": "every:3:0.75", "dead_band": 0.02, "band_hz": 30.0, "trim_s": 0.05},
    ),
}
"""Log -> robot, held joints, settings: those of docs/real-data.md."""
PER_MINUTE, PER_HOUR = 60.0, 1.0
PUSHES = 200


@dataclass(frozen=True, eq=False)
class Judged:
    """One log."""

    name: str
    seconds: float
    counted: int
    ratios: dict[float, float]
    """Rate [1/h] -> fitted rate of false alarms on the held-out part over the stated one."""
    curve: PushCurve
    usual: dict[float, Floats]
    """Rate [1/h] -> (sizes,) share of pushes that the usual practice finds."""


@cache
def identified(name: str) -> IdentificationRun:
    """The identification of a log."""
    urdf, hold, settings = SETS[name]
    robot = dynid.read_urdf(DATA / name / urdf, hold=hold)
    recipe = dynid.Recipe(judge_rest=True, **settings)
    return run_identification(
        robot, [DATA / name], recipe, channel_map=ROOT / "channel_maps" / f"{name}.toml", notice=lambda _: None
    )


def fitted_rate(known: Calibration, rate: float, found: list[Statistics]) -> float:
    """Rate of false alarms of the whole arm at the levels of a stated one, by the law of the block maxima [1/h]."""
    fitted = 0.0
    for kind, level in zip(("jump", "level"), known.levels(rate), strict=True):
        maxima = [block_maxima(column, one.stretch.rate_hz) for one in found for column in getattr(one, kind).T]
        fitted += fit_tail(maxima, power=getattr(known, kind).power).rate(level)
    return 3600.0 * len(known.joint_names) * fitted


def judge(name: str) -> Judged:
    """Judge the watch of one log on its held-out part."""
    run = identified(name)
    known = calibrate(run.fit)
    found = [known.statistics(part) for held in run.held_out for part in watched_stretches(run.fit, held)]
    seconds = sum(len(one.std) / one.stretch.rate_hz for one in found)
    ratios = {rate: fitted_rate(known, rate, found) / rate for rate in (PER_MINUTE, PER_HOUR)}
    levels = known.levels(PER_MINUTE)
    counted = sum(
        len(first_excesses(column > level, round(0.25 * one.stretch.rate_hz)))
        for one in found
        for kind, level in zip(("jump", "level"), levels, strict=True)
        for column in getattr(one, kind).T
    )
    curve = plant_pushes(known, found, rates=(PER_MINUTE, PER_HOUR), pushes=PUSHES)
    return Judged(name, seconds, counted, ratios, curve, usual_practice(run, known, found, curve.sizes))


def usual_practice(
    run: IdentificationRun, known: Calibration, found: list[Statistics], sizes: tuple[float, ...]
) -> dict[float, Floats]:
    """Share of the same pushes that an observer without friction finds with a fixed threshold for each joint."""
    model = frictionless(run)
    clean = [plain_residual(model, part) for part in run.fit.equations.excerpts]
    judged = [plain_residual(model, part) for part in run.held_out]
    joints = len(known.joint_names)
    shares: dict[float, Floats] = {}
    rng = np.random.default_rng(0)
    for rate in (PER_MINUTE, PER_HOUR):
        tails: list[Tail] = [
            fit_tail([block_maxima(np.abs(r[:, j]), hz) for parts in clean for r, hz in parts]) for j in range(joints)
        ]
        threshold = np.array([tail.level(rate / 3600.0 / joints) for tail in tails])
        hits, total = np.zeros(len(sizes)), 0
        for parts in judged:
            for residual, hz in parts:
                window = max(1, round(WINDOW_S * hz))
                rise = (1.0 - np.exp(-GAIN * np.arange(1, window + 1) / hz))[:, None]
                std = np.median(np.concatenate([one.std for one in found]), axis=0)
                for onset in rng.integers(0, len(residual) - window, PUSHES):
                    signs = rng.choice([-1.0, 1.0], joints)
                    total += joints
                    for place, size in enumerate(sizes):
                        answer = residual[onset : onset + window] + size * signs * std * rise
                        hits[place] += np.count_nonzero((np.abs(answer) > threshold).any(axis=0))
        shares[rate] = hits / total
    assert KINDS == 2  # the watch shares its rate between two statistics; the usual practice has one
    return shares


def frictionless(run: IdentificationRun) -> ObserverModel:
    """The identified links and rotors alone."""
    fit = run.fit
    theta = fit.torque_parameters.copy()
    for place, placed in enumerate(fit.robot.terms, start=10 * fit.robot.dof):
        if placed.term.dependence is not Dependence.ACCELERATION:
            theta[place] = 0.0
    return ObserverModel(WholeModel(fit.robot, theta, ()))


def plain_residual(model: ObserverModel, run: Experiment) -> list[tuple[Floats, float]]:
    """(N, n) residuals of the stretches in which every torque is known, and their rate [Hz]."""
    parts = []
    for rows, raw in momentum_differences(model, run):
        known = np.isfinite(run.effort[rows]).all(axis=1)[1:]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], known.astype(int), [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if stop - start > run.rate_hz * 0.25:
                parts.append((follow(raw[start:stop], float(np.exp(-GAIN / run.rate_hz))), run.rate_hz))
    return parts


def table(results: list[Judged]) -> Table:
    """One row per log."""
    rows = []
    for one in results:
        three = one.curve.sizes.index(3.0)
        found = one.curve.found[:, three].mean(axis=1)
        rows.append(
            (
                one.name,
                f"{one.seconds:.1f}",
                one.counted,
                f"{one.ratios[PER_MINUTE]:.2f}",
                f"{one.ratios[PER_HOUR]:.2f}",
                *(f"{100 * share:.0f}" for share in found),
                *(f"{100 * one.usual[rate][three]:.0f}" for rate in (PER_MINUTE, PER_HOUR)),
                f"{np.median(one.curve.torque):.2g}",
            )
        )
    header = ["log", "clean [s]", "counted at 1/min", "rate / stated, 1/min", "1/h", "3 sigma found %, 1/min", "1/h"]
    return Table.of([*header, "usual practice %, 1/min", "1/h", "median sigma [N m]"], rows)


def picture(results: list[Judged]) -> str:
    """Missed pushes over their size, at one false alarm a minute."""
    charts = []
    for one in results:
        sizes = np.array(one.curve.sizes)
        ours = 100.0 * (1.0 - one.curve.found[0].mean(axis=1))
        lines = (Line("watch", sizes, ours), Line("usual", sizes, 100.0 * (1.0 - one.usual[PER_MINUTE])))
        charts.append(Chart(one.name, lines, "step of torque [sigma]", "missed within 20 ms [%]"))
    return arrange_charts(charts)


def main() -> None:
    """Print the table; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="part of a log's name")
    parser.add_argument("--write", action="store_true", help="write docs/watch.svg")
    options = parser.parse_args()
    results = [judge(name) for name in SETS if not options.only or options.only in name]
    print(table(results).to_markdown())
    if options.write:
        Path(ROOT / "docs" / "watch.svg").write_text(picture(results))
    missed = 0
    for one in results:
        three = one.curve.sizes.index(3.0)
        at_rate = [f"{rate:g}/h: {ratio:.2f}" for rate, ratio in one.ratios.items() if not 0.5 <= ratio <= 2.0]
        share = float(one.curve.found[0, three].mean())
        if at_rate or share < 0.95:
            missed += 1
            beyond = ", ".join(at_rate) or "none"
            print(f"MISS {one.name}: rates beyond a factor 2: {beyond}; 3 sigma {100 * share:.0f} %")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
