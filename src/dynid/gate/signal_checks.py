"""Checks that need no model: clock, missing and absurd samples, resolution, clipping, dead channels, velocities."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.recording import Recording, torque_remedy
from dynid.logs.signal_guess import has_no_sign
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples, unwrap_angles
from dynid.processing.timing import CLOCK_FAULTS, Clock, VelocityScale, read_clock, velocity_scales

DEGREES = 180.0 / np.pi
"""Degrees per radian."""
RATES_HZ = (5.0, 1e5)
"""Smallest and largest sampling rate of a robot log [Hz]; another rate means another unit of time. Convention: usual
logs have 50 Hz to 10 kHz, and a wrong unit is wrong by a factor of 1000 or more."""
JITTER = 0.02
"""Scatter of the sampling period, as a share of it, from which on it is noted (convention)."""
MISSING = 0.05
"""Share of missing samples or spikes above which a channel is an error (convention)."""
CLIPPED = 0.20
"""Share of saturated torques above which a joint is an error (convention: clipping is local, and dropped)."""
FEWEST_VALUES = 20
"""Smallest number of values for statistics of one channel (convention)."""
FEWEST_ROWS = 50
"""Smallest number of rows for a comparison of velocities and positions (convention)."""
MOST_STEPS = 100_000
"""Largest number of steps from which a noise or a resolution is estimated (convention)."""
STILL = 2e-3
"""Range of a joint up to which it does not move [rad or m]; convention, about 0.1 degrees."""
STILL_STEPS = 4.0
"""A range of at most this many quantisation steps is no motion either (convention)."""
COARSE = 2e-3
"""Quantisation step, as a share of the range, from which on it is a warning; convention: fewer than 500 steps."""
STUCK = 20
"""Number of equal positions in a row after which the velocities tell whether the joint stands still (convention)."""
MISSED_RANGE, MISSED_STEPS = 0.02, 5.0
"""Motion that the velocities must show meanwhile: this share of the range, and this many quantisation steps ..."""
MISSED_SPEED = 0.1
"""... and this share of the joint's usual speed. All three are conventions."""
SLOW = 1e-3
"""Standard deviation of a velocity below which it is not compared [rad/s or m/s] (convention)."""
SAME, UNRELATED = 0.9, 0.5
"""Correlation above which two velocities are the same signal, and below which they have nothing in common; both set
with the fault campaign of simulated logs (tests/campaigns/fault_injection.py)."""
UNIT_RATIO = 2.0
"""Ratio of measured to derived velocity beyond which the units differ; convention: degrees differ by 57."""
LOG_DEGREES = 0.3
"""Difference of logarithms up to which that ratio counts as degrees per radian (convention: within 35 %)."""
SCALE_SIGMAS = 4.5
"""Deviation of a ratio of velocities from one, in standard errors, from which on it is no chance (convention)."""
LEAST_SCALE = 0.015
"""Smallest such deviation that is told: about twice the largest of the real logs. The ratios of their joints are 0.992
to 0.999 on panda_unisa (30 Hz, uneven stamps; standard errors of 0.004 to 0.007; all joints: 0.995 +- 0.003), 0.9997 to
1.0019 on ur10_unisa, 0.9993 to 1.0004 on panda_gaz and 0.9999 to 1.0000 on kuka_kr300."""
ALIKE = 0.25
"""Share of the common deviation by which that of a joint may differ from it (convention)."""
LOST = 0.8
"""Excess of a step, in usual steps, from which on it is a lost row (convention: one row, less what noise may take)."""
LOST_GAIN = 60.0
"""Gain of the chi-squared from which on it is no noise (convention, far above the largest of 1e5 normal errors;
tests/campaigns/lost_rows.py accuses no real log with an even clock)."""
LOST_EXPLAINED = 0.8
"""Share of a row's misfit that one multiple for all joints must explain, unlike a spike of one encoder (convention)."""
DEFICIT = -0.4
"""Excess of the steps beside it below which positions were held and caught up, which loses no row (convention)."""
STEADY = 0.2
"""Share of a period by which the clock may deviate at a row that is judged (convention)."""
UNEVEN = 0.005
"""Share of rows with another period above which the stamps were not written anew (convention; panda_gaz, whose stamps
are those of the receiver, has 14 %: there rows arrive late and together, which looks the same)."""
REPEATED = 0.05
"""Share of a log's stretches that are copies of earlier ones from which on it is said (convention: measured signals
never repeat to the last digit)."""
MAD = 1.4826
"""Standard deviation over median magnitude of normally distributed noise."""


