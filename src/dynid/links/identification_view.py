"""An identification in one line, and as HTML for notebooks."""

from __future__ import annotations

from typing import Any

from dynid.tables import html_card

__all__ = ["identification_card", "identification_line"]


def identification_line(fit: Any) -> str:
    """Robot, method and error of an `Identification` in one line."""
    size = f"{len(fit.estimate.names)} base parameters by {fit.estimate.method}"
    return f"Identification('{fit.robot.name}', {size}, training error {fit.training_error[-1]:.3g} %)"


def identification_card(fit: Any) -> str:
    """Findings and parameters of an `Identification` as HTML."""
    found = [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in fit.estimate.findings]
    return html_card(identification_line(fit), [fit.bounds.sentence, *found], fit.estimate.table())
