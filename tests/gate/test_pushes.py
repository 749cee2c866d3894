"""A push: a torque that acts on one joint once, for a short time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from campaigns.gate_evidence import believed, clean_log
from dynid.findings import Finding
from dynid.gate.profiled_fit import ProfiledFit
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import Samples
from dynid.gate.within_log import _of_joint, _stretches
from dynid.logs.recording import Recording
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous


def _pushes(log: Recording, name: str) -> list[Finding]:
    return [finding for finding in check_recording(log, believed(name, "own")).findings if finding.code == "push"]


def _pushed(log: Recording, joint: int, start_s: float, seconds: float, torque: float) -> Recording:
    assert log.effort is not None
    effort = log.effort.copy()
    effort[(log.time >= start_s) & (log.time < start_s + seconds), joint] += torque
    return replace(log, effort=effort)


@pytest.mark.parametrize(
    ("name", "joint", "seconds", "torque"),
    [("puma560", 1, 0.4, 25.0), ("scara", 0, 0.2, -10.0), ("panda", 3, 0.8, 10.0), ("tx40", 2, 0.4, 10.0)],
)
def test_a_push_is_named_with_its_place_and_torque(name: str, joint: int, seconds: float, torque: float) -> None:
    log = clean_log(name, 5, friction=0.3)
    (found,) = _pushes(_pushed(log, joint, 4.0, seconds, torque), name)
    assert (found.severity, found.joint) == ("warning", log.joint_names[joint])
    assert abs(found.evidence["at [s]"] - 4.0) < 0.25
    assert abs(found.evidence["torque [N m]"] - torque) < 0.2 * abs(torque)


@pytest.mark.parametrize("name", ["puma560", "scara", "panda", "cylindrical", "ur10", "tx40"])
def test_friction_that_the_model_lacks_is_no_push(name: str) -> None:
    assert _pushes(clean_log(name, 6, friction=1.0), name) == []


@pytest.mark.parametrize(("name", "rate_hz"), [("puma560", 200.0), ("panda", 100.0), ("gautier_khalil_3r", 1000.0)])
def test_the_ends_of_a_log_without_noise_are_no_push(name: str, rate_hz: float) -> None:
    robot = zoo.get(name).with_terms(Viscous(0.4), Coulomb(0.6))
    log = simulate_experiment(robot, sum_of_sines(robot.dof, seed=1), rate_hz=rate_hz, duration_s=12.0)
    assert [finding for finding in check_recording(log, robot).findings if finding.code == "push"] == []


def test_sums_over_stretches_are_what_fits_of_each_stretch_give() -> None:
    robot, log = believed("scara", "own"), clean_log("scara", 7, friction=0.3)
    samples = Samples.of(robot, process(log))
    assert samples is not None
    assert samples.time is not None
    fit, place = ProfiledFit.of(robot, samples), 1
    found = _stretches(samples.time, fit, place)
    for k in np.linspace(0, found.start.size - 1, 40).astype(int).tolist():
        inside = np.zeros(len(samples.time))
        inside[found.start[k] : found.stop[k]] = 1.0
        push = fit.left((fit.at_joint(place, inside) / fit.scale[place])[:, None])[:, 0]
        assert found.free[k] == pytest.approx(push @ push, abs=1e-9 * max(found.number[k], 1.0))
        assert found.residual[k] == pytest.approx(push @ fit.residual, abs=1e-9 * np.abs(fit.residual).sum())
    column = fit.at_joint(place, samples.q[:, 0] ** 2)
    free = fit.left(column[:, None])[:, 0]
    free /= np.linalg.norm(free)
    quick = found.without(_of_joint(fit, place, free), float(free @ fit.residual))
    plain = _stretches(samples.time, fit.with_column(column), place)
    np.testing.assert_allclose(quick.gain, plain.gain, rtol=1e-6, atol=1e-9 * plain.gain.max())
