"""Does what the law leaves of the measured torque follow the commanded motion?

Where law and reference are right, only noise is left, and that knows nothing
of the motion. A reference that is not the commanded one (another unit, gain, sign, delay or joint), and terms of the
law that are not stated (feed-forward, compensation of gravity or friction), leave what follows it instead. So the
residual is explained by shapes of the commanded motion, at the frequencies of the motion only, and what they explain is
held against what they leave at the same frequencies. And whatever its shape, the residual at the frequencies of the
motion is held against that at frequencies beyond, where noise is rather more than less: encoders' is white, and
differentiated. No noise level has to be known for either.

Is the control law that was simulated the one that moved the robot?

Robot and simulation obey their law, whatever the parameters. To first order in the differences d of measurement and
simulation, with the law's derivatives L along the simulated motion,

    r = d tau - L_q d q - L_v d dq - L_m d memory

is therefore noise where the law is right, and what the law lacks where it is wrong: no error of the parameters enters.
Joint by joint r is held against each part of the simulated torque, that from the tracking error, from its rate and
from its integral, beside a constant, and against the constant alone; their shares are gains that are off. Standard
deviations account for residuals correlated in time. A part is accused where one joint's share, or all joints' together,
is beyond what noise does once in a million cases. Joints of which no part is accused are asked whether r follows the
commanded motion in any other way (`dynid.estimation.closed_loop.law_test`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import condition_number, svd
from dynid.errors import ArgumentError
from dynid.estimation.closed_loop.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion
from dynid.estimation.closed_loop.loop_start import (
    apply_slopes,
    propagate_memory,
    remove_directions,
    span_directions,
)
from dynid.estimation.equations import LoopedRuns
from dynid.estimation.scores import solution_covariance
from dynid.findings import Finding
from dynid.loop.sensitivity import compile_law_slopes
from dynid.terms.smoothing import gradual_sign

MOST = 0.999
"""Share of the squares of the commanded velocities up to which frequencies are those of the motion. Convention."""
BEYOND = 3.0
"""Multiple of the highest frequency of the motion up to which noise is examined. Convention."""
NEIGHBOURS = 2
"""Frequencies on either side over which a Hann window spreads a single one. Derivation."""
RED = 4.0
"""Largest power of noise at the frequencies of the motion over that beyond them. Convention."""
PASSED = 0.7
"""Share of a low-pass's cutoff up to which frequencies count, ..."""
HIGHEST = 0.25
"""... and share of the sampling rate without a low-pass. Both are conventions."""
OWN = 4
"""Number of first shapes: 1, q, dq and ddq of the joint's own commanded motion."""
FREEDOM = 0.5
"""Independent values per real number of a Hann-tapered spectrum, about half. Convention."""
SPARE = 8
"""Least number of independent values that must be left over. Convention."""
TURNING = 0.05
"""Share of the largest commanded speed below which a joint counts as reversing. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class LawResidual:
    """What the law leaves of one run's torques, and what was commanded."""

    rest: Floats
    """(N, n), zero where samples do not count"""
    commanded: tuple[Floats, Floats, Floats]
    """(N, n) positions, velocities and accelerations"""
    counts: NDArray[np.bool_]
    """(N, n)"""
    rate_hz: float
    cutoff_hz: float | None
    """Of the low-pass that it went through [Hz]"""
    bases: tuple[Floats, ...] = ()
    """(K, r) of each joint: orthonormal directions that the rest was freed of"""

    @property
    def motion_hz(self) -> float:
        """Up to which frequency there is motion, tapered [Hz]."""
        dq = self.commanded[1]
        power = (np.abs(np.fft.rfft(dq * np.hanning(len(dq))[:, None], axis=0)) ** 2).sum(axis=1)
        place = int(np.searchsorted(np.cumsum(power), MOST * power.sum()))
        return float((place + NEIGHBOURS) * self.rate_hz / len(dq))

    @property
    def highest_hz(self) -> float:
        """Up to which frequency residuals are noise as it was [Hz]."""
        return HIGHEST * self.rate_hz if self.cutoff_hz is None else PASSED * self.cutoff_hz

    def spectra(self, top_hz: float) -> tuple[Floats, list[Floats]]:
        """(F, n) of the rest, and of each joint (F, k) of its shapes: real and imaginary parts up to a frequency.

        Shapes of a joint are its own commanded 1, q, dq, ddq; sign, sine and cosine; and the others' q and dq.
        """
        N, n = self.rest.shape
        taper = np.hanning(N)[:, None] * np.sqrt(
            16.0 / (3.0 * N)
        )  # squares of the spectrum sum up to those of the rest
        inside = slice(0, max(2, int(top_hz * N / self.rate_hz) + 1))

        def real(x: Floats) -> Floats:
            z = np.fft.rfft(x * taper, axis=0)[inside]
            return np.concatenate([z.real, z.imag])

        q, dq, ddq = self.commanded
        turning = gradual_sign(dq, TURNING * np.maximum(np.abs(dq).max(axis=0), 1e-12))
        own = (q, dq, ddq, turning, np.sin(q), np.cos(q))
        signals = np.concatenate([np.ones((N, 1)), *own], axis=1)
        whole, shapes = real(signals), []
        for joint in range(n):
            others = np.delete(np.arange(n), joint)
            columns = np.concatenate([[0], 1 + joint + n * np.arange(len(own)), 1 + others, 1 + n + others])
            if self.counts[:, joint].all() and not self.bases:
                shapes.append(whole[:, columns])
                continue
            seen = signals[:, columns] * self.counts[:, joint : joint + 1]
            shapes.append(
                real(remove_directions(seen[:, None], self.bases[joint : joint + 1])[:, 0] if self.bases else seen)
            )
        return real(self.rest), shapes


