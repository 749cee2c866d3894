"""Adding a term takes one class and one registration: every reader then has it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dynid
from dynid.compiled import inverse_dynamics, regressor
from dynid.control_loop.arm import SimulatedArm
from dynid.estimators.linear.least_squares import WLS
from dynid.export.result_file import read_result, write_result
from dynid.identifiability.layout import parameter_layout
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.robot import zoo
from dynid.terms import TERMS, StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from estimators.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Coulomb(0.4), Offset(0.1))


@dataclass(frozen=True)
class AirDrag(StateTerm):
    """Drag that grows with the square of the speed."""

    symbol: ClassVar[str] = "FD"
    base_unit: ClassVar[str] = "N m s^2/rad^2"
    is_non_negative: ClassVar[bool] = True

    def formula(self, q: Any, dq: Any, ddq: Any) -> Any:
        return np.sign(dq) * dq * dq


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    TERMS.append(AirDrag)
    yield
    TERMS.remove(AirDrag)


DRAGGED = ROBOT.with_terms(AirDrag(0.3), keep=True)


def test_the_regressor_and_the_layout_have_it() -> None:
    run = planted_run(ROBOT, samples=50)
    names = parameter_layout(DRAGGED).names
    assert "FD2" in names
    assert parameter_layout(DRAGGED)[names.index("FD3")].unit == "N s^2/m^2", "the third joint slides"
    column = regressor(DRAGGED, run.q, run.dq, run.ddq)[:, 1, names.index("FD2")]
    np.testing.assert_allclose(column, np.abs(run.dq[:, 1]) * run.dq[:, 1], atol=1e-12)


def test_a_fit_finds_it_and_its_result_file_keeps_it(tmp_path: Path) -> None:
    run = planted_run(DRAGGED, samples=2000, noise=0.01)
    terms = [AirDrag(joint=j) for j in range(ROBOT.dof)]
    fit = identify(ROBOT, run, Recipe.bare(), estimator=WLS(), terms=terms)
    np.testing.assert_array_less(np.abs(fit.estimate.values[-4:] - 0.3), 4.0 * fit.estimate.stderr[-4:])
    assert fit.rich.terms[1] == AirDrag(float(fit.estimate.values[-3]), joint=1)
    write_result(fit, tmp_path / "result.json")
    assert read_result(tmp_path / "result.json").identification().terms == tuple(terms)


def test_a_simulation_has_it_with_its_sign_smoothed() -> None:
    arm = SimulatedArm(DRAGGED, None, 1e-3)
    n, q = DRAGGED.dof, np.full(DRAGGED.dof, 0.3)
    rate = dynid.tape.compile_tape(arm.rate())
    dq, ddq = np.array([1.0, -2.0, 0.5, 3.0]), np.array([0.2, 0.1, -0.3, 0.4])
    torque = inverse_dynamics(DRAGGED, q, dq, ddq)
    state = np.concatenate([q, dq, [0.0]])
    found = rate(state, torque, DRAGGED.parameter_vector)
    np.testing.assert_allclose(np.ravel(found)[n : 2 * n], ddq, atol=1e-9)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_generated_code_has_it() -> None:
    dynid.generate_c(DRAGGED, functions=["inverse_dynamics", "friction"], two_rate=False).check(samples=50)
