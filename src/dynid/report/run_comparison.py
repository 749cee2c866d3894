"""A page that compares two identifications: verdicts, joints, parameters, torques, settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dynid.errors import ArgumentError
from dynid.report.html_blocks import Block, Heading, Plot, Rows, Text
from dynid.report.identification_sections import Torques
from dynid.report.page import Page, Section
from dynid.tables import Cell

EQUAL = 0.02
"""Relative difference of held-out errors up to which two results are called equal; a convention."""
FAR = 3.0
"""Standard deviations of their difference beyond which two values are called different; the usual three sigma."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two runs."""

    name: str
    result: Mapping[str, Any]
    """Content of its result file."""
    run: Mapping[str, Any]
    """Content of its ``run.json``."""
    page: Page | None
    """Its report; None if the run has none."""

    @property
    def validation(self) -> Mapping[str, Any]:
        """Validation on held-out data; empty if there was none."""
        return self.result["validation"] or {}


def comparison_page(first: Side, second: Side) -> Page:
    """Make the page that compares two runs.

    Raises:
        ArgumentError: The robots of the two runs have different joints, so nothing can be compared.
    """
    joints = [side.result["joint_names"] for side in (first, second)]
    if joints[0] != joints[1]:
        raise ArgumentError(
            f"their joints differ: {first.name} is a run of {_robot(first)}, {second.name} is one of {_robot(second)}",
            remedy="Compare two runs of one robot; dynid report shows each run by itself.",
        )
    sections = [Outcome(first, second), Values(first, second), Curves(first, second), Origins(first, second)]
    return Page.of(f"{first.name} and {second.name} compared", sections)


def _robot(side: Side) -> str:
    return f"{side.result['robot']} ({len(side.result['joint_names'])} joints)"


