"""Sections of the report on servos: what was found, what stays open, simulated against measured, alike joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.actuators.alike import AlikeTest, compare_joints
from dynid.actuators.identify_actuators import ActuatorEstimate
from dynid.actuators.motion import CommandedMotion
from dynid.actuators.servo_identifiability import OpenDirection
from dynid.report.html_blocks import Block, Bullets, Cards, Heading, Plot, Rows, Text
from dynid.report.page import Page, Section

__all__ = ["AlikeJoints", "Repeats", "ServoMotions", "ServoValues", "joint_groups", "servo_page", "servo_table"]

MOST_JOINTS = 12
"""Joints of which curves are drawn. Convention: a page of a few hundred kilobytes."""


def servo_table(found: ActuatorEstimate) -> Rows:
    """One row per entry: value, standard deviation, interval, and what is to be said about it."""
    rows = []
    opened = {name for direction in found.open_directions for name in direction.names}
    for k, entry in enumerate(found.model.entries):
        std, known = float(found.std[k]), bool(np.isfinite(found.std[k]))
        low, high = (float(x) if known else None for x in found.interval[k])
        remark = (
            "not converged"
            if not found.converged
            else "open"
            if entry.name in opened
            else "at its bound"
            if entry.name in found.at_bound
            else ""
        )
        rows.append((entry.name, float(found.values[k]), std if known else None, low, high, entry.unit, remark))
    return Rows(("parameter", "value", "standard deviation", "95 % from", "to", "unit", ""), tuple(rows))


def joint_groups(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Joints whose names differ in one word only, such as FL_hip_joint and RR_hip_joint."""
    groups: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for name in names:
        words = name.replace("-", "_").split("_")
        for place in range(len(words)):
            groups.setdefault((place, (*words[:place], "*", *words[place + 1 :])), []).append(name)
    found = [tuple(group) for (place, _), group in groups.items() if len(group) > 1 and place == 0]
    return found if any(len(name.split("_")) > 1 for name in names) else []


@dataclass(frozen=True, slots=True, eq=False)
class ServoValues(Section):
    """The parameters with their intervals, and what the motions leave open."""

    found: ActuatorEstimate
    before: tuple[OpenDirection, ...] = ()
    """What the motions could not tell at the first guess."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Servos"

    def blocks(self) -> Sequence[Block]:
        """Figures, open combinations, table."""
        found = self.found
        held = [error for error in found.errors if not error.trained]
        judged = held or list(found.errors)
        rms = float(np.sqrt(np.mean([error.rms**2 for error in judged])))
        command = float(np.sqrt(np.mean([error.command_rms**2 for error in judged])))
        where = "held-out motions" if held else "the motions of the fit"
        cards = (
            (f"error of the simulated position on {where}, rms [mrad or mm]", f"{1e3 * rms:.3g}"),
            ("error of the command itself, rms [mrad or mm]", f"{1e3 * command:.3g}"),
            ("parameters", f"{len(found.values)}"),
            ("of these left open", f"{len({name for direction in found.open_directions for name in direction.names})}"),
        )
        remarks = [
            (finding.severity.capitalize(), f"{finding.where}: {finding.sentence}") for finding in found.findings
        ]
        remarks += [("Open", f"{direction}.") for direction in found.open_directions]
        remarks += [("Open before the fit", f"{direction}.") for direction in self.before]
        remarks += [("At a bound", f"{name}: no estimate; the data want a value beyond it.") for name in found.at_bound]
        return [Cards(cards), Bullets(tuple(remarks)), servo_table(found)]


@dataclass(frozen=True, slots=True, eq=False)
class ServoMotions(Section):
    """Simulated against measured motion."""

    found: ActuatorEstimate
    shown: Sequence[CommandedMotion]
    """Motions whose curves are drawn."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Simulated and measured"

    def blocks(self) -> Sequence[Block]:
        """Errors of all motions, then curves."""
        rows = tuple(
            (e.name, "trained" if e.trained else "held out", 1e3 * e.mean_absolute, 1e3 * e.rms, 1e3 * e.command_rms,
             e.sum_of_squares)
            for e in self.found.errors
        )  # fmt: skip
        header = ("motion", "", "mean error [mrad]", "rms [mrad]", "command, rms [mrad]", "sum over joints [rad^2]")
        blocks: list[Block] = [Rows(header, rows)]
        for motion in self.shown:
            blocks.append(Heading(motion.name))
            simulated = self.found.simulate(motion)
            for j, name in enumerate(motion.joint_names[:MOST_JOINTS]):
                curves = [("measured", motion.position[:, j]), ("simulated", simulated[:, j]),
                          ("commanded", motion.command[:, j])]  # fmt: skip
                label = f"{name} of {motion.name}: measured, simulated and commanded position"
                blocks.append(Plot.of(label, "time [s]", name, motion.time, curves, dashed=("commanded",), small=True))
        return blocks


@dataclass(frozen=True, slots=True, eq=False)
class AlikeJoints(Section):
    """Which joints share a value within their intervals."""

    found: ActuatorEstimate

    @property
    def title(self) -> str:
        """Heading."""
        return "Alike joints"

    def blocks(self) -> Sequence[Block]:
        """One row per kind and group; nothing where no joints have similar names."""
        groups = joint_groups(self.found.model.robot.joint_names)
        tests = compare_joints(self.found, groups) if groups else ()
        if not tests:
            return []
        rows = tuple(
            (t.kind, ", ".join(name.split(maxsplit=1)[-1] for name in t.names), t.mean, t.spread, t.expected, t.p_value,
             "alike" if t.alike else "different")
            for t in tests
        )  # fmt: skip
        header = ("parameter", "joints", "common value", "spread", "as the intervals state", "p", "")
        hint = "Different means that one value for these joints would contradict the intervals (5 %)."
        return [Text(hint, "hint"), Rows(header, rows)]


@dataclass(frozen=True, slots=True, eq=False)
class Repeats(Section):
    """How much estimates from single recordings disagree, beside what their intervals say."""

    tests: Sequence[AlikeTest]

    @property
    def title(self) -> str:
        """Heading."""
        return "Each recording alone"

    def blocks(self) -> Sequence[Block]:
        """One row per parameter; nothing for a single recording."""
        if not self.tests:
            return []
        rows = tuple(
            (t.kind, t.mean, t.spread, t.expected, t.p_value, "agree" if t.alike else "disagree") for t in self.tests
        )
        header = ("parameter", "common value", "spread of the recordings", "as the intervals state", "p", "")
        hint = "Disagree: the recordings differ by more than their intervals say (5 %); the model misses something."
        return [Text(hint, "hint"), Rows(header, rows)]


def servo_page(
    found: ActuatorEstimate,
    shown: Sequence[CommandedMotion] = (),
    before: tuple[OpenDirection, ...] = (),
    repeats: Sequence[AlikeTest] = (),
    extra: Sequence[Section] = (),
) -> Page:
    """The page of identified servos."""
    sections = [ServoValues(found, before), ServoMotions(found, shown), AlikeJoints(found), Repeats(repeats), *extra]
    return Page.of(f"{found.model.robot.name}: identified servos", sections)
