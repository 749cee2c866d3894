"""A load identified on line, sample after sample, in square-root information form ([Atkeson1986] section 2.1).

The state is a triangle R with ``|R x - z|^2`` the weighted sum of all squared residuals so far. Householder
reflections, one per unknown, rotate the six rows of a new sample ([Atkeson1986] eq. 8) into it; no inverse is
propagated. The update is recorded once as a straight-line program and compiled: it takes a microsecond per sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError, DataError, IdentifiabilityError
from dynid.load.load import Load
from dynid.load.load_solver import (
    MOST_BLOCKS,
    LinearSolution,
    block_meat,
    find_open_moments,
    label_blocks,
    prior_of_moments,
    solve_minimum_norm,
    student_factor,
)
from dynid.load.wrist import Sensing, load_from_solution
from dynid.tape import compile_single, record

REMEMBERED = 1024
"""Number of last samples from which the correlation of the noise in time is estimated; convention."""
START = 1e-9
"""Diagonal of the triangle before the first sample: negligible against any sample, but not zero, to divide by."""


class OnlineLoad:
    """The load and the sensor's bias, from all samples so far.

    Typical use, in the control loop::

        online = OnlineLoad(frame="tool0", noise_std=(0.1, 0.1, 0.1, 0.01, 0.01, 0.01))
        online.update(dynid.kernels.wrench_regressor(robot, "tool0", q, dq, ddq), wrench)
        online.load().mass
    """

    __slots__ = (
        "_compiled",
        "_keep",
        "_matrices",
        "_scale",
        "_state",
        "_wrenches",
        "autocorrelation_factor",
        "equations",
        "frame",
        "samples",
        "sensing",
    )

    def __init__(
        self,
        *,
        frame: str,
        noise_std: ArrayLike = 1.0,
        bias: bool = True,
        forgetting: float = 1.0,
        autocorrelation_factor: float | None = None,
    ) -> None:
        """Start without any knowledge of the load.

        Args:
            frame: Link in whose frame the load is described.
            noise_std: (6,) standard deviations of the channels [N, N m]; one number for equal weights.
            bias: Estimate a constant wrench of the sensor with the load.
            forgetting: Weight of a sample relative to the next one: 1 forgets nothing.
            autocorrelation_factor: Growth of the variances by correlation in time, where it is known; ten or twenty
                for a filtered wrench. By default it is estimated, for each parameter, from the last 1024 residuals.
        """
        if autocorrelation_factor is not None and not 1.0 <= autocorrelation_factor < np.inf:
            raise ArgumentError(
                f"autocorrelation_factor is {autocorrelation_factor}", remedy="Give a number from 1 up."
            )
        if not 0.0 < forgetting <= 1.0:
            raise ArgumentError(f"forgetting is {forgetting}", remedy="Give a number in (0, 1].")
        std = np.broadcast_to(np.asarray(noise_std, dtype=float), (6,))
        if not (np.isfinite(std).all() and (std > 0.0).all()):
            raise ArgumentError(f"standard deviations must be positive, not {std}")
        self.frame, self.sensing = frame, Sensing(bias=bias)
        self.samples, self.equations, self.autocorrelation_factor = 0, 0.0, autocorrelation_factor
        self._scale = 1.0 / std
        self._keep = np.array([np.sqrt(forgetting)])
        size = 11 + 6 * bias
        self._state = np.eye(size)[np.triu_indices(size)] * START
        self._compiled = _compiled(bias)
        self._matrices, self._wrenches = np.zeros((REMEMBERED, 6, 10)), np.zeros((REMEMBERED, 6))

    def update(self, matrix: Floats, wrench: Floats) -> None:
        """Add one sample.

        Args:
            matrix: (6, 10) equations of the motion, from `wrench_regressor` or a row of `WrenchData.matrix`.
            wrench: (6,) force [N] and moment [N m] on the load; both arrays contiguous floats.
        """
        self._compiled(self._state, matrix, wrench, self._scale, self._keep, self._state)
        place = self.samples % REMEMBERED
        self._matrices[place], self._wrenches[place] = matrix, wrench
        self.samples += 1
        self.equations = self._keep[0] ** 2 * self.equations + 6.0

    @property
    def triangle(self) -> Floats:
        """(k + 1, k + 1) triangle of all weighted equations so far, with the wrench in the last column."""
        size = 11 + 6 * self.sensing.bias
        R = np.zeros((size, size))
        R[np.triu_indices(size)] = self._state
        return R

    def load(self) -> Load:
        """The load according to the samples so far, with its uncertainty.

        Raises:
            DataError: There is no sample yet, or one was not finite.
            IdentifiabilityError: The samples determine neither the mass nor any moment of inertia.
        """
        R = self.triangle
        if self.samples == 0 or not np.isfinite(R).all():
            raise DataError("there is no sample yet" if self.samples == 0 else "a sample was not finite")
        unseen = np.linalg.norm(R[:-1, :-1], axis=0) <= 2.0 * START
        R[:-1, :-1] = np.where(unseen, 0.0, R[:-1, :-1])
        plain = self._solve(R, np.zeros(10))
        weak = prior_of_moments(plain)
        solution = self._solve(R, weak) if weak.any() else plain
        undetermined = plain.undetermined.copy()
        undetermined[:6] = find_open_moments(solution.covariance, weak)
        solution = replace(solution, undetermined=undetermined)
        return load_from_solution(solution, self.frame, self.sensing, "force and torque sensor, on line")

    def _solve(self, R: Floats, prior: Floats) -> LinearSolution:
        """Solve the triangle with a prior (10,) of the load; the noise is that of its last number."""
        values, root, _ = solve_minimum_norm(R[:-1, :-1], R[:-1, -1])
        spare = self.equations - float(np.sum((R[:-1, :-1] @ root) ** 2))  # the rank of the equations
        if spare < 1.0:
            raise IdentifiabilityError(
                f"{self.samples} samples are too few to estimate the noise", remedy="Add more samples first."
            )
        noise = float(R[-1, -1] / np.sqrt(spare))  # in units of the standard deviations given
        before = np.zeros((10, len(R)))
        before[:, :10] = noise * np.diag(prior)
        rows = np.vstack([R[:-1], before[np.any(before, axis=1)]])
        values, root, undetermined = solve_minimum_norm(rows[:, :-1], rows[:, -1])
        white = noise**2 * root @ root.T
        growth = np.full(len(values), self.autocorrelation_factor or 1.0)
        if self.autocorrelation_factor is None:
            growth = self._growth(values, root, noise)
        return LinearSolution(
            values=values, covariance=white * np.sqrt(np.outer(growth, growth)), undetermined=undetermined,
            noise_std=noise / self._scale, white=white,
        )  # fmt: skip

    def _growth(self, values: Floats, root: Floats, noise: float) -> Floats:
        """(k,) growth of the variances over those of white noise, by the sandwich over blocks of the last samples."""
        count = min(self.samples, REMEMBERED)
        order = np.arange(self.samples - count, self.samples) % REMEMBERED
        sides = [np.broadcast_to(np.eye(6), (count, 6, 6))] * self.sensing.bias
        rows = np.concatenate([self._matrices[order], *sides, self._wrenches[order][..., None]], axis=2)
        rows = rows * self._scale[:, None]
        labels = label_blocks([np.arange(count)], min(MOST_BLOCKS, count))
        blocks = [rows[labels == label].reshape(-1, rows.shape[2]) for label in np.unique(labels)]
        meat, freedom = block_meat(blocks, values, root)
        Z = rows[..., :-1].reshape(-1, len(root)) @ root
        found, white = (np.einsum("ki,ij,kj->k", root, M, root) for M in (meat / noise**2, Z.T @ Z))
        found = found * student_factor(freedom) ** 2
        return np.asarray(np.divide(found, white, out=np.ones_like(white), where=white > 0.0))


@lru_cache(maxsize=2)
def _compiled(bias: bool) -> Callable[..., Any]:
    size = 11 + 6 * bias
    shapes = {"state": (size * (size + 1) // 2,), "matrix": (6, 10), "wrench": (6,), "scale": (6,), "keep": (1,)}
    return compile_single(record(triangle_update, **shapes))


def triangle_update(state: Any, matrix: Any, wrench: Any, scale: Any, keep: Any) -> Any:
    """The upper triangle, row by row, with one more sample; scalar-agnostic.

    Args:
        state: (66,) upper triangle of the equations so far with the wrench as last column; (153,) with the bias.
        matrix: (6, 10) equations of the new sample.
        wrench: (6,) wrench of the new sample [N, N m].
        scale: (6,) one over the standard deviation of each channel.
        keep: (1,) square root of the weight of older samples.
    """
    size = int(np.sqrt(2 * len(state)))
    R = np.zeros((size, size), dtype=object)
    R[np.triu_indices(size)] = state * keep[0]
    rows = _new_rows(size, matrix, wrench, scale)
    for j in range(size):
        live = [row for row in rows if not _is_zero(row[j])]
        if not live:
            continue
        norm = np.sqrt(sum((row[j] * row[j] for row in live), R[j, j] * R[j, j]))
        head = R[j, j] + norm  # no cancellation: diagonals stay positive
        factor = 1.0 / (norm * head)
        for k in range(j + 1, size):
            pull = sum((row[j] * row[k] for row in live), R[j, k] * head) * factor
            R[j, k] = pull * head - R[j, k]
            for row in live:
                row[k] = row[k] - pull * row[j]
        R[j, j] = norm
    return np.array([R[i, j] for i, j in zip(*np.triu_indices(size), strict=True)])


def _new_rows(size: int, matrix: Any, wrench: Any, scale: Any) -> list[list[Any]]:
    """Six weighted rows; exact zeros where [Atkeson1986] eq. (8) has them, so that they cost nothing."""
    rows: list[list[Any]] = []
    for i in range(6):
        force = i < 3
        acts = [c >= 6 if force else c < 9 and c - 6 != i - 3 for c in range(10)]
        row = [matrix[i, c] * scale[i] if acts[c] else 0.0 for c in range(10)]
        row += [scale[i] if i == c else 0.0 for c in range(size - 11)]
        rows.append([*row, wrench[i] * scale[i]])
    return rows


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0.0
