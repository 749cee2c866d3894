"""Is the control law that was simulated the one that moved the robot?

The measured torque less the torque of the law along the measured motion, whatever the robot's parameters, is noise
where law and commanded motion are right, and noise knows nothing of the motion. A wrong gain leaves a part of the
tracking error, its rate or its integral; a reference that is not the commanded one (another unit, gain, sign, delay or
joint), and terms of the law that are not stated, leave what follows the commanded motion. So joint by joint the
residual is held against each of these shapes, beside a constant, with standard deviations that count correlation in
time; the shape that explains most is accused. No noise level has to be known.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats, Ints
from dynid.control_loop.arm import control_tape
from dynid.control_loop.laws import ControlLaw
from dynid.decompositions import condition_number
from dynid.estimators.closed_loop.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion, welch_covariance
from dynid.findings import Finding
from dynid.tape import compile_tape

PARTS = ("proportional part", "derivative part", "integral part", "constant part")
"""Parts of the torque that the first shapes stand for."""
GAINS = "Check its gains, its reference and its rate, or use weighted least squares instead."
REFERENCE = (
    "Check the commanded positions: column, unit, sign, gain and delay; and the law for terms that are not stated: "
    "feed-forward, compensation of gravity or friction. Or use weighted least squares instead."
)
CLEAR = 6.0
"""Standard deviations beyond which a share is no noise (derivation: at 18 degrees of freedom one test in 200 000)."""
SINGULAR = 1e8
"""Condition number from which on a shape is taken for a constant. Convention."""
SHARE = 0.01
"""Least share of a joint's torque that is reported: other approximations of the model are as large. Convention."""
TURNING = 0.05
"""Share of the largest commanded speed below which a joint counts as reversing. Convention."""


def check_controller(runs: LoopRuns, motions: Motions) -> tuple[Finding, ...]:
    """What speaks against the law of the experiments' loops; nothing where all is well.

    Args:
        runs: The experiments.
        motions: Simulated with the estimate.
    """
    compared = [_compare(run, motion) for run, motion in zip(runs.runs, motions, strict=True)]
    rate_hz = max(run.run.rate_hz for run in runs.runs)
    accused: dict[str, list[str]] = {}
    for joint, name in enumerate(runs.equations.robot.joint_names):
        efforts = np.concatenate([np.where(run.run.valid, run.run.effort, 0.0)[:, joint] for run in runs.runs])
        level = float(np.sqrt(np.mean(efforts**2)))
        shares = [
            _share([(x[joint], y[:, joint]) for x, y in compared], k, rate_hz)
            for k in range(compared[0][0][joint].shape[1])
        ]
        clear = [abs(value) if abs(value) > max(CLEAR * std, SHARE * level) else 0.0 for value, std in shares]
        worst = int(np.argmax(clear))
        if clear[worst] > 0.0:
            part = PARTS[worst] if worst < len(PARTS) else "reference"
            accused.setdefault(part, []).append(f"{name} {100.0 * clear[worst] / level:.2g} %")
    return tuple(
        Finding(
            code="controller",
            severity="error",
            where=part,
            message="the simulated control law does not explain the measured torque: "
            + (f"its {part} differs" if part in PARTS else "its residual is no noise, but follows the motion")
            + f" ({', '.join(joints)} of the torque)",
            remedy=GAINS if part in PARTS else REFERENCE,
        )
        for part, joints in accused.items()
    )


