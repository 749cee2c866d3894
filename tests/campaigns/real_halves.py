"""Do the halves of a real log agree within their intervals?

    python tests/campaigns/real_halves.py [data set ...]

Each log is processed once and cut into eight pieces, which are put together to two halves in seven ways: the first and
the second four, every other one, and so on (the rows of a Hadamard matrix, so that errors which are independent from
piece to piece differ independently between the halves of each way). Parameters are estimated from either half by
itself; their difference is compared with 1.96 standard deviations of it. 95 % of the parameters should agree, if
intervals hold. Parameters are those that the data determine in both halves: neither open nor dominated by the prior, of
which both halves would take the same word.

The default is judged twice. Its intervals also hold the error of the prior, which both halves have in common, so that
by them (`default`) more than 95 % agree where they are right. `scatter` leaves out what is in common: the difference
has the noise of either half, as far as the estimate takes it up, and of the prior's error only as much as one half is
drawn more than the other. `usual` has the usual terms only, `selected` also the terms that the default selects on the
whole log.

Parameters of one fit are correlated, so that their agreements are fewer than they seem: as many independent ones as
would scatter as much, by the covariance of the differences, stand in the last column. Behind each share is its 95 %
interval (Clopper and Pearson) for that number: a share contradicts 95 % only where its interval does not hold it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for one another

import numpy as np
from numpy.typing import NDArray
from real_logs import DATA, SETS, DataSet
from scipy.linalg import hadamard
from scipy.stats import beta, binom

from dynid.estimation.cross_validation import weigh_prior
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.estimate import Estimate
from dynid.estimation.intervals.score_covariance import BlockWeights
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.estimation.physical.prior_bias import Draw, weigh_evidence
from dynid.links.identify import identify_experiments
from dynid.links.recipe import Recipe
from dynid.parameters.base import base_parameters
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.base import Term

Floats = NDArray[np.float64]
NORMAL = 1.959963984540054
"""Half width of a 95 % interval in standard deviations."""
RANGE = (90.0, 98.0)
"""Wanted share of parameters that agree [%]."""
DRAWS = 20000
"""Number of draws for the scatter of correlated agreements (convention: known to 1 %)."""
PIECES = 8
"""Number of pieces of a log. More have more ways, and lose more at their ends, where filters settle."""
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
    independent: float
    """Number of independent parameters whose agreements would scatter as much as those of the correlated ones."""

    @property
    def percent(self) -> float:
        """Share of parameters that agree [%]."""
        return 100.0 * self.inside / max(self.count, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share [%] by Clopper and Pearson, for the number of independent parameters."""
        hits = self.independent * self.inside / max(self.count, 1)
        misses = self.independent - hits
        low = beta.ppf(0.025, hits, misses + 1.0) if hits > 0.0 else 0.0
        high = beta.ppf(0.975, hits + 1.0, misses) if misses > 0.0 else 1.0
        return 100.0 * float(low), 100.0 * float(high)

    def __add__(self, other: Agreement) -> Agreement:
        """The agreement of the parameters of both."""
        ours, theirs = ((one.inside, one.count, one.left_out, one.independent) for one in (self, other))
        return Agreement(*(a + b for a, b in zip(ours, theirs, strict=True)))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.inside} of {self.count}, {self.percent:.1f} % ({low:.0f}-{high:.0f})"


