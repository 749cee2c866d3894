"""Instrumental variables: unbiased where positions are noisy and the loop feeds the noise back (IDIM-IV).

Least squares on measured positions is biased because the regressor's errors go with the residual's. The regressor Z at
the *simulated* positions of the same loop has no such errors ([Janot2014]):

    sum_t Z_t' W (tau_t - Y_t beta) = 0

Simulation and solution take turns until they agree; where the simulated motion depends on the parameters, that counts
in the last step and in the intervals (see instrument_noise.py). A low-pass and differences flatten the measured
accelerations, which would bias the inertia; so the simulated positions are filtered and differentiated alike, and the
measured regressor is corrected by what the simulated one loses: ``Y = Y(F q) + Y(q_sim) - Y(F q_sim)``, whose error is
the noise alone. The terms' columns (friction above all, whose sign turns with noise) are those of the simulated
motion in Y too. The instruments fade out at the ends of every stretch: where they ended abruptly, the noise of single
accelerations would count in full; and where a joint with dry friction turns round.

The sums are taken block by block: only the regressors of a few blocks of a long log are in memory, and only the moments
of a streamed log are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_whole, check_number
from dynid.errors import EstimationError
from dynid.estimation.closed_loop.instrument_noise import (
    MOTION_NOT_COUNTED,
    REPEATED_SHARE,
    block_noise_rows,
    drop_terms,
    end_window,
    motion_slope,
    noise_rows,
    repeated_share,
    reversal_speeds,
    reversal_window,
)
from dynid.estimation.closed_loop.law_test import check_controller, controller_mismatch, controller_summary
from dynid.estimation.closed_loop.loop_runs import (
    LoopRun,
    LoopRuns,
    Motions,
    SimulatedMotion,
    inverse_variances,
    joint_weights,
)
from dynid.estimation.closed_loop.loop_search import LoopEstimator, LoopSearch, SearchStart, unsettled_finding
from dynid.estimation.closed_loop.loop_stream import StreamSearch, Sums, Window
from dynid.estimation.equations import Factors, LoopedRuns, StreamedLogs
from dynid.estimation.estimate import Estimate
from dynid.estimation.noise import check_data
from dynid.estimation.physical.nearest import add_standard
from dynid.estimation.scores import (
    SPECTRUM_SAMPLES,
    Block,
    Kept,
    NoiseSums,
    cut,
    extrapolate_step,
    smallest_changes,
    solution_covariance,
    solve_scaled,
    spectrum,
    times,
)
from dynid.findings import Finding


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


def mix_block(
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
    wide = run.active_rows(motion, block.wide)
    exact = wide[block.inner]
    if states is None:
        mixed = np.where(run.acting.of_terms, exact, Y)
    else:
        mixed = link_columns(run, states, block.rows)
        np.add(Y, np.subtract(exact, mixed, out=mixed), out=mixed)
    run.acting.scale(wide, window * reversal_window(run.acting.dry, motion.dq[block.wide], reversal_speeds(run)))
    return mixed, wide


def link_columns(run: LoopRun, states: tuple[Floats, Floats, Floats], rows: slice) -> Floats:
    """(N, K) regressor of the links, terms zero, at some rows of states (N, n)."""
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
        Y, wide = _mix_window(window)
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

    def solve(self, weights: Floats | None) -> Round:
        """The solution with weights (n,), or with those that the residuals suggest."""
        counts = self.equations.counts
        used = inverse_variances(self._left, counts) if weights is None else weights
        slope = np.tensordot(used, self._cross, 1)
        solution, condition = solve_scaled(slope, used @ self._right)
        change = solution - self.beta
        squares = self._left - 2.0 * self._lean @ change + np.einsum("b,jbc,c->j", change, self._normal, change)
        variances = 1.0 / inverse_variances(np.maximum(squares, 0.0), counts)
        signal = np.einsum("b,jbc,c->j", solution, self._own, solution)
        resolution = smallest_changes(slope, float(used @ signal))
        return Round(solution, slope, variances, used, float(np.sqrt(condition)), resolution)

    def unexplained(self, weights: Floats) -> Floats:
        """(b,) what other parameters would explain of the torques that are left over: the estimate's own error."""
        return solve_scaled(np.tensordot(weights, self._own, 1), weights @ self._rest)[0]


