"""The simulated robot: energy in balance, integrators that agree, sensors and drives as they are."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.control.control_simulation import Imperfections, simulate
from dynid.control.controllers import ComputedTorque, FeedForward, GravityCompensation, OpenLoopTorque
from dynid.control.experiments import robustness, with_wrong_parameters
from dynid.control.mujoco_plant import MujocoPlant
from dynid.control.plant import AdaptivePlant, RungeKuttaPlant, motion_tape
from dynid.control.two_rate import bandwidths, two_rate_study
from dynid.dynamics.symmetric_solve import solve_symmetric
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.kernels import forward_dynamics
from dynid.robot import zoo
from dynid.tape import compile_tape
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.random_robots import random_robot

START = np.array([0.3, -0.8, 0.5, 0.2, 0.4, 0.1])


class Passive:
    """No torque at all; remembers what was measured."""

    def __init__(self) -> None:
        self.seen: list[tuple[np.ndarray, np.ndarray]] = []

    def torque(self, time, q, dq):
        self.seen.append((q, dq))
        return np.zeros_like(q)


def test_solver_agrees_with_numpy():
    root = np.random.default_rng(0).normal(size=(5, 5))
    M, b = root @ root.T + np.eye(5), np.arange(5.0)
    np.testing.assert_allclose(solve_symmetric(M, b).astype(float), np.linalg.solve(M, b), rtol=1e-11)
    with pytest.raises(ArgumentError, match="singular"):
        solve_symmetric(np.zeros((2, 2)), np.zeros(2))


@pytest.mark.parametrize("seed", range(3))
def test_recorded_motion_is_the_forward_dynamics(seed):
    robot = random_robot(seed, joints=4, tree=True, terms=True)
    n = robot.dof
    rng = np.random.default_rng(seed)
    state, torque = rng.normal(size=2 * n + 1), rng.normal(size=n)
    rate = compile_tape(motion_tape(robot), "numpy")(state, torque)
    np.testing.assert_allclose(rate[n:-1], forward_dynamics(robot, state[:n], state[n:-1], torque), rtol=1e-9)


def test_energy_is_in_balance_with_friction_and_without():
    free = simulate(zoo.puma560(), Passive(), duration=0.3, q0=START, dq0=np.ones(6), substeps=4)
    assert np.ptp(free.energy) < 1e-6  # nothing acts: energy is constant
    assert free.energy_error < 1e-6
    rubbing = simulate(
        RungeKuttaPlant(zoo.puma260(), friction_speed=0.01), Passive(), duration=0.3, q0=START, substeps=4
    )
    assert rubbing.energy[-1] < rubbing.energy[0] - 1e-3  # friction takes energy
    assert rubbing.energy_error < 1e-5


def test_integrators_agree():
    robot = zoo.puma560()
    fixed = simulate(robot, GravityCompensation(robot), duration=0.1, q0=START, dq0=np.ones(6))
    adaptive = simulate(AdaptivePlant(robot), GravityCompensation(robot), duration=0.1, q0=START, dq0=np.ones(6))
    np.testing.assert_allclose(fixed.q, adaptive.q, atol=1e-9)
    assert adaptive.energy_error < 1e-9


def test_mujoco_agrees():
    pytest.importorskip("mujoco")
    robot = zoo.puma560()
    own = simulate(robot, GravityCompensation(robot), duration=0.1, q0=START, dq0=np.ones(6))
    other = simulate(MujocoPlant(robot), GravityCompensation(robot), duration=0.1, q0=START, dq0=np.ones(6))
    np.testing.assert_allclose(own.q, other.q, atol=1e-9)


def test_encoders_quantise_and_drives_saturate():
    robot, listener = zoo.puma560(), Passive()
    step = 1e-3
    simulate(robot, listener, duration=0.02, q0=START, imperfections=Imperfections(encoder_step=step))
    positions = np.array([q for q, _ in listener.seen])
    np.testing.assert_allclose(positions / step, np.round(positions / step), atol=1e-9)

    class Strong:
        def torque(self, time, q, dq):
            return np.full(6, 1e6)

    limits = np.array([joint.limits.effort for joint in robot.moving_joints])
    run = simulate(robot, Strong(), duration=0.003, q0=START)
    np.testing.assert_array_equal(run.torque, np.tile(limits, (3, 1)))
    noisy = simulate(robot, Passive(), duration=0.01, q0=START, imperfections=Imperfections(torque_noise=0.01))
    assert 0.0 < np.abs(noisy.torque / limits).max() < 0.1


def test_impossible_simulations_are_refused():
    with pytest.raises(ArgumentError, match="no steps"):
        simulate(zoo.puma560(), Passive(), duration=0.0, q0=START)


@pytest.mark.parametrize("models", [(Coulomb(0.1),), (Viscous(1.0),), (RotorInertia(0.3), Coulomb(2.0), Offset(0.4))])
def test_mujoco_agrees_with_friction_and_leaves_no_file(models, tmp_path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    robot = zoo.puma560().with_terms(*models)
    runs = [
        simulate(plant(robot), GravityCompensation(robot), duration=0.01, q0=START, dq0=[1, -2, 3, 1, -1, 2])
        for plant in (AdaptivePlant, MujocoPlant)
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-7)
    assert runs[1].energy_error < 1e-5
    assert not list(tmp_path.iterdir())


def test_mujoco_moves_a_tree_joint_by_joint():
    pytest.importorskip("mujoco")
    robot = random_robot(9, joints=5, tree=True)
    state, torque = np.concatenate([np.linspace(-1, 1, 10), [0.0]]), np.arange(5.0)
    own, other = (plant(robot).advance(state, torque, 1e-4) for plant in (RungeKuttaPlant, MujocoPlant))
    np.testing.assert_allclose(own, other, rtol=1e-9)


def test_mujoco_refuses_bodies_it_cannot_describe():
    pytest.importorskip("mujoco")
    robot = zoo.gautier_khalil_3r()
    with pytest.raises(ArgumentError, match="RungeKuttaPlant"):
        simulate(MujocoPlant(robot), GravityCompensation(robot), duration=0.01, q0=np.zeros(3))


class Says:
    """A controller that answers the same whatever happens."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def torque(self, time, q, dq):
        return self.answer


