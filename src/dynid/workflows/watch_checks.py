"""Faults of logs that would raise alarms although nothing pushes: wrong signs, units or orders of joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynid.diagnosis.log_changes import OTHER_UNIT
from dynid.diagnosis.naming import diagnose
from dynid.findings import Finding
from dynid.identification.identify import Identification
from dynid.processing.experiment import Experiment
from dynid.spatial import TINY

NOTHING_EXPLAINED = 1.0 - 1.0 / OTHER_UNIT
"""Error of a model's torques along a log, relative to the torques, above which it explains nothing (derivation: right
torques in another unit leave at least this error)."""
_WORTHLESS = "the alarms say nothing about pushes"


def check_log(fit: Identification, run: Experiment) -> Iterator[Finding]:
    """Look for faults of a log that would raise alarms although nothing pushes, with the suspects of ``dynid check``.

    Errors of the diagnosis become warnings here: the log is watched nevertheless.
    """
    matched = run.matched(fit.robot)
    known = matched.rows(np.flatnonzero(np.isfinite(matched.effort).all(axis=1)))
    if not known.samples:
        return
    if not np.ptp(known.effort, axis=0).any():  # at rest a joint may carry one torque, but not all of them
        yield Finding("frozen", "warning", f"{run.source}: effort", f"the torques never change: {_WORTHLESS}",
                      "Check the torques of the log and their columns in the channel map.")  # fmt: skip
        return
    wrong = [finding for finding in diagnose(fit.identified, [known]) if finding.severity == "error"]
    for finding in wrong:
        yield replace(finding, severity="warning", where=f"{run.source}: {finding.where}",
                      message=f"{finding.message}; {_WORTHLESS}")  # fmt: skip
    share = unexplained_share(fit, matched)
    if not wrong and share > NOTHING_EXPLAINED:
        yield Finding("unexplained", "warning", f"{run.source}: model",
                      f"the model explains nothing of the torques (error {100.0 * share:.3g} %); {_WORTHLESS}",
                      "Correct the channel map (units, signs, order of the columns), or use the result of this "
                      "robot.")  # fmt: skip


def unexplained_share(fit: Identification, run: Experiment) -> float:
    """Divide the norm of a model's torque errors along a log by the norm of the torques [-]."""
    errors = np.where(run.valid, run.effort - fit.torque(run), 0.0)
    size = float(np.linalg.norm(np.where(run.valid, run.effort, 0.0)))
    return float(np.linalg.norm(errors)) / max(size, TINY)
