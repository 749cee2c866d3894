"""Instrumental variables: unbiased where positions are noisy and the loop feeds the noise back (IDIM-IV).

Least squares on measured positions is biased because the regressor's errors go with the residual's. The regressor Z at
the *simulated* positions of the same loop has no such errors ([Janot2014]):

    sum_t Z_t' W (tau_t - Y_t beta) = 0

Simulation and solution take turns until they agree; where the simulated motion follows the parameters, that counts in
the last step and in the intervals (see instrument_noise.py). A low-pass and differences flatten the
measured accelerations, which would bias the inertia; so the simulated positions are treated alike, and what their
regressor loses by it is given back to the measured one: ``Y = Y(F q) + Y(q_sim) - Y(F q_sim)``, whose error is the
noise alone. The joint models' columns (friction above all, whose sign turns with noise) are those of the simulated
motion in Y too. The instruments fade out at the ends of every stretch: where they ended abruptly, the noise of single
accelerations would count in full; and where a joint with dry friction turns round.

The sums are taken block by block: of a long log only the regressors of a few blocks are in memory, and of a streamed
one only these blocks' samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.checks import as_whole, check_number
from dynid.errors import EstimationError
from dynid.estimation.closed_loop.instrument_noise import FOLLOWED, UNCOUNTED, faded, followed, motion_slope, noise_rows
from dynid.estimation.closed_loop.instrument_round import Moments, Round, at_links, mixed_block, streamed_covariance
from dynid.estimation.closed_loop.law_test import check_controller, controller_mismatch, controller_summary
from dynid.estimation.closed_loop.loop_blocks import BLOCK, Block, Kept, cut
from dynid.estimation.closed_loop.loop_estimator import LoopEstimator
from dynid.estimation.closed_loop.loop_runs import LoopRuns, Motions, joint_weights
from dynid.estimation.closed_loop.loop_search import LoopSearch, SearchStart, not_settled
from dynid.estimation.closed_loop.loop_stream import StreamSearch
from dynid.estimation.equations import Factors, LoopedRuns, StreamedLogs
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import refuse_unsupported
from dynid.estimation.physical.possible import with_standard
from dynid.estimation.scores import lengthened, resolvable, scaled_solution, solution_covariance, times
from dynid.findings import Finding

__all__ = ["InstrumentalVariables", "refuse_absurd"]

Floats = NDArray[np.float64]
COMPARED = 256
"""Samples of a run at which the torques of an estimate are looked at."""
ABSURD = 10.0
"""Times the measured torques that no estimate may ask for."""
Simulated = TypeVar("Simulated")
Solved = TypeVar("Solved", bound=Round)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(LoopEstimator):
    """Weighted instrumental variables from the simulated loop; needs experiments with a `dynid.Loop`."""

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"
    use: ClassVar[str] = "noise in the motion would bias least squares, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Janot2014",)
    compares: ClassVar[Literal["torques", "positions", "instruments"]] = "instruments"

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Where the next simulation would change all parameters by less than this share of their standard deviation, it
    is not made."""
    block: int = BLOCK
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
        refuse_unsupported(equations)
        if isinstance(equations, StreamedLogs):
            return self._streamed(equations)
        runs = LoopRuns.of(equations)
        measured = _Measured.of(runs, self.block)
        end = runs.from_some_start(lambda runs, start: self._in_memory(runs, measured, start))
        refuse_absurd(runs, end.motions, end.found.beta)
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
        used, end = runs.from_some_start(
            lambda runs, start: (
                runs,
                self._iterate(runs, start, lambda beta, sums, weights: sums.solved(weights), lambda beta, found: None),
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
        return with_standard(equations, estimate, 0.5 * (found.slope + found.slope.T))

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
            later, motions = runs.advance(beta, beta + lengthened(step, before, found.slope), motions, found.slope)
            last, change, beta, before = found, later - beta, later, step
            found = solved(beta, motions, 1.0 / found.variances)
            small = self.tolerance * found.quick_stderr + found.resolution
            # the next simulation would be of the same robot; or, where the wanted robot is impossible, this one was
            if np.all(np.abs(found.beta - beta) <= small) or np.all(np.abs(change) <= small):
                break
            if count == self.iterations:
                findings = (*findings, not_settled(count))
                break
        if followed(change, found.beta - last.beta, found.slope) <= FOLLOWED:
            return _End(found, motions, found.slope, findings, count)
        more = through_motion(beta, found)
        if more is None:
            return _End(found, motions, found.slope, (*findings, UNCOUNTED), count)
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
            return at_links(run, (run.run.q, run.run.dq, run.run.ddq), blocks[number].rows)

        torques = [np.where(run.run.valid, run.run.effort, 0.0) for run in runs.runs]
        windows = [run.run.valid * faded(run.run)[:, None] for run in runs.runs]
        return cls(blocks, Kept(matrix, len(blocks)), [torques[block.run][block.rows] for block in blocks], windows)


@dataclass(frozen=True, slots=True, eq=False)
class _Round(Round):
    """The solution with the instruments of one simulation in memory."""

    made: Kept[tuple[Floats, ...]]
    """Y (N, K) of each block, and Z of its wide rows, zero where a sample does not count"""

    @classmethod
    def of(cls, runs: LoopRuns, measured: _Measured, beta: Floats, motions: Motions, weights: Floats | None) -> _Round:
        made = _mixed(runs, measured, motions)
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
        solution, condition = scaled_solution(slope, weights @ right)
        variances = 1.0 / joint_weights(left(solution), counts)
        squares = sum((run.acting.times(made[k][1][block.inner], solution) ** 2).sum(0) for k, block, run, _ in parts)
        resolution = resolvable(slope, float(weights @ squares))
        return cls(solution, slope, variances, weights, float(np.sqrt(condition)), resolution, made)

    def instruments(self, number: int) -> Floats:
        """(N, K) of a block's wide rows."""
        return self.made[number][1]


def refuse_absurd(runs: LoopRuns, motions: Motions, beta: Floats) -> None:
    """Refuse an estimate whose torques along the simulated motion are not of the size of the measured ones.

    Raises:
        EstimationError: So it is: the instruments have nothing in common with the measured motion.
    """
    for run, motion in zip(runs.runs, motions, strict=True):
        rows = slice(None, None, max(1, run.run.samples // COMPARED))
        torque = np.sqrt(np.mean(times(run.columns(motion, rows), beta) ** 2, axis=0))
        measured = np.sqrt(np.mean(np.where(run.run.valid, run.run.effort, 0.0) ** 2, axis=0))
        worst = int(np.argmax(torque / np.maximum(measured, 1e-300) * (measured > 0.0)))
        if torque[worst] > ABSURD * measured[worst] > 0.0:
            raise EstimationError(
                f"the estimate asks {torque[worst]:.2g} of '{runs.equations.robot.joint_names[worst]}' along the "
                f"simulated motion, where {measured[worst]:.2g} N m or N were measured",
                remedy="Check the control law and what it was to follow, or use weighted least squares.",
            )


def _mixed(runs: LoopRuns, measured: _Measured, motions: Motions) -> Kept[tuple[Floats, ...]]:
    """Y (N, K) of each block, and Z of its wide rows."""
    derived = [run.derived(motion) for run, motion in zip(runs.runs, motions, strict=True)]

    def made(number: int) -> tuple[Floats, ...]:
        block = measured.blocks[number]
        run, states, Y = runs.runs[block.run], derived[block.run], measured.matrices[number]
        window = measured.windows[block.run][block.wide]
        return mixed_block(run, motions[block.run], block, states, Y, window)

    return Kept(made, len(measured.blocks))
