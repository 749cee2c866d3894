"""An identification in one line, its tables of parameters, and HTML for notebooks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Source
from dynid.estimation.physical.passivity import all_terms
from dynid.tables import html_card
from dynid.terms.base import SteadyMotion, Surface


def identification_line(fit: Any) -> str:
    """Robot, method and error of an `Identification` in one line."""
    size = f"{len(fit.estimate.names)} base parameters by {fit.estimate.method}"
    return f"Identification('{fit.robot.name}', {size}, training error {fit.training_error[-1]:.3g} %)"


def identification_card(fit: Any) -> str:
    """Findings and parameters of an `Identification` as HTML."""
    found = [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in fit.estimate.findings]
    return html_card(identification_line(fit), found, fit.estimate.table())


def shared_friction(equations: Factors) -> frozenset[str]:
    """Names of the parameters of frictions that more terms carry than a dry and a viscous one: each is only a part."""
    members = defaultdict[Surface, list[str]](list)
    rubbing = SteadyMotion(np.ones(2), np.array([-1.0, 1.0]), np.ones(2))
    for term in all_terms(equations):
        surface = term.surface(equations.robot.joint_names)
        if surface is not None and term.steady_torque(rubbing).any():
            members[surface].append(term.name)
    return frozenset(name for names in members.values() if len(names) > 2 for name in names)


def parameter_tables(fit: Any) -> list[str]:
    """What the data of an `Identification` say, what the prior says more than the data do, and parts of a friction."""
    estimate: Estimate = fit.estimate
    shared = shared_friction(fit.equations)
    whole = [name for name in estimate.names if name not in shared]
    parts = [name for name in estimate.names if name in shared]
    folded = [PARTS, estimate.table(names=parts).to_text()] if parts else []
    if "prior" not in estimate.sources:
        return ["", estimate.table(names=whole).to_text(), *([""] if parts else []), *folded]
    titles: dict[Source, str] = {
        "data": "Determined by the data:",
        "prior": "Determined by the prior more than by the data (the standard errors include the distance from the "
        "values that the data alone give):",
        "open": "Left open by the motion:",
    }
    tables = {title: estimate.table(source, names=whole) for source, title in titles.items()}
    lines = [line for title, table in tables.items() if table.rows for line in ("", title, table.to_text())]
    return [*lines, *([""] if parts else []), *folded]


PARTS = (
    "Parts of a friction that several terms share; no one of them is the friction by itself (the report has the "
    "dry and viscous friction of each joint):"
)
"""Title of the parameters of such terms."""
