"""The load box: what the robot holds, how sure that is, and what to type into its controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError, ExportError
from dynid.export.payload_dialogs import payload_dialogs
from dynid.load.load import NAMES, UNITS
from dynid.load.load_study import LoadStudy
from dynid.report.html_blocks import Block, Bullets, Cards, Code, Heading, Rows, Text
from dynid.report.page import Section
from dynid.robot.model import Robot

__all__ = ["LoadBox", "flange_pose", "frame_hint"]


def flange_pose(robot: Robot, frame: str, flange: str) -> NDArray[np.float64]:
    """(4, 4) pose of the load's frame in the flange's.

    Raises:
        ArgumentError: The two links move against each other.
    """
    (body, T_body_frame), (other, T_body_flange) = robot.link_body(frame), robot.link_body(flange)
    if body != other:
        raise ArgumentError(
            f"link '{flange}' moves against '{frame}', which carries the load", remedy="Name the flange of the arm."
        )
    return np.asarray(np.linalg.solve(T_body_flange, T_body_frame))


def frame_hint(study: LoadStudy, flange: str | None) -> str:
    """In whose frame a controller's dialogs are."""
    if flange is not None:
        return f"In the frame of '{flange}'."
    return (
        f"In the frame of '{study.load.frame}', taken for the controller's flange. Where that is another link, "
        "name it with --flange: a wrong frame shifts the centre of mass."
    )


@dataclass(frozen=True, slots=True, eq=False)
class LoadBox(Section):
    """A load with its evidence and the controllers' dialogs."""

    study: LoadStudy
    flange: str | None = None
    """Link whose frame the controllers mean; the frame of the load by default."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Load"

    def blocks(self) -> Sequence[Block]:
        """Verdict, figures, parameters, dialogs."""
        study, load = self.study, self.study.load
        role = "verdict bad" if study.verdict == "doubtful" else "verdict good"
        text = {
            "doubtful": "doubtful: do not use these numbers before the problems below are solved",
            "mass and centre of mass": "mass and centre of mass are known; the inertia is not",
            "all ten parameters": "mass, centre of mass and inertia are known",
        }[study.verdict]
        com = ", ".join(f"{1000 * value:.1f}" for value in load.com)
        spread = ", ".join(f"{1000 * value:.1f}" for value in load.com_stderr)
        cards = (
            ("mass [kg]", f"{load.mass:.4g}"),
            ("its standard deviation [kg]", f"{load.mass_stderr:.2g}"),
            (f"centre of mass in '{load.frame}' [mm]", com),
            ("its standard deviation [mm]", spread),
        )
        remarks = [("Problem", problem) for problem in study.problems]
        remarks += [("Advice", advice) for advice in study.advice] + [("Note", note) for note in load.notes]
        return [Text(text, role), Cards(cards), Bullets(tuple(remarks)), self._parameters(), *self._dialogs()]

    def _parameters(self) -> Rows:
        load = self.study.load
        rows = tuple(
            (name, None if free else float(value), None if free else float(std), unit, "left open" if free else "")
            for name, value, std, unit, free in zip(
                NAMES, load.vector, load.stderr, UNITS, load.undetermined, strict=True
            )
        )
        return Rows(("parameter", "value", "standard deviation", "unit", ""), rows)

    def _dialogs(self) -> list[Block]:
        """What to type, where the load can be trusted at all."""
        if self.study.verdict == "doubtful" or not np.isfinite(self.study.load.mass):
            return []
        try:
            pose = None if self.flange is None else flange_pose(self.study.robot, self.study.load.frame, self.flange)
            dialogs = payload_dialogs(self.study.load, T_flange_frame=pose)
        except ExportError as error:
            return [Text(str(error), "hint")]
        blocks: list[Block] = [
            Heading("To type into the controller"),
            Text(frame_hint(self.study, self.flange), "hint"),
        ]
        for dialog in dialogs:
            blocks += [Text(dialog.controller), Code(dialog.text), Bullets(tuple(("", note) for note in dialog.notes))]
        return blocks
