"""The gate where some joints say little: noise must neither refuse a true log nor hide a fault of another joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import dynid
from dynid.gate.measured_samples import filtered_noise
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples, block_losses, residuals
from dynid.gate.stream_check import StreamCheck
from dynid.logs.reading import read_recording
from dynid.logs.recording import Recording
from dynid.processing.filters import Butterworth, Smoothing
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.processing.streaming import process_stream
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

ARM = dynid.robots.ur10()
"""Its last joint turns a symmetric flange: next to no torque."""
PATH = sum_of_sines(6, seed=1, amplitude=0.8)

ONE_JOINT = {
    "time": {"column": "t", "unit": "s"},
    "position": {"columns": "q", "unit": "rad"},
    "effort": {"columns": "tau", "unit": "N m"},
}


def _log(effort: float = 0.5, friction: float = 0.0, seed: int = 3, path=PATH, **options) -> Recording:
    truth = ARM.with_terms(
        RotorInertia(0.1 * friction), Viscous(friction), Coulomb(2.0 * friction), Offset(0.3 * friction)
    )
    noise = Noise(position=2e-5, velocity=1e-3, effort=effort)
    return simulate_experiment(truth, path, rate_hz=250.0, duration_s=20.0, noise=noise, seed=seed, **options)


@pytest.fixture(scope="module")
def log() -> Recording:
    return _log()


def _exchanged(x: np.ndarray) -> np.ndarray:
    return x[:, [0, 2, 1, 3, 4, 5]]


@pytest.mark.parametrize("effort", [0.05, 0.5])
def test_a_joint_of_noise_alone_is_said_to_be_one_and_refuses_nothing(effort):
    report = check_recording(_log(effort), ARM)
    assert report.clean, str(report)
    assert [f.joint for f in report.about("noise")] == ["joint6"]


def _streamed(log: Recording):
    check = StreamCheck(ARM)
    list(process_stream((log.rows(slice(start, start + 1000)) for start in range(0, 5000, 1000)), check=check))
    return check.report()


@pytest.mark.parametrize("effort", [0.05, 0.5])
def test_a_joint_of_noise_alone_is_said_to_be_one_in_a_stream(effort):
    log = _log(effort)
    report = _streamed(log)
    assert report.clean, str(report)
    assert [f.joint for f in report.about("noise")] == ["joint6"]
    flipped = _streamed(replace(log, effort=log.effort * [1, 1, -1, 1, 1, 1]))
    assert [f.joint for f in flipped.about("flipped")] == ["joint3"]


def test_a_flipped_torque_is_named_beside_noisy_joints(log):
    effort = log.effort * [1, 1, -1, 1, 1, 1]
    assert [f.joint for f in check_recording(replace(log, effort=effort), ARM).about("flipped")] == ["joint3"]


def test_exchanged_torques_and_exchanged_motions_are_named_beside_noisy_joints(log):
    torques = replace(log, effort=_exchanged(log.effort))
    assert "torques of joint2 and joint3" in str(check_recording(torques, ARM).about("swapped")[0])
    motions = replace(log, q=_exchanged(log.q), dq=_exchanged(log.dq))
    report = check_recording(motions, ARM)
    assert "motions of joint2 and joint3" in str(report.about("swapped")[0])
    assert "unsynchronised" not in report.codes


def test_exchanged_wrist_joints_of_much_friction_are_named():
    """Of wrist joints alike but for little, a sum of squares over all joints sees nothing."""
    log, order = _log(friction=5.0, path=sum_of_sines(6, seed=1, amplitude=0.8)), [0, 1, 2, 3, 5, 4]
    wrong = {name: getattr(log, name)[:, order] for name in ("q", "dq", "effort")}
    assert check_recording(log, ARM).clean
    assert "swapped" in check_recording(replace(log, **wrong), ARM).codes


def test_no_fit_explains_a_flipped_torque_by_friction_that_drives():
    """The flange's torque is friction alone, so nothing but friction that drives could explain it flipped."""
    samples = Samples.of(ARM, process(_log(friction=5.0), filter_effort=True))
    flipped = samples.with_torque_sign(5)
    assert residuals(ARM, samples)[0] < 0.05
    assert residuals(ARM, flipped)[0] > 0.2
    assert float((block_losses(ARM, flipped, 10) - block_losses(ARM, samples, 10))[0].min()) > 0.0


