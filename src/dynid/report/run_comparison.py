"""Two identifications on one page: verdicts, joints, parameters, settings, residuals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynid.errors import ArgumentError
from dynid.report.html_blocks import Block, Heading, Plot, Rows, Text
from dynid.report.identification_sections import Torques
from dynid.report.page import Page, Section
from dynid.tables import Cell

__all__ = ["Side", "comparison_page"]

ALIKE = 0.02
"""Relative difference of errors up to which two results are called alike."""
FAR = 3.0
"""Standard deviations from which two values are called different."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of the two runs."""

    name: str
    result: Mapping[str, Any]
    """Content of its result file."""
    run: Mapping[str, Any]
    """Content of its ``run.json``."""
    page: Page | None
    """Its report, where there is one."""

    @property
    def validation(self) -> Mapping[str, Any]:
        """Of its held-out data; empty without."""
        return self.result["validation"] or {}


def comparison_page(first: Side, second: Side) -> Page:
    """The page that compares two runs.

    Raises:
        ArgumentError: The runs are of robots with different joints, of which nothing can be compared.
    """
    joints = [side.result["joint_names"] for side in (first, second)]
    if joints[0] != joints[1]:
        raise ArgumentError(
            f"{first.name} is of {_robot(first)}, {second.name} of {_robot(second)}: their joints differ",
            remedy="Compare two runs of one robot; dynid report shows each by itself.",
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
    """Which one predicts better, and where."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Verdict"

    def blocks(self) -> Sequence[Block]:
        """A sentence, totals, joints."""
        errors = [side.validation.get("relative_error_percent") for side in self.sides]
        rows: list[tuple[Cell, ...]] = [
            ("verdict", *(side.validation.get("verdict", "not proven") for side in self.sides)),
            ("held-out error %", *errors),
            ("model before %", *(side.validation.get("prior_error_percent") for side in self.sides)),
            ("training error %", *(side.result["training_error_percent"]["all"] for side in self.sides)),
            ("condition number", *(side.result["condition"] for side in self.sides)),
            ("robot", *(side.result["robot"] for side in self.sides)),
            ("method", *(side.result["method"] for side in self.sides)),
        ]
        names = [side.name for side in self.sides]
        return [self._sentence(errors), *self._models(), Rows(("", *names), tuple(rows)), *self._joints()]

    def _models(self) -> list[Block]:
        """A warning where the two started from different models."""
        if self.first.result["fingerprint"] == self.second.result["fingerprint"]:
            return []
        return [Text("The two are of different robot models: geometry, joint models or the values before differ.")]

    def _sentence(self, errors: Sequence[float | None]) -> Text:
        first, second = errors
        if first is None or second is None:
            return Text("at least one of the two was not validated, so neither is proven better", "verdict open")
        if self._held_out(0) != self._held_out(1):
            return Text("validated on different data: the errors cannot be compared directly", "verdict open")
        if abs(first - second) <= ALIKE * max(first, second):
            return Text(f"both predict the same held-out data alike: {first:.3g} % and {second:.3g} %", "verdict good")
        better = self.first if first <= second else self.second
        text = f"{better.name} predicts better on the same held-out data: {min(first, second):.2f} % against "
        return Text(f"{text}{max(first, second):.2f} %", "verdict good")

    def _held_out(self, which: int) -> list[str]:
        """Digests of the held-out logs of a run."""
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

    @property
    def title(self) -> str:
        """Heading."""
        return "Parameters"

    def blocks(self) -> Sequence[Block]:
        """Values, difference, and whether it is more than chance."""
        tables = [{entry["name"]: entry for entry in side.result["base_parameters"]} for side in self.sides]
        common = [name for name in tables[0] if name in tables[1]]
        rows = [self._row(tables[0][name], tables[1][name]) for name in common]
        far = sum(1 for row in rows if row[-1] == "different")
        only = [name for a, b in (tables, tables[::-1]) for name in a if name not in b]
        text = (
            f"{far} of {len(common)} common parameters differ by more than {FAR:g} standard deviations of their "
            "difference; the two are taken as independent, so runs on the same data look more alike than they are."
        )
        header = ("parameter", self.first.name, self.second.name, "difference", "in standard deviations", "unit", "")
        blocks: list[Block] = [Text(text, "hint"), Rows(header, tuple(rows))]
        return [*blocks, Text(f"Only in one of the two: {', '.join(only)}.")] if only else blocks

    def _row(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Cell, ...]:
        gap = b["value"] - a["value"]
        known = a["std"] is not None and b["std"] is not None
        spread = math.hypot(a["std"], b["std"]) if known else math.inf
        sigmas = abs(gap) / spread if spread > 0.0 else math.inf if gap else 0.0
        mark = "left open" if not known else "different" if sigmas > FAR else ""
        return a["name"], a["value"], b["value"], gap, sigmas if known else None, a["unit"], mark


class Curves(_Pair):
    """The torque plots of both, joint by joint."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Torques"

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
    """What the two were made from."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Settings and inputs"

    def blocks(self) -> Sequence[Block]:
        """Options that differ, digests of all inputs, versions that differ."""
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
            Rows(("what", *names), versions) if (versions := self._differing("versions")) else Text("None."),
        ]

    def _differing(self, what: str) -> tuple[tuple[Cell, ...], ...]:
        a, b = (side.run[what] for side in self.sides)
        return tuple((key, str(a.get(key)), str(b.get(key))) for key in {**a, **b} if a.get(key) != b.get(key))
