"""An `Identification` for people: in one line, as tables of parameters, and as HTML for notebooks.

Parameters that are only parts of a joint's friction stand in a table of their own.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Source
from dynid.estimators.physical.passivity import all_terms
from dynid.tables import html_card
from dynid.terms.base import SteadyMotion, Surface

PARTS = (
    "Parts of a friction that several terms share; no one of them is the friction by itself (the report has the "
    "dry and viscous friction of each joint):"
)
"""Title of the table of such parts."""


def identification_line(fit: Any) -> str:
    """Write robot, method and error of an `Identification` in one line."""
    size = f"{len(fit.estimate.names)} base parameters by {fit.estimate.method}"
    return f"Identification('{fit.robot.name}', {size}, training error {fit.training_error[-1]:.3g} %)"


def identification_card(fit: Any) -> str:
    """Write findings and parameters of an `Identification` as HTML."""
    found = [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in fit.estimate.findings]
    return html_card(identification_line(fit), found, fit.estimate.table())


def shared_friction(equations: Factors) -> frozenset[str]:
    """Find the parameters that are only parts of a friction.

    A joint with one dry and one viscous term has two parameters that mean something by themselves. With more terms on
    the same surface (a joint, or a motor that turns several joints) only their sum does.

    Returns:
        Names of all friction parameters on such surfaces.
    """
    members = defaultdict[Surface, list[str]](list)
    both_ways = SteadyMotion(q=np.ones(2), speed=np.array([-1.0, 1.0]), load=np.ones(2))
    for term in all_terms(equations):
        surface = term.surface(equations.robot.joint_names)
        if surface is not None and term.steady_torque(both_ways).any():  # it is a friction
            members[surface].append(term.name)
    return frozenset(name for names in members.values() if len(names) > 2 for name in names)


def parameter_tables(fit: Any) -> list[str]:
    """Write the parameters of an `Identification` as lines of text.

    Parameters stand in one table; if a prior took part, in one table each for those that the data determine, those that
    the prior determines more than the data, and those that nothing determines. Parts of a friction stand in a last one.
    """
    estimate: Estimate = fit.estimate
    shared = shared_friction(fit.equations)
    whole = [name for name in estimate.names if name not in shared]
    parts = [name for name in estimate.names if name in shared]
    part_lines = ["", PARTS, estimate.table(names=parts).to_text()] if parts else []
    if "prior" not in estimate.sources:
        return ["", estimate.table(names=whole).to_text(), *part_lines]
    titles: dict[Source, str] = {
        "data": "Determined by the data:",
        "prior": (
            "Determined by the prior more than by the data (the standard errors include the distance from the "
            "values that the data alone give):"
        ),
        "open": "Left open by the motion:",
    }
    tables = {title: estimate.table(source, names=whole) for source, title in titles.items()}
    lines = [line for title, table in tables.items() if table.rows for line in ("", title, table.to_text())]
    return [*lines, *part_lines]