@dataclass(frozen=True, slots=True, eq=False)
class _Pair(Section):
    """A section about two runs."""

    first: Side
    second: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both."""
        return self.first, self.second


class Outcome(_Pair):
    """Which run predicts better, in total and joint by joint."""

    title: ClassVar[str] = "Verdict"

    def blocks(self) -> Sequence[Block]:
        """A sentence, totals, joints."""
        errors = [side.validation.get("relative_error_percent") for side in self.sides]
        rows: list[tuple[Cell, ...]] = [
            ("verdict", *(side.validation.get("verdict", "not validated") for side in self.sides)),
            ("held-out error %", *errors),
            ("prior model error %", *(side.validation.get("prior_error_percent") for side in self.sides)),
            ("training error %", *(side.result["training_error_percent"]["all"] for side in self.sides)),
            ("condition number", *(side.result["condition"] for side in self.sides)),
            ("robot", *(side.result["robot"] for side in self.sides)),
            ("method", *(side.result["method"] for side in self.sides)),
        ]
        names = [side.name for side in self.sides]
        return [self._sentence(errors), *self._models(), Rows(("", *names), tuple(rows)), *self._joints()]

    def _models(self) -> list[Block]:
        """Warn if the two runs started from different models."""
        if self.first.result["fingerprint"] == self.second.result["fingerprint"]:
            return []
        return [Text("The two runs started from different robot models: geometry, terms or prior values differ.")]

    def _sentence(self, errors: Sequence[float | None]) -> Text:
        first, second = errors
        if first is None or second is None:
            return Text(
                "at least one of the two runs was not validated, so neither is shown to be better", "verdict open"
            )
        if self._held_out(0) != self._held_out(1):
            return Text(
                "the runs were validated on different data, so their errors cannot be compared directly", "verdict open"
            )
        if abs(first - second) <= EQUAL * max(first, second):
            return Text(
                f"both predict the same held-out data equally well: {first:.3g} % and {second:.3g} %", "verdict good"
            )
        better = self.first if first <= second else self.second
        text = f"{better.name} predicts better on the same held-out data: {min(first, second):.2f} % against "
        return Text(f"{text}{max(first, second):.2f} %", "verdict good")

    def _held_out(self, which: int) -> list[str]:
        """Checksums of the held-out logs of a run."""
        run = self.sides[which].run
        paths = run["options"].get("held_out") or []
        return [entry["sha256"] for entry in run["inputs"] if entry["path"] in paths]

    def _joints(self) -> list[Block]:
        held_out = all(side.validation for side in self.sides)  # one kind of error in one table
        errors = [
            side.validation["per_joint_percent"] if held_out else side.result["training_error_percent"]
            for side in self.sides
        ]
        joints = [name for name in errors[0] if name in errors[1] and name != "all"]
        kind = "held-out" if held_out else "training"
        header = ("joint", *(f"{side.name}: {kind} error %" for side in self.sides))
        return [Rows(header, tuple((name, errors[0][name], errors[1][name]) for name in joints))]


class Values(_Pair):
    """Base parameters side by side."""

    title: ClassVar[str] = "Parameters"

    def blocks(self) -> Sequence[Block]:
        """Values, differences, and whether each difference exceeds its uncertainty."""
        tables = [{entry["name"]: entry for entry in side.result["base_parameters"]} for side in self.sides]
        common = [name for name in tables[0] if name in tables[1]]
        rows = [self._row(tables[0][name], tables[1][name]) for name in common]
        far = sum(1 for row in rows if row[-1] == "different")
        only = [name for a, b in (tables, tables[::-1]) for name in a if name not in b]
        text = (
            f"{far} of {len(common)} common parameters differ by more than {FAR:g} standard deviations of their "
            "difference. The two runs are taken as independent; if they share data, their differences look less "
            "significant than they are."
        )
        header = ("parameter", self.first.name, self.second.name, "difference", "in standard deviations", "unit", "")
        blocks: list[Block] = [Text(text, "hint"), Rows(header, tuple(rows))]
        return [*blocks, Text(f"Parameters of only one run: {', '.join(only)}.")] if only else blocks

    def _row(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Cell, ...]:
        gap = b["value"] - a["value"]
        known = a["std"] is not None and b["std"] is not None
        spread = math.hypot(a["std"], b["std"]) if known else math.inf
        sigmas = abs(gap) / spread if spread > 0.0 else math.inf if gap else 0.0
        mark = "not determined" if not known else "different" if sigmas > FAR else ""
        return a["name"], a["value"], b["value"], gap, sigmas if known else None, a["unit"], mark


class Curves(_Pair):
    """The torque plots of both, joint by joint."""

    title: ClassVar[str] = "Torques"

    def blocks(self) -> Sequence[Block]:
        """Plots side by side."""
        pairs = zip(*(_torque_plots(side) for side in self.sides), strict=False)
        return [
            replace(plot, small=True, y_label="", x_label=f"{side.name}: {plot.y_label}, time [s]")
            for pair in pairs
            for side, plot in zip(self.sides, pair, strict=True)
        ]


def _torque_plots(side: Side) -> list[Plot]:
    chapters = () if side.page is None else side.page.chapters
    return [b for c in chapters if c.kind == Torques.__name__ for b in c.blocks if isinstance(b, Plot)]


class Origins(_Pair):
    """Options, inputs and versions of the two runs."""

    title: ClassVar[str] = "Settings and inputs"

    def blocks(self) -> Sequence[Block]:
        """Options that differ, checksums of all inputs, versions that differ."""
        names = [side.name for side in self.sides]
        options = self._differing("options")
        inputs = {entry["path"]: None for side in self.sides for entry in side.run["inputs"]}
        digests = [{entry["path"]: entry["sha256"] for entry in side.run["inputs"]} for side in self.sides]
        rows = tuple((path, *(d.get(path, "")[:16] for d in digests)) for path in inputs)
        return [
            Heading("Options that differ"),
            Rows(("option", *names), options) if options else Text("None."),
            Heading("Inputs (first digits of SHA-256)"),
            Rows(("file", *names), rows),
            Heading("Versions that differ"),
            Rows(("package", *names), versions) if (versions := self._differing("versions")) else Text("None."),
        ]

    def _differing(self, what: str) -> tuple[tuple[Cell, ...], ...]:
        a, b = (side.run[what] for side in self.sides)
        return tuple((key, str(a.get(key)), str(b.get(key))) for key in {**a, **b} if a.get(key) != b.get(key))
