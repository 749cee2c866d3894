"""Pages of finished results: an identification with its validation, a load, a designed motion."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import DynidError
from dynid.export.result_file import data_facts
from dynid.findings import Finding
from dynid.links.friction_summary import joint_friction
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment, matched_runs
from dynid.report.identification_sections import Refusal, Residuals, Torques, Verdict, WrittenFiles
from dynid.report.joint_coverage import Coverage
from dynid.report.page import Page, Section
from dynid.report.parameter_sections import Parameters
from dynid.report.provenance import Methods, Provenance, Settings
from dynid.report.replay import Replay
from dynid.report.sections.friction_section import Friction
from dynid.report.sections.next_commands import NextCommands
from dynid.report.series import joint_torques
from dynid.robot.model import Robot

if TYPE_CHECKING:  # an identification needs neither
    from dynid.excitation.excitation import Excitation
    from dynid.load.load_study import LoadStudy


Runs = Experiment | Sequence[Experiment] | None


def identification_page(
    fit: Identification,
    check: Validation | None = None,
    held_out: Runs = None,
    extra: Sequence[Section] = (),
    data: Sequence[Mapping[str, Any]] | None = None,
    findings: Sequence[Finding] = (),
) -> Page:
    """Make the page of an identification.

    Args:
        fit: The identification; one read from a file needs held-out data to draw.
        check: Its validation; without one the page says that the result is not validated.
        held_out: The runs of the validation. The page draws the first one, or the first run of the identification.
        extra: Further sections, shown after the parameters; `Settings` come last.
        data: Facts of the identification data, for a result that does not hold the data itself (`data_facts`).
        findings: What the gate and the recipe reported before; the page lists them with those of the estimate.
    """
    held = () if held_out is None else matched_runs(fit.robot, held_out)
    used = fit.equations.excerpts
    drawn = (*held, *used)[0]
    settings = [section for section in extra if isinstance(section, Settings)]
    written = [section for section in extra if isinstance(section, WrittenFiles)]
    files = tuple(file for section in written for file in section.files)
    commands = _next_commands(settings)
    torques = joint_torques(fit, (held or used)[0])
    friction = joint_friction(fit, held if not any(run.samples for run in used) else None)
    sections = [
        Verdict(fit, check, held, tuple(findings), files, commands),
        *written,
        Torques(torques, seen=not held),
        Residuals(torques, drawn.rate_hz),
        Friction(friction),
        Parameters(fit, friction),
        Coverage(fit, used),
        *(section for section in extra if not isinstance(section, Settings | WrittenFiles)),
        Replay(fit.identified, drawn),
        Provenance(fit, [data_facts(run) for run in used] if data is None else data),
        *settings,
    ]
    return Page.of(f"{fit.robot.name}: identified dynamics", sections)


def _next_commands(settings: Sequence[Settings]) -> NextCommands:
    """The commands to run next, after the run of these settings."""
    return NextCommands.of(settings[0].command, settings[0].options) if settings else NextCommands()


def refusal_page(robot: Robot, error: DynidError, findings: Sequence[Finding], extra: Sequence[Section] = ()) -> Page:
    """Make the page of an identification that refused a log: why, and everything that was found.

    Args:
        robot: The robot.
        error: Why nothing was identified.
        findings: What the gate found in the logs.
        extra: Further sections; the command of `Settings` gives the commands to run next.
    """
    settings = [section for section in extra if isinstance(section, Settings)]
    commands = _next_commands(settings)
    return Page.of(f"{robot.name}: nothing was identified", [Refusal(error, tuple(findings), commands), *extra])


def load_page(study: LoadStudy, run: Experiment, extra: Sequence[Section] = (), flange: str | None = None) -> Page:
    """Make the page of a load, with the recorded motion."""
    from dynid.report.load_sections import LoadBox

    sections = [
        LoadBox(study, flange),
        Replay(study.robot_with_load, run.matched(study.robot)),
        *extra,
        Methods(),
    ]
    return Page.of(f"{study.robot.name}: identified load", sections)


def plan_page(plan: Excitation, extra: Sequence[Section] = (), robot: Robot | None = None) -> Page:
    """Make the page of a designed motion; with the robot it also shows torques and plays the motion."""
    from dynid.report.plan_sections import PlannedMotion, PlanOverview, Search

    moving = [PlannedMotion(plan, robot)] if robot is not None else []
    sections = [PlanOverview(plan, robot), *moving, Search(plan), *extra, Methods(("GautierKhalil1992",))]
    return Page.of(f"{plan.robot}: exciting motion", sections)


def report_html(
    fit: Identification, check: Validation | None = None, held_out: Runs = None, extra: Sequence[Section] = ()
) -> str:
    """Return the report as the text of one offline HTML file; see `identification_page`."""
    return identification_page(fit, check, held_out, extra).to_html()


def write_report(
    fit: Identification,
    path: str | os.PathLike[str],
    check: Validation | None = None,
    held_out: Runs = None,
    *,
    extra: Sequence[Section] = (),
    force: bool = False,
) -> Path:
    """Write the report as HTML, Markdown or JSON, by the ending of the path; see `identification_page`.

    Example:
        >>> dynid.write_report(fit, folder / "report.html", dynid.validate(fit, other), other).name
        'report.html'
    """
    return identification_page(fit, check, held_out, extra).write(Path(path), force=force)
