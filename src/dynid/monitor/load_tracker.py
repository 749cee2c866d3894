"""A load and changes of friction, tracked while the robot runs, from the joint torques.

What the identified model does not explain, ``y = tau - model``, is linear in the ten parameters of a load on the last
link and in changes of viscous and dry friction. A triangle R with ``|R x - z|^2`` the weighted sum of all squared
residuals takes up each sample by Householder reflections; no inverse is propagated, and memory does not grow.

Each group of parameters forgets by itself: before a sample, the standard deviations of a group grow by a factor, and
the estimate stays. In the triangle this scales the group's columns. Without forgetting the result is that of all
samples at once. A load that is gripped or dropped makes the new torques improbable; the load is then forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_row, as_sample
from dynid.decompositions import solve_upper
from dynid.errors import DataError
from dynid.kernels import kernel
from dynid.robot.model import Robot
from dynid.tape import compile_single, record

LOAD = 10
"""Parameters of a load: XX XY XZ YY YZ ZZ MX MY MZ M."""
PRIOR = (0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 1.0, 1.0, 1.0, 10.0)
"""Standard deviations of the load before any sample [kg m^2, kg m, kg] (convention: loads up to some kilograms)."""
FRICTION = 0.5
"""Standard deviation of changes of friction before any sample, over the model's friction (convention)."""
WINDOW_S = 0.2
"""Time over which improbable torques are summed [s] (convention: longer than a reversal, shorter than a motion)."""
MOST_WINDOW = 2000
"""Most samples of this time (convention: 10 000 a second; generated code holds this many numbers)."""
JUMP = 8.0
"""Mean square of the prediction errors over their expectation from which on the load has changed (convention: normal
noise that lasts a fifth of a second reaches it never)."""
TWO_SIDED_95 = 1.959963984540054
"""Standard deviations of a two-sided 95 % interval of the normal distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class TrackedLoad:
    """What is known at one instant."""

    parameters: Floats
    """(10,) of the load, in the frame of the last link."""
    stderr: Floats
    """(10,)"""
    friction: Floats
    """(n, 2) changes of viscous and dry friction."""
    friction_stderr: Floats
    """(n, 2)"""

    @property
    def mass(self) -> float:
        """Mass of the load [kg]."""
        return float(self.parameters[9])

    @property
    def mass_interval(self) -> tuple[float, float]:
        """95 % interval of the mass [kg]."""
        half = TWO_SIDED_95 * float(self.stderr[9])
        return self.mass - half, self.mass + half


class LoadTracker:
    """The load on the last link, and friction, while the robot runs.

    Typical use, in the control loop::

        tracker = dynid.monitor.LoadTracker(identified, noise_std=0.3, rate_hz=500)
        tracker.update(q, dq, ddq, torque)
        tracker.now().mass
    """

    def __init__(
        self,
        model: Robot,
        *,
        noise_std: ArrayLike,
        rate_hz: float,
        load_memory_s: float = np.inf,
        friction_memory_s: float = np.inf,
        correlation_s: float = 0.0,
    ) -> None:
        """Start without a load.

        Args:
            model: The identified robot without a load.
            noise_std: Standard deviations (n,) of the torques about the model, or one [N m or N].
            rate_hz: Samples per second.
            load_memory_s: Time after which the variance of the load has grown by e; infinite for no forgetting.
            friction_memory_s: The same of the friction.
            correlation_s: Time over which the errors of the torques are alike [s]: a sample counts that much less.
        """
        n = model.dof
        self.model, self.rate_hz = model, as_number("rate_hz", rate_hz, above=0.0)
        inflation = np.sqrt(1.0 + 2.0 * as_number("correlation_s", correlation_s, least=0.0) * self.rate_hz)
        std = as_row("noise_std", noise_std, n, same=True, above=0.0)
        self._scale = 1.0 / (std * inflation)
        self._white = 1.0 / std
        decay = _decay("load_memory_s", load_memory_s, rate_hz), _decay("friction_memory_s", friction_memory_s, rate_hz)
        shrink = np.concatenate([np.full(LOAD, decay[0]), np.full(2 * n, decay[1])])
        self._shrink = (shrink,) if np.any(shrink < 1.0) else ()
        self._size = LOAD + 2 * n
        self._upper = np.flatnonzero(np.triu(np.ones((self._size + 1, self._size + 1))))
        self._prior = np.concatenate([PRIOR, np.full(2 * n, FRICTION)])
        self._surprise = _compiled(surprise, n)
        self._step = _compiled(forget_and_update if self._shrink else update_rows, n)
        self._load_rows = kernel(model, "regressor", columns=range(LOAD * (n - 1), LOAD * n)).single
        self._torque = kernel(model, "inverse_dynamics").single
        self._errors: deque[float] = deque(maxlen=min(max(1, int(WINDOW_S * rate_hz + 0.5)), MOST_WINDOW))
        self.samples, self.jumps = 0, 0
        self._restart()

    def _restart(self) -> None:
        R = np.zeros((self._size + 1, self._size + 1))
        R[np.arange(self._size), np.arange(self._size)] = 1.0 / self._prior
        self._state = R.ravel()[self._upper]

    @property
    def triangle(self) -> Floats:
        """(k + 1, k + 1) triangle of all weighted equations so far, the torques in the last column."""
        R = np.zeros((self._size + 1, self._size + 1))
        R.ravel()[self._upper] = self._state
        return R

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, torque: ArrayLike) -> None:
        """Take one sample, in place; `jumps` counts how often the load was found to have changed.

        Args:
            q: (n,) joint positions [rad or m].
            dq: (n,) joint velocities.
            ddq: (n,) joint accelerations.
            torque: (n,) measured torques [N m or N].

        Raises:
            ArgumentError: There is not one number per joint; nothing changes.
            DataError: A number is not finite; nothing changes.
        """
        given = (("q", q), ("dq", dq), ("ddq", ddq), ("torque", torque))
        *motion, measured = (as_sample(name, values, self.model.dof) for name, values in given)
        if not all(np.isfinite(channel).all() for channel in (*motion, measured)):
            raise DataError("a sample is not finite", remedy="Leave it out.")
        rows = np.asarray(self._load_rows(*motion))
        friction = np.column_stack([motion[1], np.sign(motion[1])])
        missing = measured - np.asarray(self._torque(*motion))
        sample = (rows, friction, missing)
        self._watch(float(self._surprise(self._state, *sample, self._white)[0]))
        self._state = np.asarray(self._step(self._state, *sample, self._scale, *self._shrink))
        self.samples += 1

    def _watch(self, surprise: float) -> None:
        """Take the surprise of a sample; forget the load where a fifth of a second is improbable."""
        self._errors.append(surprise)
        if len(self._errors) < (self._errors.maxlen or 1) or sum(self._errors) < JUMP * len(self._errors):
            return
        self._forget_load()
        self._errors.clear()
        self.jumps += 1

    def _forget_load(self) -> None:
        """Let the standard deviations of the load grow towards those of the prior; the estimate stays."""
        R = self.triangle
        sizes = np.linalg.norm(R[:, :LOAD], axis=0)  # one over the standard deviations at best
        values = solve_upper(R[:-1, :-1], R[:-1, -1])
        R[:-1, :LOAD] *= np.minimum(1.0, 1.0 / (self._prior[:LOAD] * sizes))
        R[:-1, -1] = R[:-1, :-1] @ values
        self._state = R.ravel()[self._upper]

    def now(self) -> TrackedLoad:
        """What is known now, with standard deviations; those of what no motion shows stay the prior's."""
        R = self.triangle
        inverse = solve_upper(R[:-1, :-1], np.eye(self._size))
        values, stderr = inverse @ R[:-1, -1], np.linalg.norm(inverse, axis=1)
        return TrackedLoad(values[:LOAD], stderr[:LOAD], values[LOAD:].reshape(-1, 2), stderr[LOAD:].reshape(-1, 2))


