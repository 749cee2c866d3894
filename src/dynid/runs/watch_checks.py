"""Doubts about logs before their alarms: wrong signs, units or orders of joints, and logs that were fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dynid.diagnosis.log_changes import OTHER_UNIT
from dynid.diagnosis.naming import diagnose
from dynid.errors import ArgumentError
from dynid.findings import Finding
from dynid.identification.given_data import SeenSamples
from dynid.identification.identify import Identification
from dynid.identification.log_reader import Log, Notice
from dynid.processing.experiment import Experiment

NOTHING_EXPLAINED = 1.0 - 1.0 / OTHER_UNIT
"""Error of a model's torques in a log, over the torques, from which on it explains nothing (derivation: of right
torques in another unit at least so much remains)."""
OTHER_LOGS = "Calibrate with other logs than those that are watched: a push in the log would set its own threshold."
_WORTHLESS = "the alarms say nothing about pushes"


def check_log(fit: Identification, run: Experiment) -> Iterator[Finding]:
    """Look for faults of a log that would raise alarms, though nothing pushes: the suspects of `dynid check`.

    Args:
        fit: The identified model.
        run: The log.
    """
    matched = run.matched(fit.robot)
    known = matched.rows(np.flatnonzero(np.isfinite(matched.effort).all(axis=1)))
    if not known.samples:
        return
    if not np.ptp(known.effort, axis=0).any():  # at rest a joint may carry one torque, but not all of them
        yield Finding(
            code="frozen", severity="warning", where=f"{run.source}: effort",
            message=f"the torques never change: {_WORTHLESS}",
            remedy="Check the torques of the log and their columns in the channel map.",
        )  # fmt: skip
        return
    wrong = [finding for finding in diagnose(fit.identified, [known]) if finding.severity == "error"]
    for finding in wrong:
        message = f"{finding.message}; {_WORTHLESS}"
        yield replace(finding, severity="warning", where=f"{run.source}: {finding.where}", message=message)
    share = unexplained_share(fit, matched)
    if not wrong and share > NOTHING_EXPLAINED:
        yield Finding(
            code="unexplained", severity="warning", where=f"{run.source}: model",
            message=f"the model explains nothing of the torques (error {100.0 * share:.3g} %); {_WORTHLESS}",
            remedy="Correct the channel map (units, signs, order of the columns), or use the result of this robot.",
        )  # fmt: skip


def unexplained_share(fit: Identification, run: Experiment) -> float:
    """Error of a model's torques along a log over the torques [-]."""
    left = np.where(run.valid, run.effort - fit.torque(run), 0.0)
    size = float(np.linalg.norm(np.where(run.valid, run.effort, 0.0)))
    return float(np.linalg.norm(left)) / max(size, 1e-300)


def watched_samples(fit: Identification, clean: Sequence[Log | Experiment], notice: Notice) -> SeenSamples:
    """The samples of logs that are read for a watch; those that the result was identified from are told.

    Args:
        fit: The identification.
        clean: Logs that calibrate the watch.
        notice: Called with every finding.
    """
    calibrating = {id(log) for log in clean}
    fitted = [(run.source, run.stretch_keys) for run in fit.equations.excerpts]

    def tell(log: Log, what: str) -> None:
        source = log if isinstance(log, str | Path) else log.source
        notice(_seen(Path(source).name, what, is_clean=id(log) in calibrating))

    return SeenSamples(fitted, tell)


def tell_fitted(fit: Identification, runs: Sequence[Experiment], notice: Notice, *, is_clean: bool = False) -> None:
    """Tell which experiments an identification in memory was made from."""
    for run in runs:
        if any(run is other for other in fit.equations.excerpts):
            notice(_seen(run.source, "the result was identified from it", is_clean=is_clean))


def _seen(source: str, what: str, *, is_clean: bool) -> Finding:
    """A warning about a log that was fitted."""
    effect = (
        "that its residuals are too small, and false alarms come more often than is stated"
        if is_clean
        else "that what pushed in it is partly in the model, and no alarm in it proves little"
    )
    remedy = "Omit it: parts of the logs of the result are left out in turn." if is_clean else "Watch another log."
    return Finding(
        code="watch-seen",
        severity="warning",
        where=source,
        message=f"{what}, so {effect}",
        remedy=remedy,
    )


def refuse_watched(clean: Sequence[Experiment], watched: Sequence[Experiment]) -> None:
    """Refuse experiments that calibrate a watch and are watched by it.

    Raises:
        ArgumentError: One of them is both.
    """
    for run in clean:
        if any(run is other or np.array_equal(run.effort, other.effort, equal_nan=True) for other in watched):
            raise ArgumentError(
                f"{run.source} is watched, and is a log in which nothing touched the robot (clean)",
                remedy=OTHER_LOGS,
            )
