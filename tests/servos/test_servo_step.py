"""One step of a robot of servos: sticking is exact, the active set is right, derivatives are exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dynid.robot.model import Robot
from dynid.servos.drive_laws import MotorLaw, PositionLaw
from dynid.servos.servo_run import ServoRun
from dynid.servos.servo_step import ServoPlant, _find_signs, step_tape
from dynid.tape import compile_tape
from support.servo_logs import double_pendulum, pendulum

KINDS = ("armature", "viscous", "coulomb", "breakaway", "stribeck_speed", "load_drive", "load_external", "zero")
VALUES = (0.05, 0.3, 0.4, 0.2, 0.3, 0.05, 0.05, 0.02)


def _arm(dof: int) -> Robot:
    return double_pendulum() if dof == 2 else pendulum()


def _run(plant: ServoPlant, steps: int = 400, h: float = 0.0025) -> tuple[ServoRun, tuple[np.ndarray, ...]]:
    """A plant that follows sines, and the arguments of its run."""
    n = plant.dof
    time = h * np.arange(steps)
    samples = np.zeros((steps, 1 + 3 * n))
    samples[:, 0] = h
    samples[:, 1 : 1 + n] = 0.6 * np.sin(2 * np.pi * np.outer(time, 1.0 + 0.4 * np.arange(n)))
    samples[:, 1 + n : 1 + 2 * n] = 0.3
    samples[:, 1 + 2 * n :] = 1.0
    given = np.repeat([40.0, 2.0, 5.0, 7.4], n)
    rest = {"gain_scale": 0.9, "kt": 0.9, "resistance": 0.7, "effort_limit": 8.0, "current_limit": 9.0}
    rest |= {"link_mass": 0.1, "link_mz": -0.02, "link_yy": 0.004}
    table = dict(zip(KINDS, VALUES, strict=True)) | rest | {"stall_torque": 9.0, "no_load_speed": 6.0}
    parameters = np.concatenate([np.full(n, table[kind]) * (1.0 + 0.1 * np.arange(n)) for kind in plant.kinds])
    start = np.zeros(plant.state_size)
    return ServoRun(plant), (start, samples, given, parameters)


LAWS = [
    (PositionLaw(kp=1.0, kd=1.0), (*KINDS, "gain_scale", "link_mass", "link_mz", "link_yy")),
    (PositionLaw(kp=1.0, kd=1.0, ki=1.0), ("armature", "coulomb", "effort_limit", "stall_torque", "no_load_speed")),
    (MotorLaw(), (*KINDS, "kt", "resistance", "current_limit")),
]


@pytest.mark.parametrize(("law", "kinds"), LAWS)
@pytest.mark.parametrize("dof", [1, 2])
def test_derivatives_are_those_of_the_steps(law: PositionLaw | MotorLaw, kinds: tuple[str, ...], dof: int) -> None:
    plant = ServoPlant(_arm(dof).with_terms(), law, kinds)
    run, (start, samples, given, parameters) = _run(plant)
    trace = run.trace(start, samples, given, parameters)
    moves = np.ones((len(samples), dof))
    noted = np.arange(len(samples), dtype=np.int64) % 2  # after every second step
    found = run.derivatives(trace, samples, given, parameters, (moves, moves), noted)
    moving = np.abs(trace[1:, dof : 2 * dof]).max()
    assert moving > 0.3
    e = 1e-7
    for column in range(plant.parameter_count):
        unit = np.eye(plant.parameter_count)[column] * e
        ends = [run.trace(start, samples, given, parameters + sign * unit)[2::2, :dof] for sign in (1.0, -1.0)]
        np.testing.assert_allclose(found[:, :, column], (ends[0] - ends[1]) / (2 * e), atol=2e-5)
    for j in range(dof):
        shifted = []
        for sign in (1.0, -1.0):
            other = samples.copy()
            other[:, [1 + j, 1 + dof + j]] += sign * e  # the command and the commanded velocity
            shifted.append(run.trace(start, other, given, parameters)[2::2, :dof])
        np.testing.assert_allclose(
            found[:, :, plant.parameter_count + j], (shifted[0] - shifted[1]) / (2 * e), atol=2e-5
        )


def test_numpy_and_machine_code_agree() -> None:
    plant = ServoPlant(_arm(2).with_terms(), *LAWS[0])
    run, (state, samples, *rest) = _run(plant, steps=60)
    step = compile_tape(step_tape(plant), "numpy")
    for sample, expected in zip(samples, run.trace(state, samples, *rest)[1:], strict=True):
        state = step(state, sample, *rest)
        np.testing.assert_allclose(expected, state, atol=1e-12)


def test_a_joint_within_its_friction_does_not_creep() -> None:
    plant = ServoPlant(pendulum(), PositionLaw(kp=1.0), ("armature", "coulomb"))
    run, (start, samples, given, _) = _run(plant, steps=4000)
    samples[:, 1] = 0.001  # 0.04 N m of drive against 0.4 N m of friction
    start[0] = 0.3  # 0.14 N m of weight
    given[1] = 0.0
    samples[:, 2] = 0.0
    trace = run.trace(start, samples, given, np.array([0.01, 20.0]))
    assert (trace[:, 0] == 0.3).all()
    assert (trace[:, 1] == 0.0).all()


def test_the_joints_that_stick_are_those_of_an_exhaustive_search() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        root = rng.normal(size=(3, 3))
        A = root @ root.T + 0.5 * np.diag(rng.uniform(0.2, 2.0, 3))
        right, bound = rng.normal(size=3), rng.uniform(0.0, 1.0, 3)
        signs = _find_signs(A, right, bound, np.zeros(3)).astype(float)
        np.testing.assert_array_equal(signs, _exhaustive(A, right, bound))


def _exhaustive(A: np.ndarray, right: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """The only pattern of signs that fulfils all conditions of dry friction."""
    for pattern in product((-1.0, 0.0, 1.0), repeat=3):
        s = np.array(pattern)
        slides = np.flatnonzero(s)
        x = np.zeros(3)
        if slides.size:
            x[slides] = np.linalg.solve(A[np.ix_(slides, slides)], (right - bound * s)[slides])
        friction = right - A @ x
        if (np.sign(x[slides]) == s[slides]).all() and (np.abs(friction) <= bound + 1e-12).all():
            return s
    raise AssertionError("no pattern fulfils the conditions")
