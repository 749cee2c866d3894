"""Page of a load: its parameters, their uncertainty, the values for robot controllers, and the recorded motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.export.controller_files import PayloadDialog, payload_dialogs
from dynid.payload.load import NAMES, UNITS
from dynid.payload.load_study import LoadStudy
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Bullets, Cards, Code, Heading, Text
from dynid.report.page import Chapter, Page
from dynid.report.provenance import methods_chapter
from dynid.report.replay import play_motion
from dynid.robot.model import Robot
from dynid.tables import Table


def flange_pose(robot: Robot, frame: str, flange: str) -> Floats:
    """Compute the (4, 4) pose of the load's frame in the flange frame.

    Raises:
        ArgumentError: The two links move relative to each other.
    """
    (body, T_body_frame), (other, T_body_flange) = robot.link_body(frame), robot.link_body(flange)
    if body != other:
        raise ArgumentError(
            f"link '{flange}' moves relative to '{frame}', which carries the load", remedy="Name the flange of the arm."
        )
    return np.asarray(np.linalg.solve(T_body_flange, T_body_frame))


def dialogs_of(study: LoadStudy, flange: str | None) -> tuple[PayloadDialog, ...]:
    """Make the commands that set the load on common controllers; none for a doubtful load.

    Args:
        study: The identified load.
        flange: Link whose frame the controllers use; None for the frame of the load.
    """
    if study.verdict == "doubtful":
        return ()
    pose = None if flange is None else flange_pose(study.robot, study.load.frame, flange)
    return payload_dialogs(study.load, T_flange_frame=pose)


def frame_hint(study: LoadStudy, flange: str | None) -> str:
    """Say in which frame the values for the controllers are."""
    if flange is not None:
        return f"The values are in the frame of '{flange}'."
    return (
        f"The values are in the frame of '{study.load.frame}', which is assumed to be the controller's flange. If the "
        "flange is another link, name it with --set flange=LINK: a wrong frame shifts the centre of mass."
    )


def load_page(study: LoadStudy, run: Experiment, extra: Sequence[Chapter] = (), flange: str | None = None) -> Page:
    """Make the page of a load.

    Args:
        study: The identified load.
        run: The recorded motion.
        extra: Further chapters.
        flange: Link whose frame the controllers use; None for the frame of the load.
    """
    run = run.matched(study.robot)
    chapters = [load_chapter(study, flange), play_motion(study.robot_with_load, run.time, run.q), *extra]
    return Page.of(f"{study.robot.name}: identified load", [*chapters, methods_chapter()])


def load_chapter(study: LoadStudy, flange: str | None = None) -> Chapter:
    """Make the chapter about a load, its uncertainty, and its values for common controllers.

    Args:
        study: The identified load.
        flange: Link whose frame the controllers use; None for the frame of the load.
    """
    load = study.load
    role = "verdict bad" if study.verdict == "doubtful" else "verdict good"
    text = {
        "doubtful": "doubtful: do not use these values until the problems below are solved",
        "mass, centre of mass and some moments": f"identified: {study.verdict_in_words}",
        "mass and centre of mass": "mass and centre of mass are identified; the inertia is not",
        "all ten parameters": "mass, centre of mass and inertia are identified",
    }[study.verdict]
    cards = (
        ("mass [kg]", f"{load.mass:.4g}"),
        ("standard deviation of the mass [kg]", f"{load.mass_stderr:.2g}"),
        (f"centre of mass in '{load.frame}' [mm]", ", ".join(f"{1000 * value:.1f}" for value in load.com)),
        ("standard deviation of the centre of mass [mm]", ", ".join(f"{1000 * x:.1f}" for x in load.com_stderr)),
    )
    titled = (("Problem", study.problems), ("Advice", study.advice), ("Note", study.notes))
    remarks = tuple((title, finding.sentence) for title, findings in titled for finding in findings)
    rows = tuple(
        (name, None, None, unit, "not determined") if is_open else (name, float(value), float(std), unit, "")
        for name, value, std, unit, is_open in zip(
            NAMES, load.vector, load.stderr, UNITS, load.undetermined, strict=True
        )
    )
    table = Table(("parameter", "value", "standard deviation", "unit", ""), rows)
    return Chapter("Load", (Text(text, role), Cards(cards), Bullets(remarks), table, *_dialogs(study, flange)))


def _dialogs(study: LoadStudy, flange: str | None) -> list[Block]:
    """Blocks with the values for controllers; none for a doubtful load."""
    dialogs = dialogs_of(study, flange)
    if not dialogs:
        return []
    blocks: list[Block] = [Heading("Values for the robot controller"), Text(frame_hint(study, flange), "hint")]
    for dialog in dialogs:
        blocks += [Text(dialog.controller), Code(dialog.text), Bullets(tuple(("", note) for note in dialog.notes))]
    return blocks