def _compare(run: LoopRun, motion: SimulatedMotion) -> tuple[list[Floats], Floats]:
    """Of each joint (N, k) shapes, and (N, n) the law's residual; both zero where torques do not count.

    Shapes of a joint are its simulated tracking error, its rate and integral, a constant; its commanded q, dq, ddq,
    direction, sine and cosine; and the others' q and dq. What another memory at the start would explain is left out.
    """
    log, n, N = run.run, run.loop.dof, run.run.samples
    q, dq, ddq = run.commanded
    rest, memories = _law_residual(run, motion)
    error = q - motion.q
    turning = np.tanh(dq / (TURNING * np.maximum(np.abs(dq).max(axis=0), 1e-12)))
    own = (error, dq - motion.dq, np.cumsum(error, axis=0), np.ones((N, n)), q, dq, ddq, turning, np.sin(q), np.cos(q))
    shapes, left = [], np.empty_like(rest)
    for joint in range(n):
        others = np.delete(np.arange(n), joint)
        columns = np.column_stack([*(x[:, joint] for x in own), q[:, others], dq[:, others], rest[:, joint]])
        columns *= log.valid[:, joint, None]
        basis = np.linalg.qr(memories[:, joint] * log.valid[:, joint, None])[0]
        columns -= basis @ (basis.T @ columns)
        left[:, joint] = columns[:, -1]
        shapes.append(columns[:, :-1])
    return shapes, left


def _share(runs: list[tuple[Floats, Floats]], k: int, rate_hz: float) -> tuple[float, float]:
    """Root mean square of what shape k explains of the rest, beside a constant, and its standard deviation.

    Args:
        runs: (N, k) shapes and (N,) the rest of each run.
        k: Which shape.
        rate_hz: Sampling rate [Hz].
    """
    constant = PARTS.index("constant part")
    used = [k] if k == constant else [k, constant]
    sizes = np.sqrt(np.mean(np.concatenate([X[:, used] for X, _ in runs]) ** 2, axis=0))
    if not sizes.all():
        return 0.0, 0.0
    columns = [X[:, used] / sizes for X, _ in runs]
    slope = np.sum([X.T @ X for X in columns], axis=0)
    if not condition_number(slope) < SINGULAR:  # the shape is a constant itself
        return 0.0, 0.0
    values = np.linalg.solve(slope, np.sum([X.T @ y for X, (_, y) in zip(columns, runs, strict=True)], axis=0))
    scores = [X * (y - X @ values)[:, None] for X, (_, y) in zip(columns, runs, strict=True)]
    return float(values[0]), float(np.sqrt(welch_covariance(slope, scores, rate_hz)[0, 0]))


def _law_residual(run: LoopRun, motion: SimulatedMotion) -> tuple[Floats, Floats]:
    """(N, n) measured torque minus that of the law, and (N, n, m) what other memories at the first sample change."""
    log, ticks = run.run, run.rows * run.every
    first = motion.runs.memory[run.rows[0]]
    wanted = run.loop.reference.samples[ticks[0] : ticks[-1] + 1]
    held = follow_law(run.loop.law, log.q, log.dq, ticks - ticks[0], wanted, first, run.loop.period_s)
    rest = np.where(log.valid, np.nan_to_num(log.effort) - held[0], 0.0)
    return rest, np.moveaxis(held[1:] - held[0], 0, 2)


def follow_law(
    law: ControlLaw, q: Floats, dq: Floats, ticks: Ints, wanted: Floats, memory: Floats, period_s: float
) -> Floats:
    """(1 + m, N, n) torques of a law along a measured motion, with a memory and with each part of it changed.

    Args:
        law: The law.
        q: (N, n) measured positions; between samples they are interpolated.
        dq: (N, n) measured velocities.
        ticks: (N,) control instants of the samples, the first zero.
        wanted: (M, 4 n) rows of `ReferenceMotion.samples` at all control instants.
        memory: (m,) at the first tick.
        period_s: Time between control instants [s].
    """
    n, m = q.shape[1], memory.size
    control = compile_tape(control_tape(law, n, period_s))
    state = np.concatenate([q, dq, np.zeros((len(q), 1))], axis=1)
    if not m:
        held: Floats = control(state, np.zeros((len(q), 0)), wanted[ticks])["held"]
        return held[None]
    between = np.arange(ticks[-1] + 1)
    states = np.stack([np.interp(between, ticks, x) for x in state.T], axis=1)
    memories, torques = memory + np.eye(m + 1, m, -1), np.empty((len(between), m + 1, n))
    for k in between:
        decided = control(np.repeat(states[k : k + 1], m + 1, axis=0), memories, wanted[k])
        torques[k], memories = decided["held"], decided["memory"]
    return np.moveaxis(torques[ticks], 1, 0)
