"""What the result says, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.identifiability.base import base_parameters
from dynid.identifiability.layout import parameter_layout
from dynid.identifiability.numeric import random_states, sample_regressor
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.base import StateTerm
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Viscous
from dynid.terms.motors import Offset, RotorInertia

from .random_robots import random_tree


class Cubic(StateTerm):
    """A friction term of the user's own."""

    symbol = "F3"
    base_unit = "N m s^3/rad^3"
    is_non_negative = True

    def formula(self, q, dq, ddq):
        return dq * dq * dq


# --- layout


def test_layout_follows_the_parameter_vector():
    robot = zoo.puma560().with_terms(RotorInertia(1.0), Viscous(2.0), Coupling({"joint5": 1.0, "joint6": 1.0}))
    layout = parameter_layout(robot)
    assert layout.names[:10] == ("XX1", "XY1", "XZ1", "YY1", "YZ1", "ZZ1", "MX1", "MY1", "MZ1", "M1")
    assert layout.names[60:64] == ("IA1", "FV1", "IA2", "FV2")
    assert layout.names[-3:] == ("IAM6", "FVM6", "FCM6")
    vector = robot.parameter_vector
    assert vector[layout.index("IA3")] == 1.0
    assert vector[layout.index("FV6")] == 2.0
    assert layout[layout.index("MX4")].unit == "kg m"
    assert layout[layout.index("MX4")].owner == "link4"
    with pytest.raises(ArgumentError, match="XX9"):
        layout.index("XX9")


# --- the set


def test_projection_keeps_the_torques():
    robot = zoo.stanford().with_terms(RotorInertia(), Viscous(), Offset())
    base = base_parameters(robot)
    theta = np.random.default_rng(1).normal(size=(3, len(base.layout)))
    Y = sample_regressor(robot, random_states(robot, 4))
    np.testing.assert_allclose(
        np.einsum("sjp,kp->ksj", Y, theta),
        np.einsum("sjb,kb->ksj", Y[..., list(base.columns)], base.project(theta)),
        atol=1e-9,
    )
    with pytest.raises(ArgumentError, match="60"):
        base_parameters(zoo.stanford()).project(np.zeros(3))


def test_text_reads_well():
    text = str(base_parameters(zoo.puma560()))
    assert text.startswith("puma560: 36 base parameters from 60 standard ones (closed-form; every motion)")
    assert "  XXR2 = XX2 - YY2 - D3^2*(M3 + M4 + M5 + M6)   [link2, link3, link4, link5, link6]" in text
    assert "D3 = 0.4318" in text
    assert "M1: the origin of link 'link1' stays where it is, so its mass alone never moves" in text
    assert "XX1 XY1 XZ1 YY1 YZ1: link 'link1' only turns about its z axis, so no other moment of inertia acts" in text
    assert "MX1 MY1: link 'link1' only turns about its z axis parallel to gravity" in text


def test_every_hidden_parameter_has_a_reason():
    for build in (zoo.puma560, zoo.scara, zoo.cartesian, zoo.cylindrical, zoo.stanford):
        for options in ({}, {"static": True}, {"unmoved": [build().joint_names[0]]}):
            base = base_parameters(build(), **options)
            assert set(base.reasons) == set(base.unidentifiable)
            assert all(base.reasons.values())


def test_other_views():
    base = base_parameters(zoo.puma560())
    assert "| XXR4 | XX4 - YY4 + YY5 | kg m^2 | link4, link5 |" in base.table.to_markdown()
    report = json.loads(base.to_json())
    assert len(report["base_parameters"]) == 36
    assert report["base_parameters"][0]["coefficients"]["MZ3"] == pytest.approx(2 * 0.1501)
    assert report["unidentifiable"]["M1"]
    assert report["rank_gap"] is None
    assert "<td>XXR4</td><td>XX4 - YY4 + YY5</td>" in base._repr_html_()


def test_rank_gap_is_reported_for_sampled_sets():
    base = base_parameters(zoo.puma560(), "numeric")
    assert base.rank_gap > 1e10
    assert "Gap between what counts and rounding" in str(base)


# --- terms