def _decay(name: str, memory_s: float, rate_hz: float) -> float:
    """Factor of one over a standard deviation from sample to sample; one for no forgetting."""
    return 1.0 if memory_s == np.inf else float(np.exp(-0.5 / (as_number(name, memory_s, above=0.0) * rate_hz)))


@lru_cache(maxsize=8)
def _compiled(function: Callable[..., Any], n: int) -> Callable[..., Any]:
    """A function of the triangle and a sample of n joints, compiled."""
    k = LOAD + 2 * n
    shapes = {"rows": (n, LOAD), "friction": (n, 2), "torque": (n,), "scale": (n,)}
    if function is forget_and_update:
        shapes["shrink"] = (k,)
    return compile_single(record(function, state=((k + 1) * (k + 2) // 2,), **shapes))


def surprise(state: Any, rows: Any, friction: Any, torque: Any, scale: Any) -> Any:
    """(1,) the mean square of the prediction errors of a sample over its expectation; scalar-agnostic.

    Args:
        state: Upper triangle of all equations so far, row by row.
        rows: (n, 10) equations of the load.
        friction: (n, 2) speeds and their signs.
        torque: (n,) what the model does not explain.
        scale: (n,) one over the standard deviations of the torques.
    """
    R = _triangle(state, len(torque))
    k = len(R) - 1
    total: Any = 0.0
    for row in _weighted_rows(rows, friction, torque, scale):
        side: list[Any] = []  # row times the inverse of the triangle
        for c in range(k):
            side.append((row[c] - sum(R[i, c] * side[i] for i in range(c))) / R[c, c])
        error = row[k] - sum(part * R[i, k] for i, part in enumerate(side))
        total = total + error * error / sum((part * part for part in side), 1.0)
    return np.array([total / len(torque)])


def forget_and_update(state: Any, rows: Any, friction: Any, torque: Any, scale: Any, shrink: Any) -> Any:
    """The upper triangle after standard deviations have grown by one over ``shrink`` (k,), with one more sample."""
    R = _triangle(state, len(torque))
    k = len(R) - 1
    values: list[Any] = [0.0] * k
    for i in reversed(range(k)):
        values[i] = (R[i, k] - sum(R[i, c] * values[c] for c in range(i + 1, k))) / R[i, i]
    for i in range(k):
        R[i, i:k] = R[i, i:k] * shrink[i:k]
        R[i, k] = sum(R[i, c] * values[c] for c in range(i, k))  # the estimate stays
    return update_rows(R[np.triu_indices(k + 1)], rows, friction, torque, scale)


def update_rows(state: Any, rows: Any, friction: Any, torque: Any, scale: Any) -> Any:
    """The upper triangle, row by row, with one more sample; scalar-agnostic, arguments as of `surprise`."""
    R = _triangle(state, len(torque))
    new = _weighted_rows(rows, friction, torque, scale)
    size = len(R)
    for k in range(size):
        live = [row for row in new if not (isinstance(row[k], float) and row[k] == 0.0)]
        if not live:
            continue
        norm = np.sqrt(sum((row[k] * row[k] for row in live), R[k, k] * R[k, k]))
        head = R[k, k] + norm  # no cancellation: diagonals stay positive
        factor = 1.0 / (norm * head + (1e-300 if k == size - 1 else 0.0))  # the last one may be zero
        for c in range(k + 1, size):
            pull = sum((row[k] * row[c] for row in live), R[k, c] * head) * factor
            R[k, c] = pull * head - R[k, c]
            for row in live:
                row[c] = row[c] - pull * row[k]
        R[k, k] = norm
    return R[np.triu_indices(size)]


def _triangle(state: Any, n: int) -> Any:
    """(k + 1, k + 1) triangle from its rows."""
    size = LOAD + 2 * n + 1
    R = np.zeros((size, size), dtype=object)
    R[np.triu_indices(size)] = state
    return R


def _weighted_rows(rows: Any, friction: Any, torque: Any, scale: Any) -> list[list[Any]]:
    """Equations of a sample over the standard deviations of its torques: load, friction of every joint, torque."""
    n = len(torque)
    new: list[list[Any]] = []
    for j in range(n):
        row: list[Any] = [rows[j, c] * scale[j] for c in range(LOAD)] + [0.0] * (2 * n)
        row[LOAD + 2 * j], row[LOAD + 2 * j + 1] = friction[j, 0] * scale[j], friction[j, 1] * scale[j]
        new.append([*row, torque[j] * scale[j]])
    return new
