"""A page that compares two identifications: verdicts, joints, parameters, torques, settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from dynid.errors import ArgumentError
from dynid.report.html_blocks import Block, Heading, Plot, Rows, Text
from dynid.report.identification_sections import TORQUES
from dynid.report.page import Chapter, Page
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

    @property
    def held_out(self) -> list[str]:
        """Checksums of the held-out logs."""
        paths = self.run["options"].get("held_out") or []
        return [entry["sha256"] for entry in self.run["inputs"] if entry["path"] in paths]


_Pair = tuple[Side, Side]


def comparison_page(first: Side, second: Side) -> Page:
    """Make the page that compares two runs.

    Raises:
        ArgumentError: The robots of the two runs have different joints, so nothing can be compared.
    """
    a, b = (f"{side.result['robot']} ({len(side.result['joint_names'])} joints)" for side in (first, second))
    if first.result["joint_names"] != second.result["joint_names"]:
        raise ArgumentError(
            f"their joints differ: {first.name} is a run of {a}, {second.name} is one of {b}",
            remedy="Compare two runs of one robot; dynid report shows each run by itself.",
        )
    sides = (first, second)
    chapters = [
        Chapter("Verdict", tuple(_outcome(sides))),
        Chapter("Parameters", tuple(_values(sides))),
        Chapter("Torques", tuple(_curves(sides))),
        Chapter("Settings and inputs", tuple(_origins(sides))),
    ]
    return Page.of(f"{first.name} and {second.name} compared", chapters)


def _outcome(sides: _Pair) -> list[Block]:
    """Which run predicts better, in total and joint by joint."""
    errors = [side.validation.get("relative_error_percent") for side in sides]
    rows: tuple[tuple[Cell, ...], ...] = (
        ("verdict", *(side.validation.get("verdict", "not validated") for side in sides)),
        ("held-out error %", *errors),
        ("prior model error %", *(side.validation.get("prior_error_percent") for side in sides)),
        ("training error %", *(side.result["training_error_percent"]["all"] for side in sides)),
        ("condition number", *(side.result["condition"] for side in sides)),
        ("robot", *(side.result["robot"] for side in sides)),
        ("method", *(side.result["method"] for side in sides)),
    )
    blocks: list[Block] = [_sentence(sides, *errors)]
    if sides[0].result["fingerprint"] != sides[1].result["fingerprint"]:
        blocks.append(Text("The two runs started from different robot models: geometry, terms or prior values differ."))
    held_out = all(side.validation for side in sides)  # one kind of error in one table
    joints = [s.validation["per_joint_percent"] if held_out else s.result["training_error_percent"] for s in sides]
    header = ("joint", *(f"{side.name}: {'held-out' if held_out else 'training'} error %" for side in sides))
    names = [name for name in joints[0] if name in joints[1] and name != "all"]
    table = Rows(("", *(side.name for side in sides)), rows)
    return [*blocks, table, Rows(header, tuple((name, joints[0][name], joints[1][name]) for name in names))]


def _sentence(sides: _Pair, first: float | None, second: float | None) -> Text:
    if first is None or second is None:
        words = "at least one of the two runs was not validated, so neither is shown to be better"
        return Text(words, "verdict open")
    if sides[0].held_out != sides[1].held_out:
        words = "the runs were validated on different data, so their errors cannot be compared directly"
        return Text(words, "verdict open")
    if abs(first - second) <= EQUAL * max(first, second):
        words = f"both predict the same held-out data equally well: {first:.3g} % and {second:.3g} %"
    else:
        better = sides[0] if first <= second else sides[1]
        words = f"{better.name} predicts better on the same held-out data: {min(first, second):.2f} % against "
        words += f"{max(first, second):.2f} %"
    return Text(words, "verdict good")


def _values(sides: _Pair) -> list[Block]:
    """Values, differences, and whether each difference exceeds its uncertainty."""
    tables = [{entry["name"]: entry for entry in side.result["base_parameters"]} for side in sides]
    rows = tuple(_difference(tables[0][name], tables[1][name]) for name in tables[0] if name in tables[1])
    far = sum(row[-1] == "different" for row in rows)
    only = [name for a, b in (tables, tables[::-1]) for name in a if name not in b]
    text = (
        f"{far} of {len(rows)} common parameters differ by more than {FAR:g} standard deviations of their "
        "difference. The two runs are taken as independent; if they share data, their differences look less "
        "significant than they are."
    )
    header = ("parameter", sides[0].name, sides[1].name, "difference", "in standard deviations", "unit", "")
    more = [Text(f"Parameters of only one run: {', '.join(only)}.")] if only else []
    return [Text(text, "hint"), Rows(header, rows), *more]


def _difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Cell, ...]:
    gap = b["value"] - a["value"]
    known = a["std"] is not None and b["std"] is not None
    spread = math.hypot(a["std"], b["std"]) if known else math.inf
    sigmas = abs(gap) / spread if spread > 0.0 else math.inf if gap else 0.0
    mark = "not determined" if not known else "different" if sigmas > FAR else ""
    return a["name"], a["value"], b["value"], gap, sigmas if known else None, a["unit"], mark


def _curves(sides: _Pair) -> list[Block]:
    """The torque plots of both, side by side."""
    plots = [
        [
            b
            for c in (side.page.chapters if side.page else ())
            if c.kind == TORQUES
            for b in c.blocks
            if isinstance(b, Plot)
        ]
        for side in sides
    ]
    return [
        replace(plot, small=True, y_label="", x_label=f"{side.name}: {plot.y_label}, time [s]")
        for pair in zip(*plots, strict=False)
        for side, plot in zip(sides, pair, strict=True)
    ]


def _origins(sides: _Pair) -> list[Block]:
    """Options that differ, checksums of all inputs, versions that differ."""
    names = [side.name for side in sides]
    digests = [{entry["path"]: entry["sha256"] for entry in side.run["inputs"]} for side in sides]
    inputs = tuple((path, *(d.get(path, "")[:16] for d in digests)) for path in {**digests[0], **digests[1]})
    options, versions = (
        tuple((key, str(a.get(key)), str(b.get(key))) for key in {**a, **b} if a.get(key) != b.get(key))
        for a, b in ([side.run[what] for side in sides] for what in ("options", "versions"))
    )
    return [
        Heading("Options that differ"),
        Rows(("option", *names), options) if options else Text("None."),
        Heading("Inputs (first digits of SHA-256)"),
        Rows(("file", *names), inputs),
        Heading("Versions that differ"),
        Rows(("package", *names), versions) if versions else Text("None."),
    ]