def test_a_torque_that_ought_to_be_there_and_is_noise_is_a_warning(log):
    effort = log.effort.copy()
    effort[:, 1] = np.random.default_rng(0).normal(scale=0.5, size=len(effort))
    (found,) = [f for f in check_recording(replace(log, effort=effort), ARM).about("noise") if f.joint == "joint2"]
    assert found.severity == "warning"


@pytest.mark.parametrize("delay", [0.0, 0.0101, 0.033, -0.02])
def test_a_delay_without_a_model_is_applied_only_where_the_log_can_tell(delay):
    vague = process(_log(delay_s=delay, seed=5), effort_delay_s="auto")
    assert "left as they are" in vague.processing_steps[0]
    sharp = process(_log(0.1, delay_s=delay, seed=5, friction=1.0), effort_delay_s="auto").processing_steps[0]
    assert ("moved back" in sharp) == (delay != 0.0)
    assert float(sharp.partition("torques ")[2].split()[0]) == pytest.approx(1e3 * delay, abs=1.2)


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_delays_with_and_without_a_model_lie_within_their_errors(seed):
    path = sum_of_sines(6, seed=seed, amplitude=0.6)
    log = _log(0.3, path=path, delay_s=0.0101)
    delay = dynid.processing.estimate_delay(process(log))
    assert abs(delay.seconds - 0.0101) < 4.0 * delay.stderr_s
    (finding,) = check_recording(log, ARM).about("unsynchronised")
    error = abs(finding.evidence["delay [s]"] - 0.0101)
    assert error < min(4.0 * finding.evidence["standard error [s]"], 0.002)


def test_noise_after_a_low_pass_is_that_of_white_noise_through_it():
    rng = np.random.default_rng(2)
    log = _log(0.0)
    noisy = replace(log, effort=log.effort + rng.normal(scale=0.4, size=log.effort.shape))
    low_pass = Smoothing(rate_hz=250.0, cutoff_hz=8.0, low_pass=Butterworth())
    measured = low_pass.apply(rng.normal(scale=0.4, size=(100_000, 1))).std()
    np.testing.assert_allclose(filtered_noise(process(noisy), low_pass), measured, rtol=0.15)


def test_an_encoder_that_hangs_is_frozen_and_a_joint_at_rest_is_not(log):
    q = log.q.copy()
    q[2000:3500, 0] = q[2000, 0]
    stuck = check_recording(replace(log, q=q), ARM).about("frozen")
    assert [(f.joint, f.severity) for f in stuck] == [("joint1", "error")]
    q, dq = np.array(log.q), np.array(log.dq)
    q[3500:], dq[3500:] = q[3500], 0.0
    assert not check_recording(replace(log, q=q, dq=dq)).about("frozen")


@pytest.mark.filterwarnings("error")
def test_one_absurd_torque_is_a_spike_and_clips_nothing(log):
    effort, q = np.array(log.effort), np.array(log.q)
    effort[700, 1], q[500, 1] = -1e308, 1e308
    report = check_recording(replace(log, effort=effort, q=q))
    assert report.ok
    assert "saturated" not in report.codes
    assert {f.where for f in report.about("spikes")} == {"q", "effort"}


def test_a_clock_that_stands_still_is_named(log):
    report = check_recording(replace(log, time=np.full_like(log.time, 5.0)), ARM)
    assert not report.ok
    assert "time" in {f.where for f in report.findings}


