"""Floor and walls for the whole robot: reach by plain computation, gradients, what stands beyond by build."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.kinematics import link_poses
from dynid.errors import ArgumentError
from dynid.excitation.collision.hulls import Hull
from dynid.excitation.constraints import build_constraints, measure_margins
from dynid.excitation.design import design_excitation
from dynid.excitation.design_settings import SearchSettings
from dynid.excitation.limits import Cell, HalfSpace, MotionLimits
from dynid.excitation.trajectories.trajectory import Motion
from dynid.robot.model import Robot
from dynid.robot.zoo import ur10

QUICK = SearchSettings(starts=1, iterations=10, outer=3)


def shapes(robot: Robot) -> tuple[Hull, ...]:
    """A random polyhedron about the origin of every moving link but the first."""
    rng = np.random.default_rng(0)
    links = [body.joint.child for body in robot.bodies[1:]]
    return tuple(Hull(link=link, corners=rng.uniform(-0.1, 0.1, (12, 3))) for link in links)


def tilted(robot: Robot) -> Cell:
    slope = HalfSpace(normal=np.array([1.0, 2.0, -1.0]), offset=0.9, name="slope")
    walls = (slope, HalfSpace(normal=np.array([0.0, 0.0, -1.0]), offset=1.5, name="ground"))
    return Cell(half_spaces=walls, hulls=shapes(robot))


def test_reach_is_that_of_a_plain_computation(robot: Robot) -> None:
    cell = tilted(robot)
    limits = MotionLimits.from_robot(robot).with_cell(cell)
    rng = np.random.default_rng(1)
    motion = Motion(*rng.normal(size=(4, 5, robot.dof)))
    found = {
        m.where: m.margin
        for m in measure_margins(build_constraints(robot, limits), motion)
        if m.limit == "floor or wall"
    }
    poses = [link_poses(robot, q) for q in motion.q]
    for hull in cell.hulls:
        corners = np.vstack([hull.corners @ T[hull.link][:3, :3].T + T[hull.link][:3, 3] for T in poses])
        slope = (0.9 - (corners @ [1, 2, -1]).max()) / np.sqrt(6.0)
        assert found[f"link '{hull.link}': slope"] == pytest.approx(slope)
        assert found[f"link '{hull.link}': ground"] == pytest.approx(1.5 + corners[:, 2].min())
    foot = robot.bodies[0].joint.child  # without a shape, by its origin
    assert found[f"link '{foot}': ground"] == pytest.approx(1.5 + min(T[foot][2, 3] for T in poses))


def test_gradient(robot: Robot) -> None:
    constraint = build_constraints(robot, MotionLimits.from_robot(robot).with_cell(tilted(robot)))[-1]
    rng = np.random.default_rng(2)
    motion, direction = (Motion(*rng.normal(size=(4, 6, robot.dof))) for _ in range(2))
    weight = rng.normal(size=constraint.excess(motion).shape)
    exact = np.vdot(constraint.pullback(motion, weight).q, direction.q)
    h = 1e-6
    ends = [np.vdot(weight, constraint.excess(motion._replace(q=motion.q + s * h * direction.q))) for s in (1, -1)]
    assert exact == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5)


def test_a_design_stays_above_its_floor_and_says_what_stands_on_it() -> None:
    robot = ur10()
    low = design_excitation(robot, settings=QUICK)
    limits = MotionLimits.from_robot(robot).with_cell(Cell.floor(0.0))
    plan = design_excitation(robot, limits, settings=QUICK)

    def lowest(motion) -> float:
        q = motion.trajectory.evaluate(np.linspace(0.0, motion.trajectory.duration, 2000))[0]
        return min(T[:3, 3][2] for row in q for T in link_poses(robot, row).values())

    assert lowest(low) < -0.1
    assert lowest(plan) >= -1e-9
    assert ("no-limit", "floor and walls") in {(finding.code, finding.where) for finding in low.unchecked}
    raised = design_excitation(robot, limits.with_cell(Cell.floor(0.15)), settings=QUICK)
    beyond = [finding.where for finding in raised.unchecked if finding.code == "always-beyond"]
    assert beyond == [  # their height, 0.127 m, does not change
        f"link '{link}': z >= 0.15 m" for link in ("axis1", "link1", "axis2")
    ]


def test_cells_that_cannot_be_meant(robot: Robot) -> None:
    with pytest.raises(ArgumentError, match="needs a floor or a wall"):
        Cell(half_spaces=())
    with pytest.raises(ArgumentError, match="box"):
        Cell.floor(np.nan)
    with pytest.raises(ArgumentError, match="wherever its joints are"):
        build_constraints(robot, MotionLimits.from_robot(robot).with_cell(Cell.floor(50.0)))
