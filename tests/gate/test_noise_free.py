"""Simulated logs without noise, of moves from point to point with rests: nothing is wrong with them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.gate.quick_fit import STAND_ROWS, sense_of_motion
from dynid.logs.recording import Recording
from dynid.processing.outliers import saturated_samples
from dynid.robot.model import Robot

Floats = NDArray[np.float64]


class PointToPoint:
    """Cubic moves between random points, with rests between them; accelerations jump at their ends."""

    def __init__(self, joints: int, seed: int, rest_s: float, duration_s: float = 20.0) -> None:
        rng, start, here = np.random.default_rng(seed), 0.0, np.zeros(joints)
        self.moves: list[tuple[float, float, Floats, Floats]] = []
        while start < duration_s:
            there, lasts = rng.uniform(-1.0, 1.0, joints), rng.uniform(0.8, 1.8)
            self.moves.append((start, lasts, here, there))
            start, here = start + lasts + rest_s, there

    def __call__(self, time: Floats) -> tuple[Floats, Floats, Floats]:
        q, dq, ddq = np.zeros((3, len(time), len(self.moves[0][2])))
        for start, lasts, here, there in self.moves:
            s, far = np.clip((time - start) / lasts, 0.0, 1.0)[:, None], there - here
            begun, moves = (time >= start)[:, None], ((time >= start) & (time <= start + lasts))[:, None]
            q = np.where(begun, here + far * (3.0 * s**2 - 2.0 * s**3), q)
            dq = np.where(begun, np.where(moves, far * (6.0 * s - 6.0 * s**2) / lasts, 0.0), dq)
            ddq = np.where(begun, np.where(moves, far * (6.0 - 12.0 * s) / lasts**2, 0.0), ddq)
        return q, dq, ddq


def _log(name: str, seed: int, rest_s: float, rate_hz: float) -> tuple[Robot, Recording]:
    robot = dynid.robots.get(name)
    true = robot.with_terms(dynid.RotorInertia(), dynid.Viscous(2.0), dynid.Coulomb(2.0), dynid.Offset())
    path = PointToPoint(robot.dof, seed, rest_s)
    return robot, dynid.simulate_experiment(true, path, rate_hz=rate_hz, duration_s=12.0)


@pytest.mark.parametrize(
    ("name", "seed", "rest_s", "rate_hz"),
    [
        ("ur10", 4, 1.0, 100.0),  # a change was found where the last rest has a sign of its velocity
        ("ur10", 11, 0.0, 1000.0),  # a change: single samples at jumps of the acceleration
        ("puma560", 3, 0.3, 100.0),  # a saturated torque: that of a rest
        ("ddarm", 3, 0.3, 1000.0),  # a push of 13 ms at the end of the log
        ("tx40", 10, 0.3, 250.0),  # coupled joints at rest
        ("tx40", 11, 0.3, 1000.0),
    ],
)
def test_moves_from_point_to_point_are_not_accused(name: str, seed: int, rest_s: float, rate_hz: float) -> None:
    robot, log = _log(name, seed, rest_s, rate_hz)
    wrong = [
        f for f in dynid.check_recording(log, robot).findings if f.severity != "note" and f.code != "low-excitation"
    ]
    assert wrong == []


def test_a_change_of_the_load_is_found_without_noise() -> None:
    robot, log = _log("ur10", 4, 0.3, 250.0)
    load = dynid.Inertia.from_com(4.0, (0.05, 0.0, 0.1), 0.02 * np.eye(3))
    true = robot.with_terms(dynid.RotorInertia(), dynid.Viscous(2.0), dynid.Coulomb(2.0), dynid.Offset())
    heavy = true.with_body("load", parent=robot.bodies[-1].joint.child, inertia=load)
    loaded = dynid.simulate_experiment(heavy, PointToPoint(6, 4, 0.3), rate_hz=250.0, duration_s=12.0)
    assert log.effort is not None
    assert loaded.effort is not None
    changed = replace(log, effort=np.concatenate([log.effort[:1500], loaded.effort[1500:]]))
    assert "change" in [finding.code for finding in dynid.check_recording(changed, robot).findings]


def test_a_limit_is_told_from_rests() -> None:
    time = np.arange(2000) / 100.0
    moving = 5.0 * np.sin(time) + 3.0 * np.sin(2.3 * time)
    assert saturated_samples(np.clip(moving, -4.0, 4.0)[:, None]).mean() > 0.1
    rests = moving.copy()
    for start in range(100, 2000, 300):  # the robot stands, and once where the torque is largest
        rests[start : start + 60] = rests[start]
    rests[700:760] = 1.01 * rests.max()
    assert not saturated_samples(rests[:, None]).any()


@pytest.mark.parametrize("samples", [0, 9, 10, 200])
def test_a_joint_stands_where_it_is_slow_for_ten_samples_in_a_row(samples: int) -> None:
    rng = np.random.default_rng(samples)
    slow = rng.random((samples, 3)) < 0.93
    slow[:1] = False
    wanted = np.ones((samples, 3))
    for joint in range(3):
        fast = np.flatnonzero(~slow[:, joint]).tolist()
        for before, after in itertools.pairwise([*fast, samples] if fast else []):
            if after - before > STAND_ROWS:
                wanted[before + 1 : after, joint] = 0.0
    np.testing.assert_array_equal(sense_of_motion(np.where(slow, 1e-5, 1.0)), wanted)
