"""The benchmark runs wherever it is started; how fast things are is not asserted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.speed import ours, public_functions, suite
from benchmarks.speed.case import Case, NotInstalled, Peer, Workload
from benchmarks.speed.jax_peer import _regressor
from benchmarks.speed.mujoco_peer import Mujoco, free_model
from benchmarks.speed.ours import Ours
from benchmarks.speed.pinocchio_cpp import _format_input
from benchmarks.speed.pinocchio_model import pinocchio_model
from dynid.compiled import inverse_dynamics, regressor
from dynid.robot import zoo


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(zoo.puma560(), samples=500, few=5, repeats=1)


@pytest.mark.parametrize("make", [make for make in suite.PEERS if make is not suite.PinocchioCpp])
def test_every_peer_measures_or_says_what_is_missing(make: type, case: Case) -> None:
    try:
        seconds = make().measure(case)
    except NotInstalled as missing:
        pytest.skip(f"not installed: {missing}")
    assert seconds
    assert all(0.0 <= value < 60.0 for name, value in seconds.items() if not name.endswith("[MB]"))


class _Slow:
    name = "slow"

    def measure(self, case: Case) -> dict[Workload, float]:
        return {"regressor dense": 1.0, "logs to R": 2.0}


class _Absent:
    name = suite.PinocchioCpp.name

    def measure(self, case: Case) -> dict[Workload, float]:
        raise NotInstalled("a compiler")


def test_the_table_and_the_document(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ours, "_first_use", lambda self, case: {"first use": 0.1, "first use, from cache": 0.01})
    fresh = {"first torque in a new process": 0.2, "dynid --help": 0.1}
    monkeypatch.setattr(ours, "measure_fresh_processes", lambda case: fresh)
    monkeypatch.setattr(public_functions, "SIZES", (1, 10, 1000))
    peers: list[type[Peer]] = [_Slow, _Absent]
    rows = suite.compare(case, peers)
    text = str(suite.speed_table(rows))
    assert "Pinocchio, C++: not installed (a compiler)" in text
    slow = [row for row in rows if row.peer == "slow"]
    assert [row.workload for row in slow] == ["regressor dense", "logs to R"]
    assert all(row.ratio == pytest.approx((row.peer_s or 0.0) / row.ours_s) for row in slow)
    assert len(json.loads(json.dumps(suite.describe_rows(rows)))["rows"]) == len(rows)


def test_the_peers_compute_the_same_thing() -> None:
    """Their models are ours: the ratios compare like with like."""
    for robot in (zoo.puma560(), zoo.panda(), zoo.stanford()):
        q, dq, ddq = np.random.default_rng(5).normal(size=(3, robot.dof))
        bare = robot.with_terms()
        expected = inverse_dynamics(bare, q, dq, ddq)
        pin, model = pinocchio_model(bare)
        np.testing.assert_allclose(pin.rnea(model, model.createData(), q, dq, ddq), expected, atol=1e-9)
        mujoco = pytest.importorskip("mujoco")
        its = free_model(bare)
        data = mujoco.MjData(its)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(its, data)
        np.testing.assert_allclose(data.qfrc_inverse, expected, atol=1e-3)
    assert Mujoco.name


def test_the_jax_regressor_is_ours() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    for robot in (zoo.puma560(), zoo.stanford()):
        states = np.random.default_rng(5).normal(size=(3, robot.dof))
        np.testing.assert_allclose(
            _regressor(jax, robot)(*states), regressor(robot, *states)[:, : 10 * robot.dof], atol=1e-10
        )


def test_the_numbers_for_the_compiled_peer(case: Case) -> None:
    words = _format_input(case).split()
    assert words[:3] == ["5", "1", "6"]
    assert len(words) == 6 + 30 * case.robot.dof
