"""DIDIM on streamed logs: the iteration of `DIDIM`, with sums over the samples in place of the samples.

Every simulation reads the logs again, so that memory does not grow with their length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.closed_loop.instrument_noise import MOTION_NOT_COUNTED, REPEATED_SHARE, repeated_share
from dynid.estimation.closed_loop.law_test import check_controller, controller_mismatch, controller_summary
from dynid.estimation.closed_loop.loop_runs import inverse_variances
from dynid.estimation.closed_loop.loop_search import SearchStart, unsettled_finding
from dynid.estimation.closed_loop.loop_stream import StreamSearch, Sums, Window
from dynid.estimation.equations import StreamedLogs
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.nearest import add_standard, make_possible
from dynid.estimation.scores import (
    SPECTRUM_SAMPLES,
    NoiseSums,
    extrapolate_step,
    scaled_condition,
    smallest_changes,
    solve_scaled,
    spectrum,
)
from dynid.findings import Finding


class _NormalSums(Sums):
    """Sums over a simulation of all logs, joint by joint, that give the next step; J is the regressor of its motion."""

    def __init__(self, equations: StreamedLogs, beta: Floats) -> None:
        """Start with empty sums for the simulation with parameters (b,)."""
        super().__init__(equations, beta)
        n, b = equations.robot.dof, beta.size
        self._normals = np.zeros((n, b, b))
        self._right_sides = np.zeros((n, b))
        self._squared_residuals = np.zeros(n)

    def add(self, window: Window) -> None:
        J, residual = _slopes_and_residual(window)
        for j, support in enumerate(self.equations.information.supports):
            acting = list(support)  # the columns that act on joint j; its other columns are zero
            part = np.ascontiguousarray(J[:, j, acting])
            self._normals[j][np.ix_(acting, acting)] += part.T @ part
            self._right_sides[j, acting] += part.T @ residual[:, j]
        self._squared_residuals += (residual**2).sum(axis=0)

    @property
    def weights(self) -> Floats:
        """(n,) inverse variances of the torque residuals."""
        return inverse_variances(self._squared_residuals, self.equations.counts)

    @property
    def normal(self) -> Floats:
        """(b, b) sum of J' W J."""
        return np.asarray(np.tensordot(self.weights, self._normals, 1))

    @property
    def step(self) -> Floats:
        """(b,) Gauss-Newton step with the simulated motion kept: from the parameters to the least squares."""
        return solve_scaled(self.normal, self.weights @ self._right_sides)[0]

    def has_settled(self, change: Floats, tolerance: float) -> bool:
        """Whether a change (b,) of the parameters is small beside their standard deviations."""
        normal = self.normal
        stderr = np.sqrt(np.maximum(np.diagonal(np.linalg.inv(normal)), 0.0))
        resolution = smallest_changes(normal, float(self.beta @ normal @ self.beta))
        return bool(np.all(np.abs(change) <= tolerance * stderr + resolution))


def _slopes_and_residual(window: Window) -> tuple[Floats, Floats]:
    """(N, n, b) regressor of the simulated motion in a block, and (N, n) the torque's residual."""
    rows = window.block.rows
    J = window.run.columns(window.motion, rows) * window.valid[:, :, None]
    return J, window.run.torque_residual(window.motion)[rows]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    """The result of the iteration."""

    runs: StreamSearch[_NormalSums]
    """The logs in their loops, with the integrator's steps that led to the result."""
    sums: _NormalSums
    """The sums of the last simulation."""
    findings: tuple[Finding, ...]
    """What a person should know about the start and the end of the iteration."""
    count: int
    """Number of iterations."""


def _iterate(
    runs: StreamSearch[_NormalSums], start: SearchStart[_NormalSums], iterations: int, tolerance: float
) -> _Fit:
    """Simulate and solve in turn, from one start, until the parameters no longer change."""
    sums = start.motions  # for streams, the sums stand for the motions
    findings, previous_step, count = start.findings, None, 0
    step = sums.step
    while True:
        count += 1
        solution = sums.beta + step  # the plain least squares
        wanted = sums.beta + extrapolate_step(step, previous_step, sums.normal)  # extrapolated after Aitken
        beta, new_sums = runs.advance(sums.beta, wanted, sums, sums.normal)  # may shorten the step
        change = beta - sums.beta
        previous_step, sums = step, new_sums
        step = sums.step
        ended = sums.has_settled(step, tolerance) or sums.has_settled(change, tolerance)
        if ended or count == iterations:
            break
    if not ended:
        findings = (*findings, unsettled_finding(count))
    # how much of a change of the simulated robot returns in the solution; ``not <=`` also catches NaN
    if not repeated_share(change, beta + step - solution, sums.normal) <= REPEATED_SHARE:
        findings = (*findings, MOTION_NOT_COUNTED)
    return _Fit(runs=runs, sums=sums, findings=findings, count=count)


def solve_streamed_didim(equations: StreamedLogs, iterations: int, tolerance: float, *, consistent: bool) -> Estimate:
    """Estimate the base parameters from streamed logs; arguments as for `dynid.estimation.DIDIM`."""
    search = StreamSearch[_NormalSums].of(equations, SPECTRUM_SAMPLES, _NormalSums)
    fit = search.solve_from_starts(lambda runs, start: _iterate(runs, start, iterations, tolerance))
    runs, sums = fit.runs, fit.sums
    normal = sums.normal
    law_findings = check_controller(runs.beginnings(), sums.beta)
    estimate = Estimate(
        names=equations.names,
        units=equations.units,
        # the last step is taken only if it is negligible: no simulation has tested it
        values=sums.beta + sums.step if sums.has_settled(sums.step, tolerance) else sums.beta,
        covariance=_covariance(runs, sums),
        undetermined=np.zeros(sums.beta.size, dtype=bool),
        noise_std=1.0 / np.sqrt(sums.weights),
        inflation=np.ones(equations.robot.dof),
        samples=equations.counts,
        condition=scaled_condition(normal),
        method="DIDIM",
        findings=(*fit.findings, *controller_summary(law_findings)),
        extras={
            "iterations": float(fit.count),
            "simulations": float(fit.count + 1),  # of the winning start, without the two for the covariance
            "controller_mismatch": controller_mismatch(law_findings),
        },
    )
    return (make_possible if consistent else add_standard)(equations, estimate, normal)


def _covariance(runs: StreamSearch[_NormalSums], sums: _NormalSums) -> Floats:
    """(b, b) covariance of the estimate, from two more simulations of all logs."""
    weights = sums.weights
    noise = NoiseSums(weights.size, sums.beta.size, runs.rate_hz)
    for second_pass in (False, True):  # first the spectrum of the noise, then its effect on the estimate
        for window in runs.windows(sums.beta):
            J, residual = _slopes_and_residual(window)
            H = spectrum(J * weights[:, None])
            if second_pass:
                noise.add_rows(H, len(residual))
            else:
                noise.add_noise(H, residual)
    return noise.covariance(sums.normal)
