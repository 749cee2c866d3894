"""Do the halves of a real log agree within their intervals?

    python tests/campaigns/real_halves.py [data set ...]

Each log is processed once and cut in the middle. Parameters are estimated from either half by itself; their difference
is compared with 1.96 standard deviations of it. 95 % of the parameters should agree, if intervals hold. Parameters are
those that the data determine in both halves: neither open nor dominated by the prior, of which both halves would take
the same word. `usual` has the usual terms only, `selected` also the terms that the default selects on the whole log.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray
from real_logs import DATA, SETS, DataSet

from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.links.identify import identify_experiments
from dynid.links.recipe import Recipe
from dynid.parameters.base import base_parameters
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.base import Term

NORMAL = 1.959963984540054
"""Half width of a 95 % interval in standard deviations."""
POSITION_BAND = 2.0
"""Cutoff of the positions over the band of the equations, between the 1.5 and 3 that the command chooses from."""


@dataclass(frozen=True)
class Agreement:
    """How many parameters of two halves agree."""

    inside: int
    """Number of parameters whose difference is within 1.96 standard deviations."""
    count: int
    """Number of parameters that the data determine in both halves."""
    left_out: int
    """Number of parameters that are open or dominated by the prior in a half."""

    @property
    def percent(self) -> float:
        """Share of parameters that agree [%]."""
        return 100.0 * self.inside / max(self.count, 1)


def halve(run: Experiment) -> tuple[Experiment, Experiment]:
    """Cut an experiment where half of its valid samples are over."""
    valid = np.flatnonzero(run.valid.any(axis=1))
    middle = int(valid[len(valid) // 2])
    return rows(run, slice(0, middle)), rows(run, slice(middle, None))


def rows(run: Experiment, part: slice) -> Experiment:
    """Some rows of an experiment."""
    names = ("time", "q", "dq", "ddq", "effort", "valid")
    segment = run.segment[part] - run.segment[part][0]
    return replace(run, segment=segment, **{name: getattr(run, name)[part] for name in names})


def determined(estimates: Sequence[Estimate]) -> NDArray[np.bool_]:
    """(b,) whether the data determine the parameter in all estimates."""
    marks = [~one.undetermined & ~np.isin(one.names, one.prior_dominated) for one in estimates]
    return np.asarray(np.all(marks, axis=0))


def compare(estimates: Sequence[Estimate], counted: NDArray[np.bool_]) -> Agreement:
    """Compare two estimates in the counted parameters (b,)."""
    first, second = estimates
    apart = np.abs(first.values - second.values)[counted]
    spread = np.hypot(first.stderr, second.stderr)[counted]
    return Agreement(int(np.sum(apart <= NORMAL * spread)), int(counted.sum()), int((~counted).sum()))


def agreements(halves: Sequence[Samples], default: Estimator) -> tuple[Agreement, Agreement]:
    """Agreement of two halves by the default and by weighted least squares, both in what the data determine."""
    fits = [default.solve(half) for half in halves]
    plain = [WLS().solve(half) for half in halves]
    counted = determined(fits) & determined(plain)
    return compare(fits, counted), compare(plain, counted)


def prepare(data: DataSet) -> list[tuple[str, Robot, Experiment]]:
    """Process all logs of a data set."""
    robot = data.robot()
    logs = data.recordings(robot)
    cutoff = POSITION_BAND * data.cutoffs_hz[0] if data.cutoffs_hz else None
    names = [file.split(".")[0] for file in data.files] if len(data.files) > 1 else [""]
    return [
        (f"{data.name} {name}".strip(), robot, data.processed(log, cutoff, training=True))
        for name, log in zip(names, logs, strict=True)
    ]


def selected_terms(robot: Robot, run: Experiment, present: tuple[Term, ...], band_hz: float | None) -> tuple[Term, ...]:
    """Terms that the default selects on a whole log."""
    fit = identify_experiments(robot, [run], Recipe(band_hz=band_hz), WLS(), terms=present)
    return fit.terms


@dataclass(frozen=True)
class Halves:
    """The agreement of the halves of one log with one model."""

    log: str
    model: str
    """`usual` or `selected` terms."""
    default: Agreement
    wls: Agreement

    def row(self) -> tuple[str, str, str, str, str]:
        """Cells of a table: log, terms, by the default, by weighted least squares, not counted."""
        shares = [f"{a.inside} of {a.count}, {a.percent:.1f} %" for a in (self.default, self.wls)]
        return self.log, self.model, shares[0], shares[1], str(self.default.left_out)


HEADS = ("log", "terms", "default", "WLS", "not counted")
"""Columns of `Halves.row`."""


def measure(data: DataSet) -> Iterator[Halves]:
    """Compare the halves of every log of a data set, with the usual and with the selected terms."""
    for label, robot, run in prepare(data):
        base, band = base_parameters(robot), float(data.cutoffs_hz[0]) if data.cutoffs_hz else None
        models = {"usual": data.terms, "selected": selected_terms(robot, run, data.terms, band)}
        for model, terms in models.items():
            halves = [build_equations(robot, h, base=base, terms=terms, band_hz=band) for h in halve(run)]
            fitted, plain = agreements(halves, FeasibleWLS())
            yield Halves(label, model, fitted, plain)


def main(names: Sequence[str]) -> None:
    """Print the agreement of the halves of every log."""
    if not DATA.is_dir():
        print(f"no data sets in {DATA}")
        return
    print("{:22s} {:9s} {:19s} {:19s} {}".format(*HEADS))
    for data in SETS:
        if not names or data.name in names:
            for halves in measure(data):
                print("{:22s} {:9s} {:19s} {:19s} {}".format(*halves.row()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