def test_rotor_inertias_are_grouped_where_they_cannot_be_told_apart():
    base = base_parameters(zoo.puma560().with_terms(RotorInertia()))
    relations = dict(zip(base.names, base.combinations, strict=True))
    assert "IA1" in [term.parameter for term in relations["ZZR1"].terms]
    assert "IA2" in [term.parameter for term in relations["ZZR2"].terms]
    assert "IA3" in base.identifiable


def test_models_of_the_users_own_are_left_to_the_numbers():
    robot = zoo.puma560().with_terms(Cubic())
    base = base_parameters(robot)
    assert base.method == "numeric"
    assert base.rank == 36 + 6
    for method in ("closed-form", "minimal-combinations", "structural"):
        with pytest.raises(ArgumentError, match="Cubic"):
            base_parameters(robot, method)


# --- restricted motion


def test_unmoved_joint():
    robot = zoo.puma560()
    unmoved = base_parameters(robot, unmoved=["joint3"])
    assert unmoved.method == "structural"
    assert "joints that do not move: joint3" in str(unmoved)
    assert unmoved.rank == base_parameters(robot, "numeric", unmoved=["joint3"]).rank < 36
    elsewhere = base_parameters(robot, unmoved={"joint3": 0.7})
    assert elsewhere.rank == base_parameters(robot, "numeric", unmoved={"joint3": 0.7}).rank
    modelled = base_parameters(robot.with_terms(Viscous()), unmoved=["joint3"])
    assert modelled.reasons["FV3"] == "joint 'joint3' does not move"


def test_standing_still_shows_weights_only():
    base = base_parameters(zoo.puma560(), static=True)
    assert base.names == ("MXR2", "MY2", "MXR3", "MYR3", "MX4", "MYR4", "MX5", "MYR5", "MX6", "MY6")
    assert base_parameters(zoo.puma560(), "numeric", static=True).columns == base.columns
    assert base.reasons["XX6"] == "at rest no moment of inertia acts"


def test_order_decides_what_is_kept():
    base = base_parameters(zoo.puma560(), order=["YY6", "M6"])
    assert {"YYR6", "MR6"} <= set(base.names)
    assert base.rank == 36


# --- refusals


def test_methods_say_what_they_cannot_do():
    tree = random_tree(3, 8)
    for method in ("closed-form", "minimal-combinations"):
        with pytest.raises(ArgumentError, match="serial"):
            base_parameters(tree, method)
    with pytest.raises(ArgumentError, match="restricted"):
        base_parameters(zoo.puma560(), "closed-form", static=True)
    with pytest.raises(ArgumentError, match="no method 'guess'"):
        base_parameters(zoo.puma560(), "guess")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="stay unmoved"):
        base_parameters(zoo.puma560(), unmoved=["elbow"])


@pytest.mark.parametrize(
    ("robot", "options"),
    [
        (zoo.scara(), {"static": True, "unmoved": "joint3"}),
        (zoo.cylindrical(), {"static": True, "unmoved": ["joint2"]}),
    ],
)
def test_where_nothing_acts_nothing_is_invented(robot: Robot, options: dict[str, Any]) -> None:
    assert base_parameters(robot, **options).rank == base_parameters(robot, "numeric", **options).rank == 0


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("method", ["closed-form", "minimal-combinations", "structural"])
def test_methods_do_not_mind_the_size_of_the_robot(size: float, method: Any) -> None:
    """A robot in millimetres or in kilometres has the same number of base parameters, and they give its torques."""
    small = zoo.stanford()
    joints = [replace(joint, T_parent_joint=_stretched(joint.T_parent_joint, size)) for joint in small.joints]
    robot = replace(small, joints=tuple(joints))
    base = base_parameters(robot, method)
    assert base.rank == 33
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, robot.dof)) * np.where([b.is_prismatic for b in robot.bodies], size, 1.0)
    theta = rng.normal(size=robot.parameter_vector.size) * np.tile([size**2] * 6 + [size] * 3 + [1.0], robot.dof)
    Y = regressor(robot, q, dq, ddq)
    tau = Y @ theta
    error = np.abs(Y[:, :, list(base.columns)] @ (base.kept_grouping @ theta) - tau).max(axis=0)
    assert np.all(error <= 1e-10 * np.abs(tau).max(axis=0))


def _stretched(T: np.ndarray, size: float) -> np.ndarray:
    T = T.copy()
    T[:3, 3] *= size
    return T