def check_clock(recording: Recording) -> Iterator[Finding]:
    """Check order, repetitions, gaps, jitter and unit of the time stamps."""
    for name in ("time", "effort_time", "wrench_time"):
        stamps = getattr(recording, name)
        if stamps is None:
            continue
        try:
            clock = read_clock(stamps)
        except DataError as error:
            yield Finding(
                code="backward-time", severity="error", where=name, message=error.reason, remedy=error.remedy or ""
            )
            continue
        if not RATES_HZ[0] <= clock.rate_hz <= RATES_HZ[1]:
            yield Finding(
                code="time-unit",
                severity="error",
                where=name,
                message=f"a sampling rate of {clock.rate_hz:.3g} Hz is not that of a robot log",
                evidence={"period [s]": clock.period_s},
                remedy="Declare the unit of time (ms, us, ns) in the channel map.",
            )
        for code, count in clock.faults.items():
            yield Finding(
                code=code,
                severity="note" if code == "stamp-order" else "warning",
                where=name,
                message=f"{CLOCK_FAULTS[code]}: {count}",
                evidence={
                    "count": count,
                    "stretches": len(clock.stretches),
                    "share of the time covered": _covered_share(clock),
                    "longest step [s]": float(np.diff(clock.time).max(initial=0.0)),
                },
                remedy=(_COMMAND_REMEDIES if _only_commands(recording) else _CLOCK_REMEDIES).get(
                    code, "Handled: such samples are dropped or sorted; look for the cause in the logger."
                ),
            )
        jitter = clock.jitter_s / clock.period_s
        if jitter > JITTER:
            yield Finding(
                code="jitter",
                severity="note",
                where=name,
                message="the sampling period scatters",
                evidence={"share of a period": jitter},
                remedy="Handled: samples are interpolated to a uniform clock.",
            )


_CLOCK_REMEDIES = {
    "gap": "Handled: no filter extends across a gap. Gaps that are much shorter than a period of the motion "
    "can be bridged: set max_gap_s above them.",
    "backward-time": "Handled: a new stretch begins there; look for the cause in the logger's clock.",
}
_COMMAND_REMEDIES = _CLOCK_REMEDIES | {
    "gap": "Handled: dynid actuate cuts the motion there; shorter holes, of a few rows, are bridged by straight lines "
    "between the commands.",
}
"""The same for logs without torques."""


def _only_commands(recording: Recording) -> bool:
    """Whether it is a log of commands, for dynid actuate."""
    return recording.commands is not None and recording.effort is None


def check_repeated_samples(recording: Recording) -> Iterator[Finding]:
    """Find a stretch that stands in the log several times: its copies add no knowledge."""
    if recording.isolated or recording.effort is None:
        return
    keys, rows = recording.stretch_keys()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    copies = np.flatnonzero((first[which] < np.arange(keys.size)) & np.isfinite(keys))
    share = copies.size / max(keys.size, 1)
    if share > REPEATED:
        clock = recording.time if recording.effort_time is None else recording.effort_time
        start, origin = (int(rows[k]) for k in (copies[0], first[which[copies[0]]]))
        yield Finding(
            code="repeated-samples",
            severity="warning",
            where="file",
            message=f"{100.0 * share:.0f} % of the samples are copies of earlier ones, to the last digit: row {start} "
            f"({clock[start]:.6g} s) repeats row {origin} ({clock[origin]:.6g} s), and so on",
            evidence={"share": share, "first copy [row]": start},
            remedy="Remove the copies: they add no knowledge, and intervals become smaller than they are.",
        )


def _covered_share(clock: Clock) -> float:
    """Share of the log's time that lies within stretches; a clock that runs backwards loses none between them."""
    ends = [(clock.time[stretch.start], clock.time[stretch.stop - 1] + clock.period_s) for stretch in clock.stretches]
    covered = sum(end - start for start, end in ends)
    lost = sum(max(start - end, 0.0) for (_, end), (start, _) in pairwise(ends))
    return float(covered / (covered + lost))


def _reverses(recording: Recording) -> bool:
    """Whether some joint moves as far down as up, roughly."""
    steps = np.diff(np.nan_to_num(recording.q), axis=0)
    up, down = np.where(steps > 0.0, steps, 0.0).sum(axis=0), -np.where(steps < 0.0, steps, 0.0).sum(axis=0)
    return bool((np.minimum(up, down) > 0.1 * np.maximum(up, down)).any() and (up + down).max() > 0.0)