def _mix_window(window: Window) -> tuple[Floats, Floats]:
    run, motion, block = window.run, window.motion, window.block
    Y = link_columns(run, (run.run.q, run.run.dq, run.run.ddq), block.rows)
    return mix_block(run, motion, block, run.derived(motion), Y, _fade(window))


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
    links, n = drop_terms(equations, found.beta), equations.robot.dof
    spread = NoiseSums(2 * n, found.beta.size, runs.rate_hz, n)
    for again in (False, True):
        for window in runs.windows(sums.beta):
            run, motion, block = window.run, window.motion, window.block
            wide = run.active_rows(motion, block.wide)
            run.acting.scale(
                wide, _fade(window) * reversal_window(run.acting.dry, motion.dq[block.wide], reversal_speeds(run))
            )
            H = spectrum(block_noise_rows(run, motion, links, run.acting.whole(wide, found.weights), block))
            if again:
                spread.add_rows(H, len(window.valid))
                continue
            torque = run.torque_residual(motion)[block.rows] - run.acting.times(wide[block.inner], error)
            noise = np.concatenate([torque, (run.run.q - run.positions(motion))[block.rows]], axis=1)
            spread.add_noise(H, noise)
    return spread.covariance(found.slope)


COMPARED_SAMPLES = 256
"""Number of samples of a run at which the torques of an estimate are checked. Convention."""
LARGEST_TORQUE_RATIO = 10.0
"""Torques of an estimate over the measured ones that no right estimate reaches. Convention."""
Simulated = TypeVar("Simulated")
Solved = TypeVar("Solved", bound=Round)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(LoopEstimator):
    """Weighted instrumental variables from the simulated loop; needs experiments with a `dynid.loop.Loop`."""

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"
    use: ClassVar[str] = "noise in the motion would bias least squares, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Janot2014",)
    compares: ClassVar[Literal["torques", "instruments"]] = "instruments"

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Where the next simulation would change all parameters by less than this share of their standard deviation, it
    is not made."""
    block: int = SPECTRUM_SAMPLES
    """Samples whose regressors are in memory at a time; noise of different blocks is taken to be independent."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        as_whole("iterations", self.iterations, least=1)
        as_whole("block", self.block, least=1)
        check_number("tolerance", self.tolerance, "a number above zero")

    def estimate(self, equations: LoopedRuns | StreamedLogs) -> Estimate:
        """Estimate the base parameters.

        Streamed logs are gone through again for every simulation, and once more for what must be known before it;
        the control law is then checked by their kept beginnings.

        Raises:
            ArgumentError: An experiment has no loop, or a streamed log cannot be gone through again.
            IdentifiabilityError: The motion does not determine all parameters.
            EstimationError: No start follows the references.
        """
        check_data(equations)
        if isinstance(equations, StreamedLogs):
            return self._streamed(equations)
        runs = LoopRuns.of(equations)
        measured = _Measured.of(runs, self.block)
        end = runs.solve_from_starts(lambda runs, start: self._in_memory(runs, measured, start))
        check_torque_size(runs, end.motions, end.found.beta)
        parts = (measured.blocks, end.found.instruments, end.found.weights)
        rows, noise = noise_rows(runs, end.motions, end.found.beta, *parts)
        covariance = solution_covariance(end.slope, rows, noise, runs.rate_hz, equations.robot.dof)
        findings = check_controller(runs, end.found.beta, end.motions)
        return self._estimate(equations, end, covariance, findings)

    def _in_memory(self, runs: LoopRuns, measured: _Measured, start: SearchStart[Motions]) -> _End[_Round, Motions]:
        return self._iterate(
            runs,
            start,
            lambda beta, motions, weights: _Round.of(runs, measured, beta, motions, weights),
            lambda beta, found: motion_slope(runs, beta, measured.blocks, found.instruments, found.weights),
        )

    def _streamed(self, equations: StreamedLogs) -> Estimate:
        """The same of logs that are gone through again and again."""
        runs = StreamSearch[Moments].of(equations, self.block, Moments)
        used, end = runs.solve_from_starts(
            lambda runs, start: (
                runs,
                self._iterate(runs, start, lambda beta, sums, weights: sums.solve(weights), lambda beta, found: None),
            )
        )
        covariance = streamed_covariance(used, end.motions, end.found)
        findings = check_controller(used.beginnings(), end.motions.beta)
        return self._estimate(equations, end, covariance, findings)

    def _estimate(
        self, equations: Factors, end: _End[Any, Any], covariance: Floats, findings: tuple[Finding, ...]
    ) -> Estimate:
        found: Round = end.found
        estimate = Estimate(
            names=equations.names,
            units=equations.units,
            values=found.beta,
            covariance=covariance,
            undetermined=np.zeros(found.beta.size, dtype=bool),
            noise_std=np.sqrt(found.variances),
            inflation=np.ones(equations.robot.dof),
            samples=equations.counts,
            condition=found.condition,
            method="instrumental variables",
            findings=(*end.findings, *controller_summary(findings)),
            extras={
                "iterations": float(end.count),
                "simulations": float(end.count + 1),
                "controller_mismatch": controller_mismatch(findings),
            },
        )
        return add_standard(equations, estimate, 0.5 * (found.slope + found.slope.T))

    def _iterate(
        self,
        runs: LoopSearch[Simulated],
        start: SearchStart[Simulated],
        solved: Callable[[Floats, Simulated, Floats | None], Solved],
        through_motion: Callable[[Floats, Solved], Floats | None],
    ) -> _End[Solved, Simulated]:
        """Simulate and solve in turn; the last step is with the slope through the motion where that counts."""
        findings, beta, motions = start.findings, start.beta, start.motions
        found = solved(beta, motions, None)
        count, before = 0, None
        while True:
            count += 1
            step = found.beta - beta
            later, motions = runs.advance(
                beta, beta + extrapolate_step(step, before, found.slope), motions, found.slope
            )
            last, change, beta, before = found, later - beta, later, step
            found = solved(beta, motions, 1.0 / found.variances)
            small = self.tolerance * found.quick_stderr + found.resolution
            # the next simulation would be of the same robot; or, where the wanted robot is impossible, this one was
            if np.all(np.abs(found.beta - beta) <= small) or np.all(np.abs(change) <= small):
                break
            if count == self.iterations:
                findings = (*findings, unsettled_finding(count))
                break
        if repeated_share(change, found.beta - last.beta, found.slope) <= REPEATED_SHARE:
            return _End(found, motions, found.slope, findings, count)
        more = through_motion(beta, found)
        if more is None:
            return _End(found, motions, found.slope, (*findings, MOTION_NOT_COUNTED), count)
        slope = found.slope + more
        values = beta + np.linalg.solve(slope, found.slope @ (found.beta - beta))
        return _End(replace(found, beta=values), motions, slope, findings, count)


