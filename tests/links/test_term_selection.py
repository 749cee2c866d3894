"""Terms that depend on the links' torques: these come from a fit that has the terms."""

from __future__ import annotations

import numpy as np

from campaigns.interval_conditions import make_robot, wrong_prior
from campaigns.selection_coverage import recorded
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.links.identify import identify_experiments
from dynid.links.recipe import Recipe
from dynid.parameters.base import base_parameters
from dynid.terms.load_dependent import LoadFriction


def test_load_friction_does_not_bias_the_links() -> None:
    robot = make_robot("ddarm")
    base = base_parameters(robot)
    run = recorded(robot, "load-friction", 1)
    fit = identify_experiments(wrong_prior(robot, 1), [run], Recipe(), FeasibleWLS(), base=base)
    kept = [term for term in fit.terms if isinstance(term, LoadFriction)]
    assert kept
    assert len({id(term.reference) for term in kept}) == 1
    assert fit.selection is not None
    assert set(fit.selection.terms) == set(fit.terms)
    assert {term for model in fit.selection.models for term in model} <= set(fit.terms)
    away = (fit.estimate.values[: base.rank] - base.project(robot.parameter_vector)) / fit.estimate.stderr[: base.rank]
    links = [not name.startswith(("FC", "FV", "OFF", "IA")) for name in base.names]
    assert np.abs(away[links]).max() < 3.0  # with torques of the fit without these terms: 4.0
