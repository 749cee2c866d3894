"""An identification in one line, its tables of parameters, and HTML for notebooks."""

from __future__ import annotations

from typing import Any

from dynid.estimation.estimate import Estimate, Source
from dynid.tables import html_card

__all__ = ["identification_card", "identification_line", "parameter_tables"]


def identification_line(fit: Any) -> str:
    """Robot, method and error of an `Identification` in one line."""
    size = f"{len(fit.estimate.names)} base parameters by {fit.estimate.method}"
    return f"Identification('{fit.robot.name}', {size}, training error {fit.training_error[-1]:.3g} %)"


def identification_card(fit: Any) -> str:
    """Findings and parameters of an `Identification` as HTML."""
    found = [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in fit.estimate.findings]
    return html_card(identification_line(fit), [fit.bounds.sentence, *found], fit.estimate.table())


def parameter_tables(estimate: Estimate) -> list[str]:
    """What the data say, and apart from it what the prior says more than the data do."""
    if "prior" not in estimate.sources:
        return ["", estimate.table().to_text()]
    titles: dict[Source, str] = {
        "data": "Determined by the data:",
        "prior": "Determined by the prior more than by the data (the standard errors include the distance from the "
        "values that the data alone give):",
        "open": "Left open by the motion:",
    }
    return [
        line
        for source, title in titles.items()
        if source in estimate.sources
        for line in ("", title, estimate.table(source).to_text())
    ]
