"""The energy theorem as equations, one per interval of time ([GautierKhalil1992]).

The work of the joints between two instants is the change of the links' energy (eqs. (1)-(3)), which is linear in the
parameters (eqs. (4)-(7)); one equation per interval makes the system (8)-(10), solved by ordinary least squares. It
needs no accelerations. Friction enters by its work over the interval, rotors by their kinetic energy. Confidence
intervals of the estimate come from the scores of blocks of time.

`Energy` is the public estimator, which cuts experiments in memory into intervals. `OnlineEnergy`, the same sample by
sample, uses `energy_equations` and `energy_estimate`, too.

Shapes: m intervals, n joints, b base parameters, k further terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.interpolate import make_interp_spline

from dynid.array_types import Bools, Floats
from dynid.checks import check_number
from dynid.compiled import kernel, regressor
from dynid.data_reduction.chunks import PORTION
from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimators.equations import Factors, Samples, factors_of
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.linear.least_squares import least_squares_estimate, nothing_known
from dynid.estimators.linear.link_by_link import SPARE
from dynid.estimators.noise import check_data
from dynid.estimators.online.triangle import GrowingBlocks
from dynid.estimators.rows import stretches, term_columns
from dynid.identifiability.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.spatial import ROUNDING
from dynid.terms.base import Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The samples of m consecutive intervals of equal length; each begins at the sample where the one before ends."""

    q: Floats
    """(m * length + 1, n) positions [rad or m]."""
    dq: Floats
    """(m * length + 1, n) velocities [rad/s or m/s]."""
    effort: Floats
    """(m * length + 1, n) measured torque, zero where it does not count [N m or N]."""
    valid: Bools
    """(m * length + 1, n) whether the torque counts."""
    rate_hz: float
    """Sampling rate [Hz]."""
    length: int
    """Number of sampling periods in an interval."""
    further_terms: tuple[dict[int, Floats], ...] = ()
    """For each further term of the equations (not the robot's own), joint index -> its column on these samples."""

    def instants(self, values: Floats) -> Floats:
        """The values (m + 1, ...) at the ends of the intervals, of values (m * length + 1, ...) at all samples."""
        return values[:: self.length]

    def integral(self, values: Floats) -> Floats:
        """(m, ...) integral over each interval [s times the unit of the values]."""
        return self._sum_intervals(values, spline_weights(self.length) / self.rate_hz)

    def is_complete(self) -> Bools:
        """(m,) whether all samples of the interval count."""
        is_missing = np.where(self.valid.all(axis=1), 0.0, 1.0)
        return np.asarray(self._sum_intervals(is_missing, np.ones(self.length + 1)) == 0.0)

    def _sum_intervals(self, values: Floats, weights: Floats) -> Floats:
        """(m, ...) weighted sum of the values (m * length + 1, ...) of each interval; weights (length + 1,)."""
        inner = values[:-1].reshape((len(values) - 1) // self.length, self.length, *values.shape[1:])
        ends = values[self.length :: self.length]
        return np.asarray(np.tensordot(inner, weights[:-1], axes=(1, 0)) + weights[-1] * ends)


@lru_cache(maxsize=16)
def spline_weights(length: int) -> Floats:
    """(length + 1,) weights of samples at unit distance in the integral of the quintic spline through them.

    Short intervals have lower orders: the trapezoid rule for one step, Simpson's rule for two, cubic for three and
    four.
    """
    order = length if length < 3 else 3 if length < 5 else 5
    spline = make_interp_spline(np.arange(length + 1.0), np.eye(length + 1), k=order)
    weights = np.asarray(spline.integrate(0.0, float(length)))
    weights.setflags(write=False)  # the cached array is shared by all callers
    return weights


def interval_steps(interval_s: float, rate_hz: float) -> int:
    """Number of sampling periods in an interval [s], rounded.

    Raises:
        ArgumentError: It is shorter than half a sampling time.
    """
    steps = round(interval_s * rate_hz)
    if steps < 1:
        raise ArgumentError(
            f"interval_s is {interval_s:g} s, and samples are {1.0 / rate_hz:g} s apart",
            remedy=f"Give at least one sampling time, better ten: interval_s={10.0 / rate_hz:g}.",
        )
    return steps


def energy_equations(robot: Robot, base: BaseParameters, part: Intervals) -> Floats:
    """Form the energy equations of the intervals whose samples all count.

    Returns:
        (m, b + k + 1) energy [J] per unit of each base parameter and further term, then the work of the joints [J].
    """
    border = 10 * robot.dof  # the columns of the links come before those of the robot's terms
    links = [column for column in base.columns if column < border]
    own_terms = [column for column in base.columns if column >= border]
    q_ab, dq_ab = part.instants(part.q), part.instants(part.dq)
    h = kernel(robot, "energy_regressor", columns=links)(q_ab, dq_ab)  # [GautierKhalil1992] eqs. (4), (6)
    kinetic = 0.5 * np.einsum("tj,tjk->tk", dq_ab, _term_momentum(robot, own_terms, q_ab, dq_ab))
    work = np.einsum("tj,tjk->tk", part.dq, _term_torque(robot, own_terms, part))
    terms = part.integral(work)
    terms[:, : len(own_terms)] += np.diff(kinetic, axis=0)
    target = part.integral((part.effort * part.dq).sum(axis=1))  # eqs. (1)-(3)
    return np.column_stack([_differences(h), terms, target])[part.is_complete()]  # eqs. (5), (7)


def _differences(h: Floats) -> Floats:
    """(m, columns) differences of rows (m + 1, columns); zero where a difference is mere rounding.

    Otherwise a motion of constant energy would seem to determine a parameter.
    """
    change = np.diff(h, axis=0)
    size = np.abs(h).max(axis=1, initial=0.0, keepdims=True)
    return np.where(np.abs(change) > ROUNDING * np.maximum(size[1:], size[:-1]), change, 0.0)


def _term_torque(robot: Robot, own_terms: list[int], part: Intervals) -> Floats:
    """(samples, n, k) torque per unit of each term, without the part from accelerations: friction, offset.

    The k terms are the robot's own, then the further ones of the equations.
    """
    rows = np.zeros((*part.q.shape, len(own_terms) + len(part.further_terms)))
    if own_terms:
        rows[..., : len(own_terms)] = regressor(robot, part.q, part.dq, np.zeros_like(part.q), columns=own_terms)
    for k, column in enumerate(part.further_terms, start=len(own_terms)):
        for joint, values in column.items():
            rows[:, joint, k] = values
    return rows


def _term_momentum(robot: Robot, own_terms: list[int], q: Floats, dq: Floats) -> Floats:
    """(m + 1, n, k) momentum per unit of terms whose torque depends on accelerations: rotors [N m s or N s].

    A rotor's torque ``IA * ddq`` is the rate of its momentum ``IA * dq``: the same column with the velocity in place of
    the acceleration.

    Raises:
        ArgumentError: A term depends on accelerations in another way.
    """
    if not own_terms:
        return np.zeros((*q.shape, 0))
    at_rest, moving = (regressor(robot, q, dq, ddq, columns=own_terms) for ddq in (np.zeros_like(q), dq))
    momentum = np.asarray(moving - at_rest)
    for column, acts in zip(own_terms, np.any(momentum, axis=(0, 1)).tolist(), strict=True):
        if acts and robot.terms[column - 10 * robot.dof].term.dependence is not Dependence.ACCELERATION:
            raise ArgumentError(
                "a term's torque is not a constant times accelerations, so it has no momentum",
                remedy="Use an estimator of torques, such as WLS().",
            )
    return momentum


def energy_estimate(equations: Factors) -> Estimate:
    """Solve energy equations, W and Y of [GautierKhalil1992] eq. (10), by ordinary least squares.

    Without enough equations, or without any work, all parameters are undetermined.
    """
    method = "ordinary least squares on energy differences"
    count = int(equations.counts[0])
    has_work = np.any(equations.information.factor(0)[:, -1])  # the last column is the work
    is_enough = count >= len(equations.names) + SPARE and has_work
    found = least_squares_estimate(equations, np.ones(1), method) if is_enough else nothing_known(equations, method)
    n = equations.robot.dof  # all joints share the equations, and so their statistics
    return replace(
        found,
        noise_std=np.repeat(found.noise_std, n),
        inflation=np.repeat(found.inflation, n),
        samples=np.repeat(found.samples, n),
        extras={"equations": float(count)},
    )


@dataclass(frozen=True, slots=True)
class Energy(Estimator):
    """Minimises squared residuals of energy differences between instants ([GautierKhalil1992] eqs. (1)-(10)).

    Use it where accelerations are too noisy: they are not needed. `OnlineEnergy` is the same sample by sample.
    """

    name: ClassVar[str] = "energy"
    title: ClassVar[str] = "least squares on energy differences"
    use: ClassVar[str] = "accelerations are too noisy"
    references: ClassVar[tuple[str, ...]] = ("GautierKhalil1992",)
    reads_samples: ClassVar[bool] = True

    interval_s: float = 0.05
    """Length of the intervals [s]: short against the motion, long against the sampling time. It is rounded to whole
    samples of each experiment: 0.05 s at 250 Hz become 12 samples, 0.048 s."""

    def __post_init__(self) -> None:
        """Refuse intervals without length."""
        check_number("interval_s", self.interval_s, "a time above zero [s]")

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate from the energy balances of all intervals whose samples all count.

        Raises:
            IdentifiabilityError: There are no more equations than unknowns, or they say nothing.
        """
        check_data(equations, spare=1)
        blocks = GrowingBlocks([len(equations.names) + 1])
        for part in _cut_intervals(equations, self.interval_s):
            blocks.append([energy_equations(equations.robot, equations.base, part)])
        if (count := int(blocks.counts.sum())) <= len(equations.names):
            raise IdentifiabilityError(
                f"{count} equations for {len(equations.names)} unknowns",
                remedy="Record longer gap-free stretches, shorten the intervals, or use an estimator of torques.",
            )
        energies = factors_of(equations.robot, equations.base, blocks.triangles, blocks.counts, terms=equations.terms)
        if not energies.information.weight().R.any():
            remedy = "Move the robot."
            raise IdentifiabilityError("the robot does not move, so these equations say nothing", remedy=remedy)
        return energy_estimate(energies)


def _cut_intervals(equations: Samples, interval_s: float) -> Iterator[Intervals]:
    """The intervals of every gap-free stretch, in portions of about PORTION samples."""
    for run in equations.experiments:
        length = interval_steps(interval_s, run.rate_hz)
        portion = max(1, PORTION // length) * length
        for rows, motion in stretches(run):
            # computed over the whole stretch, because terms may have memory
            further_terms = term_columns(equations.robot, equations.terms, motion)
            last = (len(motion.q) - 1) // length * length  # end of the last whole interval
            for start in range(0, last, portion):
                here = slice(start, min(start + portion, last) + 1)
                columns = tuple({joint: column[here] for joint, column in one.items()} for one in further_terms)
                part = run.rows(slice(rows.start + here.start, rows.start + here.stop))
                effort = np.where(part.valid, part.effort, 0.0)
                yield Intervals(part.q, part.dq, effort, part.valid, run.rate_hz, length, columns)