def commanded_motion_shares(runs: list[LawResidual], levels: Floats, level: float) -> Floats:
    """(n, 2) root mean square of what follows the commanded motion and of what noise would seem to, over the torques'.

    Zeros where it is no more than noise does.

    Args:
        runs: All of them.
        levels: (n,) root mean square torques.
        level: Chance that noise is taken for more.
    """
    motion_hz = max(run.motion_hz for run in runs)
    top_hz = min(BEYOND * motion_hz, *(run.highest_hz for run in runs))
    parts = [run.spectra(top_hz) for run in runs]
    moving = np.concatenate(
        [np.tile(_frequencies(run, len(rest)) <= motion_hz, 2) for run, (rest, _) in zip(runs, parts, strict=True)]
    )
    found, samples = np.zeros((levels.size, 2)), sum(len(run.rest) for run in runs)
    for joint in np.flatnonzero(levels > 0.0).tolist():
        y = np.concatenate([rest[:, joint] for rest, _ in parts])
        X = np.concatenate([shapes[joint] for _, shapes in parts])
        seen = _explain(X[:, :OWN], y, level) or _explain(X, y, level) or _compare_bands(moving, y, level)
        if seen is not None:
            found[joint] = np.sqrt(np.array(seen) / samples) / levels[joint]
    return found


