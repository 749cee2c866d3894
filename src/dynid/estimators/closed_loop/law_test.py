"""A test of the simulated control law: does it explain the measured torques?

The residual of the law is the measured torque minus the torque of the law along the measured motion; the robot's
parameters do not enter. If law and commanded motion are right, the residual is noise, not correlated with the motion. A
wrong gain leaves a part of the tracking error, its rate or its integral. A wrong reference (another unit, gain, sign,
delay or joint) and unstated terms of the law leave a part that follows the commanded motion. So the residual of each
joint is regressed on each of these signals (*shapes*) together with a constant. Standard deviations take correlation in
time into account. The shape that explains most is reported.

`check_controller` is called by `closed_loop.loop_estimator` with the experiments and their simulated motions;
`follow_law` also serves `added_loops`. Shapes of arrays: N samples, n joints, m numbers of the law's memory (which it
keeps from one control instant to the next), k shapes.
"""

from __future__ import annotations

import numpy as np

from dynid.array_types import Floats, Ints
from dynid.control_loop.arm import control_tape
from dynid.control_loop.laws import ControlLaw
from dynid.decompositions import condition_number
from dynid.estimators.closed_loop.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion, welch_covariance
from dynid.findings import Finding
from dynid.tape import compile_tape

PARTS = ("proportional part", "derivative part", "integral part", "constant part")
"""Parts of the law's torque that the first four shapes stand for; the other shapes stand for the reference."""
GAINS_REMEDY = "Check its gains, its reference and its rate, or use weighted least squares instead."
REFERENCE_REMEDY = (
    "Check the commanded positions: column, unit, sign, gain and delay; and the law for terms that are not stated: "
    "feed-forward, compensation of gravity or friction. Or use weighted least squares instead."
)
SIGNIFICANT_STD = 6.0
"""Standard deviations above which a part is not noise (level: at 18 degrees of freedom one test in 200 000)."""
CONSTANT_CONDITION = 1e8
"""Condition number above which a shape counts as a constant itself (convention)."""
LEAST_TORQUE_SHARE = 0.01
"""Smallest share of a joint's torque that is reported (convention: other approximations are as large)."""
REVERSING_SPEED_SHARE = 0.05
"""Share of the largest commanded speed at which the shape of the direction changes its sign smoothly (convention)."""


def check_controller(runs: LoopRuns, motions: Motions) -> tuple[Finding, ...]:
    """Test the control law of the experiments' loops; empty where it explains the torques.

    Args:
        runs: The experiments.
        motions: The motion of each experiment, simulated with the estimate.
    """
    # for each run: the shapes (N, k) of every joint, and the residuals (N, n)
    compared = [_compare(run, motion) for run, motion in zip(runs.runs, motions, strict=True)]
    rate_hz = max(run.run.rate_hz for run in runs.runs)
    accused: dict[str, list[str]] = {}  # part of the law -> joints with their share of the torque
    for joint, name in enumerate(runs.equations.robot.joint_names):
        efforts = np.concatenate([np.where(run.run.valid, run.run.effort, 0.0)[:, joint] for run in runs.runs])
        rms_torque = float(np.sqrt(np.mean(efforts**2)))
        # for each shape: rms torque that it explains, and its standard deviation
        explained = [
            _explain([(x[joint], y[:, joint]) for x, y in compared], k, rate_hz)
            for k in range(compared[0][0][joint].shape[1])
        ]
        significant = [
            abs(value) if abs(value) > max(SIGNIFICANT_STD * std, LEAST_TORQUE_SHARE * rms_torque) else 0.0
            for value, std in explained
        ]
        worst = int(np.argmax(significant))
        if significant[worst] > 0.0:
            part = PARTS[worst] if worst < len(PARTS) else "reference"
            accused.setdefault(part, []).append(f"{name} {100.0 * significant[worst] / rms_torque:.2g} %")
    return tuple(
        Finding(
            code="controller",
            severity="error",
            where=part,
            message="the simulated control law does not explain the measured torque: "
            + (f"its {part} differs" if part in PARTS else "its residual is no noise, but follows the motion")
            + f" ({', '.join(joints)} of the torque)",
            remedy=GAINS_REMEDY if part in PARTS else REFERENCE_REMEDY,
        )
        for part, joints in accused.items()
    )


