"""Friction that drives a joint and rotors with negative inertia are findings; stated friction alone is a note."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import DataError, IdentifiabilityError
from dynid.links.friction_summary import Figure, JointFriction
from dynid.terms import Coulomb, RotorInertia, Viscous

ROBOT = dynid.robots.scara()
PLAIN = dynid.Recipe(gate=False, selection=None, cutoff_hz=40.0)


def log(level: float, rotor: float = 0.05) -> dynid.Recording:
    """A log of an arm with a planted dry friction [N m or N] and rotor inertia."""
    time = np.arange(1200) / 200.0
    turn = (1.0 + np.arange(4)) * time[:, None]
    q = 0.5 * np.sin(turn) + 0.3 * np.sin(2.3 * turn + 1.0)
    dq = np.gradient(q, time, axis=0)
    ddq = np.gradient(dq, time, axis=0)
    torque = dynid.inverse_dynamics(ROBOT.with_terms(Viscous(0.4)), q, dq, ddq) + rotor * ddq
    noise = np.random.default_rng(0).normal(scale=0.01, size=q.shape)
    return dynid.Recording(time=time, q=q, effort=torque + level * np.sign(dq) + noise, joint_names=ROBOT.joint_names)


def accused(fit: dynid.Identification, code: str) -> set[str]:
    return {finding.where for finding in fit.estimate.findings if finding.code == code}


@pytest.mark.parametrize(("estimator", "level"), [("wls", 0.3), ("wls", -0.3), ("feasible", -0.3)])
def test_friction_that_drives_is_a_finding(estimator: str, level: float) -> None:
    """All four joints with planted negative friction, none with positive, and none where the estimator forbids it."""
    fit = dynid.identify(ROBOT, log(level), PLAIN, estimator=estimator)
    wanted = {f"joint '{name}'" for name in ROBOT.joint_names} if (estimator, level) == ("wls", -0.3) else set()
    assert accused(fit, "negative-friction") == wanted


def test_a_negative_rotor_is_a_finding() -> None:
    """The rotors of the first and of the sliding joint cannot be told from their links."""
    fit = dynid.identify(ROBOT, log(0.3, rotor=-0.05), PLAIN, estimator="wls")
    assert "joint 'joint2'" in accused(fit, "negative-friction")
    assert not accused(dynid.identify(ROBOT, log(0.3), PLAIN, estimator="wls"), "negative-friction")


def test_damping_alone_is_a_note() -> None:
    """A robot file that states damping leaves out dry friction and rotors where the recipe adds nothing."""
    bare = replace(PLAIN, terms=())
    damped = ROBOT.with_terms(Viscous(0.1))
    (finding,) = (f for f in dynid.identify(damped, log(0.3), bare).estimate.findings if f.code == "lone-terms")
    assert finding.severity == "note"
    assert "no rotor inertia and dry friction" in finding.message
    for robot, recipe in (
        (damped, PLAIN),
        (ROBOT, bare),
        (ROBOT.with_terms(RotorInertia(), Viscous(), Coulomb()), bare),
    ):
        assert not accused(dynid.identify(robot, log(0.3), recipe), "lone-terms")


def test_a_still_log_is_refused_without_the_gate() -> None:
    rng = np.random.default_rng(1)
    q = np.tile([0.3, 0.5, 0.1, 0.2], (1000, 1)) + 1e-4 * rng.normal(size=(1000, 4))
    still = dynid.Recording(time=np.arange(1000) / 200.0, q=q, effort=rng.normal(size=q.shape))
    with pytest.raises(IdentifiabilityError, match="at rest"):
        dynid.identify(ROBOT, still, PLAIN)
    with pytest.raises(IdentifiabilityError, match="while its joints move"):
        dynid.identify(ROBOT, dynid.process(still), PLAIN)
    with pytest.raises(DataError, match="no joint moves"):
        dynid.identify(ROBOT, still)


@pytest.mark.parametrize(("cubic", "offset", "words"), [(1.0, 0.05, "grows faster"), (1.0, -0.1, "would drive")])
def test_a_negative_intercept_is_explained(cubic: float, offset: float, words: str) -> None:
    """The straight line through the fast part of a cubic curve meets zero speed below zero."""
    speed = np.concatenate([-np.linspace(1.0, 0.01, 50), np.linspace(0.01, 1.0, 50)])
    torque = cubic * speed**3 + offset * np.sign(speed)
    curve = JointFriction(
        name="elbow", unit="N m", speed_unit="rad/s", speed=speed, torque=torque, stderr=0 * speed,
        load=0.0, dry=Figure(-0.3, 0.01), viscous=Figure(1.0, 0.01), breakaway=Figure(0.1, 0.1), stribeck_speed=None,
        load_share=None, asymmetry=None, terms=("FC1",),
    )  # fmt: skip
    assert words in curve.remark
    assert not replace(curve, dry=Figure(0.3, 0.01)).remark
