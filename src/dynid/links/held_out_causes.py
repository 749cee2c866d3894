"""Why a validation failed: the suspects of the held-out runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.diagnosis.runs import explain_residuals
from dynid.findings import Finding
from dynid.links.validation import Fitted, Validation
from dynid.processing.experiment import Experiment

HELD_OUT = "held-out residuals"
"""Where such findings are."""


def explain_failure(fit: Fitted, check: Validation, runs: Sequence[Experiment]) -> tuple[Finding, ...]:
    """Name the cause of errors above the limit; nothing where there are none, or noise is the reason.

    Args:
        fit: The identification.
        check: Its validation.
        runs: The runs of the validation.
    """
    is_beyond = not check.passed or bool(np.any(check.per_joint > check.limit))
    used = [run.matched(fit.robot) for run in runs if run.samples]
    if not (is_beyond and check.of_model.any() and used):
        return ()
    return explain_residuals(fit.robot, used, [fit.torque(run) for run in used], check.of_model)
