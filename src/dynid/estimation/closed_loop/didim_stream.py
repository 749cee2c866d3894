"""DIDIM on streamed logs: only moments of a round are kept; every simulation goes through the logs again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.closed_loop.instrument_noise import REPEATED_SHARE, UNCOUNTED, repeated_share
from dynid.estimation.closed_loop.law_test import check_controller, controller_mismatch, controller_summary
from dynid.estimation.closed_loop.loop_runs import inverse_variances
from dynid.estimation.closed_loop.loop_search import SearchStart, unsettled_finding
from dynid.estimation.closed_loop.loop_stream import StreamSearch, Sums, Window
from dynid.estimation.equations import StreamedLogs
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.nearest import possible_estimate, with_standard
from dynid.estimation.scores import BLOCK, NoiseSums, lengthened, resolvable, scaled_solution, spectrum
from dynid.findings import Finding

__all__ = ["solve_streamed_didim"]

Floats = NDArray[np.float64]


class _Torques(Sums):
    """What a round needs of a simulation of all logs, joint by joint; J is the regressor of the simulated motion."""

    def __init__(self, equations: StreamedLogs, beta: Floats) -> None:
        """Nothing is seen yet of the simulation with parameters (b,)."""
        super().__init__(equations, beta)
        n, b = equations.robot.dof, beta.size
        self._own, self._right, self._left = np.zeros((n, b, b)), np.zeros((n, b)), np.zeros(n)

    def add(self, window: Window) -> None:
        J, rest = _slopes_and_rest(window)
        for j, support in enumerate(self.equations.information.supports):
            acting = list(support)  # the other columns of this joint are zero
            part = np.ascontiguousarray(J[:, j, acting])
            self._own[j][np.ix_(acting, acting)] += part.T @ part
            self._right[j, acting] += part.T @ rest[:, j]
        self._left += (rest**2).sum(axis=0)

    @property
    def weights(self) -> Floats:
        """(n,) inverse variances of what is left of the torques."""
        return inverse_variances(self._left, self.equations.counts)

    @property
    def normal(self) -> Floats:
        """(b, b) sum of J' W J."""
        return np.asarray(np.tensordot(self.weights, self._own, 1))

    @property
    def step(self) -> Floats:
        """(b,) to the minimum of the squares, if the motion stays."""
        return scaled_solution(self.normal, self.weights @ self._right)[0]

    def has_settled(self, change: Floats, tolerance: float) -> bool:
        """Whether a change is small beside the standard deviations."""
        normal = self.normal
        stderr = np.sqrt(np.maximum(np.diagonal(np.linalg.inv(normal)), 0.0))
        resolution = resolvable(normal, float(self.beta @ normal @ self.beta))
        return bool(np.all(np.abs(change) <= tolerance * stderr + resolution))


def _slopes_and_rest(window: Window) -> tuple[Floats, Floats]:
    """(N, n, b) regressor of the simulated motion in a block, and (N, n) the torque's residual."""
    rows = window.block.rows
    J = window.run.columns(window.motion, rows) * window.valid[:, :, None]
    return J, window.run.torque_residual(window.motion)[rows]


def solve_streamed_didim(equations: StreamedLogs, iterations: int, tolerance: float, *, consistent: bool) -> Estimate:
    """Estimate the base parameters from streamed logs; arguments as for `dynid.estimation.DIDIM`."""

    def rounds(
        runs: StreamSearch[_Torques], start: SearchStart[_Torques]
    ) -> tuple[StreamSearch[_Torques], _Torques, tuple[Finding, ...], int]:
        sums, findings, before, count = start.motions, start.findings, None, 0
        step = sums.step
        while True:
            count += 1
            wanted, solution = sums.beta + lengthened(step, before, sums.normal), sums.beta + step
            beta, later = runs.advance(sums.beta, wanted, sums, sums.normal)
            change, before, sums, step = beta - sums.beta, step, later, later.step
            ended = sums.has_settled(step, tolerance) or sums.has_settled(change, tolerance)
            if ended or count == iterations:
                findings = findings if ended else (*findings, unsettled_finding(count))
                share = repeated_share(change, beta + step - solution, sums.normal)
                return runs, sums, findings if share <= REPEATED_SHARE else (*findings, UNCOUNTED), count

    runs, sums, remarks, count = StreamSearch[_Torques].of(equations, BLOCK, _Torques).solve_from_starts(rounds)
    normal = sums.normal
    findings = check_controller(runs.beginnings(), sums.beta)
    estimate = Estimate(
        names=equations.names,
        units=equations.units,
        values=sums.beta + sums.step if sums.has_settled(sums.step, tolerance) else sums.beta,
        covariance=_covariance(runs, sums),
        undetermined=np.zeros(sums.beta.size, dtype=bool),
        noise_std=1.0 / np.sqrt(sums.weights),
        inflation=np.ones(equations.robot.dof),
        samples=equations.counts,
        condition=float(np.sqrt(np.linalg.cond(normal / np.sqrt(np.outer(np.diag(normal), np.diag(normal)))))),
        method="DIDIM",
        findings=(*remarks, *controller_summary(findings)),
        extras={
            "iterations": float(count),
            "simulations": float(count + 1),
            "controller_mismatch": controller_mismatch(findings),
        },
    )
    return (possible_estimate if consistent else with_standard)(equations, estimate, normal)


def _covariance(runs: StreamSearch[_Torques], sums: _Torques) -> Floats:
    """(b, b) from two more simulations of all logs."""
    weights = sums.weights
    spread = NoiseSums(weights.size, sums.beta.size, runs.rate_hz)
    for again in (False, True):
        for window in runs.windows(sums.beta):
            J, rest = _slopes_and_rest(window)
            H = spectrum(J * weights[:, None])
            if again:
                spread.add(H, len(rest))
            else:
                spread.look(H, rest)
    return spread.covariance(sums.normal)
