"""The gate accuses a log only where the log itself speaks: masses that are guessed, copied or wrong are no evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from campaigns import gate_evidence as campaign
from dynid.gate.quality import check_recording
from dynid.gate.quick_fit import has_made_up_masses
from dynid.processing.simulation import sum_of_sines

ROBOTS_FOLDER = Path(__file__).parents[2] / "robots"


@pytest.mark.parametrize(
    ("name", "masses", "seed", "size", "friction"),
    [
        pytest.param("scara", "copied 20 kg", 1, 0.5, 1.0, id="radians for degrees"),
        pytest.param("ur10", "copied 0.1 kg", 1, 0.5, 1.0, id="unit of torque"),
        pytest.param("puma560", "copied 1 kg", 0, 1.0, 0.0, id="wrist joints exchanged by copied masses"),
        pytest.param("puma560", "own", 1, 1.0, 1.0, id="wrist joints exchanged by friction"),
        pytest.param("scara", "copied 1 kg", 0, 0.3, 1.0, id="slide exchanged with a revolute joint"),
        pytest.param("scara", "copied 0.1 kg", 1, 0.15, 1.0, id="gravity sideways"),
        pytest.param("cylindrical", "copied 1 kg", 0, 1.0, 0.0, id="zero of a slide in degrees"),
        pytest.param("puma560", "own", 82000, 0.3, 0.464, id="unit of a wrist's torque by friction"),
        pytest.param("puma560", "own", 82090, 0.3, 0.698, id="other wrist joints exchanged by friction"),
        pytest.param("scara", "off", 81037, 0.15, 0.191, id="gravity sideways by wrong masses"),
    ],
)
def test_what_only_the_masses_suggest_is_no_accusation(name, masses, seed, size, friction):
    log = campaign.clean_log(name, seed, size=size, friction=friction)
    assert campaign.accusations(log, campaign.believed(name, masses, seed)) == []


def test_a_planted_fault_is_named_without_any_evidence_of_the_masses():
    log = campaign.clean_log("puma560", 2)
    model = campaign.believed("puma560", "copied 1 kg")
    flipped = replace(log, effort=log.effort * [1, 1, -1, 1, 1, 1])
    assert [(f.code, f.joint) for f in campaign.accusations(flipped, model)] == [("flipped", "joint3")]
    degrees = replace(log, q=log.q * np.pi / 180.0, dq=log.dq * np.pi / 180.0)
    assert [f.code for f in campaign.accusations(degrees, model)] == ["unit"]


@pytest.mark.parametrize("kilograms", [20.0, 30.0, 60.0, 100.0])
def test_a_heavy_load_is_no_other_unit(kilograms):
    """A load multiplies the torques of the wrist, where a unit multiplies all alike."""
    model = dynid.robots.ur10()
    body = dynid.Inertia.from_com(kilograms, [0.0, 0.02, 0.1], 1e-3 * kilograms * np.eye(3))
    true = model.with_body("load", parent=model.bodies[-1].joint.child, inertia=body)
    true = true.with_terms(dynid.Viscous(10.0), dynid.Coulomb(8.0))
    path, noise = sum_of_sines(6, period_s=20.0, harmonics=6, seed=4), dynid.Noise(position=1e-5, effort=0.5)
    log = dynid.simulate_experiment(true, path, rate_hz=100.0, duration_s=20.0, noise=noise)
    found = check_recording(log, model).findings
    assert [f for f in found if f.severity != "note"] == []
    assert [f"{kilograms:.0f} kg" in f.message for f in found if f.code == "held-load"] == [True]
    pounds = check_recording(replace(log, effort=8.851 * log.effort), true).findings
    assert {(f.code, f.severity) for f in pounds if f.where == "effort" and f.severity != "note"} == {("unit", "error")}


CONSTANTS = np.array([15.0, 15.0, 10.0, 8.0, 8.0, 8.0])
"""Joint torque per ampere of six drives [N m/A]."""


@pytest.mark.parametrize(
    ("factor", "told"),
    [
        pytest.param(1000.0, ", as if in N mm or mN m", id="mN m"),
        pytest.param(1.0 / 9.80665, ", as if in kgf m", id="kgf m"),
        pytest.param(1.0 / 0.0980665, ", as if in kgf cm or lbf in", id="kgf cm"),
        pytest.param(1.0 / CONSTANTS, ": currents, motor-side torques or percent, or kgf m if", id="currents"),
        pytest.param(
            1.0 / 13.0, ": currents, motor-side torques or percent, or kgf m if", id="currents of equal drives"
        ),
    ],
)
def test_a_unit_is_named_where_its_factor_is_exact(factor, told):
    """A unit has one factor, currents have any and mostly one at each joint; torques beyond limits are of one cause."""
    model = dynid.robots.ur10()
    true = model.with_terms(dynid.Viscous(5.0), dynid.Coulomb(5.0))
    path, noise = sum_of_sines(6, period_s=20.0, harmonics=6, seed=4), dynid.Noise(position=1e-5, effort=0.5)
    log = dynid.simulate_experiment(true, path, rate_hz=100.0, duration_s=20.0, noise=noise)
    report = check_recording(replace(log, effort=log.effort * factor), model)
    (found,) = [finding for finding in report.findings if finding.severity == "error"]
    assert (found.code, found.where, found.joint) == ("unit", "effort", None)
    assert told in found.message


@pytest.mark.parametrize("name", ["panda", "ur10", "puma560", "iiwa14", "tx40"])
def test_masses_of_a_real_robot_are_evidence(name):
    assert not has_made_up_masses(dynid.robots.get(name))


@pytest.mark.parametrize("path", sorted(ROBOTS_FOLDER.glob("*.xml")), ids=lambda path: path.stem)
def test_balls_are_made_up(path):
    """The files in robots/ say in their comments that their masses are guessed: balls at the frames' origins."""
    assert has_made_up_masses(dynid.read_mjcf(path))


def test_isolated_poses_have_no_sampling_rate():
    log = campaign.clean_log("puma560", 2)
    rows = np.arange(0, log.time.size, 40)
    poses = dynid.Recording(
        time=np.arange(rows.size), q=log.q[rows], dq=log.dq[rows], effort=log.effort[rows], isolated=True
    )
    assert "time-unit" not in check_recording(poses, dynid.robots.puma560()).codes