def check_signals(recording: Recording) -> Iterator[Finding]:
    """Check every channel of every joint by itself."""
    if recording.effort is None:
        yield Finding(
            code="missing",
            severity="note"
            if recording.commands is not None
            else "warning"
            if recording.wrench is not None
            else "error",
            where="effort",
            message="there are no joint torques",
            remedy="Map a torque channel, or give [current] a torque_constant (in Python: `CurrentGains`)."
            if recording.commands is None
            else torque_remedy(recording),
        )
    if recording.effort is not None and has_no_sign(recording.effort) and _reverses(recording):
        yield Finding(
            code="unsigned-effort",
            severity="error",
            where="effort",
            message="torques are never negative although joints move both ways: they are amounts of currents",
            remedy="Take [effort] out of the map; commands and positions suffice for dynid actuate.",
        )
    for channel, values in _channels(recording).items():
        names = recording.joint_names if channel != "wrench" else ("fx", "fy", "fz", "mx", "my", "mz")
        for j, name in enumerate(names):
            # isolated rows are not neighbours, so they have no spikes
            longest = None if recording.isolated else longest_spike(recording.time)
            yield from _check_column(channel, name, values[:, j], longest, _missing_remedy(recording))
    _, jumps = unwrap_angles(np.where(np.isfinite(recording.q), recording.q, 0.0))
    for j in np.flatnonzero(jumps).tolist():
        yield Finding(
            code="wrapped",
            severity="note",
            where="q",
            joint=recording.joint_names[j],
            message="the angle jumps by whole turns",
            evidence={"jumps": int(jumps[j])},
            remedy="Handled: processing unwraps it.",
        )


def _channels(recording: Recording) -> dict[str, Floats]:
    named = {"q": recording.q, "dq": recording.dq, "effort": recording.effort, "wrench": recording.wrench}
    return {name: values for name, values in named.items() if values is not None}


def _missing_remedy(recording: Recording) -> str:
    """What becomes of missing samples."""
    if _only_commands(recording):
        return "Handled: such readings count for nothing in dynid actuate; the commands and other joints stay."
    return "They are dropped and counted; above 5 % the joint is refused. Check the channel."


def _check_column(channel: str, joint: str, x: Floats, longest: int | None, handled: str) -> Iterator[Finding]:
    finite = np.isfinite(x)
    missing = 1.0 - finite.mean() if x.size else 1.0
    if missing > 0.0:
        yield Finding(
            code="not-finite",
            severity="error" if missing > MISSING else "warning",
            where=channel,
            joint=joint,
            message="samples are missing or not finite" if finite.any() else "all samples are missing or not finite",
            evidence={"share": missing, "count": int(np.count_nonzero(~finite))},
            remedy=handled
            if finite.any()
            else "The column is empty: map another one, or hold the joint (--hold) if it was not recorded.",
        )
    y = x[finite]
    continued = unwrap_angles(y[:, None])[0] if channel == "q" else y[:, None]
    spikes = np.zeros(y.shape, dtype=bool) if longest is None else absurd_samples(continued, longest)[:, 0]
    true = y[~spikes]
    if true.size >= FEWEST_VALUES and channel == "q":
        yield from _check_position(joint, unwrap_angles(true[:, None])[0][:, 0])
    if true.size >= FEWEST_VALUES and channel == "effort":
        yield from _check_torque(joint, true)
    if spikes.any():
        share = float(spikes.mean())
        yield Finding(
            code="spikes",
            severity="error" if share > MISSING else "warning",
            where=channel,
            joint=joint,
            message="some values are spikes: a few samples far from the signal",
            evidence={"count": int(spikes.sum()), "share": share, "largest": float(np.abs(y[spikes]).max())},
            remedy="They are dropped and counted; look for the cause in the driver.",
        )


def _check_position(joint: str, y: Floats) -> Iterator[Finding]:
    span = float(np.percentile(y, 99.5) - np.percentile(y, 0.5))
    step = quantisation_step(y)
    if span <= max(STILL_STEPS * step, STILL):
        yield Finding(
            code="frozen",
            severity="warning",
            where="q",
            joint=joint,
            message="the joint does not move",
            evidence={"range [rad or m]": span},
            remedy="Its own parameters cannot be identified from this log; move it.",
        )
    elif step > 0.0:
        yield Finding(
            code="quantised",
            severity="warning" if step > COARSE * span else "note",
            where="q",
            joint=joint,
            message="positions come in steps",
            evidence={"step [rad or m]": step, "share of range": step / span},
            remedy="The choice of the cutoff takes this noise into account; coarse steps need a low cutoff.",
        )


