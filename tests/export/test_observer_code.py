"""The momentum observer in C: equal to Python along a motion, memory included, and clean under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.export.c.c_check import FLAGS, find_compiler
from dynid.export.c.observer_code import CHECKED_GAIN, observer_files, run_observer, wandering_states
from dynid.kernels import kernel
from dynid.links.rich.models import Model
from dynid.monitor.observer import MomentumObserver, ObserverModel
from dynid.terms.memory import Hysteresis, LaggedSign

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C compiler")
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]


def model() -> ObserverModel:
    """A UR10 with friction of two kinds of memory."""
    robot = dynid.robots.ur10().with_terms(dynid.Viscous(2.0), dynid.Coulomb(3.0), dynid.RotorInertia(0.3))
    terms = (Hysteresis(4.0, joint=1, scale=0.02), LaggedSign(2.0, joint=4, scale=0.05))
    return ObserverModel(Model(robot, robot.parameter_vector, terms))


def python_steps(rows: np.ndarray) -> np.ndarray:
    observer = MomentumObserver(model(), gain=CHECKED_GAIN)
    return np.array([observer.step(row[:6], row[6:12], row[12:18], row[18]) for row in rows])


def test_c_and_python_agree_with_memory_and_changing_periods() -> None:
    rows = wandering_states(model(), 2000)
    rows[1000:, -1] *= 1.5
    expected = python_steps(rows)
    momentum = kernel(model().robot, "momentum_balance")(rows[:, :6], rows[:, 6:12])["momentum"]
    size = np.abs(momentum).max() / rows[0, -1]  # the largest term of the balance
    found = run_observer(model(), "arm", "double", rows)
    assert np.abs(found - expected).max() < 1e-12 * size
    assert np.abs(expected[:, 1]).max() > 1.0


@pytest.mark.parametrize(
    ("column", "broken"),
    [(0, np.nan), (8, np.nan), (17, np.nan), (18, np.nan), (0, 1e13), (8, np.inf), (17, -np.inf), (18, np.inf)],
)
def test_a_broken_sample_is_refused_and_the_state_stays(column: int, broken: float) -> None:
    rows = wandering_states(model(), 60)
    rows[[0, 20, 21, 40], column] = broken  # the first one begins the observer, but for the period
    rows[50, 18] = 0.0
    rows[51, 18] = -1e-3
    kept = np.ones(60, dtype=bool)
    kept[[20, 21, 40, 50, 51]] = False
    kept[0] = column == 18
    found = run_observer(model(), "arm", "double", rows)
    np.testing.assert_allclose(found[kept], python_steps(rows[kept]), atol=1e-9)
    np.testing.assert_array_equal(found[[20, 21, 40, 50, 51]], found[[19, 19, 39, 49, 49]])


def test_no_allocation_and_clean_under_sanitizers(tmp_path: Path) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    compiler = find_compiler() or "cc"
    if subprocess.run([compiler, *SANITIZE, probe, "-o", tmp_path / "probe"], capture_output=True).returncode:
        pytest.skip("the compiler has no sanitizers")
    rows = wandering_states(model(), 300)
    np.testing.assert_allclose(
        run_observer(model(), "arm", "double", rows, [*FLAGS, "-O1", *SANITIZE]), python_steps(rows), atol=1e-9
    )
    source = observer_files(model(), "arm")["arm_observer.c"]
    assert not any(word in source for word in ("malloc", "calloc", "free(", "alloca"))


def test_a_package_has_the_observer_on_request_and_checks_it() -> None:
    robot = dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))
    package = dynid.generate_c(robot, ["external_torque", "observer_step"], name="arm", two_rate=False)
    errors = package.check(samples=50)
    assert set(errors) == {"external_torque", "observer_step"}
    assert max(errors.values()) <= 1e-12
    assert "arm_observer.c" in package.files["README.md"]
    assert "arm_observer.c" in package.files["CMakeLists.txt"]
    with pytest.raises(ArgumentError, match="no function"):
        dynid.generate_c(robot, ["observer_step"])


def test_float_follows_double() -> None:
    robot = dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4))
    package = dynid.generate_c(robot, ["gravity", "observer_step"], name="arm", precision="float", two_rate=False)
    assert package.check(samples=20)["observer_step"] <= package.tolerance