MOVE = minimum_jerk(np.zeros(6), np.ones(6), duration_s=0.05)
WRONG = {
    "duration": lambda arm: simulate(arm, Passive(), duration=np.nan, q0=START),
    "rate_hz": lambda arm: simulate(arm, Passive(), duration=-1.0, q0=START, rate_hz=-1000.0),
    "substeps": lambda arm: simulate(arm, Passive(), duration=0.01, q0=START, substeps=1.5),
    "q0": lambda arm: simulate(arm, Passive(), duration=0.01, q0=0.3),
    "dq0": lambda arm: simulate(arm, Passive(), duration=0.01, q0=START, dq0=np.zeros(2)),
    "torque has the shape": lambda arm: simulate(arm, Says(0.0), duration=0.01, q0=START),
    "torque is not finite": lambda arm: simulate(arm, Says(np.full(6, np.nan)), duration=0.01, q0=START),
    "friction_speed": lambda arm: RungeKuttaPlant(arm, friction_speed=0.0),
    "encoder_step": lambda arm: Imperfections(encoder_step=-0.01),
    "torque limit": lambda arm: simulate(
        zoo.gautier_khalil_3r(), Passive(), duration=0.01, q0=np.zeros(3), imperfections=Imperfections(torque_noise=0.1)
    ),
    "kp": lambda arm: ComputedTorque(arm, MOVE, kp=np.nan),
    "kd has the shape": lambda arm: FeedForward(arm, MOVE, kp=1.0, kd=[1.0, 2.0]),
    "damping": lambda arm: GravityCompensation(arm, [1.0, 2.0]),
    "3 joints, but the model": lambda arm: OpenLoopTorque(arm, minimum_jerk(np.zeros(3), np.ones(3), duration_s=0.1)),
    "seeds": lambda arm: robustness(arm, MOVE, seeds=0),
    "shares": lambda arm: robustness(arm, MOVE, shares=()),
    "share is nan": lambda arm: with_wrong_parameters(arm, np.nan),
    "share is -0.2": lambda arm: with_wrong_parameters(arm, -0.2),
    "share is 5.0": lambda arm: with_wrong_parameters(arm, 5.0),
    "share is -0.1": lambda arm: robustness(arm, MOVE, shares=(-0.1,)),
    "a share is 5.0": lambda arm: robustness(arm, MOVE, shares=(5.0,)),
    "period": lambda arm: two_rate_study(arm, MOVE, periods=(-0.001,)),
    "periods": lambda arm: two_rate_study(arm, MOVE, periods=()),
    "share is 1.5": lambda arm: bandwidths(arm, MOVE, share=1.5),
}


@pytest.mark.parametrize("named", WRONG)
def test_wrong_arguments_are_refused_by_name_with_a_remedy(named):
    with pytest.raises(ArgumentError, match=named) as refused:
        WRONG[named](zoo.puma560())
    assert refused.value.remedy


def test_lost_energy_is_said():
    with pytest.warns(UserWarning, match="raise rate_hz or substeps"):
        simulate(zoo.puma560(), Passive(), duration=0.6, q0=START, dq0=np.ones(6), rate_hz=15)
