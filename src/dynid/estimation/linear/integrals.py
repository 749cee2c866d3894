"""Integrals of a motion over consecutive intervals, and the torques and momenta of terms.

The columns of a robot's parameters are split in two: those of its links, and those of its own terms (friction, offset,
rotor inertia). The equations may have further terms besides; in every array here they stand behind the robot's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Samples
from dynid.estimation.rows import stretches, term_columns
from dynid.kernels import regressor
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot

PORTION_SAMPLES = 2048
"""Number of samples whose equations are in memory at a time, about (convention: some megabytes)."""
LINK_PARAMETERS = 10
"""Number of inertial parameters of a link: six of inertia, three of first moments, and the mass."""
OTHER_POSITION = 0.37
"""Shift of all positions [rad or m] at which a term's momentum is computed again (convention). Any value works unless
it is a simple fraction of a turn."""


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Consecutive intervals of equal length, one beginning at the sample where the one before ends."""

    q: Floats
    """(m * length + 1, n) [rad or m]"""
    dq: Floats
    """(m * length + 1, n)"""
    effort: Floats
    """(m * length + 1, n) measured torque, zero where it does not count [N m or N]."""
    valid: NDArray[np.bool_]
    """(m * length + 1, n) whether the torque counts."""
    rate_hz: float
    """Sampling rate [Hz]."""
    length: int
    """Steps of time in an interval."""
    further_terms: tuple[dict[int, Floats], ...] = ()
    """For each further term of the equations (not the robot's own), joint index -> its column on these samples."""

    def instants(self, values: Floats) -> Floats:
        """(m + 1, ...) of (m * length + 1, ...): where intervals begin and end."""
        return values[:: self.length]

    def integral(self, values: Floats) -> Floats:
        """(m, ...) over each interval [s times the unit of the values]."""
        return self._summed(values, spline_weights(self.length) / self.rate_hz)

    def integral_variance(self, values: Floats) -> Floats:
        """(m, ...) variance of the integral where samples have independent errors with these standard deviations."""
        return self._summed(values**2, (spline_weights(self.length) / self.rate_hz) ** 2)

    def is_complete(self) -> NDArray[np.bool_]:
        """(m, n) whether all samples of the interval count."""
        missing = np.where(self.valid, 0.0, 1.0)
        return np.asarray(self._summed(missing, np.ones(self.length + 1)) == 0.0)

    def _summed(self, values: Floats, weights: Floats) -> Floats:
        inner = values[:-1].reshape((len(values) - 1) // self.length, self.length, *values.shape[1:])
        ends = values[self.length :: self.length]
        return np.asarray(np.tensordot(inner, weights[:-1], axes=(1, 0)) + weights[-1] * ends)


@lru_cache(maxsize=16)
def spline_weights(length: int) -> Floats:
    """(length + 1,) weights of samples at unit distance in the integral of the quintic spline through them.

    Lower orders where samples are few: the trapezoid and Simpson's rule for one and two steps.
    """
    order = length if length < 3 else 3 if length < 5 else 5
    spline = make_interp_spline(np.arange(length + 1.0), np.eye(length + 1), k=order)
    weights = np.asarray(spline.integrate(0.0, float(length)))
    weights.setflags(write=False)  # cached
    return weights


def cut_intervals(equations: Samples, interval_s: float) -> Iterator[list[Intervals]]:
    """For every gap-free stretch its intervals, in portions of about PORTION_SAMPLES samples.

    Args:
        equations: The equations.
        interval_s: Length of the intervals [s], rounded to whole samples.

    Raises:
        ArgumentError: It is shorter than half a sampling time.
    """
    for run in equations.experiments:
        length = interval_steps(interval_s, run.rate_hz)
        portion = max(1, PORTION_SAMPLES // length) * length
        for rows, motion in stretches(run):
            # over the whole stretch, as terms with memory need it
            further_terms = term_columns(equations.robot, equations.terms, motion)
            last = (len(motion.q) - 1) // length * length
            parts = []
            for start in range(0, last, portion):
                here = slice(start, min(start + portion, last) + 1)
                columns = tuple({joint: column[here] for joint, column in one.items()} for one in further_terms)
                there = slice(rows.start + here.start, rows.start + here.stop)
                effort = np.where(run.valid[there], run.effort[there], 0.0)
                parts.append(
                    Intervals(run.q[there], run.dq[there], effort, run.valid[there], run.rate_hz, length, columns)
                )
            if parts:
                yield parts


def interval_steps(interval_s: float, rate_hz: float) -> int:
    """Steps of time in an interval [s], rounded to whole samples.

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


class Model(Protocol):
    """What has a robot and its base parameters: equations, or an estimator on line."""

    @property
    def robot(self) -> Robot: ...
    @property
    def base(self) -> BaseParameters: ...


def split_columns(model: Model) -> tuple[list[int], list[int]]:
    """The base's columns that belong to links, and those that belong to the robot's own terms."""
    border = LINK_PARAMETERS * model.robot.dof
    links = [column for column in model.base.columns if column < border]
    return links, [column for column in model.base.columns if column >= border]


def term_torque_rows(model: Model, part: Intervals) -> Floats:
    """(m * length + 1, n, k) torque per unit of each term, without the part from accelerations: friction, offset.

    The k terms are the robot's own, then the further ones of the equations.
    """
    _, own_terms = split_columns(model)
    q, dq = part.q, part.dq
    rows = np.zeros((*q.shape, len(own_terms) + len(part.further_terms)))
    if own_terms:
        rows[..., : len(own_terms)] = regressor(model.robot, q, dq, np.zeros_like(q), columns=own_terms)
    for k, column in enumerate(part.further_terms, start=len(own_terms)):
        for joint, values in column.items():
            rows[:, joint, k] = values
    return rows


def term_momentum(model: Model, part: Intervals) -> Floats:
    """(m + 1, n, k) momentum per unit of each term whose torque depends on accelerations: rotors [N m s or N s].

    The k terms are the robot's own, then the further ones, which have no momentum (they are integrated as torques). A
    rotor's torque ``IA * ddq`` is the rate of its momentum ``IA * dq``: the same column with the velocity in place of
    the acceleration.

    Raises:
        ArgumentError: A term is not proportional to accelerations, or depends on the position.
    """
    _, own_terms = split_columns(model)
    q, dq = part.instants(part.q), part.instants(part.dq)
    rows = np.zeros((*q.shape, len(own_terms) + len(part.further_terms)))
    if own_terms:
        rest = np.zeros_like(q)

        def acceleration_torque(position: Floats, acceleration: Floats) -> Floats:
            at_rest = regressor(model.robot, position, dq, rest, columns=own_terms)
            return regressor(model.robot, position, dq, acceleration, columns=own_terms) - at_rest

        momentum = acceleration_torque(q, dq)
        # doubling ddq must double it, and another position must not change it
        if not np.allclose(acceleration_torque(q + OTHER_POSITION, 2.0 * dq), 2.0 * momentum, atol=1e-9):
            raise ArgumentError(
                "a term's torque is not a constant times accelerations, so it has no momentum",
                remedy="Use an estimator of torques, such as WLS().",
            )
        rows[..., : len(own_terms)] = momentum
    return rows