def _frequencies(run: LawResidual, count: int) -> Floats:
    """Of a spectrum with so many real and imaginary parts [Hz]."""
    return np.asarray(np.arange(count // 2) * (run.rate_hz / len(run.rest)), dtype=np.float64)


def _explain(X: Floats, y: Floats, level: float) -> tuple[float, float] | None:
    """Sum of squares that columns (F, k) explain of values (F,), and that they would of noise; None for no more."""
    from scipy.special import fdtri

    sizes = np.linalg.norm(X, axis=0)
    U, s, _ = svd(X[:, sizes > 0.0] / sizes[sizes > 0.0], full_matrices=False)
    U = U[:, s > 1e-6 * s.max(initial=0.0)]
    k, free = U.shape[1], FREEDOM * len(y) - U.shape[1]
    if k == 0 or free < SPARE:
        return None
    whole = float((U.T @ y) @ (U.T @ y))
    noise = (float(y @ y) - whole) * FREEDOM / free  # of one independent value
    explained = whole * FREEDOM
    if explained <= k * noise * fdtri(k, free, 1.0 - level):
        return None
    return whole, k * noise / FREEDOM


def _compare_bands(moving: NDArray[np.bool_], y: Floats, level: float) -> tuple[float, float] | None:
    """The same of values (F,) at the frequencies of the motion, beside those beyond; None for no more than noise."""
    from scipy.special import fdtri

    inside, beyond = FREEDOM * np.count_nonzero(moving), FREEDOM * np.count_nonzero(~moving)
    if beyond < SPARE or inside == 0.0:
        return None
    whole, noise = float((y[moving] ** 2).sum()), FREEDOM * float((y[~moving] ** 2).sum()) / beyond
    if whole * FREEDOM <= RED * inside * noise * fdtri(inside, beyond, 1.0 - level):
        return None
    return whole, inside * noise / FREEDOM


PARTS = ("proportional part", "derivative part", "integral part", "constant part")
"""Parts of the torque with which the law's residual is compared."""
GAINS = "Check its gains, its reference and its rate, or use weighted least squares instead."
REFERENCE = (
    "Check the commanded positions: column, unit, sign, gain and delay; and the law for terms that are not stated: "
    "feed-forward, compensation of gravity or friction. Or use weighted least squares instead."
)
LEVEL = 1e-6
"""Chance that noise accuses a joint, or all together, of one part, or of following the commanded motion. Convention."""
SHARE = 0.01
"""Least share of a joint's torque that is reported: other approximations of the model are as large. Convention."""


@dataclass(frozen=True, slots=True)
class _Share:
    """Of a joint's torque, by which one part is off."""

    joint: str
    value: float
    spread: float

    @property
    def square(self) -> float:
        """In standard deviations, squared."""
        return (self.value / self.spread) ** 2 if self.spread > 0.0 else 0.0


def check_controller(
    equations: LoopedRuns | LoopRuns, beta: Floats, motions: Motions | None = None
) -> tuple[Finding, ...]:
    """What speaks against the law of the experiments' loops; nothing where all is well.

    Args:
        equations: With experiments that have a loop.
        beta: (b,) base parameters, estimated.
        motions: Simulated with these parameters, where that was done before.

    Example:
        >>> looped = next(dynid.estimation.with_loop([run], motion, law=law, rate_hz=500.0))
        >>> equations = dynid.estimation.build_equations(robot, [looped])
        >>> findings = dynid.estimation.check_controller(equations, fit.estimate.values)
    """
    runs = equations if isinstance(equations, LoopRuns) else LoopRuns.of(equations)
    if np.shape(beta) != (len(runs.equations.names),):
        raise ArgumentError(
            f"beta has the shape {np.shape(beta)}", remedy=f"Give the {len(runs.equations.names)} base parameters."
        )
    motions = runs.simulate(np.asarray(beta, dtype=float)) if motions is None else motions
    both = [_compare_run(run, motion) for run, motion in zip(runs.runs, motions, strict=True)]
    torques = [run.torques(motion) * run.run.valid for run, motion in zip(runs.runs, motions, strict=True)]
    levels = np.sqrt(np.mean(np.concatenate(torques) ** 2, axis=0))
    compared = [(parts, left.rest) for parts, left in both]
    values = _shares(compared, levels)
    findings: list[Finding] = []
    for part, what in enumerate(PARTS):
        shares = []
        for joint, name in enumerate(runs.equations.robot.joint_names):
            spread = np.inf  # too small to matter: no need to know how certain it is
            if abs(values[joint, part]) > SHARE:
                columns = [np.ascontiguousarray(parts[:, joint, [part, -1]]) for parts, _ in compared]
                targets = [rest[:, joint] for _, rest in compared]
                spread = _spread(columns, targets, float(levels[joint]), runs.rate_hz)
            shares.append(_Share(name, float(values[joint, part]), spread))
        findings += [_finding(what, f"its {what} differs", GAINS, share) for share in _select_accused(shares)]
    told = {finding.joint for finding in findings}
    followed = commanded_motion_shares([left for _, left in both], levels, LEVEL)
    for name, (value, spread) in zip(runs.equations.robot.joint_names, followed.tolist(), strict=True):
        if value > SHARE and name not in told:
            what = "its residual is no noise, but follows the motion"
            findings.append(_finding("reference", what, REFERENCE, _Share(name, value, spread)))
    return tuple(findings)


def _select_accused(shares: list[_Share]) -> list[_Share]:
    """Shares that are no noise and matter; where only all together are no noise, the one that is so the most."""
    from scipy.special import chdtri

    large = [share for share in shares if abs(share.value) > SHARE]
    alone = [share for share in large if share.square > chdtri(1, LEVEL)]
    if alone or not large or sum(share.square for share in shares) <= chdtri(len(shares), LEVEL):
        return alone
    return [max(large, key=lambda share: share.square)]


def _finding(where: str, what: str, remedy: str, share: _Share) -> Finding:
    return Finding(
        code="controller",
        severity="error",
        where=where,
        joint=share.joint,
        message=f"the simulated control law does not explain the measured torque: {what}",
        remedy=remedy,
        evidence={"share": share.value, "standard deviation": share.spread},
    )


def controller_mismatch(findings: tuple[Finding, ...]) -> float:
    """Largest share among the findings about the control law; zero without any."""
    return max((abs(f.evidence["share"]) for f in findings if f.code == "controller"), default=0.0)


def controller_summary(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """One finding for each wrong part of the law: of which joints, and by how much of their torque."""
    summary = []
    for where in dict.fromkeys(finding.where for finding in findings):
        mine = [finding for finding in findings if finding.where == where]
        shares = [
            f"{f.joint} {_percent(f.evidence['share'], '+')} +- {_percent(f.evidence['standard deviation'])} %"
            for f in mine
        ]
        summary.append(
            Finding(
                code="controller",
                severity="error",
                where=where,
                message=f"{mine[0].message} ({', '.join(shares)} of the torque)",
                remedy=mine[0].remedy,
            )
        )
    return tuple(summary)


def _percent(share: float, sign: str = "") -> str:
    return f"{100.0 * share:{sign}.2g}" if abs(share) < 1.0 else f"{100.0 * share:{sign}.0f}"


def _compare_run(run: LoopRun, motion: SimulatedMotion) -> tuple[Floats, LawResidual]:
    """(N, n, 4) parts of the simulated torque, and the law's residual, both zero where torques do not count."""
    n, ticks = run.loop.dof, run.rows * run.every
    reference, records = run.loop.reference, motion.runs
    wanted = [x[ticks] for x in (reference.q, reference.dq, reference.ddq)]
    program = compile_law_slopes(run.simulator.law, n, "numpy")
    L = np.asarray(program(records.state[0, run.rows], records.memory[0, run.rows], np.concatenate(wanted, axis=1)))
    position, velocity, memory = np.split(L[:, :n], [n, 2 * n], axis=2)
    shift = run.run.q - run.positions(motion), run.run.dq - run.velocities(motion)
    rest = (
        _filter_like_positions(run, run.torque_residual(motion))
        - apply_slopes(position, shift[0])
        - apply_slopes(velocity, shift[1])
    )
    errors = (motion.q - wanted[0], motion.dq - wanted[1])
    proportional, derivative = apply_slopes(position, errors[0]), apply_slopes(velocity, errors[1])
    bases: tuple[Floats, ...] = ()
    if memory.shape[2]:
        periods = np.diff(ticks, prepend=ticks[0])
        changed, left = _propagate_shift(L[:, n:], shift, periods)
        rest = rest - apply_slopes(memory, changed)
        if run.loop.memory0 is not None or not run.loop.start_known:  # what another start would explain is none
            bases = tuple(span_directions(x) for x in np.moveaxis((memory @ left) * run.run.valid[:, :, None], 1, 0))
        if not position.any() and not velocity.any():  # a law that is late: all acts through its memory
            rates_only, places_only = (0.0 * errors[0], errors[1]), (errors[0], 0.0 * errors[1])
            proportional = apply_slopes(memory, _propagate_shift(L[:, n:], places_only, periods)[0])
            derivative = apply_slopes(memory, _propagate_shift(L[:, n:], rates_only, periods)[0])
    integral = np.cumsum(proportional, axis=0) / run.run.rate_hz
    parts = np.stack([proportional, derivative, integral, np.ones_like(integral)], axis=2)
    valid = run.run.valid
    parts, rest = (remove_directions(x, bases) for x in (parts * valid[:, :, None], rest * valid))
    made = run.run.derivation
    cutoff = None if made is None else made.smoothing.cutoff_hz
    return parts, LawResidual(rest, (wanted[0], wanted[1], wanted[2]), valid, run.run.rate_hz, cutoff, bases)


def _filter_like_positions(run: LoopRun, torque: Floats) -> Floats:
    """Torques (N, n) through the low-pass of the measured positions, if they went through none."""
    made, valid = run.run.derivation, run.run.valid.astype(float)
    if made is None or made.smoothing.cutoff_hz is None or run.is_low_passed:
        return torque
    smoothing = replace(made.smoothing, rate_hz=run.run.rate_hz)
    both = run.run.by_segment(smoothing.apply, np.concatenate([torque, valid], axis=1))
    return np.asarray(both[:, : torque.shape[1]] / np.maximum(both[:, torque.shape[1] :], 0.5))


def _propagate_shift(slopes: Floats, shift: tuple[Floats, Floats], periods: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(N, m) change of the law's memory by shifts of positions and velocities (N, n); see `propagate_memory`.

    Args:
        slopes: (N, m, 2 n + m) of the memory after a control period.
        shift: Of positions and velocities.
        periods: (N,) control periods since the sample before.
    """
    m = slopes.shape[1]
    return propagate_memory(apply_slopes(slopes[:, :, :-m], np.concatenate(shift, axis=1)), slopes[:, :, -m:], periods)


def _shares(compared: list[tuple[Floats, Floats]], levels: Floats) -> Floats:
    """(n, 4) share of the joints' torques, of sizes (n,), in each part's shape beside a constant, if it is none itself.

    Args:
        compared: (N, n, 4) parts of the torque, the last a constant, and (N, n) what the law leaves, of each run.
        levels: Root mean square torques of the joints [N m or N].
    """
    rows = [np.moveaxis(np.concatenate([parts, rest[:, :, None]], axis=2), 1, 0) for parts, rest in compared]
    G = sum((X.swapaxes(1, 2) @ X for X in rows), np.zeros((len(levels), 5, 5)))  # of parts and rest, joint by joint
    sizes = np.sqrt(np.diagonal(G, axis1=1, axis2=2)[:, :4])
    some = np.maximum(sizes, 1e-300)
    lean, right = G[:, :4, 3] / (some * some[:, 3:]), G[:, :4, 4] / some
    alone = ~(1.0 + np.abs(lean) < 1e8 * (1.0 - np.abs(lean)))
    found = np.where(alone, right, (right - lean * right[:, 3:]) / np.where(alone, 1.0, 1.0 - lean**2))
    count = np.sqrt(sum(X.shape[1] for X in rows))  # as the sizes are root sums, the levels root means
    seen = (levels[:, None] > 0.0) & (sizes > 1e-9 * count * levels[:, None])
    return np.where(seen, found / (count * np.where(levels > 0.0, levels, 1.0)[:, None]), 0.0)


def _spread(columns: list[Floats], targets: list[Floats], level: float, rate_hz: float) -> float:
    """Standard deviation of a share.

    Args:
        columns: (N, 2) of each run: a part of the torque, and one.
        targets: (N,) of each run.
        level: Root mean square torque of the joint [N m or N].
        rate_hz: Of the samples [Hz].
    """
    sizes = np.sqrt(np.mean(np.concatenate(columns) ** 2, axis=0))
    used = [X / sizes for X in columns]
    slope = sum((X.T @ X for X in used), np.zeros((2, 2)))
    if not condition_number(slope) < 1e8:  # the part is a constant itself
        used, slope = [np.ascontiguousarray(X[:, :1]) for X in used], slope[:1, :1]
    right = sum((X.T @ y for X, y in zip(used, targets, strict=True)), np.zeros(len(slope)))
    values = np.linalg.solve(slope, right)
    rest = [(y - X @ values)[:, None] for X, y in zip(used, targets, strict=True)]
    covariance = solution_covariance(slope, [X[:, None, :] for X in used], rest, rate_hz)
    return float(np.sqrt(max(covariance[0, 0], 0.0))) / level
