"""Where a simulated loop starts: the initial state is measured with noise, and the memory of the law is not measured.

The memory m of a law, such as the integral of a PID law, follows from the measured torques, whatever the robot. To
first order in m, with what the law adds to it at every control instant and the slopes A of the new memory,

    m(k + 1) = driven(k) + A(k) m(k),    tau(k) = held(k) + C(k) m(k)

along measured positions, velocities and references. A log that begins in the middle of a motion gives its first
positions with noise and its first velocities with more noise. To first order the simulation depends on the initial
state by ``S d x0`` with the exact derivatives S. Joint by joint these directions are removed from residuals and
derivatives alike, as if the initial state were estimated together with the parameters, for every joint on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import lstsq, svd
from dynid.errors import EstimationError, IdentifiabilityError
from dynid.estimation.closed_loop.loop_runs import LoopRun, LoopRuns
from dynid.loop.arm import control_tape
from dynid.loop.laws import ControlLaw
from dynid.loop.loop import ReferenceMotion
from dynid.loop.sensitivity import compile_law_slopes, differentiate_start
from dynid.loop.simulator import LoopSimulator
from dynid.processing.experiment import Experiment
from dynid.tape import compile_tape

LOOKED_S = 1.0
"""Length of the log's beginning from which the law's memory is estimated [s]. Convention."""
UNSEEN = 1e-6
"""Singular values, relative to the largest, below which torques do not determine the memory. Convention."""


def apply_slopes(slopes: Floats, change: Floats) -> Floats:
    """(N, n) what changes (N, k) do through slopes (N, n, k)."""
    return np.asarray((slopes @ change[:, :, None])[:, :, 0])


def propagate_memory(driven: Floats, kept: Floats, periods: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """What has been added up at every sample, (N, m), and what is left of the memory at the first, (N, m, m).

    Args:
        driven: (N, m) added in a control period; linear between samples.
        kept: (N, m, m) slopes of the memory after a control period.
        periods: (N,) control periods since the sample before.
    """
    m = driven.shape[1]
    before = np.concatenate([driven[:1], driven[:-1]])
    added, power = np.zeros_like(driven), np.broadcast_to(np.eye(m), kept.shape)
    for period in range(int(periods.max())):  # a memory that decays, and what is added to it, over several periods
        lasts = (periods > period)[:, None]
        present = before + (driven - before) * (period / np.maximum(periods, 1))[:, None]
        added = np.where(lasts, apply_slopes(kept, added) + present, added)
        power = np.where(lasts[:, :, None], kept @ power, power)
    total, left = np.zeros((len(driven), m)), np.zeros((len(driven), m, m))
    left[0] = np.eye(m)
    for k in range(1, len(total)):
        total[k] = power[k] @ total[k - 1] + added[k]
        left[k] = power[k] @ left[k - 1]
    return total, left


def estimate_starting_memory(run: Experiment, law: ControlLaw, reference: ReferenceMotion) -> Floats | None:
    """(m,) memory with which the law gives the torques measured at the beginning of a log; None for one without memory.

    Args:
        run: A gap-free stretch, of which the first sample is at the reference's first instant.
        law: The control law.
        reference: What it was to follow.
    """
    n = run.q.shape[1]
    m = law.memory_size(n)
    if not m:
        return None
    factor = max(1, round(reference.rate_hz / run.rate_hz))
    rows = slice(0, min(run.samples, 2 + round(LOOKED_S * run.rate_hz), -(-len(reference.q) // factor)))
    wanted = [x[::factor][rows] for x in (reference.q, reference.dq, reference.ddq)]
    count = len(wanted[0])
    state = np.concatenate([run.q[rows], run.dq[rows], np.zeros((count, 1))], axis=1)
    tape, given = control_tape(law, n, 1.0 / reference.rate_hz), (np.zeros((count, m)), np.concatenate(wanted, axis=1))
    made = compile_tape(tape, "numpy")(state, *given)
    L = np.asarray(compile_law_slopes(tape, n, "numpy")(state, *given))
    through = L[:, :n, 2 * n :]
    total, left = propagate_memory(made["memory"], L[:, n:, 2 * n :], np.minimum(np.arange(count), 1) * factor)
    known = run.valid[rows]
    rest = np.where(known, np.nan_to_num(run.effort[rows]) - made["held"] - apply_slopes(through, total), 0.0)
    response = ((through @ left) * known[:, :, None]).reshape(-1, m)
    sizes = np.maximum(np.linalg.norm(response, axis=0), 1e-300)
    found = lstsq(response / sizes, rest.reshape(-1), rcond=UNSEEN) / sizes
    return np.where(sizes > 1e-290, found, 0.0)


LOOK_S = 2.0
"""First span over which the effect of the initial state is computed [s]; doubled until it has died down. Convention."""
LONGEST = 2**14
"""Most control instants over which it is computed: every stage of every step is in memory. Convention."""
FORGOTTEN = 1e-3
"""Share of its largest value below which the effect has died down. Convention."""
SETTLED = 0.01
"""Share of the largest effect below which samples count where the initial state is not estimated. Convention."""
LOST = 1e-5
"""Share of the squares of a parameter's derivatives that must remain without the initial state. Convention."""
DEPENDENT = 1e-7
"""Singular values, relative to the largest, below which directions are dependent. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeStart:
    """Directions that outputs owe to where each run starts."""

    bases: tuple[tuple[Floats, ...] | None, ...]
    """Of each run with a free start, of each joint: (K, r) orthonormal, in its first K samples"""

    @classmethod
    def of(cls, runs: LoopRuns, beta: Floats, outputs: Callable[[LoopRun, Floats, Floats], Floats]) -> FreeStart:
        """Along simulations with base parameters (b,).

        Args:
            runs: All experiments.
            beta: Parameters.
            outputs: Of a run, from derivatives (K, n, k) of positions and torques at its records to those (N, n, k) of
                what is compared, at its samples.

        Raises:
            EstimationError: The robot runs away.
        """
        return cls(tuple(None if run.loop.start_known else _bases(run, beta, outputs) for run in runs.runs))

    def without(self, rows: list[Floats]) -> list[Floats]:
        """Rows (N, n, ...) of each run without these directions."""
        return [x if basis is None else remove_directions(x, basis) for x, basis in zip(rows, self.bases, strict=True)]

    def check_identifiable(self, slopes: list[Floats], names: Sequence[str]) -> list[Floats]:
        """Derivatives (N, n, b) of each run without these directions.

        Args:
            slopes: By the parameters.
            names: Of these.

        Raises:
            IdentifiabilityError: Nothing is left of some.
        """
        left = self.without(slopes)
        before, after = (np.sum([(x**2).sum(axis=(0, 1)) for x in each], axis=0) for each in (slopes, left))
        lost = [name for name, whole, part in zip(names, before, after, strict=True) if part < LOST * whole]
        if lost:
            raise IdentifiabilityError(
                f"what is compared does not tell {', '.join(lost)} from where the simulation started: its motion, and "
                "what the control law remembered",
                remedy="Check that the law moves the simulated robot as it did the real one; use instrumental "
                "variables, which may have any start, or leave these parameters out.",
            )
        return left


def remove_directions(rows: Floats, bases: tuple[Floats, ...]) -> Floats:
    """Rows (N, n, ...) without the orthonormal directions (K, r) of each of the n joints."""
    if not bases:
        return rows
    left = rows.copy()
    for joint, Q in enumerate(bases):
        if not Q.size:  # no sample of this joint counts while the start matters
            continue
        seen = left[: len(Q), joint].reshape(len(Q), -1)
        left[: len(Q), joint] = (seen - Q @ (Q.T @ seen)).reshape(left[: len(Q), joint].shape)
    return left


def span_directions(columns: Floats) -> Floats:
    """(K, r) orthonormal directions that columns (N, k) span, without the zeros behind the last of them."""
    some = np.flatnonzero(columns.any(axis=1))
    seen = columns[: some[-1] + 1 if some.size else 0]
    sizes = np.linalg.norm(seen, axis=0)
    seen = seen[:, sizes > 0.0] / sizes[sizes > 0.0]
    if not seen.size:
        return np.zeros((0, 0))
    U, s, _ = svd(seen, full_matrices=False)
    return np.asarray(U[:, s > DEPENDENT * s[0]])


def _bases(run: LoopRun, beta: Floats, outputs: Callable[[LoopRun, Floats, Floats], Floats]) -> tuple[Floats, ...]:
    q, torque = _differentiate_until_settled(run.simulator, beta, run.every, run.ticks, FORGOTTEN)
    behind = ((0, -(-run.ticks // run.every) - len(q)), (0, 0), (0, 0))
    S = outputs(run, np.pad(q, behind), np.pad(torque, behind))
    return tuple(span_directions(S[:, joint]) for joint in range(S.shape[1]))


def _differentiate_until_settled(
    simulator: LoopSimulator, beta: Floats, every: int, ticks: int, small: float
) -> tuple[Floats, Floats]:
    """(K, n, k) derivatives of positions and torques by the start, until they have died down."""
    most = min(ticks, LONGEST)
    seen = min(most, int(np.ceil(LOOK_S * simulator.loop.reference.rate_hz)))
    while True:
        slopes = differentiate_start(simulator, beta, every=every, ticks=seen)
        if not all(np.isfinite(x).all() for x in slopes):
            raise EstimationError(
                "the simulated loop is not stable: it does not forget where it started",
                remedy="Check the control law and its rate, or give the robot better prior values.",
            )
        if seen == most or all(_has_died_down(x, small) for x in slopes):
            return slopes
        seen = min(2 * seen, most)


def _has_died_down(slopes: Floats, small: float) -> bool:
    peaks = np.abs(slopes).max(axis=(0, 1))
    return bool(np.all(np.abs(slopes[-(-9 * len(slopes) // 10) :]).max(axis=(0, 1), initial=0.0) <= small * peaks))


def estimate_settling_time(simulator: LoopSimulator, beta: Floats) -> float:
    """Time after which the torques of a simulation have forgotten where it started [s].

    Args:
        simulator: Of the loop.
        beta: (b,) base parameters.

    Raises:
        EstimationError: The robot runs away.
    """
    torque = _differentiate_until_settled(simulator, beta, 1, len(simulator.loop.reference.q), SETTLED)[1]
    large = np.abs(torque) > SETTLED * np.abs(torque).max(axis=(0, 1))
    return float(np.flatnonzero(large.any(axis=(1, 2))).max(initial=-1) + 1) * simulator.loop.period_s
