"""Faults that a log shows in itself: a wrong gain of one drive, an offset that drifts, loads that come and go.

Each fault adds columns to the robot's equations. With the residual r of the free fit and the part c of a column that
the fit does not span, the amount of the fault and its standard error are

    amount = c'r / c'c,    error^2 = sum over blocks of time (c_b' e_b)^2 / (c'c)^2,    e = r - c amount

The scores of blocks, not the noise of samples, set the error, since residuals are correlated in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import eigh
from dynid.findings import Finding
from dynid.gate.quick_fit import Samples, body_columns, free_rows
from dynid.robot.model import Robot

__all__ = ["check_within"]

Floats = NDArray[np.float64]

FEWEST_ROWS = 300
"""Smallest number of samples for these checks (convention)."""
BLOCKS = 20
"""Number of blocks of time for the standard errors (convention)."""
RESOLUTION = 1e-10
"""Relative eigenvalue of scaled cross products below which a direction is not determined (rounding, squared)."""
SURE = 6.0
"""Standard errors from which on a fault is sure; set with tests/campaigns/faults_within.py, seed 0."""
SMALLEST_GAIN = 0.05
"""Smallest relative error of a gain that is reported: missing friction terms look like a few percent (convention)."""
LARGE_GAIN = 0.15
"""Relative error of a gain from which on it is a warning; below it is noted (convention: torque constants of catalogues
are good to about 10 %, and joint 6 of panda_gaz, whose gain forward selection also corrects, has 12 %)."""
SMALLEST_DRIFT = 0.03
"""Smallest drift of an offset that is reported, as a share of the joint's torque (standard deviation; convention)."""
NOTABLE = 0.98
"""Ratio of the residuals, with the fault and without, below which the fault matters (convention)."""
LOAD_BLOCKS = 10
"""Number of parts of a log in each of which the load may be another one (convention)."""
LOADED = 0.9
"""Ratio of the residuals, with a load of its own in each part and without, below which loads changed; set with
tests/campaigns/faults_within.py, seed 0."""
SMALLEST_FREE = 1e-3
"""Smallest share of a column that the free fit must leave, below which the log cannot show the fault (convention)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The free fit of samples with every joint's equations weighted by their residual."""

    basis: Floats
    """(M u, r) orthonormal columns that the free fit spans"""
    torque: Floats
    """(M u,) weighted torques, sample after sample"""
    scale: Floats
    """(u,) weighted torque per N m or N of each joint in use"""
    joints: list[int]
    """The u joints in use."""

    @classmethod
    def of(cls, robot: Robot, samples: Samples) -> _Fit:
        rows, torque = free_rows(robot, samples)
        joints = np.flatnonzero(samples.used).tolist()
        basis = _orthonormal(rows)
        left = (torque - basis @ (basis.T @ torque)).reshape(-1, len(joints))
        weight = 1.0 / np.maximum(np.sqrt(np.mean(left**2, axis=0)), 1e-3)
        every = np.tile(weight, len(left))
        return cls(_orthonormal(rows * every[:, None]), torque * every, weight * samples.weight[samples.used], joints)

    def left(self, columns: Floats) -> Floats:
        """The part of columns (M u, k) or (M u,) that the fit does not span."""
        return np.asarray(columns - self.basis @ (self.basis.T @ columns))

    @property
    def explained(self) -> Floats:
        """(M u,) weighted torques of the fit."""
        return np.asarray(self.basis @ (self.basis.T @ self.torque))

    def at_joint(self, place: int, values: Floats) -> Floats:
        """(M u,) values (M,) in the rows of one joint in use, zero elsewhere."""
        table = np.zeros((len(values), len(self.joints)))
        table[:, place] = values
        return table.reshape(-1)


def check_within(robot: Robot, samples: Samples) -> Iterator[Finding]:
    """Report loads that change, offsets that drift and gains that are wrong; the strongest of them alone."""
    if samples.q.shape[0] < FEWEST_ROWS:
        return
    fit = _Fit.of(robot, samples)
    loads = list(_changing_loads(robot, samples, fit))
    if loads:
        yield from loads
        return
    found = [*_drifts(robot, samples, fit), *_gains(robot, fit)]
    if found:
        yield max(found, key=lambda item: item[0])[1]


def _orthonormal(rows: Floats) -> Floats:
    """(N, r) orthonormal columns that span those of rows (N, p)."""
    scale = np.linalg.norm(rows, axis=0)
    seen = rows[:, scale > 1e-9 * scale.max()] / scale[scale > 1e-9 * scale.max()]
    values, vectors = eigh(seen.T @ seen)
    good = values > RESOLUTION * values[-1]
    return np.asarray(seen @ (vectors[:, good] / np.sqrt(values[good])))