@dataclass(frozen=True, slots=True, eq=False)
class _End(Generic[Solved, Simulated]):
    """Where an iteration came to."""

    found: Solved
    motions: Simulated
    """Of its instruments"""
    slope: Floats
    """(b, b) of the equations, through the simulated motion too where that counts"""
    findings: tuple[Finding, ...]
    count: int
    """Simulations after the first"""


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """What does not change with the simulation."""

    blocks: tuple[Block, ...]
    matrices: Kept[Floats]
    """(N, K) regressor of the links at the measured motion of each block; see `dynid.estimation.closed_loop.acting`"""
    torques: list[Floats]
    """(N, n) of each block, zero where they do not count"""
    windows: list[Floats]
    """(N, n) of each run, by which instruments are multiplied"""

    @classmethod
    def of(cls, runs: LoopRuns, size: int) -> _Measured:
        blocks = cut([run.run.samples for run in runs.runs], size)

        def matrix(number: int) -> Floats:
            run = runs.runs[blocks[number].run]
            return link_columns(run, (run.run.q, run.run.dq, run.run.ddq), blocks[number].rows)

        torques = [np.where(run.run.valid, run.run.effort, 0.0) for run in runs.runs]
        windows = [run.run.valid * end_window(run.run)[:, None] for run in runs.runs]
        return cls(blocks, Kept(matrix, len(blocks)), [torques[block.run][block.rows] for block in blocks], windows)


