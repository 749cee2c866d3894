"""Watches over the real logs: false alarms beside the stated rate, and planted pushes found in time.

Run ``python tests/campaigns/watch.py [--only NAME]``; `make watch`. Needs the data sets of `real_logs`. Each log is cut
into five parts. Each part is held out once: the parameters and the watch come from the other four, nothing of the part
itself (the terms of the model are those that were selected on the training part of docs/real-data.md). Printed are the
alarms of the whole arm in all held-out parts beside the interval in which 95 % of the counts of such a rate lie
(Poisson), and the share of planted steps of 3 standard deviations of the band that raise an alarm within 20 ms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from real_logs import DATA, ROOT
from scipy.stats import poisson

import dynid
from dynid.estimation.equations import build_equations
from dynid.links.identify import Identification
from dynid.monitor.alarms import find_alarms
from dynid.monitor.calibration import Calibration, Statistics, calibrate, fit_again
from dynid.monitor.jumps import WINDOW_S
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.runs import Identify
from dynid.runs import run as run_task
from dynid.runs.identification_run import IdentificationRun

FINGERS = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
SETS = {
    "panda_gaz": ("panda.urdf", FINGERS, {"hold_out": "40%", "max_gap_s": 0.02, "band_hz": 3.0}),
    "panda_unisa": ("panda.urdf", FINGERS, {"hold_out": "40%", "band_hz": 4.0}),
    "ur10_unisa": ("ur10_robot.urdf", {}, {"hold_out": "40%", "band_hz": 6.0}),
    "tx40": (
        "tx40_mdh_modified.urdf",
        {},
        {"hold_out": "every:3:0.75", "dead_band": 0.02, "band_hz": 30.0},
    ),
}
"""Log -> robot, held joints, settings: those of docs/real-data.md."""
RATES = (3600.0, 600.0, 60.0, 1.0)
"""Stated rates [1/h]."""
FOLDS, PUSHES, SIGMAS = 5, 40, 3.0


@cache
def identified(name: str) -> IdentificationRun:
    """The identification of a log."""
    urdf, hold, settings = SETS[name]
    robot = dynid.read_urdf(DATA / name / urdf, hold=hold)
    recipe = dynid.Recipe(**{"dead_band": 0.0, **settings})
    chart = ROOT / "channel_maps" / f"{name}.toml"
    return run_task(Identify(robot, [DATA / name], recipe, channel_map=chart), notice=lambda _: None)


def pieces(runs: Sequence[Experiment], masks: Sequence[NDArray[np.bool_]]) -> list[Experiment]:
    """The gap-free pieces of the masked rows that have torques."""
    found = []
    for run, mask in zip(runs, masks, strict=True):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            piece = run.rows(np.arange(start, stop))
            if np.isfinite(piece.effort).any(axis=0).all():
                found.append(piece)
    return found


def rotate(name: str) -> Iterator[tuple[Identification, list[Experiment], list[Experiment]]]:
    """For each part: the model from the other ones, their data, and the part's own data."""
    run = identified(name)
    fit = run.fit
    runs = [one for one in (*fit.equations.excerpts, *run.held_out) if one.samples]
    for fold in range(FOLDS):
        held = [np.arange(one.samples) * FOLDS // one.samples == fold for one in runs]
        rest = [replace(one, valid=one.valid & ~mask[:, None]) for one, mask in zip(runs, held, strict=True)]
        model = fit_again(
            build_equations(fit.robot, rest, base=fit.base, terms=fit.terms, band_hz=fit.equations.band_hz), fit
        )
        training = [
            replace(one, effort=np.where(mask[:, None], np.nan, one.effort))
            for one, mask in zip(rest, held, strict=True)
        ]
        yield model, training, pieces(runs, held)


def planted_share(known: Calibration, found: Statistics, rate: float, rng: np.random.Generator) -> float:
    """Share of planted steps, one joint at a time, that raise an alarm within the window."""
    window, levels, seen = max(1, round(WINDOW_S * known.rate_hz)), known.levels(rate), []
    first = known.whitening.settling
    for _ in range(PUSHES if len(found.std) > first + window else 0):
        onset, joint = int(rng.integers(first, len(found.std) - window)), int(rng.integers(len(known.joint_names)))
        raw = found.stretch.raw.copy()
        raw[onset:, joint] += rng.choice([-1.0, 1.0]) * SIGMAS * found.std[onset, joint]
        stretch = replace(found.stretch, raw=raw).cut(slice(max(0, onset - 3 * first), onset + window))
        over = known.statistics(stretch).excess(levels)["contact"][-window:, joint]
        seen.append(bool((over > 1.0).any()))
    return float(np.mean(seen)) if seen else np.nan


def judge(name: str) -> str:
    """One row: alarms at every rate, and the share of pushes found at one false alarm a minute."""
    seconds, counts, shares = 0.0, np.zeros(len(RATES)), []
    for fit, training, held in rotate(name):
        known = calibrate(fit, training=training)
        parts = (watched_stretches(fit, run, known.rate_hz, log_hz=known.log_hz) for run in held)
        found = [known.statistics(stretch) for some in parts for stretch in some]
        seconds += sum(len(one.std) for one in found) / known.rate_hz
        counts += [sum(len(list(find_alarms(one, known.joint_names, known.levels(r)))) for one in found) for r in RATES]
        shares += [planted_share(known, one, 60.0, np.random.default_rng(0)) for one in found]
    cells = []
    for rate, count in zip(RATES, counts, strict=True):
        low, high = poisson.interval(0.95, rate * seconds / 3600.0)
        cells.append(f"{count:.0f} ({low:.0f} to {high:.0f})")
    return f"| {name} | {seconds:.1f} | {' | '.join(cells)} | {100.0 * np.nanmean(shares):.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a log's name")
    only = parser.parse_args().only
    rates = " | ".join(f"{rate:g}/h" for rate in RATES)
    print(f"| log | clean [s] | {rates} | steps of 3 sigma found at 60/h [%] |\n|{'---|' * (3 + len(RATES))}")
    for name in SETS:
        if only in name:
            print(judge(name), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
