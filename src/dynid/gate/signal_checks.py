"""Checks that need no model: clock, missing and absurd samples, resolution, clipping, dead channels, velocities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.recording import Recording
from dynid.processing.outliers import absurd_samples, longest_spike, saturated_samples, unwrap_angles
from dynid.processing.timing import CLOCK_FAULTS, read_clock

__all__ = ["check_clock", "check_signals", "check_velocities"]

Floats = NDArray[np.float64]

DEGREES = 180.0 / np.pi
STUCK = 20
"""Number of equal positions in a row after which the velocities tell whether the joint stands still (convention)."""


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
        if not 5.0 <= clock.rate_hz <= 1e5:
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
                message=f"{CLOCK_FAULTS[code]}: {count} times",
                evidence={
                    "count": count,
                    "stretches": len(clock.stretches),
                    "coverage": _coverage(clock.time, stamps),
                    "longest step [s]": float(np.diff(clock.time).max(initial=0.0)),
                },
                remedy=_CLOCK_REMEDIES.get(code, "Handled: dropped or sorted; look for the cause in the logger."),
            )
        jitter = clock.jitter_s / clock.period_s
        if jitter > 0.02:
            yield Finding(
                code="jitter",
                severity="note",
                where=name,
                message="the sampling period scatters",
                evidence={"share of a period": jitter},
                remedy="Handled: samples are interpolated to a uniform clock.",
            )


_CLOCK_REMEDIES = {
    "gap": "Handled: nothing is filtered across. Gaps far below a period of the motion may be bridged with max_gap_s.",
    "backward-time": "Handled: a new stretch begins there; look for the cause in the logger's clock.",
}


def _coverage(kept: Floats, stamps: Floats) -> float:
    return kept.size / max(len(stamps), 1)


def check_signals(recording: Recording) -> Iterator[Finding]:
    """Check every channel of every joint by itself."""
    if recording.effort is None:
        yield Finding(
            code="missing",
            severity="warning" if recording.wrench is not None else "error",
            where="effort",
            message="there are no joint torques",
            remedy="Map a torque channel, or give [current] a torque_constant (in Python: `CurrentGains`).",
        )
    for channel, values in _channels(recording).items():
        names = recording.joint_names if channel != "wrench" else ("fx", "fy", "fz", "mx", "my", "mz")
        for j, name in enumerate(names):
            # isolated rows are not neighbours, so they have no spikes
            longest = None if recording.isolated else longest_spike(recording.time)
            yield from _check_column(channel, name, values[:, j], longest)
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


def _check_column(channel: str, joint: str, x: Floats, longest: int | None) -> Iterator[Finding]:
    finite = np.isfinite(x)
    missing = 1.0 - finite.mean() if x.size else 1.0
    if missing > 0.0:
        yield Finding(
            code="not-finite",
            severity="error" if missing > 0.05 else "warning",
            where=channel,
            joint=joint,
            message="samples are missing or not finite",
            evidence={"share": missing, "count": int(np.count_nonzero(~finite))},
            remedy="They are dropped and counted; above 5 % the joint is refused. Check the channel.",
        )
    y = x[finite]
    continued = unwrap_angles(y[:, None])[0] if channel == "q" else y[:, None]
    spikes = np.zeros(y.shape, dtype=bool) if longest is None else absurd_samples(continued, longest)[:, 0]
    true = y[~spikes]
    if true.size >= 20 and channel == "q":
        yield from _check_position(joint, unwrap_angles(true[:, None])[0][:, 0])
    if true.size >= 20 and channel == "effort":
        yield from _check_torque(joint, true)
    if spikes.any():
        share = float(spikes.mean())
        yield Finding(
            code="spikes",
            severity="error" if share > 0.05 else "warning",
            where=channel,
            joint=joint,
            message="values leave the signal for a few samples, or are absurd",
            evidence={"count": int(spikes.sum()), "share": share, "largest": float(np.abs(y[spikes]).max())},
            remedy="They are dropped and counted; look for the cause in the driver.",
        )


def _check_position(joint: str, y: Floats) -> Iterator[Finding]:
    span = float(np.percentile(y, 99.5) - np.percentile(y, 0.5))
    step = quantisation_step(y)
    if span <= max(4.0 * step, 2e-3):
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
            severity="warning" if step > 2e-3 * span else "note",
            where="q",
            joint=joint,
            message="positions come in steps",
            evidence={"step [rad or m]": step, "share of range": step / span},
            remedy="The cutoff takes this noise into account; coarse steps need slow filters.",
        )


def quantisation_step(y: Floats) -> float:
    """Step of a quantised signal (N,), or 0 when its values are not multiples of one step."""
    steps = np.abs(np.diff(y))
    steps = steps[steps > 1e-12 * max(float(np.abs(y).max()), 1e-300)]
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
            severity="error" if share > 0.20 else "warning",
            where="effort",
            joint=joint,
            message="the torque stands at its largest or smallest value",
            evidence={"share": share, "at [N m or N]": float(np.abs(y[clipped]).max())},
            remedy="Those samples are dropped, above 20 % the joint is refused; move more slowly.",
        )


def check_velocities(recording: Recording) -> Iterator[Finding]:
    """Report measured velocities that disagree with the positions: unit, sign, order of the joints."""
    if recording.dq is None or recording.isolated or recording.time.size < 50:
        return
    ok = np.isfinite(recording.time)
    for values in (recording.q, recording.dq):
        ok &= np.isfinite(values).all(axis=1) & ~absurd_samples(values, longest_spike(recording.time)).any(axis=1)
    time, q, dq = recording.time[ok], unwrap_angles(recording.q[ok])[0], recording.dq[ok]
    if time.size < 50:
        return
    yield from _check_stuck(recording.joint_names, time, q, dq)
    window = max(1, time.size // 400)
    step = time[window:] - time[:-window]
    good = (step > 0.0) & (step < 3.0 * np.median(step))
    if np.count_nonzero(good) < 20:
        return  # the clock is broken, which `check_clock` reports
    step = np.where(good, step, 1.0)
    mean = np.cumsum(np.vstack([np.zeros((1, q.shape[1])), dq]), axis=0)
    measured = ((mean[window:-1] - mean[: -window - 1]) / window)[good]
    derived = ((q[window:] - q[:-window]) / step[:, None])[good]
    for j, name in enumerate(recording.joint_names):
        yield from _compare_velocity(name, recording.joint_names, j, measured, derived)


def _check_stuck(names: tuple[str, ...], time: Floats, q: Floats, dq: Floats) -> Iterator[Finding]:
    """Report positions that stop at one value while their velocities go on: the encoder stands still, not the joint."""
    steps = np.clip(np.diff(time), 0.0, None)
    for j, name in enumerate(names):
        y, v = q[:, j], dq[:, j]
        least = max(0.02 * float(np.ptp(y)), 5.0 * quantisation_step(y))
        same = np.diff(y) == 0.0
        edges = np.flatnonzero(np.diff(np.r_[False, same, False].astype(np.int8))).reshape(-1, 2)
        stuck = [
            (start, stop, missed)
            for start, stop in edges[np.diff(edges, axis=1)[:, 0] >= STUCK].tolist()
            if (missed := float(np.ptp(np.cumsum(v[start:stop] * steps[start:stop])))) > least
            and missed > 0.1 * float(v.std()) * (time[stop] - time[start])
        ]
        if stuck:
            yield Finding(
                code="frozen",
                severity="error",
                where="q",
                joint=name,
                message="its position stands still while its velocity goes on",
                evidence={
                    "samples": sum(stop - start for start, stop, _ in stuck),
                    "from [s]": float(time[stuck[0][0]]),
                    "motion missed [rad or m]": max(missed for _, _, missed in stuck),
                },
                remedy="The encoder or its driver hung: cut the log there.",
            )


def _compare_velocity(
    name: str, names: tuple[str, ...], j: int, measured: Floats, derived: Floats
) -> Iterator[Finding]:
    y = _robust(measured[:, j])
    if _robust(derived[:, j]).std() < 1e-3 or y.std() == 0.0:
        return
    spread = np.array([_robust(column).std() for column in derived.T])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.array([np.corrcoef(_robust(column), y)[0, 1] for column in derived.T])
    correlation = np.where(spread > 1e-3, correlation, 0.0)
    best = int(np.argmax(np.abs(correlation)))
    ratio = float(y.std() / spread[j])
    evidence = {"measured / derived": ratio, "correlation": float(correlation[j])}
    if best != j and abs(correlation[best]) > 0.9 > abs(correlation[j]):
        yield Finding(
            code="swapped",
            severity="error",
            where="dq",
            joint=name,
            message=f"its velocities are those of {names[best]}'s positions",
            evidence={**evidence, f"correlation with {names[best]}": float(correlation[best])},
            remedy="Match the columns by joint name in the channel map.",
        )
    elif correlation[j] < -0.9:
        yield Finding(
            code="flipped",
            severity="error",
            where="dq",
            joint=name,
            message="velocities have the opposite sign of the positions' derivative",
            evidence=evidence,
            remedy="Flip the sign of one of them in the channel map.",
        )
    elif correlation[j] > 0.9 and not 0.5 < ratio < 2.0:
        degrees = min(abs(np.log(ratio / DEGREES)), abs(np.log(ratio * DEGREES))) < 0.3
        yield Finding(
            code="unit",
            severity="error",
            where="dq",
            joint=name,
            message=f"velocities and positions differ in unit{'; one of them is in degrees' if degrees else ''}",
            evidence=evidence,
            remedy="Declare the units of both in the channel map.",
        )
    elif correlation[j] < 0.5:
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
    return np.clip(x, *np.percentile(x, [2.0, 98.0]))