@dataclass(frozen=True, slots=True, eq=False)
class _Round(Round):
    """The solution with the instruments of one simulation in memory."""

    made: Kept[tuple[Floats, ...]]
    """Y (N, K) of each block, and Z of its wide rows, zero where a sample does not count"""

    @classmethod
    def of(cls, runs: LoopRuns, measured: _Measured, beta: Floats, motions: Motions, weights: Floats | None) -> _Round:
        made = _mix_blocks(runs, measured, motions)
        runs_of = [runs.runs[block.run] for block in measured.blocks]
        parts = list(zip(range(len(made)), measured.blocks, runs_of, measured.torques, strict=True))

        def left(values: Floats) -> Iterator[Floats]:
            for k, block, run, torque in parts:
                yield (torque - run.acting.times(made[k][0], values)) * run.run.valid[block.rows]

        counts = runs.equations.counts
        weights = joint_weights(left(beta), counts) if weights is None else weights
        b, n = beta.size, runs.equations.robot.dof
        cross, right = np.zeros((n, b, b)), np.zeros((n, b))
        for k, block, run, torque in parts:
            Y, Z = made[k][0], made[k][1][block.inner]
            cross += run.acting.products(Z, Y)
            right += run.acting.sums(Z, torque)
        slope = np.tensordot(weights, cross, 1)
        solution, condition = solve_scaled(slope, weights @ right)
        variances = 1.0 / joint_weights(left(solution), counts)
        squares = sum((run.acting.times(made[k][1][block.inner], solution) ** 2).sum(0) for k, block, run, _ in parts)
        resolution = smallest_changes(slope, float(weights @ squares))
        return cls(solution, slope, variances, weights, float(np.sqrt(condition)), resolution, made)

    def instruments(self, number: int) -> Floats:
        """(N, K) of a block's wide rows."""
        return self.made[number][1]


def check_torque_size(runs: LoopRuns, motions: Motions, beta: Floats) -> None:
    """Check that the torques of an estimate along the simulated motion are of the size of the measured ones.

    Raises:
        EstimationError: They are much larger: the instruments have nothing in common with the measured motion.
    """
    for run, motion in zip(runs.runs, motions, strict=True):
        rows = slice(None, None, max(1, run.run.samples // COMPARED_SAMPLES))
        torque = np.sqrt(np.mean(times(run.columns(motion, rows), beta) ** 2, axis=0))
        measured = np.sqrt(np.mean(np.where(run.run.valid, run.run.effort, 0.0) ** 2, axis=0))
        worst = int(np.argmax(torque / np.maximum(measured, 1e-300) * (measured > 0.0)))
        if torque[worst] > LARGEST_TORQUE_RATIO * measured[worst] > 0.0:
            raise EstimationError(
                f"the estimate asks {torque[worst]:.2g} of '{runs.equations.robot.joint_names[worst]}' along the "
                f"simulated motion, where {measured[worst]:.2g} N m or N were measured",
                remedy="Check the control law and what it was to follow, or use weighted least squares.",
            )


def _mix_blocks(runs: LoopRuns, measured: _Measured, motions: Motions) -> Kept[tuple[Floats, ...]]:
    """Y (N, K) of each block, and Z of its wide rows."""
    derived = [run.derived(motion) for run, motion in zip(runs.runs, motions, strict=True)]

    def made(number: int) -> tuple[Floats, ...]:
        block = measured.blocks[number]
        run, states, Y = runs.runs[block.run], derived[block.run], measured.matrices[number]
        window = measured.windows[block.run][block.wide]
        return mix_block(run, motions[block.run], block, states, Y, window)

    return Kept(made, len(measured.blocks))
