"""The compiled closed loop against MuJoCo, scipy, the NumPy executor and the balance of energy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynid
from dynid.control_loop.arm import SimulatedArm
from dynid.control_loop.laws import PD, PID, ComputedTorqueLaw, ControlLaw, UserLaw, assumed_law, read_law
from dynid.control_loop.loop import Loop, ReferenceMotion
from dynid.control_loop.simulator import LoopSimulator, simulate_loop
from dynid.errors import ArgumentError, EstimationError
from dynid.processing.simulation import sum_of_sines
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.tape import compile_tape
from dynid.terms.smoothing import polynomial_sign


def arm(coulomb: float = 0.0) -> dynid.Robot:
    models = [dynid.RotorInertia(0.4), dynid.Viscous(1.0), *([dynid.Coulomb(coulomb)] if coulomb else [])]
    return dynid.robots.puma560().with_terms(*models)


def motion(robot: dynid.Robot, duration: float = 1.0, rate_hz: float = 500.0) -> ReferenceMotion:
    return ReferenceMotion.of(
        sum_of_sines(robot.dof, period_s=4.0, amplitude=0.6), rate_hz=rate_hz, duration_s=duration
    )


def test_it_moves_as_mujoco_does() -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = arm()
    reference, law = motion(robot), assumed_law(robot, 6.0)
    ours = simulate_loop(robot, Loop(law=law, reference=reference, substeps=1))
    model = mujoco.MjModel.from_xml_string(mjcf_text(dynid.robots.puma560()))
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1.0 / reference.rate_hz
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.dof_armature[:], model.dof_damping[:] = 0.4, 1.0
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = reference.q[0], reference.dq[0]
    positions = []
    for q, dq in zip(reference.q, reference.dq, strict=True):
        positions.append(data.qpos.copy())
        data.qfrc_applied[:] = law.kp * (q - data.qpos) + law.kd * (dq - data.qvel)
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(ours.q, positions, atol=1e-11)


@pytest.mark.parametrize(
    ("rotor", "coulomb", "substeps", "tolerance"), [(0.4, 2.0, 2, 1e-8), (0.02, 4.0, None, 1e-6)], ids=["soft", "stiff"]
)
def test_it_moves_as_scipy_integrates(rotor: float, coulomb: float, substeps: int | None, tolerance: float) -> None:
    rigid = dynid.robots.puma560().with_terms(dynid.RotorInertia(rotor), dynid.Viscous(1.0))
    robot = rigid.with_terms(dynid.RotorInertia(rotor), dynid.Viscous(1.0), dynid.Coulomb(coulomb))
    reference, law = motion(robot, 0.3 if substeps else 0.06), assumed_law(robot, 6.0)
    loop = Loop(law=law, reference=reference, friction_speed=0.1)
    simulator = LoopSimulator(SimulatedArm(robot, None, loop.friction_speed), replace(loop, substeps=substeps))
    ours = simulator.run(robot.parameter_vector)
    if substeps is None:  # friction at rest is stiff: many steps then, few otherwise
        assert ours.step_counts.min() == 1
        assert ours.step_counts.max() > 4
    n, state = robot.dof, loop.start[:-1]
    for k in range(len(reference.q)):
        np.testing.assert_allclose(ours.state[k, :n], state[:n], atol=tolerance)
        held = law.kp * (reference.q[k] - state[:n]) + law.kd * (reference.dq[k] - state[n:])

        def rate(_: float, x: np.ndarray, held: np.ndarray = held) -> np.ndarray:
            acting = held - coulomb * polynomial_sign(x[n:], loop.friction_speed)
            return np.concatenate([x[n:], dynid.forward_dynamics(rigid, x[:n], x[n:], acting)])

        state = solve_ivp(rate, (0.0, loop.period_s), state, rtol=1e-9, atol=1e-11).y[:, -1]


def test_accelerations_and_torques_obey_the_inverse_dynamics() -> None:
    robot = arm(coulomb=2.0)
    run = simulate_loop(robot, Loop(law=assumed_law(robot, 6.0), reference=motion(robot)))
    fast = np.abs(run.dq) > 0.1
    predicted = dynid.inverse_dynamics(robot, run.q, run.dq, run.ddq)
    assert fast.mean() > 0.5
    np.testing.assert_allclose(predicted[fast], run.torque[fast], atol=1e-9)


@pytest.mark.parametrize("name", ["gautier_khalil_3r", "puma560", "tx40"])
def test_energy_is_kept_in_balance(name: str) -> None:
    robot = dynid.robots.get(name)
    if name != "tx40":
        robot = robot.with_terms(dynid.RotorInertia(0.4), dynid.Viscous(1.0), dynid.Coulomb(2.0))
    run = simulate_loop(robot, Loop(law=assumed_law(robot, 6.0), reference=motion(robot, 2.0)))
    kinetic = 0.5 * np.einsum("ni,nij,nj->n", run.dq, dynid.inertia_matrix(robot, run.q), run.dq)
    energy = kinetic + dynid.energy_regressor(robot, run.q, np.zeros_like(run.q)) @ robot.inertial_vector
    assert 0.0 < np.abs(energy - energy[0] - run.work).max() < 1e-6 * np.abs(np.diff(run.work)).sum()


def unusual(q, dq, q_r, dq_r, ddq_r, memory, period):  # type: ignore[no-untyped-def]
    """A cascade with a filtered velocity error and a soft limit."""
    filtered = memory + (dq_r - dq - memory) * (period / 0.01)
    return 60.0 * np.tanh((400.0 * (q_r - q) + 60.0 * filtered) / 60.0), filtered


@pytest.mark.parametrize(
    "law",
    [PD(3000.0, 120.0), PID(3000.0, 4000.0, 120.0), ComputedTorqueLaw(arm(1.0)), UserLaw(unusual, memory=6)],
    ids=["pd", "pid", "computed torque", "user"],
)
def test_machine_code_and_numpy_agree(law: ControlLaw) -> None:
    robot = arm(coulomb=2.0)
    loop = Loop(law=law, reference=motion(robot, 0.1), friction_speed=0.1)
    noise = 1e-4 * np.random.default_rng(0).normal(size=loop.reference.q.shape)
    simulator = LoopSimulator(SimulatedArm(robot, None, loop.friction_speed), replace(loop, substeps=2))
    runs = simulator.run(robot.parameter_vector, every=3, position_noise=noise)
    control, _, rate = (compile_tape(tape, "numpy") for tape in simulator.tapes)
    h, state, memory = 0.5 * loop.period_s, loop.start, loop.start_memory
    reference = loop.reference
    for k, sample in enumerate(np.hstack([reference.q, reference.dq, reference.ddq, noise])):
        decided = control(state, memory, sample)
        if k % 3 == 0:
            for mine, other in ((state, runs.state), (decided["held"], runs.held), (memory, runs.memory)):
                np.testing.assert_allclose(mine, other[k // 3], rtol=1e-9, atol=1e-9)
        memory = decided["memory"]
        for _ in range(2):  # Runge and Kutta's steps of order four, written here
            slopes = [rate(state, decided["held"], robot.parameter_vector)]
            for share in (0.5, 0.5, 1.0):
                slopes.append(rate(state + share * h * slopes[-1], decided["held"], robot.parameter_vector))
            state = state + h / 6.0 * np.array([1.0, 2.0, 2.0, 1.0]) @ np.array(slopes)


def test_the_steps_are_of_order_four() -> None:
    robot = arm()
    loop = Loop(law=PD(3000.0, 120.0), reference=motion(robot, 0.2), friction_speed=0.1)
    few, more, many = (simulate_loop(robot, replace(loop, substeps=count)).q for count in (1, 2, 16))
    assert 13.0 < np.abs(few - many).max() / np.abs(more - many).max() < 22.0


def test_base_parameters_move_the_robot_alike() -> None:
    robot = arm(coulomb=2.0)
    base = dynid.base_parameters(robot)
    loop = Loop(law=PD(3000.0, 120.0), reference=motion(robot, 0.2), friction_speed=0.1)
    short = LoopSimulator(SimulatedArm(robot, base.columns, loop.friction_speed), loop).run(
        base.project(robot.parameter_vector)
    )
    np.testing.assert_allclose(short.state[:, :6], simulate_loop(robot, loop).q, atol=1e-10)


def test_smooth_friction_is_the_sign_beyond_its_speed() -> None:
    v = np.array([-2.0, -0.1, -0.05, 0.0, 0.05, 0.1, 3.0])
    np.testing.assert_allclose(polynomial_sign(v, 0.1), [-1, -1, -0.79296875, 0, 0.79296875, 1, 1], atol=1e-15)


def test_laws_come_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "law.toml"
    path.write_text('kind = "pd"\nkp = [1.0, 2.0]\nkd = 0.5\n')
    law = read_law(path)
    assert isinstance(law, PD)
    np.testing.assert_array_equal(law.kp, [1.0, 2.0])


def test_what_cannot_be_simulated_is_refused() -> None:
    robot = arm()
    with pytest.raises(EstimationError, match="runs away"):
        simulate_loop(robot, Loop(law=PD(1e9, 1.0), reference=motion(robot, 0.5)))
    with pytest.raises(ArgumentError, match="moving joints"):
        simulate_loop(dynid.robots.gautier_khalil_3r(), Loop(law=PD(1.0, 1.0), reference=motion(robot)))
    with pytest.raises(ArgumentError, match="gains"):
        simulate_loop(robot, Loop(law=PD([1.0, 2.0], 1.0), reference=motion(robot, 0.1)))
