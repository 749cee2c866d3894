"""The page of an identification with its validation, and the page that says why logs were refused."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.export.result_file import data_facts
from dynid.export.robot_files import RobotFile
from dynid.findings import Finding
from dynid.identification.identify import Identification
from dynid.identification.rich.joint_friction import joint_friction
from dynid.identification.validation import Validation
from dynid.processing.experiment import Experiment, matched_runs
from dynid.report.identification_sections import (
    excitation_chapter,
    files_chapter,
    friction_chapter,
    refusal_chapter,
    residuals_chapter,
    torques_chapter,
    verdict_chapter,
)
from dynid.report.page import Chapter, Page
from dynid.report.parameter_sections import parameters_chapter
from dynid.report.picture import error_bars, widest_poses
from dynid.report.provenance import SETTINGS, provenance_chapter
from dynid.report.replay import play_motion
from dynid.report.sections.next_commands import NextCommands
from dynid.report.series import joint_torques
from dynid.robot.model import Robot

Runs = Experiment | Sequence[Experiment] | None
"""One run, several, or none."""


def identification_page(
    fit: Identification,
    check: Validation | None = None,
    held_out: Runs = None,
    extra: Sequence[Chapter] = (),
    data: Sequence[Mapping[str, Any]] | None = None,
    findings: Sequence[Finding] = (),
    files: Sequence[RobotFile] = (),
) -> Page:
    """Make the page of an identification: torques, verdict, files, residuals, friction, parameters, data, settings.

    Args:
        fit: The identification; one read from a file needs held-out data to draw.
        check: Its validation; without one the page says that the result is not validated.
        held_out: The runs of the validation. The page draws the first one, or the first run of the identification.
        extra: Further chapters, shown after the parameters; settings come last.
        data: Facts of the identification data, for a result that does not hold the data itself (`data_facts`).
        findings: Findings of the diagnosis before the fit and about the recipe; the page lists them with those of the
            estimate.
        files: The robot files beside the page.
    """
    judged = () if held_out is None else matched_runs(fit.robot, held_out)
    fitted = fit.equations.excerpts
    drawn = (*judged, *fitted)[0]
    torques = joint_torques(fit, drawn)
    friction = joint_friction(fit, judged if not any(run.samples for run in fitted) else None)
    settings = [chapter for chapter in extra if chapter.kind == SETTINGS]
    bars = [] if check is None else [error_bars(check)]
    chapters = [
        torques_chapter(torques, [*bars, widest_poses(fit.identified, drawn.q)], seen=not judged),
        verdict_chapter(fit, check, judged, findings, files, NextCommands.of(settings[0]) if settings else None),
        files_chapter(files),
        residuals_chapter(torques, drawn.rate_hz),
        friction_chapter(friction),
        parameters_chapter(fit),
        excitation_chapter(fit, fitted),
        *(chapter for chapter in extra if chapter.kind != SETTINGS),
        play_motion(fit.identified, drawn.time, drawn.q),
        provenance_chapter(fit, [data_facts(run) for run in fitted] if data is None else data),
        *settings,
    ]
    return Page.of(f"{fit.robot.name}: identified dynamics", chapters)


def refusal_page(robot: Robot, error: DynidError, findings: Sequence[Finding], settings: Sequence[Chapter]) -> Page:
    """Make the page of an identification that refused a log: why, and everything that was found.

    Args:
        robot: The robot.
        error: Why nothing was identified.
        findings: Findings of the diagnosis of the logs.
        settings: The chapter about the settings, whose command gives the commands to run next.
    """
    chapters = [refusal_chapter(error, findings, NextCommands.of(settings[0])), *settings]
    return Page.of(f"{robot.name}: nothing was identified", chapters)


def write_report(
    fit: Identification,
    path: str | os.PathLike[str],
    check: Validation | None = None,
    held_out: Runs = None,
    *,
    force: bool = False,
) -> Path:
    """Write the report as HTML, Markdown or JSON, by the ending of the path; see `identification_page`.

    Example:
        >>> dynid.write_report(fit, folder / "report.html", dynid.validate(fit, other), other).name
        'report.html'
    """
    return identification_page(fit, check, held_out).write(Path(path), force=force)