def independent_number(covariance: Floats) -> float:
    """Number of independent normal variables whose hits of their 95 % intervals scatter as those of correlated ones.

    Args:
        covariance: (k, k) of the correlated variables.
    """
    if not len(covariance):
        return 0.0
    scale = np.sqrt(np.diagonal(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    draws = np.random.default_rng(0).standard_normal((DRAWS, len(scale)))
    drawn = draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    hits = (np.abs(drawn) <= NORMAL).sum(axis=1)
    return float(min(len(scale) ** 2 * 0.95 * 0.05 / max(float(hits.var()), 1e-12), len(scale)))


def halvings(run: Experiment) -> Iterator[tuple[Experiment, Experiment]]:
    """The halves of an experiment, in seven ways that are orthogonal to one another."""
    valid = np.flatnonzero(run.valid.any(axis=1))
    cuts = [int(valid[len(valid) * piece // PIECES]) for piece in range(1, PIECES)]
    pieces = np.split(np.arange(run.samples), cuts)
    for signs in hadamard(PIECES)[1:]:
        first, second = (np.concatenate([pieces[k] for k in np.flatnonzero(signs == sign)]) for sign in (1, -1))
        yield rows(run, first), rows(run, second)


def rows(run: Experiment, some: NDArray[np.int64]) -> Experiment:
    """Some rows of an experiment, in the order of time; a new segment begins after what is left out."""
    names = ("time", "q", "dq", "ddq", "effort", "valid")
    broken = (np.diff(run.segment[some]) != 0) | (np.diff(some) != 1)
    segment = np.concatenate([[0], np.cumsum(broken)]).astype(run.segment.dtype)
    return replace(run, segment=segment, **{name: getattr(run, name)[some] for name in names})


def determined(estimates: Sequence[Estimate]) -> NDArray[np.bool_]:
    """(b,) whether the data determine the parameter in all estimates."""
    marks = [~one.undetermined & ~np.isin(one.names, one.prior_dominated) for one in estimates]
    return np.asarray(np.all(marks, axis=0))


def scatter(halves: Sequence[Samples], default: FeasibleWLS) -> Floats:
    """(b, b) covariance of the difference of two estimates that one prior draws."""
    noise, drags, errors = [], [], []
    for half in halves:
        weighing = weigh_prior(half, default.prior_weight, default.rounds, default.title)
        solution = feasible_parameters(half, weighing.factor, weighing.prior_weight, default)
        plain, program = weighing.plain, solution.program
        weights = BlockWeights(weighing.weights / plain.inflation, plain.noise_std**2, plain.inflation)
        draw = Draw(half.grouping @ solution.from_scaled, program.centre, program.pull)
        said = weigh_evidence(half, weights, draw)
        by_weight = said.stated @ said.stated.T
        drag = np.linalg.inv(np.eye(len(by_weight)) + by_weight)  # what of the prior's error the estimate takes up
        kept = said.own[:, None] * (said.root @ (np.eye(len(drag)) - drag))
        noise.append(kept @ said.sampling @ kept.T)
        drags.append(said.root @ drag @ said.forth)
        shown = said.root @ said.prior
        errors.append(shown @ shown.T)
    more = drags[0] - drags[1]
    return np.asarray(noise[0] + noise[1] + more @ (errors[0] + errors[1]) @ more.T / 2.0)


def compare(estimates: Sequence[Estimate], counted: NDArray[np.bool_], covariance: Floats | None = None) -> Agreement:
    """Compare two estimates in the counted parameters (b,).

    Args:
        estimates: Two of them.
        counted: (b,)
        covariance: (b, b) of their difference; None for that of their intervals.
    """
    first, second = estimates
    spread = np.hypot(first.stderr, second.stderr) if covariance is None else np.sqrt(np.diagonal(covariance))
    covariance = first.covariance + second.covariance if covariance is None else covariance
    inside = np.abs(first.values - second.values) <= NORMAL * spread
    number = independent_number(np.asarray(covariance)[np.ix_(counted, counted)])
    return Agreement(int(inside[counted].sum()), int(counted.sum()), int((~counted).sum()), number)


def agreements(halves: Sequence[Samples], default: FeasibleWLS) -> tuple[Agreement, Agreement, Agreement]:
    """Agreement of two halves by the default, by its scatter and by weighted least squares."""
    fits = [default.solve(half) for half in halves]
    plain = [WLS().solve(half) for half in halves]
    counted = determined(fits) & determined(plain)
    return compare(fits, counted), compare(fits, counted, scatter(halves, default)), compare(plain, counted)


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
    """The agreement of the halves of one log with one model, all ways of halving together."""

    log: str
    model: str
    """`usual` or `selected` terms."""
    default: Agreement
    scatter: Agreement
    """The default's, without the error of the prior that both halves have in common."""
    wls: Agreement

    def row(self) -> tuple[str, ...]:
        """Cells of a table: log, terms, the agreements, not counted, independent."""
        number = f"{self.default.independent:.0f}, {self.scatter.independent:.0f}, {self.wls.independent:.0f}"
        ways = (str(self.default), str(self.scatter), str(self.wls))
        return self.log, self.model, *ways, str(self.default.left_out), number


HEADS = ("log", "terms", "default", "scatter", "WLS", "not counted", "independent")
"""Columns of `Halves.row`."""


def pooled(rows: Sequence[Halves]) -> list[Halves]:
    """The agreement of all logs together, with the usual and with the selected terms."""
    models = {model: [each for each in rows if each.model == model] for model in ("usual", "selected")}
    return [
        Halves(
            f"all {len(some)}",
            model,
            default=reduce(add, (h.default for h in some)),
            scatter=reduce(add, (h.scatter for h in some)),
            wls=reduce(add, (h.wls for h in some)),
        )
        for model, some in models.items()
        if some
    ]


def describe_chance(rows: Sequence[Halves]) -> str:
    """How many shares lie outside of the wanted range, and how many would with right intervals."""
    shares = [share for each in rows for share in (each.scatter, each.wls)]
    outside = sum(not RANGE[0] <= share.percent <= RANGE[1] for share in shares)
    chances = np.array([chance_inside(share.independent) for share in shares])
    return (
        f"Of the {len(shares)} shares by *scatter* and *WLS*, {outside} lie outside of {RANGE[0]:g} to {RANGE[1]:g} %. "
        f"Right intervals, by which 95 % agree, would leave {float(np.sum(1.0 - chances)):.1f} outside on average, for "
        "these numbers of independent parameters: chance alone scatters that much. All would lie inside with a "
        f"probability of {100.0 * float(chances.prod()):.1g} %."
    )


def chance_inside(independent: float) -> float:
    """Probability that the share of independent parameters that agree is in the wanted range, if 95 % should."""
    number = max(round(independent), 1)
    agreeing = np.arange(number + 1)
    percent = 100.0 * agreeing / number
    return float(binom.pmf(agreeing, number, 0.95)[(percent >= RANGE[0]) & (percent <= RANGE[1])].sum())


def measure(data: DataSet) -> Iterator[Halves]:
    """Compare the halves of every log of a data set, with the usual and with the selected terms."""
    for label, robot, run in prepare(data):
        base, band = base_parameters(robot), float(data.cutoffs_hz[0]) if data.cutoffs_hz else None
        models = {"usual": data.terms, "selected": selected_terms(robot, run, data.terms, band)}
        for model, terms in models.items():
            found = []
            for pair in halvings(run):
                halves = [build_equations(robot, half, base=base, terms=terms, band_hz=band) for half in pair]
                found.append(agreements(halves, FeasibleWLS()))
            yield Halves(label, model, *(reduce(add, some) for some in zip(*found, strict=True)))


def main(names: Sequence[str]) -> None:
    """Print the agreement of the halves of every log."""
    if not DATA.is_dir():
        print(f"no data sets in {DATA}")
        return
    line, rows = "{:22s} {:9s} {:28s} {:28s} {:28s} {:12s} {}", list[Halves]()
    print(line.format(*HEADS))
    for data in SETS:
        if not names or data.name in names:
            for halves in measure(data):
                print(line.format(*halves.row()), flush=True)
                rows.append(halves)
    for halves in pooled(rows):
        print(line.format(*halves.row()))
    print(describe_chance(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
