"""One cutoff for all logs of a robot, chosen by prediction: the one whose torques are best on left-out blocks of time.

The spectrum of each log suggests a cutoff for its accelerations (`dynid.processing.cutoff`), but runs of one robot must
be processed alike to be comparable, and what counts are torques. So a small grid around the suggestions is tried: every
log of the training part is low-passed at each cutoff, the base parameters are fitted without some blocks of time, and
the torques of these blocks are predicted. Torques are compared as measured (or within the band of the recipe), on the
samples that all cutoffs keep, so that the errors are comparable. What several runs differ in by their offsets is taken
off: the identification may give runs offsets of their own, and they would drown the differences between cutoffs.
Held-out logs get the same cutoff.

Where the errors of several cutoffs differ by less than half a percent of themselves, or by less than their scatter over
the blocks, prediction cannot tell them apart: the one nearest to the suggestions of the spectra is taken, and a finding
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.errors import DataError
from dynid.estimation.cross_validation import FOLDS, RUNS_AS_FOLDS, Folds
from dynid.estimation.equations import Factors, Samples, build_equations, merge_information
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import noise_weights, refined_weights
from dynid.findings import Finding
from dynid.links.common.fewer_samples import shorten_long, thin_out
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters
from dynid.processing.experiment import Experiment
from dynid.processing.process import HIGHEST_CUTOFF, HIGHEST_IN_BAND, LOWEST_IN_BAND, Chain
from dynid.robot.model import Robot
from dynid.terms.base import Term
from dynid.terms.motors import Offset

BELOW, ABOVE = 2.0, 8.0
"""Factors by which the grid exceeds the suggestions of the spectra (convention). A spectrum of few strokes may hide the
upper part of the motion: suggestions that are far too low were seen more often than such that are too high."""
STEP, STEP_IN_BAND = 2.0, 2.0**0.5
"""Largest ratio between neighbouring cutoffs of the grid (convention: errors change little within an octave); within a
stated band, where the whole grid is an octave wide, its middle is tried as well: with it the error on left-out parts of
the training parts is 0.89 instead of 0.96 % for panda_gaz below 3 Hz (tests/campaigns/inner_folds.py)."""
MOST_CUTOFFS = 7
"""Largest number of cutoffs that are tried; beyond, the steps grow (convention)."""
KEPT = 0.7
"""Smallest share of the samples that a cutoff of the grid must keep (convention)."""
SURE = 1.0
"""Standard errors of the mean over the blocks by which a cutoff must be worse than the best to be ruled out
(convention: the one-standard-error rule of cross-validation)."""
LITTLE = 0.005
"""Relative difference of errors below which cutoffs count as equal whatever the scatter (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommonCutoff:
    """A cutoff for all logs, and the errors for which it was chosen."""

    hz: float
    """The cutoff [Hz]."""
    cutoffs_hz: tuple[float, ...]
    """The cutoffs that were tried [Hz]."""
    errors: tuple[float, ...]
    """Relative torque error on left-out blocks with each of them [%]."""
    suggested_hz: tuple[float, ...]
    """The cutoff that the spectrum of each log suggests [Hz]."""
    is_clear: bool
    """Whether one cutoff is better than all others by more than the scatter over the blocks, and not just a little."""
    folds: int
    """Number of left-out parts."""

    @property
    def reason(self) -> str:
        """One sentence on the choice, for `Experiment.processing_steps`."""
        error = self.errors[self.cutoffs_hz.index(self.hz)]
        margin = (
            ""
            if self.is_clear
            else "; others predict equally well, and this one is nearest to the one that the noise suggests"
        )
        return (
            f"cutoff {self.hz:.3g} Hz, chosen by the error on {self.folds} left-out parts of the data: {error:.3g} %, "
            f"beside {min(self.errors):.3g} to {max(self.errors):.3g} % for {self.cutoffs_hz[0]:.3g} to "
            f"{self.cutoffs_hz[-1]:.3g} Hz{margin}"
        )

    @property
    def finding(self) -> Finding:
        """The choice as a note."""
        logs = "the log" if len(self.suggested_hz) == 1 else f"all {len(self.suggested_hz)} logs"
        spectra = ", ".join(f"{hz:.3g}" for hz in self.suggested_hz)
        clear = (
            "with this cutoff the model predicts best the data that were left out of its fit; the noise alone "
            f"suggests {spectra} Hz"
            if self.is_clear
            else "several cutoffs predict equally well; of them, this one is nearest to the one that the noise "
            f"suggests ({spectra} Hz)"
        )
        return Finding(
            code="common-cutoff", severity="note", where="recipe",
            message=f"the positions of {logs} are smoothed by a low-pass filter at {self.hz:.3g} Hz: {clear}",
            evidence={f"error with {hz:.3g} Hz [%]": error
                      for hz, error in zip(self.cutoffs_hz, self.errors, strict=True)},
            remedy="" if self.is_clear else "Set cutoff_hz where you know better.",
        )  # fmt: skip


class CutoffChoice:
    """Chooses one cutoff for several logs when a `LogReader` asks, and remembers the choice."""

    def __init__(
        self, robot: Robot, *, band_hz: float | None, terms: Sequence[Term], base: BaseParameters | None
    ) -> None:
        """Arguments are those of `choose_common_cutoff`."""
        self._choose = partial(choose_common_cutoff, robot, band_hz=band_hz, terms=terms)
        self._chosen: CommonCutoff | None = None
        self._robot, self.base = robot, base
        """The base parameters, as far as they are known."""

    def __call__(self, chains: Sequence[Chain]) -> tuple[float, str] | None:
        """The cutoff [Hz] and its reason; None where nothing can be predicted."""
        self.base = choose_base(self._robot, self.base)
        self._chosen = self._choose(chains, base=self.base)
        return None if self._chosen is None else (self._chosen.hz, self._chosen.reason)

    @property
    def hz(self) -> float | None:
        """The chosen cutoff [Hz], if there is one."""
        return None if self._chosen is None else self._chosen.hz

    def noted(self, estimate: Estimate) -> Estimate:
        """The estimate with the choice among its findings."""
        notes = () if self._chosen is None else (self._chosen.finding,)
        return replace(estimate, findings=(*estimate.findings, *notes))


def choose_common_cutoff(
    robot: Robot,
    chains: Sequence[Chain],
    *,
    band_hz: float | None = None,
    terms: Sequence[Term] = (),
    base: BaseParameters | None = None,
) -> CommonCutoff | None:
    """Choose one cutoff for several logs by cross-validation of the torques.

    Args:
        robot: The robot with its terms.
        chains: The training parts of the logs, each with the cutoff that its spectrum suggests.
        band_hz: Band in which torques are compared [Hz]; None for all frequencies.
        terms: Terms of the model besides the robot's own.
        base: The base parameters, where they were computed before.

    Returns:
        The choice; None where nothing can be predicted: no torques, too short logs, or a grid of one cutoff.
    """
    suggested = [float(chain.options.cutoff_hz) for chain in chains if isinstance(chain.options.cutoff_hz, float)]
    grid = _grid(suggested, min(chain.uniform.rate_hz for chain in chains), band_hz) if suggested else ()
    known = choose_base(robot, base)
    runs = _long_enough({hz: _experiments(chains, hz) for hz in grid})
    if len(runs) < 2:
        return None
    cutoffs, alike = tuple(runs), _on_the_same_samples(list(runs.values()))
    if not all(any(run.valid.any() for run in trial) for trial in alike):
        return None
    if band_hz is None:
        alike = [shorten_long(trial) for trial in alike]
    else:
        alike = [[thin_out(run, band_hz) for run in trial] for trial in alike]
    blocks = 1 if len(chains) >= RUNS_AS_FOLDS else FOLDS
    problems = [
        take_offsets_off(build_equations(robot, trial, base=known, terms=terms, band_hz=band_hz, blocks=blocks))
        for trial in alike
    ]
    if np.count_nonzero(problems[0].information.samples.any(axis=1)) < 3:
        return None
    squares = np.array([_left_out_squares(problem) for problem in problems])
    place, is_clear = _best(np.array(cutoffs), squares, float(np.exp(np.mean(np.log(suggested)))))
    torque = sum(float(np.sum(problems[0].information.factor(j)[:, -1] ** 2)) for j in range(robot.dof))
    errors = 100.0 * np.sqrt(squares.sum(axis=1) / torque)
    return CommonCutoff(
        hz=cutoffs[place], cutoffs_hz=cutoffs, errors=tuple(errors.tolist()), suggested_hz=tuple(suggested),
        is_clear=is_clear, folds=squares.shape[1],
    )  # fmt: skip


def _grid(suggested: Sequence[float], slowest_hz: float, band_hz: float | None) -> tuple[float, ...]:
    """Cutoffs around those of the spectra, within what the slowest log and the band allow [Hz]."""
    low, high, step = min(suggested) / BELOW, max(suggested) * ABOVE, STEP
    if band_hz is not None:
        low, high, step = LOWEST_IN_BAND * band_hz, HIGHEST_IN_BAND * band_hz, STEP_IN_BAND
    high = min(high, HIGHEST_CUTOFF * slowest_hz)
    low = min(low, high)
    count = min(MOST_CUTOFFS, 1 + int(np.ceil(np.log(high / low) / np.log(step) - 1e-9)))
    return tuple(dict.fromkeys(np.geomspace(low, high, max(count, 1)).tolist()))


def _experiments(chains: Sequence[Chain], hz: float) -> list[Experiment]:
    """The logs low-passed at a cutoff; nothing where one of them is too short for it."""
    try:
        return [chain.with_cutoff(hz, "").experiment() for chain in chains]
    except DataError:
        return []


def _long_enough(trials: dict[float, list[Experiment]]) -> dict[float, list[Experiment]]:
    """The trials that keep most samples: a low cutoff leaves long transients out, and what is left judges all."""
    counts = {hz: sum(int(np.count_nonzero(run.valid)) for run in runs) for hz, runs in trials.items()}
    most = max(counts.values(), default=0)
    return {hz: runs for hz, runs in trials.items() if counts[hz] and counts[hz] >= KEPT * most}


def _on_the_same_samples(trials: Sequence[Sequence[Experiment]]) -> list[list[Experiment]]:
    """The experiments of every trial, cut to the samples that all trials have; valid is what is so in all."""
    found: list[list[Experiment]] = [[] for _ in trials]
    for versions in zip(*trials, strict=True):
        time = reduce(np.intersect1d, [run.time for run in versions])
        rows = [np.searchsorted(run.time, time) for run in versions]
        valid = np.all([run.valid[mine] for run, mine in zip(versions, rows, strict=True)], axis=0)
        for place, (run, mine) in enumerate(zip(versions, rows, strict=True)):
            found[place].append(replace(run.rows(mine), valid=valid))
    return found


def take_offsets_off(equations: Samples) -> Samples:
    """The equations without what the offsets of several runs differ in; their mean stays."""
    places, runs = _offset_places(equations), equations.blocks
    if len(runs) < 2 or not places:
        return equations
    information = equations.information
    own = np.zeros((len(runs), len(equations.names)))
    own[:, list(places.values())] = _offsets_of_runs(equations, places)
    parts = [information.only(*segments).with_moved_torques(row)
             for segments, row in zip(runs, own - own.mean(axis=0), strict=True)]  # fmt: skip
    return replace(equations, information=merge_information(parts))


def _offset_places(equations: Samples) -> dict[int, int]:
    """Joint -> place of its offset among the parameters."""
    robot, rank = equations.robot, equations.base.rank
    first = 10 * robot.dof
    columns = equations.base.columns
    own = {robot.terms[columns[place] - first].joints[0]: place for place in offset_places(equations)}
    return own | {
        term.acts_on(robot.joint_names)[0]: place
        for place, term in enumerate(equations.terms, start=rank)
        if isinstance(term, Offset)
    }


def _offsets_of_runs(equations: Samples, places: dict[int, int]) -> Floats:
    """(runs, offsets) offset of each run, from one weighted fit of all other parameters to what is not constant."""
    weights, rows, torques, constants = np.sqrt(refined_weights(equations)), [], [], []
    for segments in equations.blocks:
        run = equations.information.only(*segments)
        for joint, support in enumerate(run.supports):
            R = np.zeros((len(support) + 1, len(equations.names) + 1))
            R[:, [*support, -1]] = run.factor(joint)
            if joint in places:
                constant = R[:, places[joint]].copy()
                length = float(np.linalg.norm(constant))
                unit = constant / max(length, 1e-300)
                constants.append(unit @ R / max(length, 1e-300))
                R -= np.outer(unit, unit @ R)
            rows.append(weights[joint] * R[:, :-1])
            torques.append(weights[joint] * R[:, -1])
    beta = lstsq(np.concatenate(rows), np.concatenate(torques))
    beta[list(places.values())] = 0.0
    return np.array([row[-1] - row[:-1] @ beta for row in constants]).reshape(len(equations.blocks), len(places))


def _left_out_squares(equations: Samples) -> Floats:
    """(folds,) squared torque error of each left-out part, predicted from the others [(N m)^2]."""
    folds = Folds(equations, noise_weights(equations))
    return folds.errors(equations.terms, [], folds.best_weight(equations.terms))[0]


def _best(cutoffs: Floats, squares: Floats, suggested_hz: float) -> tuple[int, bool]:
    """Place of the chosen cutoff, and whether it is better than all others by more than the scatter.

    Args:
        cutoffs: (c,) [Hz].
        squares: (c, folds) squared errors.
        suggested_hz: The cutoff that is preferred among equals [Hz].
    """
    logs = 0.5 * np.log(np.maximum(squares, 1e-300))
    best = int(np.argmin(logs.mean(axis=1)))
    worse = logs - logs[best]
    scatter = worse.std(axis=1, ddof=1) / np.sqrt(worse.shape[1]) if worse.shape[1] > 1 else np.zeros(len(worse))
    equal = np.flatnonzero(worse.mean(axis=1) <= np.maximum(SURE * scatter, LITTLE))
    nearest = equal[np.argmin(np.abs(np.log(cutoffs[equal] / suggested_hz)))]
    return int(nearest), equal.size == 1


def offset_places(equations: Factors) -> list[int]:
    """Places of the unknowns that are offsets."""
    robot, columns = equations.robot, equations.base.columns
    first = 10 * robot.dof
    return [
        place
        for place, column in enumerate(columns)
        if column >= first and isinstance(robot.terms[column - first].term, Offset)
    ]
