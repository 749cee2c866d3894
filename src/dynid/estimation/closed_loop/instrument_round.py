"""One round of instrumental variables: from a simulation to the solution; of streamed logs only moments are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.estimation.closed_loop.instrument_noise import away_from_reversals, block_rows, links_only
from dynid.estimation.closed_loop.loop_blocks import Block
from dynid.estimation.closed_loop.loop_runs import LoopRun, SimulatedMotion, weights_of
from dynid.estimation.closed_loop.loop_stream import StreamSearch, Sums, Window
from dynid.estimation.equations import StreamedLogs
from dynid.estimation.scores import NoiseSums, resolvable, scaled_solution, spectrum

__all__ = ["Moments", "Round", "at_links", "mixed_block", "streamed_covariance"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """The solution with the instruments of one simulation."""

    beta: Floats
    slope: Floats
    """(b, b) sum of Z' W Y"""
    variances: Floats
    """(n,) of the residuals"""
    weights: Floats
    """(n,) that were used"""
    condition: float
    resolution: Floats
    """(b,) changes of single parameters that change no torque noticeably"""

    @property
    def quick_stderr(self) -> Floats:
        """(b,) standard deviation as if residuals were white and instruments equal to the regressor."""
        return np.asarray(np.sqrt(np.abs(np.diagonal(np.linalg.inv(self.slope)))))


def mixed_block(
    run: LoopRun,
    motion: SimulatedMotion,
    block: Block,
    states: tuple[Floats, Floats, Floats] | None,
    Y: Floats,
    window: Floats,
) -> tuple[Floats, Floats]:
    """(N, K) regressor of a block, and the instruments Z of its wide rows; see `dynid.estimation.closed_loop.acting`.

    Args:
        run: The experiment in its loop.
        motion: Simulated.
        block: Its rows.
        states: The simulated motion made as the measured one was; None where that changes nothing.
        Y: (N, K) regressor of the links at the measured motion.
        window: (N, n) by which the instruments of the wide rows are multiplied.
    """
    wide = run.acting_rows(motion, block.wide)
    exact = wide[block.inner]
    if states is None:
        mixed = np.where(run.acting.joint_models, exact, Y)
    else:
        mixed = at_links(run, states, block.rows)
        np.add(Y, np.subtract(exact, mixed, out=mixed), out=mixed)
    run.acting.scale(wide, window * away_from_reversals(run.acting.dry, motion.dq[block.wide]))
    return mixed, wide


def at_links(run: LoopRun, states: tuple[Floats, Floats, Floats], rows: slice) -> Floats:
    """(N, K) regressor of the links, joint models zero, at some rows of states (N, n)."""
    result: Floats = run.acting.links(*(np.ascontiguousarray(x[rows]) for x in states))
    return result


class Moments(Sums):
    """What a round needs of a simulation of all logs, joint by joint."""

    def __init__(self, equations: StreamedLogs, beta: Floats) -> None:
        """Nothing is seen yet of the simulation with parameters (b,)."""
        super().__init__(equations, beta)
        n, b = equations.robot.dof, beta.size
        self._cross, self._right = np.zeros((n, b, b)), np.zeros((n, b))  # Z' Y, Z' tau
        self._normal, self._lean, self._left = np.zeros((n, b, b)), np.zeros((n, b)), np.zeros(n)  # Y' Y, Y' r, r' r
        self._own, self._rest = np.zeros((n, b, b)), np.zeros((n, b))  # Z' Z, Z' (tau - tau_sim)

    def add(self, window: Window) -> None:
        run, rows, valid, pairs = window.run.run, window.block.rows, window.valid, window.run.acting
        Y, wide = _mixed(window)
        Z = wide[window.block.inner]
        pairs.scale(Y, valid)
        torque = np.where(valid, run.effort[rows], 0.0)
        rest = window.run.torque_residual(window.motion)[rows]
        left = torque - pairs.times(Y, self.beta)
        self._cross += pairs.products(Z, Y)
        self._right += pairs.sums(Z, torque)
        self._normal += pairs.products(Y, Y)
        self._lean += pairs.sums(Y, left)
        self._own += pairs.products(Z, Z)
        self._rest += pairs.sums(Z, rest)
        self._left += (left**2).sum(axis=0)

    def solved(self, weights: Floats | None) -> Round:
        """The solution with weights (n,), or with those that the residuals suggest."""
        counts = self.equations.counts
        used = weights_of(self._left, counts) if weights is None else weights
        slope = np.tensordot(used, self._cross, 1)
        solution, condition = scaled_solution(slope, used @ self._right)
        change = solution - self.beta
        squares = self._left - 2.0 * self._lean @ change + np.einsum("b,jbc,c->j", change, self._normal, change)
        variances = 1.0 / weights_of(np.maximum(squares, 0.0), counts)
        signal = np.einsum("b,jbc,c->j", solution, self._own, solution)
        resolution = resolvable(slope, float(used @ signal))
        return Round(solution, slope, variances, used, float(np.sqrt(condition)), resolution)

    def unexplained(self, weights: Floats) -> Floats:
        """(b,) what other parameters would explain of the torques that are left over: the estimate's own error."""
        return scaled_solution(np.tensordot(weights, self._own, 1), weights @ self._rest)[0]


def _mixed(window: Window) -> tuple[Floats, Floats]:
    run, motion, block = window.run, window.motion, window.block
    Y = at_links(run, (run.run.q, run.run.dq, run.run.ddq), block.rows)
    return mixed_block(run, motion, block, run.derived(motion), Y, _fade(window))


def _fade(window: Window) -> Floats:
    """(N, n) by which the instruments of a window's wide rows are multiplied."""
    wide = window.block.wide
    return np.asarray(window.run.run.valid[wide] * window.fade[wide, None])


def streamed_covariance(runs: StreamSearch[Moments], sums: Moments, found: Round) -> Floats:
    """(b, b) covariance of a solution, from two more simulations of all logs.

    Args:
        runs: The logs in their loops.
        sums: Of the simulation that made the solution's instruments.
        found: The solution.
    """
    equations, error = runs.equations, sums.unexplained(found.weights)
    links, n = links_only(equations, found.beta), equations.robot.dof
    spread = NoiseSums(2 * n, found.beta.size, runs.rate_hz, n)
    for again in (False, True):
        for window in runs.windows(sums.beta):
            run, motion, block = window.run, window.motion, window.block
            wide = run.acting_rows(motion, block.wide)
            run.acting.scale(wide, _fade(window) * away_from_reversals(run.acting.dry, motion.dq[block.wide]))
            H = spectrum(block_rows(run, motion, links, run.acting.whole(wide, found.weights), block))
            if again:
                spread.add(H, len(window.valid))
                continue
            torque = run.torque_residual(motion)[block.rows] - run.acting.times(wide[block.inner], error)
            noise = np.concatenate([torque, (run.run.q - run.positions(motion))[block.rows]], axis=1)
            spread.look(H, noise)
    return spread.covariance(found.slope)