def quantisation_step(y: Floats) -> float:
    """Find the step of a quantised signal (N,); 0 if its values are not multiples of one step."""
    steps = np.abs(np.diff(y))
    steps = steps[steps > 1e-12 * max(float(np.abs(y).max()), 1e-300)]
    steps = steps[:: -(-steps.size // MOST_STEPS) or 1]
    if steps.size < 10 or np.unique(np.round(steps, 12)).size > 0.5 * steps.size:
        return 0.0
    step = float(np.percentile(steps, 1.0))
    multiples = steps / step
    return step if float(np.mean(np.abs(multiples - np.round(multiples)) < 0.05)) > 0.95 else 0.0


def _check_torque(joint: str, y: Floats) -> Iterator[Finding]:
    if float(y.max() - y.min()) <= 1e-9 * max(1.0, float(np.abs(y).max())):
        yield Finding(
            code="frozen",
            severity="error",
            where="effort",
            joint=joint,
            message="the torque never changes",
            evidence={"value [N m or N]": float(y[0])},
            remedy="The channel is dead or mapped wrongly.",
        )
        return
    clipped = saturated_samples(y[:, None])[:, 0]
    if clipped.any():
        share = float(clipped.mean())
        yield Finding(
            code="saturated",
            severity="error" if share > CLIPPED else "warning",
            where="effort",
            joint=joint,
            message="the torque stands at its largest or smallest value",
            evidence={"share": share, "at [N m or N]": float(np.abs(y[clipped]).max())},
            remedy="Those samples are dropped, above 20 % the joint is refused; move more slowly.",
        )


def check_velocities(recording: Recording) -> Iterator[Finding]:
    """Report measured velocities that disagree with the positions: unit, sign, order of the joints, scale, clock."""
    if recording.dq is None or recording.isolated or recording.time.size < FEWEST_ROWS:
        return
    ok = np.isfinite(recording.time)
    for values in (recording.q, recording.dq):
        ok &= np.isfinite(values).all(axis=1) & ~absurd_samples(values, longest_spike(recording.time)).any(axis=1)
    time, q, dq = recording.time[ok], unwrap_angles(recording.q[ok])[0], recording.dq[ok]
    if time.size < FEWEST_ROWS:
        return
    found = [*_check_stuck(recording.joint_names, time, q, dq), *_check_derivatives(recording.joint_names, time, q, dq)]
    yield from found
    yield from _check_scales(recording.joint_names, time, q, dq, {finding.joint for finding in found})


def _check_derivatives(names: tuple[str, ...], time: Floats, q: Floats, dq: Floats) -> Iterator[Finding]:
    """Report velocities in another unit, of the other sign, of another joint, or of nothing that moves."""
    window = max(1, time.size // 400)
    step = time[window:] - time[:-window]
    good = (step > 0.0) & (step < 3.0 * np.median(step))
    if np.count_nonzero(good) < FEWEST_VALUES:
        return  # the clock is broken, which `check_clock` reports
    step = np.where(good, step, 1.0)
    mean = np.cumsum(np.vstack([np.zeros((1, q.shape[1])), dq]), axis=0)
    measured = ((mean[window:-1] - mean[: -window - 1]) / window)[good]
    derived = ((q[window:] - q[:-window]) / step[:, None])[good]
    limited = np.array([_robust(column) for column in (*measured.T, *derived.T)])
    spread, joints = limited.std(axis=1), q.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.corrcoef(limited)[:joints, joints:]
    for j in range(joints):
        yield from _compare_velocity(names, j, float(spread[j]), spread[joints:], correlation[j])


def _check_stuck(names: tuple[str, ...], time: Floats, q: Floats, dq: Floats) -> Iterator[Finding]:
    """Report positions that keep one value while the velocities show motion: the encoder hangs, not the joint."""
    steps = np.clip(np.diff(time), 0.0, None)
    for j, name in enumerate(names):
        y, v = q[:, j], dq[:, j]
        least = max(MISSED_RANGE * float(np.ptp(y)), MISSED_STEPS * quantisation_step(y))
        same = np.diff(y) == 0.0
        edges = np.flatnonzero(np.diff(np.r_[False, same, False].astype(np.int8))).reshape(-1, 2)
        stuck = [
            (start, stop, missed)
            for start, stop in edges[np.diff(edges, axis=1)[:, 0] >= STUCK].tolist()
            if (missed := float(np.ptp(np.cumsum(v[start:stop] * steps[start:stop])))) > least
            and missed > MISSED_SPEED * float(v.std()) * (time[stop] - time[start])
        ]
        if stuck:
            yield Finding(
                code="frozen",
                severity="error",
                where="q",
                joint=name,
                message="the position stands still while the velocity shows motion",
                evidence={
                    "samples": sum(stop - start for start, stop, _ in stuck),
                    "from [s]": float(time[stuck[0][0]]),
                    "motion missed [rad or m]": max(missed for _, _, missed in stuck),
                },
                remedy="The encoder or its driver hung: cut the log there.",
            )


def _compare_velocity(
    names: tuple[str, ...], j: int, size: float, spread: Floats, correlation: Floats
) -> Iterator[Finding]:
    """Compare the measured velocity of a joint with the derivatives of all positions, outliers limited.

    Args:
        names: Names of the joints.
        j: The joint.
        size: Standard deviation of its measured velocity.
        spread: (n,) standard deviations of the derivatives.
        correlation: (n,) correlation of the measured velocity with each of them.
    """
    name = names[j]
    if spread[j] < SLOW or size == 0.0:
        return
    correlation = np.where(spread > SLOW, correlation, 0.0)
    best = int(np.argmax(np.abs(correlation)))
    ratio = float(size / spread[j])
    evidence = {"measured / derived": ratio, "correlation": float(correlation[j])}
    if best != j and abs(correlation[best]) > SAME > abs(correlation[j]):
        yield Finding(
            code="swapped",
            severity="error",
            where="dq",
            joint=name,
            message=f"the velocities belong to the positions of {names[best]}",
            evidence={**evidence, f"correlation with {names[best]}": float(correlation[best])},
            remedy="Match the columns by joint name in the channel map.",
        )
    elif correlation[j] < -SAME:
        yield Finding(
            code="flipped",
            severity="error",
            where="dq",
            joint=name,
            message="velocities have the opposite sign of the positions' derivative",
            evidence=evidence,
            remedy="Flip the sign of one of them in the channel map.",
        )
    elif correlation[j] > SAME and not 1.0 / UNIT_RATIO < ratio < UNIT_RATIO:
        degrees = min(abs(np.log(ratio / DEGREES)), abs(np.log(ratio * DEGREES))) < LOG_DEGREES
        yield Finding(
            code="unit",
            severity="error",
            where="dq",
            joint=name,
            message=f"velocities and positions differ in unit{'; one of them is in degrees' if degrees else ''}",
            evidence=evidence,
            remedy="Declare the units of both in the channel map.",
        )
    elif correlation[j] < UNRELATED:
        yield Finding(
            code="inconsistent",
            severity="warning",
            where="dq",
            joint=name,
            message="velocities do not follow the positions",
            evidence=evidence,
            remedy="Check which signal the channel holds; process without measured velocities.",
        )


def _robust(x: Floats) -> Floats:
    """Limit a signal to its 2 % and 98 % quantiles, so that single outliers do not decide."""
    return np.clip(x, *np.percentile(x, [2.0, 98.0]))


# --- clocks and velocities of another scale ---------------------------------------------------------------------------


def _check_scales(
    names: tuple[str, ...], time: Floats, q: Floats, dq: Floats, known: set[str | None]
) -> Iterator[Finding]:
    """Report velocities whose integral is not the displacement: of all joints alike, which a wrong clock does, or not.

    Joints whose velocities are `known` to be wrong are not judged.
    """
    in_steps = np.array([quantisation_step(column) > 0.0 for column in dq.T])
    scales = zip(names, velocity_scales(time, q, dq, in_steps=in_steps), strict=True)
    fits = {name: scale for name, scale in scales if scale is not None and name not in known}
    if not fits:
        return
    common = VelocityScale.of(list(fits.values()))
    allowed = ALIKE * abs(common.ratio - 1.0)
    if all(abs(fit.ratio - common.ratio) < max(SCALE_SIGMAS * fit.stderr, allowed) for fit in fits.values()):
        if _is_wrong(common):
            yield _wrong_clock(common)
        return
    yield from (_wrong_scale(name, fit) for name, fit in fits.items() if _is_wrong(fit))


def _is_wrong(scale: VelocityScale) -> bool:
    return abs(scale.ratio - 1.0) > max(LEAST_SCALE, SCALE_SIGMAS * scale.stderr)


def _wrong_clock(scale: VelocityScale) -> Finding:
    percent, error = 100.0 * abs(scale.ratio - 1.0), 100.0 * scale.stderr
    pace = "fast" if scale.ratio > 1.0 else "slow"
    return Finding(
        code="clock-scale",
        severity="warning",
        where="time",
        message=f"the clock of the log runs {percent:.3g} +- {error:.1g} % too {pace}, "
        "or all velocities are scaled: positions and velocities of all joints differ by one factor",
        evidence={"measured / derived": scale.ratio, "standard error": scale.stderr},
        remedy="Check column and unit of time, and the rate of the logger. If the clock is right, take the velocities "
        "out of the channel map.",
    )


def _wrong_scale(joint: str, scale: VelocityScale) -> Finding:
    return Finding(
        code="velocity-scale",
        severity="warning",
        where="dq",
        joint=joint,
        message=f"velocities are {scale.ratio:.4g} +- {scale.stderr:.1g} times the derivative of the positions",
        evidence={"measured / derived": scale.ratio, "standard error": scale.stderr},
        remedy="Check unit and gear of this joint's velocity and position; without a cause, take the velocities out of "
        "the channel map.",
    )


# --- rows lost under a clock that was written anew --------------------------------------------------------------------


def check_lost_rows(recording: Recording) -> Iterator[Finding]:
    """Report steps of the positions that are multiples of what the speeds allow, at a clock that shows no gap."""
    if recording.isolated or recording.time.size < FEWEST_ROWS:
        return
    time, q = recording.time, unwrap_angles(recording.q)[0]
    if not (np.isfinite(time).all() and np.isfinite(q).all()):
        return  # other findings name this, and the rows beside it cannot be judged
    period = np.diff(time)
    usual = float(np.median(period))
    if not usual > 0.0:
        return
    uneven = np.abs(period / usual - 1.0) > STEADY
    if uneven.mean() > UNEVEN:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # an absurd sample, which other findings name, is no lost row
        lost = _excess(q, recording.dq, period)
    lost[uneven] = 0.0
    at = np.flatnonzero(lost >= LOST)
    if at.size:
        yield Finding(
            code="missing",
            severity="warning",
            where="time",
            message="the joints move by several steps between two rows, although the clock shows one: rows were lost "
            "and the stamps written anew",
            evidence={
                "places": int(at.size),
                "rows lost": float(np.round(lost[at]).sum()),
                "first at [s]": float(time[at[0]]),
            },
            remedy="Record again with the stamps of the robot's controller, or leave these stretches out (--time).",
        )


def _excess(q: Floats, dq: Floats | None, period: Floats) -> Floats:
    """(N - 1,) by how many usual steps each step is too long; zero where that cannot be told from noise."""
    step = np.diff(q, axis=0)
    has_speed = dq is not None and np.isfinite(dq).all()
    if dq is not None and has_speed:
        expected = 0.5 * (dq[1:] + dq[:-1]) * period[:, None]
    else:  # cubic through the two steps before and the two after
        expected = np.zeros_like(step)
        expected[2:-2] = (4.0 * (step[1:-3] + step[3:-1]) - step[:-4] - step[4:]) / 6.0
    misfit = step - expected
    some = misfit[:: -(-len(misfit) // MOST_STEPS)]
    spread = MAD * np.median(np.abs(some - np.median(some, axis=0)), axis=0)
    noise = np.maximum(spread, [max(quantisation_step(y), 1e-12) for y in q.T])
    step, misfit, expected = step / noise, misfit / noise, expected / noise
    size = np.maximum((expected**2).sum(axis=1), 1e-300)
    excess = (misfit * expected).sum(axis=1) / size
    explained = excess**2 * size
    is_lost = (explained > LOST_GAIN) & (explained > LOST_EXPLAINED * (misfit**2).sum(axis=1))
    for shift in (-1, 1):  # by how much the steps beside it are too long
        beside = np.roll(misfit, shift, axis=0) if has_speed else np.roll(step, shift, axis=0) - expected
        is_lost &= (beside * expected).sum(axis=1) / size > DEFICIT
    for shift in (-2, -1, 1, 2):  # a long step spoils what is expected beside it
        is_lost &= (misfit**2).sum(axis=1) >= np.roll((misfit**2).sum(axis=1), shift)
    is_lost[:2] = is_lost[-2:] = False
    return np.where(is_lost, excess, 0.0)
