"""A clock or a velocity of another scale: found by displacements against integrals of the measured velocity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from dynid.gate.quality import check_recording
from dynid.gate.signal_checks import check_velocities
from dynid.logs.recording import Recording
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot import zoo

Floats = np.ndarray
CODES = {"clock-scale", "velocity-scale"}
RATE_HZ = 200.0


def _log(seed: int, *, duration_s: float = 12.0, amplitude: float = 0.5, harmonics: int = 5) -> Recording:
    motion = sum_of_sines(3, seed=seed, amplitude=amplitude, harmonics=harmonics, period_s=6.0)
    noise = Noise(position=1e-4, velocity=1e-2, effort=0.1)
    return simulate_experiment(zoo.ddarm(), motion, rate_hz=RATE_HZ, duration_s=duration_s, noise=noise, seed=seed)


def _low_passed(x: Floats, seconds: float) -> Floats:
    keep = np.exp(-1.0 / (RATE_HZ * seconds))
    start = keep * x[:1]
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], x, axis=0, zi=start)[0])


def _late(x: Floats, rows: int) -> Floats:
    return np.concatenate([np.repeat(x[:1], rows, axis=0), x[:-rows]])


def _backward(log: Recording) -> Floats:
    return np.diff(log.q, axis=0, prepend=log.q[:1]) * RATE_HZ


def _jittered(log: Recording) -> Recording:
    shift = np.random.default_rng(5).uniform(-0.4, 0.4, log.time.size) / RATE_HZ
    return replace(log, time=log.time + shift)


def _found(log: Recording) -> list[tuple[str, str | None]]:
    return [(finding.code, finding.joint) for finding in check_velocities(log) if finding.code in CODES]


HONEST: dict[str, Callable[[Recording], Recording]] = {
    "as it is": lambda log: log,
    "coarse encoder": lambda log: replace(log, q=np.round(log.q / 1e-3) * 1e-3),
    "coarse velocity": lambda log: replace(log, dq=np.round(log.dq / 0.05) * 0.05),
    "velocity cut off": lambda log: replace(log, dq=np.trunc(log.dq / 0.02) * 0.02),
    "noisy positions": lambda log: replace(log, q=log.q + np.random.default_rng(1).normal(0, 5e-3, log.q.shape)),
    "noisy velocity": lambda log: replace(log, dq=log.dq + np.random.default_rng(1).normal(0, 0.5, log.q.shape)),
    "low-passed velocity": lambda log: replace(log, dq=_low_passed(log.dq, 0.03)),
    "twice low-passed velocity": lambda log: replace(log, dq=_low_passed(_low_passed(log.dq, 0.02), 0.02)),
    "late velocity": lambda log: replace(log, dq=_late(log.dq, 6)),
    "late positions": lambda log: replace(log, q=_late(log.q, 6)),
    "offset of the velocity": lambda log: replace(log, dq=log.dq + 0.05),
    "backward difference": lambda log: replace(log, dq=_backward(log)),
    "uneven stamps": _jittered,
}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("duration_s", "amplitude", "harmonics"), [(12.0, 0.5, 5), (3.0, 0.3, 5), (20.0, 0.1, 10)])
def test_honest_velocities_are_not_accused(
    kind: str, seed: int, duration_s: float, amplitude: float, harmonics: int
) -> None:
    log = HONEST[kind](_log(seed, duration_s=duration_s, amplitude=amplitude, harmonics=harmonics))
    assert _found(log) == []


@pytest.mark.parametrize("kind", sorted(HONEST.keys() - {"noisy velocity", "backward difference"}))
@pytest.mark.parametrize("factor", [0.9, 0.97, 1.03, 1.1])
def test_a_wrong_clock_is_named_with_its_value(kind: str, factor: float) -> None:
    log = HONEST[kind](_log(1, duration_s=20.0))
    (found,) = [f for f in check_velocities(replace(log, time=factor * log.time)) if f.code in CODES]
    assert (found.code, found.severity, found.where) == ("clock-scale", "warning", "time")
    allowed = 3.0 * found.evidence["standard error"]
    assert abs(found.evidence["measured / derived"] - factor) < allowed
    assert ("fast" if factor > 1.0 else "slow") in found.message


@pytest.mark.parametrize("seed", range(5))
def test_the_standard_error_is_honest(seed: int) -> None:
    log = _log(seed)
    (found,) = [f for f in check_velocities(replace(log, time=1.05 * log.time)) if f.code in CODES]
    assert abs(found.evidence["measured / derived"] - 1.05) < 3.0 * found.evidence["standard error"]


@pytest.mark.parametrize("joint", range(3))
def test_the_velocity_of_one_joint_is_named(joint: int) -> None:
    log = _log(2)
    factors = np.where(np.arange(3) == joint, 1.06, 1.0)
    assert _found(replace(log, dq=log.dq * factors)) == [("velocity-scale", log.joint_names[joint])]


def test_the_gate_reports_a_wrong_clock() -> None:
    log = _log(3)
    report = check_recording(replace(log, time=1.03 * log.time), zoo.ddarm())
    assert "clock-scale" in {finding.code for finding in report.findings}
