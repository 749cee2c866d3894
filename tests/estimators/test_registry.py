"""The registry: classes do what they declare, and a new estimator takes one class and one line."""

from __future__ import annotations

import typing
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import dynid
from dynid.estimators import registry
from dynid.estimators.equations import Factors, Samples, build_equations
from dynid.estimators.estimate import Estimate, Estimator
from dynid.robot import zoo
from dynid.terms.friction import Viscous

from .planted import equations_of, planted_run, truth

ROBOT = zoo.cylindrical().with_terms(Viscous(0.5))


@dataclass(frozen=True, slots=True)
class EverySecond(Estimator):
    """Least squares on every second sample."""

    name: ClassVar[str] = "every-second"
    title: ClassVar[str] = "least squares on every second sample"
    use: ClassVar[str] = "an example is wanted"
    reads_samples: ClassVar[bool] = True
    accepts_terms: ClassVar[bool] = False

    def estimate(self, equations: Samples) -> Estimate:
        """Estimate from the samples with even numbers."""
        halves = [run.rows(slice(None, None, 2)) for run in equations.experiments]
        half = build_equations(equations.robot, halves, base=equations.base)
        return replace(dynid.OLS().solve(half), method=self.title)


def test_a_new_estimator_takes_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ESTIMATORS, "every-second", f"{__name__}:EverySecond")
    mine = next(entry for entry in dynid.estimators.estimators() if entry.name == "every-second")
    assert (mine.simulates_loop, mine.accepts_terms, mine.reads_samples) == (False, False, True)
    equations = equations_of(ROBOT)
    found = registry.estimator_class("every-second")().solve(equations)
    np.testing.assert_allclose(found.values, truth(equations), atol=1e-6)
    assert found.method == "least squares on every second sample"


def test_equations_of_the_wrong_stage_are_refused() -> None:
    whole = equations_of(ROBOT)
    fields = ("robot", "base", "information", "blocks", "excerpts")
    factors = Factors(**{name: getattr(whole, name) for name in fields})
    mine, run = EverySecond(), planted_run(ROBOT)
    with pytest.raises(dynid.errors.ArgumentError, match=r"EverySecond needs whole experiments in memory"):
        mine.solve(factors)
    with pytest.raises(dynid.errors.ArgumentError, match="both sides of these equations are low-passed"):
        mine.solve(build_equations(ROBOT, run, band_hz=5.0))
    with pytest.raises(dynid.errors.ArgumentError, match="these equations have the terms FVA1"):
        mine.solve(build_equations(ROBOT, run, terms=[dynid.terms.AsymmetricViscous(joint=0)]))


@pytest.mark.parametrize("name", registry.ESTIMATORS)
def test_declared_is_done(name: str) -> None:
    kind = registry.estimator_class(name)
    assert kind.name == name
    assert kind.title
    assert kind.use
    hint = typing.get_type_hints(kind.estimate)["equations"]
    assert hint is (Samples if kind.reads_samples else Factors), "the type of the argument is what the class reads"
    assert registry.estimator_class(name) is kind
    with pytest.raises(dynid.errors.ArgumentError, match="there is no estimator 'best'"):
        registry.estimator_class("best")