def test_noise_that_a_fit_of_two_halves_takes_in_is_no_change():
    arm = dynid.robots.get("puma560")
    truth = arm.with_terms(RotorInertia(), Viscous(), Coulomb(), Offset())
    noise = Noise(position=2e-5, velocity=1e-3, effort=2.0)
    path = sum_of_sines(6, seed=49, amplitude=0.6)
    log = simulate_experiment(truth, path, rate_hz=250.0, duration_s=12.0, noise=noise, seed=9)
    assert check_recording(log, arm).clean


def _gravity(log: Recording, direction: tuple[float, float, float]) -> np.ndarray:
    return dynid.gravity_torque(ARM.with_gravity(9.81 * np.array(direction)), np.ascontiguousarray(log.q))


def test_a_unit_is_seen_where_a_counterbalance_carries_most_of_gravity(log):
    carried = log.effort - 0.75 * _gravity(log, (0.0, 0.0, -1.0))
    assert "unit" in check_recording(replace(log, effort=1e3 * carried), ARM).codes
    assert "unit" in check_recording(replace(log, effort=0.05 * carried), ARM).codes
    assert "unit" not in check_recording(replace(log, effort=carried), ARM).codes


def test_a_part_of_gravity_that_points_elsewhere_is_not_passed_over(log):
    moved = log.effort + 0.45 * _gravity(log, (0.7, 0.7, 0.0)) - _gravity(log, (0.0, 0.0, -1.0))
    found = check_recording(replace(log, effort=moved), ARM)
    assert {"gravity-direction", "gravity-compensated"} & found.codes


def test_what_the_reader_gave_up_is_a_finding(log, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("t,q,tau\n" + "".join(f"{0.01 * k:.2f},{np.sin(0.1 * k)},1.0\n" for k in range(17)) + "0.17,0.")
    cut = read_recording(path, channel_map=ONE_JOINT)
    assert cut.time.size == 17
    (finding,) = check_recording(cut).about("salvaged")
    assert finding.severity == "warning"
    assert "17 rows kept" in finding.message


def lasting_noise(seed: int) -> Recording:
    """A clean log of 12 s of a UR10, with noise that is correlated over half a second."""
    robot = ARM.with_terms(Viscous(5.0), Coulomb(3.0), Offset(0.3))
    motion = sum_of_sines(6, period_s=12.0, harmonics=4, amplitude=0.8, seed=seed)
    log = simulate_experiment(robot, motion, rate_hz=100.0, duration_s=12.0)
    assert log.effort is not None
    white = np.random.default_rng(seed).normal(size=log.effort.shape)
    return replace(log, effort=log.effort + 0.8 * lfilter([np.sqrt(1.0 - 0.98**2)], [1.0, -0.98], white, axis=0))


def test_lasting_noise_is_no_unit_and_hides_none() -> None:
    log = lasting_noise(56)
    assert not [f for f in check_recording(log, ARM).findings if f.code == "unit" and f.severity != "note"]
    assert log.effort is not None
    wrong = replace(log, effort=log.effort * np.where(np.arange(6) == 2, 10.0, 1.0))
    named = [f for f in check_recording(wrong, ARM).findings if f.code == "unit" and f.severity == "error"]
    assert [f.joint for f in named] == ["joint3"]


def test_lasting_noise_is_no_change_and_hides_none() -> None:
    log = lasting_noise(36)
    assert "change" not in check_recording(log, ARM).codes
    load = dynid.Inertia.from_com(3.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    heavier = ARM.with_body("box", parent=ARM.bodies[-1].joint.child, inertia=load)
    motion = sum_of_sines(6, period_s=12.0, harmonics=4, amplitude=0.8, seed=36)(np.asarray(log.time))
    more = dynid.inverse_dynamics(heavier, *motion) - dynid.inverse_dynamics(ARM, *motion)
    assert log.effort is not None
    taken_up = replace(log, effort=log.effort + more * (log.time > 5.0)[:, None])
    assert "change" in check_recording(taken_up, ARM).codes
