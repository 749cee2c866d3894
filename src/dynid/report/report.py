"""An identification as one offline HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dynid.data.recording import Experiment
from dynid.files import write_atomically
from dynid.identification.links import Identification
from dynid.identification.validation import Validation
from dynid.report.page import Section, page
from dynid.report.replay import Replay
from dynid.report.sections import Parameters, Provenance, Residuals, Torques, Verdict

__all__ = ["report_html", "write_report"]


def report_html(
    fit: Identification,
    check: Validation | None = None,
    held_out: Experiment | None = None,
    extra: Sequence[Section] = (),
) -> str:
    """The text of the report.

    Args:
        fit: The identification.
        check: Its validation; without one the report says that nothing is proven.
        held_out: The run to draw; the first one of the identification where there is none.
        extra: Further sections, after the parameters.
    """
    run = held_out or fit.problem.experiments[0]
    sections = [
        Verdict(fit, check),
        Torques(fit, run, seen=held_out is None),
        Residuals(fit, run),
        Parameters(fit),
        *extra,
        Replay(fit.identified, run),
        Provenance(fit),
    ]
    return page(f"{fit.robot.name}: identified dynamics", sections)


def write_report(
    fit: Identification,
    path: str | os.PathLike[str],
    check: Validation | None = None,
    held_out: Experiment | None = None,
    *,
    extra: Sequence[Section] = (),
    force: bool = False,
) -> Path:
    """Write the report; see `report_html`."""
    return write_atomically(path, report_html(fit, check, held_out, extra), force=force)
