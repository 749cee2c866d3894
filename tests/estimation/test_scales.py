"""Scales of friction terms are found again where they were planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimation.equations import build_equations
from dynid.estimation.rows import torque_of_terms
from dynid.estimation.scales import fit_scales
from dynid.robot import zoo
from dynid.terms.base import Term
from dynid.terms.friction import SaturatingViscous, SmoothSign, Stribeck, Viscous
from dynid.terms.memory import Hysteresis, LaggedSign
from dynid.terms.motors import Offset
from estimation.planted import planted_run

ROBOT = zoo.scara().with_terms(Viscous(0.5), Offset(0.1))


def test_planted_scales_come_back() -> None:
    run = planted_run(ROBOT, samples=1200, noise=0.02)
    shapes = ((SmoothSign, 0.3), (Hysteresis, 0.08), (LaggedSign, 0.1), (Stribeck, 0.4))
    planted: list[Term] = [kind(joint=j, scale=scale) for j, (kind, scale) in enumerate(shapes)]
    effort = run.effort + torque_of_terms(ROBOT, planted, np.full(4, 2.0), run)
    guesses = [replace(f, scale=f.scale * factor) for f, factor in zip(planted, (0.4, 2.0, 2.5, 0.5), strict=True)]
    equations = build_equations(ROBOT, replace(run, effort=effort), terms=[*guesses, SaturatingViscous(joint=0)])
    found = fit_scales(equations).terms
    for mine, true in zip(found, planted, strict=False):
        assert mine.scale == pytest.approx(true.scale, rel=0.1), mine.name
    assert found[-1] == SaturatingViscous(joint=0)


def test_spans_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError):
        fit_scales(build_equations(ROBOT, planted_run(ROBOT, noise=0.1)), span=1.0)