def _amount(fit: _Fit, column: Floats) -> tuple[float, float, Floats] | None:
    """Amount of a fault with a column (M u,), its standard error, and the residual it leaves; None if it hides."""
    free, left = fit.left(column), fit.left(fit.torque)
    size = float(free @ free)
    if size <= SMALLEST_FREE * float(column @ column):
        return None
    amount = float(free @ left) / size
    rest = left - amount * free
    edges = len(fit.joints) * np.linspace(0, len(rest) // len(fit.joints), BLOCKS + 1).astype(int)
    scores = np.add.reduceat(free * rest, edges[:-1])
    return amount, float(np.sqrt(np.sum(scores**2) * BLOCKS / (BLOCKS - 1))) / size, rest


def _ratio(fit: _Fit, rest: Floats) -> float:
    """Ratio of the weighted residuals, with a fault and without."""
    left = fit.left(fit.torque)
    return float(np.sqrt(rest @ rest / max(float(left @ left), 1e-300)))


def _drifts(robot: Robot, samples: Samples, fit: _Fit) -> Iterator[tuple[float, Finding]]:
    line = np.linspace(-0.5, 0.5, samples.q.shape[0])
    for place, j in enumerate(fit.joints):
        answer = _amount(fit, fit.at_joint(place, line * fit.scale[place]))
        if answer is None:
            continue
        drift, error, rest = answer
        share = abs(drift) / max(float(samples.effort[:, j].std()), 1e-300)
        if abs(drift) > SURE * error and share > SMALLEST_DRIFT and _ratio(fit, rest) < NOTABLE:
            yield (
                abs(drift) / error,
                Finding(
                    code="drifting-offset",
                    severity="warning",
                    where="effort",
                    joint=robot.joint_names[j],
                    message=f"the offset of the torque drifts by {drift:+.3g} N m or N during the log",
                    evidence={"drift [N m or N]": drift, "standard error": error, "share of the torque": share},
                    remedy="Does the sensor or the gear warm up? Warm up first, or cut the log (--time).",
                ),
            )


def _gains(robot: Robot, fit: _Fit) -> Iterator[tuple[float, Finding]]:
    torque = fit.explained.reshape(-1, len(fit.joints))
    for place, j in enumerate(fit.joints):
        answer = _amount(fit, fit.at_joint(place, torque[:, place]))
        if answer is None:
            continue
        error_of_gain, error, rest = answer
        if abs(error_of_gain) > max(SURE * error, SMALLEST_GAIN) and _ratio(fit, rest) < NOTABLE:
            yield (
                abs(error_of_gain) / error,
                Finding(
                    code="wrong-gain",
                    severity="warning" if abs(error_of_gain) > LARGE_GAIN else "note",
                    where="effort",
                    joint=robot.joint_names[j],
                    message=f"the torque seems to be measured {1.0 + error_of_gain:.3g} times as large as it is by "
                    "those of the other joints, unless a link has another length than the model says",
                    evidence={"relative error": error_of_gain, "standard error": error},
                    remedy="Check the gain, the torque constant and the gear of this joint in the channel map.",
                ),
            )


def _changing_loads(robot: Robot, samples: Samples, fit: _Fit) -> Iterator[Finding]:
    """Report a log whose parts have other loads on the last link, compared with blocks that take turns."""
    own = body_columns(robot, samples)
    count = samples.q.shape[0]
    part = np.arange(count) * LOAD_BLOCKS // count
    turns = np.arange(count) * LOAD_BLOCKS * 4 // count % LOAD_BLOCKS
    left = []
    for label in (part, turns):
        columns = [own * np.repeat(label == k, len(fit.joints))[:, None] for k in range(LOAD_BLOCKS - 1)]
        extra = fit.left(np.concatenate(columns, axis=1) * np.tile(fit.scale, count)[:, None])
        Q = _orthonormal(extra)
        rest = fit.left(fit.torque)
        rest = rest - Q @ (Q.T @ rest)
        left.append(float(rest @ rest))
    ratio = float(np.sqrt(left[0] / max(left[1], 1e-300)))
    if ratio < LOADED:
        yield Finding(
            code="change",
            severity="warning",
            where="model",
            message=f"the load on {robot.bodies[-1].joint.child} changes during the log",
            evidence={"residual ratio": ratio},
            remedy="Was something taken up or put down? Identify parts with different loads separately (--time).",
        )