def _compare(run: LoopRun, motion: SimulatedMotion) -> tuple[list[Floats], Floats]:
    """The shapes (N, k) of each joint and the law's residuals (N, n), both zero where torques do not count.

    Shapes of a joint are its simulated tracking error with rate and integral, and a constant (see `PARTS`); its
    commanded position, velocity, acceleration, direction, sine and cosine; and commanded positions and velocities of
    the other joints. The memory of the law at the start is unknown; what another one would explain is projected out.
    """
    log = run.run
    n = run.loop.dof
    q, dq, ddq = run.commanded
    residual, memories = _law_residual(run, motion)
    error = q - motion.q
    direction = np.tanh(dq / (REVERSING_SPEED_SHARE * np.maximum(np.abs(dq).max(axis=0), 1e-12)))
    law_shapes = (error, dq - motion.dq, np.cumsum(error, axis=0), np.ones_like(error))  # in the order of `PARTS`
    reference_shapes = (q, dq, ddq, direction, np.sin(q), np.cos(q))
    shapes = []
    projected = np.empty_like(residual)
    for joint in range(n):
        others = np.delete(np.arange(n), joint)
        columns = np.column_stack(
            [
                *(shape[:, joint] for shape in (*law_shapes, *reference_shapes)),
                q[:, others],
                dq[:, others],
                residual[:, joint],
            ]
        )
        columns *= log.valid[:, joint, None]
        basis = np.linalg.qr(memories[:, joint] * log.valid[:, joint, None])[0]
        columns -= basis @ (basis.T @ columns)
        projected[:, joint] = columns[:, -1]
        shapes.append(columns[:, :-1])
    return shapes, projected


def _explain(runs: list[tuple[Floats, Floats]], k: int, rate_hz: float) -> tuple[float, float]:
    """Root mean square [N m or N] of the part of the residual that shape k explains, and its standard deviation.

    The residual is regressed on the shape together with a constant. A shape that is a constant or zero gives zeros.

    Args:
        runs: The shapes (N, K) of a joint and its residual (N,), for each run.
        k: Index of the shape.
        rate_hz: Sampling rate [Hz].
    """
    constant = PARTS.index("constant part")
    used = [k] if k == constant else [k, constant]
    sizes = np.sqrt(np.mean(np.concatenate([X[:, used] for X, _ in runs]) ** 2, axis=0))
    if not sizes.all():
        return 0.0, 0.0
    columns = [X[:, used] / sizes for X, _ in runs]
    slope = np.sum([X.T @ X for X in columns], axis=0)
    if not condition_number(slope) < CONSTANT_CONDITION:  # the shape is a constant itself
        return 0.0, 0.0
    values = np.linalg.solve(slope, np.sum([X.T @ y for X, (_, y) in zip(columns, runs, strict=True)], axis=0))
    scores = [X * (y - X @ values)[:, None] for X, (_, y) in zip(columns, runs, strict=True)]
    return float(values[0]), float(np.sqrt(welch_covariance(slope, scores, rate_hz)[0, 0]))


def _law_residual(run: LoopRun, motion: SimulatedMotion) -> tuple[Floats, Floats]:
    """(N, n) measured torque minus that of the law, and (N, n, m) its change by each number of the memory."""
    log = run.run
    ticks = run.rows * run.every
    first_memory = motion.runs.memory[run.rows[0]]
    wanted = run.loop.reference.samples[ticks[0] : ticks[-1] + 1]
    torques = follow_law(run.loop.law, log.q, log.dq, ticks - ticks[0], wanted, first_memory, run.loop.period_s)
    residual = np.where(log.valid, np.nan_to_num(log.effort) - torques[0], 0.0)
    return residual, np.moveaxis(torques[1:] - torques[0], 0, 2)


def follow_law(
    law: ControlLaw, q: Floats, dq: Floats, ticks: Ints, wanted: Floats, memory: Floats, period_s: float
) -> Floats:
    """(1 + m, N, n) torques of a law along a measured motion: with a memory, then with each number of it one larger.

    Args:
        law: The law.
        q: (N, n) measured positions; between samples they are interpolated.
        dq: (N, n) measured velocities.
        ticks: (N,) control instants of the samples, the first zero.
        wanted: (M, 4 n) commanded motion: rows of `ReferenceMotion.samples` at all control instants.
        memory: (m,) memory of the law at the first tick, such as integrals of errors.
        period_s: Time between control instants [s].
    """
    n = q.shape[1]
    m = memory.size
    control = compile_tape(control_tape(law, n, period_s))
    state = np.concatenate([q, dq, np.zeros((len(q), 1))], axis=1)  # the last entry, work, is not used
    if not m:
        torque: Floats = control(state, np.zeros((len(q), 0)), wanted[ticks])["held"]
        return torque[None]
    instants = np.arange(ticks[-1] + 1)
    states = np.stack([np.interp(instants, ticks, x) for x in state.T], axis=1)
    memories = memory + np.eye(m + 1, m, -1)  # the first row unchanged, row i + 1 with number i one larger
    torques = np.empty((len(instants), m + 1, n))
    for k in instants:
        decided = control(np.repeat(states[k : k + 1], m + 1, axis=0), memories, wanted[k])
        torques[k], memories = decided["held"], decided["memory"]
    return np.moveaxis(torques[ticks], 1, 0)
