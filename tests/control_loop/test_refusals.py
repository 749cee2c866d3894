"""What is no law, no motion or no loop is refused by our own errors, at once, with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.control_loop import laws
from dynid.control_loop.laws import PD, ComputedTorqueLaw, read_law
from dynid.control_loop.loop import Loop, ReferenceMotion
from dynid.control_loop.simulator import simulate_loop
from dynid.errors import ArgumentError
from dynid.processing.simulation import sum_of_sines

ROBOT = dynid.robots.gautier_khalil_3r()
REFERENCE = ReferenceMotion.of(sum_of_sines(3), rate_hz=100.0, duration_s=0.1)
NAN = float("nan")


def loop(**changed: Any) -> Loop:
    return Loop(**{"law": PD(100.0, 10.0), "reference": REFERENCE, **changed})


def saturated(q: Any, dq: Any, q_r: Any, dq_r: Any, ddq_r: Any, memory: Any, period: float) -> Any:
    return np.clip(100.0 * (q_r - q), -5.0, 5.0)


WRONG = r"""
loop(substeps=1.5) -> substeps is 1.5
loop(substeps=0) -> substeps is 0
simulate_loop(ROBOT, loop(), every=0) -> every is 0
loop(law=saturated) -> UserLaw\(function\)
loop(law=None) -> law of a loop is None
loop(reference=np.zeros((3, 3))) -> ReferenceMotion.of
loop(q0=[0.0, 0.0]) -> q0 has the shape
loop(dq0=[0.0, 0.0, NAN]) -> dq0 is
loop(friction_speed=0.0) -> friction_speed has 0
simulate_loop(ROBOT, loop(), position_noise=np.full((11, 3), NAN)) -> position_noise
simulate_loop(ROBOT, loop(), position_noise=np.zeros((5, 3))) -> position_noise
simulate_loop(ROBOT, loop(law=ComputedTorqueLaw(dynid.robots.puma560()))) -> has 6 moving joints, the robot has 3
PD("abc", 1.0) -> gain kp
PID(NAN, 1.0, 1.0) -> kp
PD([], 1.0) -> shape
assumed_law(ROBOT, float("inf")) -> bandwidth_hz is inf
simulate_loop(ROBOT, loop(law=UserLaw(saturated))) -> 'saturated' cannot be recorded.*np.tanh
simulate_loop(ROBOT, loop(law=UserLaw(lambda q: q))) -> cannot be recorded: TypeError
simulate_loop(ROBOT, loop(law=UserLaw(lambda q, *_: float(q[0]) * q))) -> cannot be recorded
simulate_loop(ROBOT, loop(law=UserLaw(lambda q, *_: np.round(q)))) -> cannot be recorded
UserLaw(saturated, memory=-1) -> memory is -1
UserLaw("pd") -> no function
ReferenceMotion.of(sum_of_sines(3), rate_hz=NAN, duration_s=1.0) -> rate_hz is nan
ReferenceMotion.of(sum_of_sines(3), rate_hz=1.0, duration_s=float("inf")) -> duration_s is inf
ReferenceMotion.of(np.sin, rate_hz=10.0, duration_s=1.0) -> three arrays
ReferenceMotion(q=REFERENCE.q, dq=REFERENCE.dq, ddq=REFERENCE.ddq, rate_hz=float("inf")) -> the reference is inf
"""
"""What is asked for -> what the refusal names."""


@pytest.mark.parametrize("case", WRONG.strip().splitlines())
def test_wrong_arguments_are_named(case: str) -> None:
    call, message = case.split(" -> ")
    with pytest.raises(ArgumentError, match=message):
        eval(call, vars(laws) | globals())


@pytest.mark.parametrize(
    "text",
    [
        "=",
        "kp = 1",
        "kind = 'fuzzy'",
        "kind = 'pd'\nkp = 1.0",
        "kind = 'pd'\nkp = 'x'\nkd = 1.0",
        "kind = 'pid'\nkp = nan\nki = 1\nkd = 1",
        "kind = 'pd'\nkp = []\nkd = 1",
        "kind = 'pd'\nkp = true\nkd = 1",
        "kind = 'pd'\nkp = -5\nkd = 1",
        "kind = ['pd']\nkp = 1\nkd = 1",
        "kind = {a = 1}\nkp = 1\nkd = 1",
        "kind = 'computed_torque'\nkp = 1\nkd = 1",
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "law.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"law\.toml"):
        read_law(path)


def test_computed_torque_from_a_file_moves_as_the_law_does(tmp_path: Path) -> None:
    path = tmp_path / "law.toml"
    path.write_text(
        "kind = 'computed_torque'\nkp = 400\nkd = [40, 40, 40]\n", encoding="utf-8-sig"
    )  # some editors' BOM
    from_file = simulate_loop(ROBOT, loop(law=read_law(path, model=ROBOT)))
    np.testing.assert_array_equal(from_file.q, simulate_loop(ROBOT, loop(law=ComputedTorqueLaw(ROBOT, 400.0, 40.0))).q)
    np.testing.assert_allclose(from_file.q, REFERENCE.q, atol=1e-3)  # its model is exact: it follows
