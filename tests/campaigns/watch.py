"""Watches over the real logs: false alarms beside the stated rate, and planted pushes found in time.

Run ``python tests/campaigns/watch.py`` (``--only NAME`` for one log, ``--write`` for docs/watch.svg); `make watch`.
Needs the data sets of `real_logs`. Each log is cut into five parts. Each part is held out once: the parameters and the
watch come from the other four, nothing of the part itself (the terms of the model are those that were selected on the
training part of docs/real-data.md). The clean logs are 9 to 28 s long, 80 s together.

- ``counted``: alarms of the whole arm in all held-out parts, beside the number that is expected, with the interval in
  which 95 % of the counts of such a rate lie (Poisson).
- ``by the law``: the rate of the peaks of the held-out parts, by the law that is fitted to them, over the stated one,
  with the 95 % interval of this law. At one alarm an hour this is an extrapolation.
- ``found``: planted steps of 3 standard deviations of the band that raise an alarm within 20 ms.
- ``needed``: the smallest step [N m] that raises an alarm within 20 ms, in half of the instants and in 95 % of them: of
  each joint, then the geometric mean over the joints. It does not depend on the width of any band.
- ``best``: what the best detector could find in normal noise with the fitted memory; see `best_share`.

The usual practice beside it: a momentum observer without friction and a fixed threshold for each joint, tuned on the
same four parts to the same rate by the same law.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from best_detector import best_share
from numpy.typing import NDArray
from real_logs import DATA, ROOT
from scipy.stats import poisson

import dynid
from dynid.estimation.equations import build_equations
from dynid.links.identify import Identification
from dynid.links.rich.models import Model
from dynid.monitor.alarm_tails import Tail, find_peaks, fit_tail
from dynid.monitor.alarms import find_alarms
from dynid.monitor.calibration import KINDS, Calibration, Statistics, calibrate, fit_again, follow
from dynid.monitor.jumps import WINDOW_S
from dynid.monitor.observer import GAIN, momentum_differences
from dynid.monitor.observer_model import ObserverModel
from dynid.monitor.planted_pushes import SIZES, plant_pushes
from dynid.monitor.watched_signals import watched_stretches
from dynid.processing.experiment import Experiment
from dynid.runs import IdentificationRun, Identify
from dynid.runs import run as run_task
from dynid.tables import Table
from dynid.terms.base import Dependence
from papers.report import draw_svg

Floats = NDArray[np.float64]
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
PER_MINUTE, PER_HOUR = 60.0, 1.0
RATES = (3600.0, 1200.0, 600.0, 300.0, PER_MINUTE, 10.0, PER_HOUR)
"""Stated rates [1/h]."""
FOLDS = 5
PUSHES = 40
"""Pushes per part, size and joint."""
THREE = SIZES.index(3.0)


@dataclass(frozen=True, eq=False)
class Part:
    """One held-out part of a log, judged with the other ones."""

    seconds: float
    counted: Floats
    """(rates,) alarms."""
    surprise: tuple[tuple[list[Floats], ...], float]
    """Along each stretch minus the logarithm of the calibrated rate [1/s], of each statistic; their rate [Hz]."""
    found: Floats
    """(rates, sizes) share of the pushes that is found."""
    needed: Floats
    """(rates, instants and signs, n) smallest pushes that are found [N m]."""
    best: Floats
    """(rates, sizes) share that the best detector finds in normal noise."""
    usual_counted: Floats
    """(rates,) alarms of the usual practice."""
    usual: Floats
    """(rates, sizes) share of the pushes that the usual practice finds."""
    sigma: float
    """Median standard deviation [N m]."""


@dataclass(frozen=True, eq=False)
class Judged:
    """One log: its parts together."""

    name: str
    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        """Length of all parts [s]."""
        return sum(part.seconds for part in self.parts)

    def sum(self, name: str) -> Floats:
        """A field, summed over the parts."""
        return np.asarray(np.sum([getattr(part, name) for part in self.parts], axis=0))

    def mean(self, name: str) -> Floats:
        """A field, on average over the parts."""
        return np.asarray(np.mean([getattr(part, name) for part in self.parts], axis=0))

    def needed(self, share: float) -> Floats:
        """(rates,) push that is found in a share of the instants, geometric mean over the joints [N m]."""
        sizes = np.quantile(np.concatenate([part.needed for part in self.parts], axis=1), share, axis=1)
        return np.asarray(np.exp(np.log(np.maximum(sizes, 1e-12)).mean(axis=1)))

    def law(self, rate: float) -> tuple[float, float, float]:
        """Rate of alarms over a stated one [1/h] by the median law of the held-out peaks, and its 95 % interval."""
        hz = self.parts[0].surprise[1]
        sums = np.zeros(3)
        for kind in range(KINDS):
            tail = fit_tail([one[:, None] for part in self.parts for one in part.surprise[0][kind]], hz)
            level = -np.log(rate / 3600.0 / KINDS)  # each statistic has the same share of the rate
            sums += 3600.0 / rate * np.array([tail.interval(level, 0.0)[0], *tail.interval(level)])
        return float(sums[0]), float(sums[1]), float(sums[2])


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


def judge(name: str) -> Judged:
    """Judge the watch of one log on each of its parts."""
    return Judged(name, tuple(judge_part(*part) for part in rotate(name)))


def judge_part(fit: Identification, training: list[Experiment], held: list[Experiment]) -> Part:
    """Judge one part with the others."""
    known = calibrate(fit, training=training)
    parts = (watched_stretches(fit, run, known.rate_hz, log_hz=known.log_hz) for run in held)
    found = [known.statistics(stretch) for some in parts for stretch in some]
    hz = found[0].stretch.rate_hz
    curve = plant_pushes(known, found, rates=RATES, pushes=PUSHES)
    counted = [sum(len(list(find_alarms(one, known.joint_names, known.levels(rate)))) for one in found)
               for rate in RATES]  # fmt: skip
    usual_counted, usual = usual_practice(fit, training, held, curve.torque)
    return Part(
        seconds=sum(len(one.std) for one in found) / hz,
        counted=np.array(counted, dtype=float),
        surprise=((contact_surprises(known, found), surprises(known.level, [one.level for one in found])), hz),
        found=curve.found.mean(axis=2),
        needed=np.concatenate([curve.needed[..., 0], curve.needed[..., 1]], axis=1),
        best=best_share(known, found, rates=RATES),
        usual_counted=usual_counted,
        usual=usual,
        sigma=float(np.median(curve.torque)),
    )  # fmt: skip


def contact_surprises(known: Calibration, found: list[Statistics]) -> list[Floats]:
    """Minus the logarithm of the calibrated rate of all jumps that are as rare as the rarest one of a joint [1/s]."""
    rarest = []
    for tail, state, share in (
        (known.jump, False, 1.0 - known.turn_share), (known.turn, True, known.turn_share)
    ):  # fmt: skip
        own = [0.5 * np.square(np.where(one.turning == state, one.jump, 0.0)) for one in found]
        rarest.append([np.log(share) + part for part in surprises(tail, own)])
    return [np.maximum(*pair) for pair in zip(*rarest, strict=True)]


def surprises(tail: Tail, statistics: list[Floats]) -> list[Floats]:
    """Minus the logarithm of the calibrated rate at the largest statistic over the joints [1/s]."""
    arm = [one.max(axis=1) for one in statistics]
    grid = np.linspace(0.0, max(float(one.max()) for one in arm) + 1.0, 400)
    rates = -np.log(np.maximum([tail.rate(level) for level in grid], 1e-300))
    return [np.interp(one, grid, rates) for one in arm]


def usual_practice(
    fit: Identification, training: list[Experiment], held: list[Experiment], sigma: Floats
) -> tuple[Floats, Floats]:
    """Alarms (rates,) of an observer without friction with a fixed threshold for each joint; pushes it finds."""
    model = frictionless(fit)
    clean, judged = ([part for run in runs for part in plain_residual(model, run)] for runs in (training, held))
    scale = np.sqrt(np.mean(np.concatenate([residual for residual, _ in clean]) ** 2, axis=0))
    hz = clean[0][1]
    tail = fit_tail([np.abs(residual / scale) for residual, _ in clean], hz)
    levels = np.array([tail.level(rate / 3600.0) for rate in RATES])
    counted = [sum(len(find_peaks(np.abs(r / scale).max(axis=1), hz, level)) for r, _ in judged) for level in levels]
    rng = np.random.default_rng(0)
    window = max(1, round(WINDOW_S * hz))
    rise = (1.0 - np.exp(-GAIN * np.arange(1, window + 1) / hz))[:, None]
    hits, total = np.zeros((len(RATES), len(SIZES))), 0
    for residual, _ in judged:
        for onset in rng.integers(0, len(residual) - window, PUSHES):
            signs = rng.choice([-1.0, 1.0], scale.size)
            total += scale.size
            for place, size in enumerate(SIZES):
                answer = np.abs((residual[onset : onset + window] + size * signs * sigma * rise) / scale).max(axis=0)
                hits[:, place] += (answer > levels[:, None]).sum(axis=1)
    return np.array(counted, dtype=float), hits / total


def frictionless(fit: Identification) -> ObserverModel:
    """The identified links and rotors alone."""
    theta = fit.torque_parameters.copy()
    for place, placed in enumerate(fit.robot.terms, start=10 * fit.robot.dof):
        if placed.term.dependence is not Dependence.ACCELERATION:
            theta[place] = 0.0
    return ObserverModel(Model(fit.robot, theta, ()))


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


def rate_table(results: list[Judged]) -> Table:
    """Counted alarms for each stated rate, one row per log and one for all."""
    header = ["log", "clean [s]", *(f"{rate / 60.0:g}/min" for rate in RATES[:5]), "by the law, 1/min", "1/h"]
    rows = []
    for one in results:
        laws = [one.law(rate) for rate in (PER_MINUTE, PER_HOUR)]
        words = [f"{ratio:.2f} ({low:.2f} to {high:.1f})" for ratio, low, high in laws]
        rows.append((one.name, f"{one.seconds:.1f}", *counts(RATES[:5], one.sum("counted"), one.seconds), *words))
    seconds = sum(one.seconds for one in results)
    rows.append(
        ("all", f"{seconds:.1f}", *counts(RATES[:5], sum(one.sum("counted") for one in results), seconds), "", "")
    )
    rows.append(("usual practice, all", f"{seconds:.1f}",
                 *counts(RATES[:5], sum(one.sum("usual_counted") for one in results), seconds), "", ""))  # fmt: skip
    return Table.of(header, rows)


def counts(rates: Sequence[float], counted: Floats, seconds: float) -> list[str]:
    """Counted alarms at stated rates [1/h], the expected number, and the 95 % interval of counts at this number."""
    words = []
    for rate, count in zip(rates, counted, strict=False):
        expected = rate * seconds / 3600.0
        low, high = poisson.interval(0.95, expected)
        shown = f"{expected:.2g}" if expected < 100.0 else f"{expected:.0f}"
        words.append(f"{count:.0f} ({shown}: {low:.0f} to {high:.0f})")
    return words


def needed_table(results: list[Judged]) -> Table:
    """The pushes that are found within 20 ms in half of the instants, and in 95 % [N m]."""
    shown = {"1/min": RATES.index(PER_MINUTE), "1/h": RATES.index(PER_HOUR)}
    header = ["log", *(f"{part} of the instants, {rate} [N m]" for rate in shown for part in ("half", "95 %"))]
    rows = [
        (one.name, *(f"{one.needed(share)[place]:.2g}" for place in shown.values() for share in (0.5, 0.95)))
        for one in results
    ]
    return Table.of(header, rows)


def push_table(results: list[Judged]) -> Table:
    """Pushes of 3 sigma that are found [%]: the watch, the best detector in normal noise, the usual practice."""
    shown = [rate for rate in RATES if rate >= PER_MINUTE or rate == PER_HOUR]
    header = ["log", "sigma [N m]", *(f"{rate / 60.0:g}/min" for rate in shown if rate >= PER_MINUTE), "1/h"]
    rows = []
    for one in results:
        shares = [100.0 * one.mean(name)[:, THREE] for name in ("found", "best", "usual")]
        cells = [" / ".join(f"{share[RATES.index(rate)]:.0f}" for share in shares) for rate in shown]
        rows.append((one.name, f"{one.mean('sigma'):.2g}", *cells))
    return Table.of(header, rows)


def picture(results: list[Judged]) -> str:
    """Missed pushes over their size at one false alarm a minute, and those of 3 sigma over the rate."""
    panels = {}
    names = {"found": "watch", "usual": "usual practice"}
    for one in results:
        missed = {label: 100.0 * (1.0 - one.mean(name)) for name, label in names.items()}
        sizes, rates = np.array(SIZES), np.log10(RATES)
        per_minute = {label: (sizes, share[RATES.index(PER_MINUTE)]) for label, share in missed.items()}
        panels[f"{one.name}, 1/min, over the step of torque [sigma]"] = per_minute
        three = {label: (rates[::-1], share[::-1, THREE]) for label, share in missed.items()}
        panels[f"{one.name}, 3 sigma, over log10 of false alarms [1/h]"] = three
    return draw_svg(panels, y="missed within 20 ms [%]")


def main() -> None:
    """Print the tables; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="part of a log's name")
    parser.add_argument("--write", action="store_true", help="write docs/watch.svg")
    options = parser.parse_args()
    results = []
    for name in SETS:
        if not options.only or options.only in name:
            results.append(judge(name))
            print(f"{name} is judged", file=sys.stderr)
    tables = (rate_table(results), push_table(results), needed_table(results))
    print("\n\n".join(table.to_markdown() for table in tables))
    if options.write:
        Path(ROOT / "docs" / "watch.svg").write_text(picture(results))
    missed = 0
    for one in results:
        laws = {rate: one.law(rate)[0] for rate in (PER_MINUTE, PER_HOUR)}
        share = one.mean("found")[RATES.index(PER_MINUTE), THREE]
        beyond = ", ".join(f"{rate:g}/h: {ratio:.2f}" for rate, ratio in laws.items() if not 0.5 <= ratio <= 2.0)
        if beyond or share < 0.95:
            missed += 1
            print(f"MISS {one.name}: rates beyond a factor 2: {beyond or 'none'}; 3 sigma {100 * share:.0f} %")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
