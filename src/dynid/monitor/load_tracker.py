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
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from dynid.checks import as_number, as_row
from dynid.errors import DataError
from dynid.kernels import kernel
from dynid.public_calls import public
from dynid.robot.model import Robot
from dynid.tape import Tape, compile_single, record

__all__ = ["LoadTracker", "TrackedLoad", "rows_update", "tracker_tape"]

Floats = NDArray[np.float64]
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


@public
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
        decay = [np.exp(-0.5 / (memory * rate_hz)) for memory in (load_memory_s, friction_memory_s)]
        self._shrink = np.concatenate([np.full(LOAD, decay[0]), np.full(2 * n, decay[1])])
        self._size = LOAD + 2 * n
        self._prior = np.concatenate([PRIOR, np.full(2 * n, FRICTION)])
        self._step = _compiled(n)
        self._load_rows = kernel(model, "regressor", columns=range(LOAD * (n - 1), LOAD * n)).single
        self._torque = kernel(model, "inverse_dynamics").single
        self._errors: deque[float] = deque(maxlen=min(max(1, int(WINDOW_S * rate_hz + 0.5)), MOST_WINDOW))
        self.samples, self.jumps = 0, 0
        self._restart()

    def _restart(self) -> None:
        R = np.zeros((self._size + 1, self._size + 1))
        R[np.arange(self._size), np.arange(self._size)] = 1.0 / self._prior
        self._state = R[np.triu_indices(self._size + 1)]

    @property
    def triangle(self) -> Floats:
        """(k + 1, k + 1) triangle of all weighted equations so far, the torques in the last column."""
        R = np.zeros((self._size + 1, self._size + 1))
        R[np.triu_indices(self._size + 1)] = self._state
        return R

    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, torque: ArrayLike) -> bool:
        """Take one sample; returns whether the load was found to have changed.

        Args:
            q: (n,) joint positions [rad or m].
            dq: (n,) joint velocities.
            ddq: (n,) joint accelerations.
            torque: (n,) measured torques [N m or N].

        Raises:
            DataError: A number is not finite; nothing changes.
        """
        motion = [np.ascontiguousarray(channel, dtype=float) for channel in (q, dq, ddq)]
        measured = np.asarray(torque, dtype=float)
        if not all(np.isfinite(channel).all() for channel in (*motion, measured)):
            raise DataError("a sample is not finite", remedy="Leave it out.")
        rows = np.asarray(self._load_rows(*motion))
        friction = np.stack([motion[1], np.sign(motion[1])], axis=1)
        missing = measured - np.asarray(self._torque(*motion))
        has_jumped = self._watch(rows, friction, missing)
        if np.any(self._shrink < 1.0):
            self._forget(self._shrink)
        self._state = np.asarray(self._step(self._state, rows, friction, missing, self._scale))
        self.samples += 1
        return has_jumped

    def _watch(self, rows: Floats, friction: Floats, missing: Floats) -> bool:
        """Compare a sample with its prediction; forget the load where a fifth of a second is improbable."""
        values, covariance = self._solve()
        Y = np.zeros((len(missing), self._size))
        Y[:, :LOAD] = rows
        for j in range(len(missing)):
            Y[j, LOAD + 2 * j : LOAD + 2 * j + 2] = friction[j]
        spread = np.einsum("ij,jk,ik->i", Y, covariance, Y) + 1.0 / self._white**2
        self._errors.append(float(np.mean((missing - Y @ values) ** 2 / spread)))
        if len(self._errors) < (self._errors.maxlen or 1) or np.mean(self._errors) < JUMP:
            return False
        self._forget(np.concatenate([np.minimum(1.0, 1.0 / (self._prior[:LOAD] * self._column_sizes())),
                                     np.ones(self._size - LOAD)]))  # fmt: skip
        self._errors.clear()
        self.jumps += 1
        return True

    def _column_sizes(self) -> Floats:
        """(10,) lengths of the columns of the load in the triangle: one over its standard deviations at best."""
        return np.asarray(np.linalg.norm(self.triangle[:, :LOAD], axis=0))

    def _forget(self, shrink: Floats) -> None:
        """Let the standard deviations grow by one over ``shrink`` (k,); the estimate stays."""
        R = self.triangle
        values = solve_triangular(R[:-1, :-1], R[:-1, -1])
        R[:-1, :-1] *= shrink
        R[:-1, -1] = R[:-1, :-1] @ values
        self._state = R[np.triu_indices(self._size + 1)]

    def _solve(self) -> tuple[Floats, Floats]:
        R = self.triangle
        inverse = solve_triangular(R[:-1, :-1], np.eye(self._size))
        return np.asarray(inverse @ R[:-1, -1]), np.asarray(inverse @ inverse.T)

    def now(self) -> TrackedLoad:
        """What is known now, with standard deviations; those of what no motion shows stay the prior's."""
        values, covariance = self._solve()
        stderr = np.sqrt(np.diag(covariance))
        return TrackedLoad(values[:LOAD], stderr[:LOAD], values[LOAD:].reshape(-1, 2), stderr[LOAD:].reshape(-1, 2))


@lru_cache(maxsize=8)
def _compiled(n: int) -> Callable[..., Any]:
    return compile_single(tracker_tape(n))


def tracker_tape(n: int) -> Tape:
    """The update of the triangle by one sample of n joints, as a tape; generated code prints it."""
    size = LOAD + 2 * n + 1
    shapes = {"state": (size * (size + 1) // 2,), "rows": (n, LOAD), "friction": (n, 2), "torque": (n,), "scale": (n,)}
    return record(rows_update, **shapes)


def rows_update(state: Any, rows: Any, friction: Any, torque: Any, scale: Any) -> Any:
    """The upper triangle, row by row, with one more sample; scalar-agnostic."""
    n = len(torque)
    size = LOAD + 2 * n + 1
    R = np.zeros((size, size), dtype=object)
    R[np.triu_indices(size)] = state
    new: list[list[Any]] = []
    for j in range(n):
        row: list[Any] = [rows[j, c] * scale[j] for c in range(LOAD)] + [0.0] * (2 * n)
        row[LOAD + 2 * j], row[LOAD + 2 * j + 1] = friction[j, 0] * scale[j], friction[j, 1] * scale[j]
        new.append([*row, torque[j] * scale[j]])
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
    return np.array([R[i, j] for i, j in zip(*np.triu_indices(size), strict=True)])
