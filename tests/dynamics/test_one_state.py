"""One state by the public names: quick after a few calls, with the same results and the same refusals."""

from __future__ import annotations

import copy
import pickle
import sys
import threading

import numpy as np
import pytest

from dynid.compiled import (
    forward_dynamics,
    function,
    gravity_torque,
    inertia_matrix,
    inverse_dynamics,
    regressor,
    velocity_torque,
)
from dynid.errors import ArgumentError
from dynid.robot.zoo import gautier_khalil_3r, panda, puma560, scara
from dynid.terms.friction import Coulomb, Viscous

CALLS = 10
"""More than it takes until a function for one state is compiled."""
FUNCTIONS = {
    inverse_dynamics: 3, inertia_matrix: 1, gravity_torque: 1, velocity_torque: 2, regressor: 3, forward_dynamics: 3
}  # fmt: skip


@pytest.mark.parametrize("compute", FUNCTIONS, ids=lambda compute: compute.__name__)
@pytest.mark.parametrize("make", [panda, scara, puma560])
def test_one_state_equals_the_batch(make, compute):
    robot = make().with_terms(Viscous(0.5), Coulomb(0.3))
    states = np.random.default_rng(0).normal(size=(FUNCTIONS[compute], 6, robot.dof))
    batch = compute(make().with_terms(Viscous(0.5), Coulomb(0.3)), *states)
    for _ in range(CALLS):
        for row in range(6):
            one = compute(robot, *states[:, row])
            np.testing.assert_allclose(one, batch[row], rtol=1e-11, atol=1e-11 * np.abs(batch).max())
    again = compute(robot, *states)
    np.testing.assert_allclose(again, batch, rtol=1e-11, atol=1e-11 * np.abs(batch).max())
    lists = compute(robot, *states[:, 0].tolist())
    np.testing.assert_allclose(lists, batch[0], rtol=1e-11, atol=1e-11 * np.abs(batch).max())


def _warm(robot):
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, robot.dof))
    for _ in range(CALLS):
        inverse_dynamics(robot, q, dq, ddq)
    return q, dq, ddq


def test_wrong_arguments_are_refused_as_before():
    robot = panda()
    q, dq, ddq = _warm(robot)
    for wrong in (np.zeros(6), np.zeros((7, 7, 7)), np.array(["a"] * 7), np.zeros(7) * 1j, "seven"):
        with pytest.raises(ArgumentError):
            inverse_dynamics(robot, wrong, dq, ddq)
    with pytest.raises(ArgumentError, match="form"):
        inverse_dynamics(robot, q, dq, ddq, form="other")
    with pytest.raises(ArgumentError):
        inverse_dynamics("panda", q, dq, ddq)


def test_every_robot_has_its_own_function():
    one, other = panda(), panda().with_gravity([0.0, 0.0, -3.7])
    q, dq, ddq = _warm(one)
    _warm(other)
    assert not np.allclose(inverse_dynamics(one, q, dq, ddq), inverse_dynamics(other, q, dq, ddq))


def test_robots_can_still_be_copied_and_pickled():
    robot = panda()
    state = _warm(robot)
    for other in (copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        np.testing.assert_array_equal(inverse_dynamics(other, *state), inverse_dynamics(robot, *state))


def test_the_bound_form_writes_where_it_is_told():
    robot = panda()
    states = np.random.default_rng(2).normal(size=(3, 7))
    torque = function(robot, "inverse_dynamics")
    out = np.zeros(7)
    assert torque(*states, out) is out
    np.testing.assert_allclose(out, inverse_dynamics(robot, *states), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(torque(*states.tolist()), out, rtol=1e-12, atol=1e-12)
    with pytest.raises(ArgumentError, match="no kernel"):
        function(robot, "torque")


def test_the_bound_form_takes_the_array_by_name():
    torque, states = function(panda(), "inverse_dynamics"), np.random.default_rng(2).normal(size=(3, 7))
    out, wanted = np.zeros(7), torque(*states)
    assert torque(*states, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(torque(*states, out=None), wanted)
    assert torque(*states.tolist(), out=out) is out
    assert torque(*states, **{"".join(("o", "ut")): out}) is out  # a name that is not interned
    before = sys.getrefcount(out)
    for _ in range(100):
        torque(*states, out=out)
    assert sys.getrefcount(out) == before
    with pytest.raises(ArgumentError, match="2 inputs given, 3 expected"):
        torque(*states[:2], out=out)
    with pytest.raises(ArgumentError, match="5 arguments given, at most 4"):
        torque(*states, out, out=out)
    with pytest.raises(ArgumentError, match="shape"):
        torque(*states, out=np.zeros(6))
    for wrong in ({"result": out}, {"out": out, "result": out}):
        with pytest.raises(ArgumentError, match="cannot be given by its name"):
            torque(*states, **wrong)


def test_threads_share_a_function():
    robot = panda()
    states = np.random.default_rng(3).normal(size=(3, 500, 7))
    wanted = inverse_dynamics(robot, *states)
    wrong = []

    def work():
        for row in range(500):
            found = inverse_dynamics(robot, *states[:, row])
            if not np.allclose(found, wanted[row], rtol=1e-11, atol=1e-9):
                wrong.append(row)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_singular_inertia_matrix_is_refused_however_often():
    robot = gautier_khalil_3r()  # its zoo entry has no masses
    for _ in range(CALLS):
        with pytest.raises(ArgumentError, match="singular"):
            forward_dynamics(robot.with_parameters(np.zeros_like(robot.parameter_vector)), *np.ones((3, 3)))
