"""Checks of a raw recording channel by channel, without the robot's equations.

They cover the clock, copied stretches, missing samples, spikes, resolution, clipping, dead channels, measured
velocities against positions, lost rows, and the limits of the robot file.

`check_signals` is called by `dynid.diagnosis.log_check`; every check yields findings. A recording holds time stamps
(N,) [s], positions q (N, n) [rad or m], and if logged velocities dq and torques effort (N, n) and a wrench (N, 6).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.array_types import Floats
from dynid.diagnosis.evidence import FEW
from dynid.diagnosis.log_changes import HALF, OTHER_UNIT
from dynid.diagnosis.verdicts import EQUAL
from dynid.errors import DataError
from dynid.findings import Finding, Severity
from dynid.logs.recording import Recording, torque_remedy
from dynid.logs.signal_guess import has_no_sign
from dynid.processing.outliers import absurd_samples, longest_spike, run_lengths, saturated_samples, unwrap_angles
from dynid.processing.timing import CLOCK_FAULTS, read_clock
from dynid.robot.model import Robot

RATES_HZ = (5.0, 1e5)
"""Smallest and largest sampling rate of a robot log [Hz]; a wrong unit of time is wrong by 1000 or more (effect)."""
MANY = 0.2
"""Share of clipped samples above which they are an error; deviation of a time step from the median one, as a share of
it, above which the step is uneven (effect)."""
STILL = 2e-3
"""Largest range [rad or m], and rms speed [rad/s or m/s], of a joint that does not move (effect: 0.1 deg)."""
COARSE = 2e-3
"""Quantisation steps larger than this share of the range are a warning (effect: fewer than 500 steps)."""
SAME = 0.9
"""Correlation from which on two velocities are the same signal (effect)."""
SCALE = 0.05
"""Relative difference between velocities and derivatives of positions above which it is reported (effect)."""
BEYOND = 1.5
"""Ratio of positions to the limits of the robot file above which one of them is wrong (effect)."""
FEWEST = 50
"""Smallest number of samples that are checked (convention)."""
LOST = 60.0
"""Chi-squared of the excess of a step above which rows were lost (level: chance does not reach it in 1e5 rows)."""


def check_signals(recording: Recording, robot: Robot | None = None) -> list[Finding]:
    """Make all checks; those of limits only if a robot is given."""
    checks = [*_check_channels(recording), *_check_copies(recording)]
    if not recording.isolated:  # of isolated samples, the time is only a number
        checks = [*check_clock(recording), *checks, *_check_velocities(recording), *_check_lost_rows(recording)]
    return [*checks, *(check_limits(robot, recording) if robot is not None else ())]


def check_clock(recording: Recording) -> Iterator[Finding]:
    """Check order, repetitions, gaps, jitter and unit of the time stamps."""
    for name in ("time", "effort_time", "wrench_time"):
        stamps = getattr(recording, name)
        if stamps is None:
            continue
        try:
            clock = read_clock(stamps)
        except DataError as error:
            yield Finding("backward-time", "error", name, error.reason, error.remedy or "")
            continue
        if not RATES_HZ[0] <= clock.rate_hz <= RATES_HZ[1]:
            yield Finding("unit", "error", name,
                          f"a sampling rate of {clock.rate_hz:.3g} Hz is not that of a robot log",
                          "Declare the unit of time (ms, us, ns) in the channel map.",
                          evidence={"period [s]": clock.period_s})  # fmt: skip
        for code, count in clock.faults.items():
            longest = float(np.diff(clock.time).max(initial=0.0))
            yield Finding(code, "note" if code == "stamp-order" else "warning", name, f"{CLOCK_FAULTS[code]}: {count}",
                          "Handled: such samples are dropped or sorted, and no filter extends across a gap.",
                          evidence={"count": count, "stretches": len(clock.stretches),
                                    "longest step [s]": longest})  # fmt: skip
        if clock.jitter_s > FEW * clock.period_s:
            yield Finding("jitter", "note", name, "the sampling period scatters",
                          "Handled: samples are interpolated to a uniform clock.",
                          evidence={"share of a period": clock.jitter_s / clock.period_s})  # fmt: skip


def _check_copies(recording: Recording) -> Iterator[Finding]:
    """Report stretches that occur in the log several times, identical to the last digit: copies add no knowledge."""
    if recording.isolated or recording.effort is None:
        return
    keys, rows = recording.stretch_keys()  # a hash of each short stretch, and the row where it begins
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    copies = np.flatnonzero((first[which] < np.arange(keys.size)) & np.isfinite(keys))
    share = copies.size / max(keys.size, 1)  # of the stretches
    if share > FEW:
        start, origin = (int(rows[k]) for k in (copies[0], first[which[copies[0]]]))
        yield Finding("repeated-samples", "warning", "file",
                      f"{100.0 * share:.0f} % of the samples are copies of earlier ones, to the last digit: "
                      f"row {start} repeats row {origin}, and so on",
                      "Remove the copies: intervals become smaller than they are.",
                      evidence={"share": share, "first copy [row]": start})  # fmt: skip


def _check_channels(recording: Recording) -> Iterator[Finding]:
    """Check every channel of every joint by itself, and whether torques are there and have a sign."""
    if recording.effort is None:  # commands or a wrench allow other identifications than that of the dynamics
        others: Severity = "warning" if recording.wrench is not None else "error"
        yield Finding("missing", "note" if recording.commands is not None else others, "effort",
                      "there are no joint torques", torque_remedy(recording))  # fmt: skip
    elif has_no_sign(recording.effort) and _reverses(recording.q):
        yield Finding("unsigned-effort", "error", "effort",
                      "torques are never negative although joints move both ways: they are amounts of currents",
                      "Take [effort] out of the map; commands and positions suffice for dynid actuate.")  # fmt: skip
    longest = 0 if recording.isolated else longest_spike(recording.time)  # samples of a spike; 0: isolated, no spikes
    for where in ("q", "dq", "effort", "wrench"):
        values = getattr(recording, where)
        names = recording.joint_names if where != "wrench" else ("fx", "fy", "fz", "mx", "my", "mz")
        for name, column in zip(names, () if values is None else values.T, strict=values is not None):
            yield from _check_column(where, name, column, longest)
    _, jumps = unwrap_angles(np.where(np.isfinite(recording.q), recording.q, 0.0))
    for j in np.flatnonzero(jumps).tolist():
        yield Finding("wrapped", "note", "q", "the angle jumps by whole turns", "Handled: processing unwraps it.",
                      joint=recording.joint_names[j], evidence={"jumps": int(jumps[j])})  # fmt: skip


def _reverses(q: Floats) -> bool:
    """Whether some joint moves both ways: the travel down is more than 5 % of that up, or the reverse."""
    steps = np.diff(np.nan_to_num(q), axis=0)
    up, down = np.maximum(steps, 0.0).sum(axis=0), np.maximum(-steps, 0.0).sum(axis=0)
    return bool((np.minimum(up, down) > FEW * np.maximum(up, down)).any() and (up + down).max() > 0.0)


def _check_column(where: str, joint: str, x: Floats, longest: int) -> Iterator[Finding]:
    """Check one channel (N,) of one joint: missing samples, no motion, coarse steps, dead or clipped torques, spikes.

    The joint may be a component of the wrench. A spike has at most the `longest` number of samples; 0 looks for none.
    """
    finite = np.isfinite(x)
    missing = 1.0 - float(finite.mean()) if x.size else 1.0

    def found(code: str, severity: Severity, message: str, remedy: str, **evidence: float) -> Finding:
        named = {name.replace("_", " "): value for name, value in evidence.items()}
        return Finding(code, severity, where, message, remedy, joint=joint, evidence=named)

    if missing > 0.0:
        what = "samples" if finite.any() else "all samples"
        yield found("not-finite", "error" if missing > FEW else "warning", f"{what} are missing or not finite",
                    "They are dropped and counted; above 5 % the joint is refused. Check the channel, or hold the "
                    "joint (--hold) if it was not recorded.", share=missing)  # fmt: skip
    y = x[finite]
    continued = unwrap_angles(y[:, None])[0] if where == "q" else y[:, None]
    spikes = absurd_samples(continued, longest)[:, 0] if longest else np.zeros(y.shape, dtype=bool)
    true = continued[~spikes, 0]
    if true.size >= FEWEST and where == "q":
        low, high = np.percentile(true, [0.5, 99.5]).tolist()
        span, step = high - low, quantisation_step(true)
        if span <= max(2.0 * step, STILL):
            yield found("frozen", "warning", "the joint does not move",
                        "Its own parameters cannot be identified from this log; move it.", range=span)  # fmt: skip
        elif step > 0.0:
            yield found("quantised", "warning" if step > COARSE * span else "note", "positions come in steps",
                        "The choice of the cutoff counts this noise; coarse steps need a low cutoff.",
                        step=step, share_of_range=step / span)  # fmt: skip
    if true.size >= FEWEST and where == "effort":
        if np.ptp(true) == 0.0:
            yield found("frozen", "error", "the torque never changes", "The channel is dead or mapped wrongly.",
                        value=float(true[0]))  # fmt: skip
        elif (clipped := saturated_samples(true[:, None])[:, 0]).any():
            share = float(clipped.mean())
            yield found("saturated", "error" if share > MANY else "warning",
                        "the torque stands at its largest or smallest value",
                        "Those samples are dropped, above 20 % the joint is refused; move more slowly.",
                        share=share, at=float(np.abs(true[clipped]).max()))  # fmt: skip
    if spikes.any():
        share = float(spikes.mean())
        yield found("spikes", "error" if share > FEW else "warning",
                    "some values are spikes: a few samples far from the signal",
                    "They are dropped and counted; look for the cause in the driver.",
                    count=int(spikes.sum()), share=share, largest=float(np.abs(y[spikes]).max()))  # fmt: skip


def quantisation_step(y: Floats) -> float:
    """Estimate the step of a quantised signal (N,); 0 if differences between samples hardly repeat.

    Of the differences that are not zero, the first percentile is taken. They are rounded to 12 digits of the signal,
    so that rounding errors do not make equal ones differ.
    """
    size = max(float(np.abs(y).max()), 1e-300)
    steps = np.round(np.abs(np.diff(y[:100_000])) / size, 12)
    steps = steps[steps > 0.0]
    return size * float(np.percentile(steps, 1.0)) if np.unique(steps).size < HALF * steps.size else 0.0


def check_limits(robot: Robot, recording: Recording) -> Iterator[Finding]:
    """Report positions and torques far beyond the limits of the robot file: their unit, or the limits, are wrong."""
    for j, joint in enumerate(robot.moving_joints):
        slides, limits = joint.kind == "prismatic", joint.limits
        # largest plausible |q|: from the limits, at least 0.5 rad, and a whole turn where the joint is continuous
        reach = max(abs(limits.lower), abs(limits.upper), 0.0 if slides else 0.5)
        reach = max(2.0 * np.pi, reach) if joint.kind == "continuous" else reach
        effort = np.zeros(0) if recording.effort is None else recording.effort[:, j]
        for where, values, limit in (("q", recording.q[:, j], reach), ("effort", effort, limits.effort)):
            known = np.abs(values[np.isfinite(values)])
            largest = float(np.percentile(known, 90.0)) if known.size else 0.0
            if not 0.0 < limit < np.inf or largest <= (BEYOND if where == "q" else OTHER_UNIT) * limit:
                continue
            units = ("N", "m") if slides else ("N m", "rad")
            surely = largest > OTHER_UNIT * limit
            yield Finding("unit" if surely else "beyond-limits", "error" if surely else "warning", where,
                          f"values of {largest:.4g} {units[where == 'q']} are {largest / limit:.3g} times the "
                          "limit of the robot file" + (", as if in another unit or of another joint" if surely else ""),
                          "Declare the unit (and the gear) in the channel map, or correct the limits in the "
                          "robot file.", joint=joint.name,
                          evidence={"90th percentile": largest, "limit": limit})  # fmt: skip


def _check_velocities(recording: Recording) -> Iterator[Finding]:
    """Report measured velocities that disagree with the positions: unit, sign, order of the joints, scale, clock."""
    if recording.dq is None or recording.time.size < FEWEST:
        return
    ok = np.isfinite(recording.time)  # rows without missing samples and spikes
    for values in (recording.q, recording.dq):
        ok &= np.isfinite(values).all(axis=1) & ~absurd_samples(values, longest_spike(recording.time)).any(axis=1)
    time, q, dq = recording.time[ok], unwrap_angles(recording.q[ok])[0], recording.dq[ok]
    if time.size < FEWEST:
        return
    names = recording.joint_names
    yield from _check_hangs(names, time, q, dq)
    yield from _compare_velocities(names, time, q, dq)


def _check_hangs(names: tuple[str, ...], time: Floats, q: Floats, dq: Floats) -> Iterator[Finding]:
    """Report positions that keep one value while the velocities show motion: the encoder hangs, not the joint."""
    steps = np.clip(np.diff(time, append=time[-1]), 0.0, None)
    for j, name in enumerate(names):
        same = np.append(np.diff(q[:, j]) == 0.0, False)
        # way that the velocities pass while the position is constant for at least half of `FEWEST` samples
        travel = np.abs(np.where(same & (run_lengths(same) >= FEWEST // 2), dq[:, j] * steps, 0.0)).sum()
        if travel > FEW * max(float(np.ptp(q[:, j])), STILL):
            yield Finding("frozen", "error", "q", "the position stands still while the velocity shows motion",
                          "The encoder or its driver hung: cut the log there.", joint=name,
                          evidence={"motion missed [rad or m]": float(travel)})  # fmt: skip


def _compare_velocities(names: tuple[str, ...], time: Floats, q: Floats, dq: Floats) -> Iterator[Finding]:
    """Report velocities in another unit, of the other sign, of another joint, or unrelated to the positions.

    Means over windows of time are compared with difference quotients of positions: by correlation, and by the ratio of
    their standard deviations.
    """
    window = max(1, time.size // 400)
    step = time[window:] - time[:-window]
    good = (step > 0.0) & (step < 2.0 * np.median(step))
    if np.count_nonzero(good) < FEWEST // 2:
        return  # the clock is broken, which `check_clock` reports
    total = np.cumsum(np.vstack([np.zeros((1, q.shape[1])), dq]), axis=0)  # differences of it are moving sums
    measured = ((total[window:-1] - total[: -window - 1]) / window)[good]
    derived = ((q[window:] - q[:-window]) / np.where(good, step, 1.0)[:, None])[good]
    # (2 n, M): measured ones, then derived ones, outliers clipped
    both = np.array([np.clip(x, *np.percentile(x, [2.0, 98.0])) for x in (*measured.T, *derived.T)])
    size, n = both.std(axis=1), len(names)
    with np.errstate(invalid="ignore", divide="ignore"):
        # (n, n) correlation of each measured velocity (row) with each derived one; 0 with joints at rest
        table = np.where(size[n:] > STILL, np.nan_to_num(np.corrcoef(both)[:n, n:]), 0.0)
    for j, name in enumerate(names):
        if size[n + j] < STILL or size[j] == 0.0:
            continue
        own, best, ratio = float(table[j, j]), int(np.argmax(np.abs(table[j]))), float(size[j] / size[n + j])
        if best != j and abs(table[j, best]) > SAME > abs(own):
            code, says = "swapped", f"the velocities belong to the positions of {names[best]}"
        elif own < -SAME:
            code, says = "flipped", "velocities have the opposite sign of the positions' derivative"
        elif own > SAME and not 1.0 / OTHER_UNIT < ratio < OTHER_UNIT:
            code, says = "unit", "velocities and positions differ in unit"
        elif own < HALF:
            code, says = "inconsistent", "velocities do not follow the positions"
        elif ratio * own > 1.0 + SCALE or ratio < (1.0 - SCALE) * own:  # slopes of both regressions lie off 1
            code, says = "inconsistent", f"velocities are {ratio:.3g} times the derivatives of the positions"
        else:
            continue
        yield Finding(code, "warning" if code == "inconsistent" else "error", "dq", says,
                      "Check the time, and column, unit, gear and sign of both in the channel map, or process "
                      "without measured velocities.", joint=name,
                      evidence={"measured / derived": ratio, "correlation": own})  # fmt: skip


def _check_lost_rows(recording: Recording) -> Iterator[Finding]:
    """Report rows that were lost although the clock shows no gap, since the time stamps were written afterwards.

    There a step of the positions is longer by the usual step or more, in all joints together. The usual step is that of
    a cubic through the two steps before and the two after.
    """
    time, q = recording.time, recording.q
    if time.size < FEWEST or not (np.isfinite(time).all() and np.isfinite(q).all()):
        return
    period = np.diff(time)
    usual = float(np.median(period))
    uneven = np.abs(period / usual - 1.0) > MANY if usual > 0.0 else np.ones(period.size, dtype=bool)
    if uneven.mean() > FEW:  # stamps of arrival, of rows that arrive late and together, look the same
        return
    with np.errstate(over="ignore", invalid="ignore"):  # an absurd sample, which other findings name, is no lost row
        q = unwrap_angles(q)[0]
        step = np.diff(q, axis=0)  # (N - 1, n)
        expected = np.zeros_like(step)
        expected[2:-2] = (4.0 * (step[1:-3] + step[3:-1]) - step[:-4] - step[4:]) / 6.0
        misfit = step - expected
        spread = 1.4826 * np.median(np.abs(misfit - np.median(misfit, axis=0)), axis=0)  # robust deviation (MAD)
        noise = np.maximum(spread, [max(quantisation_step(y), 1e-12) for y in q.T])
        step, misfit, expected = step / noise, misfit / noise, expected / noise
        # least squares over the joints: misfit = excess * expected, with chi-squared of the excess
        size, squares = np.maximum((expected**2).sum(axis=1), 1e-300), (misfit**2).sum(axis=1)
        excess = (misfit * expected).sum(axis=1) / size  # (N - 1,) numbers of rows
        # large, and explaining the misfit of all joints, unlike a spike of one encoder
        is_lost = (excess >= EQUAL) & (excess**2 * size > LOST) & (excess**2 * size > EQUAL * squares)
        for shift in (-1, 1):  # neighbouring steps that are too short: positions were held, then caught up
            is_lost &= ((np.roll(step, shift, axis=0) - expected) * expected).sum(axis=1) / size > -HALF
        for shift in (-2, -1, 1, 2):  # a long step also spoils the cubic of its neighbours: keep the largest
            is_lost &= squares >= np.roll(squares, shift)
    is_lost[:2] = is_lost[-2:] = False
    at = np.flatnonzero(is_lost & ~uneven)
    if at.size:
        yield Finding("missing", "warning", "time",
                      "the joints move by several steps between two rows, although the clock shows one: rows "
                      "were lost and the stamps written anew",
                      "Record again with the stamps of the robot's controller, or leave these stretches out "
                      "(--time).",
                      evidence={"places": int(at.size), "rows lost": float(np.round(excess[at]).sum()),
                                "first at [s]": float(time[at[0]])})  # fmt: skip
