"""Terms that MJCF holds as tendons and polynomials, against MuJoCo itself: written, simulated there, and read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.dynamics.inertia_matrix import motor_inertia_matrix
from dynid.errors import DescriptionError, ExportError
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.mjcf.write import mjcf_text, write_mjcf
from dynid.robot.model import Robot
from dynid.terms import AngleHarmonic, Coupling
from dynid.terms.friction import Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.described import parse_mjcf

ARM = Path(__file__).parent / "data" / "arm.xml"
mujoco: Any = pytest.importorskip("mujoco")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its log into the working directory


@pytest.fixture(scope="module")
def arm() -> Robot:
    return dynid.robots.get("puma560").with_terms()


def full(robot: Robot) -> Robot:
    """Every term of a plain MJCF, on every joint that can have it, and a coupled wrist."""
    a, b = robot.joint_names[-2:]
    return robot.with_terms(
        *(RotorInertia(0.3), Viscous(2.0), Offset(-0.7)),
        *(Offset(0.4, joint=1), AngleHarmonic(-1.3, joint=1), AngleHarmonic(0.6, sine=True, joint=1)),
        Coupling({a: 1.0, b: -2.0}, rotor_inertia=0.05, viscous=0.3),
    )


def torques(text: str, motion: np.ndarray) -> np.ndarray:
    """(N, n) inverse dynamics by MuJoCo of a motion (N, 3, n)."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    found = []
    for q, dq, ddq in motion:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse.copy())
    return np.array(found)


def test_mujoco_feels_every_term(arm: Robot, tmp_path: Path) -> None:
    """And so do we in the file, which stays as it is, byte for byte, when it is written again."""
    robot = full(arm)
    motion = np.random.default_rng(1).uniform(-1.5, 1.5, (20, 3, robot.dof))
    ours = dynid.inverse_dynamics(robot, *motion.transpose(1, 0, 2))
    theirs = torques(mjcf_text(robot), motion)
    np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-5 * np.abs(ours).max())
    write_mjcf(robot, tmp_path / "arm.xml")
    again = read_mjcf(tmp_path / "arm.xml")
    np.testing.assert_allclose(dynid.inverse_dynamics(again, *motion.transpose(1, 0, 2)), ours, rtol=1e-9, atol=1e-9)
    assert again.couplings[0].ratios == robot.couplings[0].ratios
    assert mjcf_text(again) == (tmp_path / "arm.xml").read_text()


def test_a_file_gets_other_tendons(arm: Robot) -> None:
    again = parse_mjcf(mjcf_text(full(arm)))
    values = np.where(np.arange(again.parameter_vector.size) < 60, 1.0, 1.25) * again.parameter_vector
    changed = parse_mjcf(mjcf_text(again.with_parameters(values)))
    np.testing.assert_allclose(changed.parameter_vector, values, rtol=1e-9, atol=1e-12)
    without = parse_mjcf(mjcf_text(again.with_couplings()))
    assert without.couplings == ()


def test_tendons_enter_a_file_of_others() -> None:
    robot = read_mjcf(ARM)
    joint = robot.joint_names.index("elbow")
    springy = robot.with_terms(Offset(1.5), AngleHarmonic(2.0, joint=joint), keep=True)
    text = mjcf_text(springy)
    again = parse_mjcf(text)
    motion = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 5, robot.dof))
    np.testing.assert_allclose(
        dynid.inverse_dynamics(again, *motion), dynid.inverse_dynamics(springy, *motion), rtol=1e-9, atol=1e-9
    )
    kept = [line for line in ARM.read_text().splitlines() if "<site" not in line]
    assert all(line in text for line in kept if "joint" not in line)


@settings(max_examples=10, deadline=None)
@given(
    own=st.tuples(st.floats(0.01, 1.0), st.floats(0.01, 1.0)),
    share=st.floats(0.05, 0.95),
    ratio=st.floats(-3.0, 3.0).filter(lambda r: abs(r) > 0.1),
    dry=st.sampled_from([0.0, 0.4]),
)
def test_a_possible_motor_leaves_no_negative_armature(
    own: tuple[float, float], share: float, ratio: float, dry: float
) -> None:
    robot = dynid.robots.get("scara").with_terms()
    a, b = robot.joint_names[:2]
    # the matrix of the rotors is positive definite, although a rotor may be smaller than its motor's share
    inertia = share * np.sqrt(own[0] * own[1]) / abs(ratio)
    robot = robot.with_terms(
        RotorInertia(own[0], joint=0), RotorInertia(own[1], joint=1), Coupling({a: 1.0, b: ratio}, inertia, 0.0, dry)
    )
    text = mjcf_text(robot)
    assert mujoco.MjModel.from_xml_string(text).dof_armature.min() >= -1e-12
    again = parse_mjcf(text)
    rotors, read = (motor_inertia_matrix(r, r.parameter_vector) for r in (robot, again))
    np.testing.assert_allclose(np.array(read, dtype=float), np.array(rotors, dtype=float), rtol=1e-9, atol=1e-12)
    assert sum(coupling.coulomb for coupling in again.couplings) == dry


@pytest.mark.parametrize(
    "tendon",
    [
        '<fixed name="t" stiffness="2"><joint joint="JOINT" coef="1"/></fixed>',
        '<fixed name="t" damping="2"><joint joint="JOINT" coef="1"/></fixed>',
        '<fixed name="t" frictionloss="2"><joint joint="no such" coef="1"/></fixed>',
        '<fixed name="t" damping="2 1"><joint joint="JOINT" coef="1"/></fixed>',
        '<spatial name="t" stiffness="2" springlength="0"><site site="no"/><site site="such"/></spatial>',
    ],
)
def test_other_tendons_are_refused(arm: Robot, tendon: str) -> None:
    text = mjcf_text(arm).replace(
        "</mujoco>", f"<tendon>{tendon.replace('JOINT', arm.joint_names[0])}</tendon></mujoco>"
    )
    with pytest.raises(DescriptionError, match="not supported"):
        parse_mjcf(text)


def test_a_spring_between_links_without_mass_is_refused(arm: Robot) -> None:
    empty = replace(arm, links=tuple(replace(k, inertia=dynid.Inertia.zero()) for k in arm.links))
    with pytest.raises(ExportError, match="spring"):
        mjcf_text(empty.with_terms(AngleHarmonic(1.0, joint=1)))
