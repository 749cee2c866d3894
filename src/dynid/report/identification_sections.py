"""Sections of an identification's report: verdict, torques and residuals. They only read finished results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from dynid.errors import DynidError
from dynid.export.robot_files import RobotFile
from dynid.findings import Finding, QualityReport
from dynid.links.common.held_out_causes import HELD_OUT, explain_failure
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Bullets, Cards, Heading, Notices, Plot, Rows, Text
from dynid.report.page import Section
from dynid.report.sections.next_commands import NextCommands
from dynid.report.sections.residual_causes import JointResidual, joint_residuals
from dynid.report.series import (
    FEWEST,
    JointTorque,
    autocorrelate,
    bin_residuals,
    mean_over_speed,
    thin,
)
from dynid.tables import Cell, plain_number

REASONS: Mapping[str, str] = MappingProxyType(
    {"noise": "noise of the measured torques", "model": "the model, because noise explains less than half of it"}
)
"""Reason of a joint's error, in words."""
REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "noise": "Compare in the band of the motion (--set band_hz=...), or move the joint with larger torques.",
        "model": "The plots of its residuals below show what the model lacks.",
    }
)
"""What can be done about each."""

INTRODUCTION = (
    "This report shows the masses, inertias and friction of a robot, identified from logs of its motion. The test is "
    "prediction: the identified model predicts the joint torques of a motion that was not used to identify it, and its "
    "error is compared with that of the prior model, the one you started from. The sections below show the torques of "
    "each joint, the residuals, every parameter with its uncertainty, and how well the motion excites the parameters."
)
"""Text for a reader who sees such a page for the first time."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(Section):
    """The judgement, what was found with the commands to run next, and the figures behind it."""

    title: ClassVar[str] = "Verdict"

    fit: Identification
    check: Validation | None
    held_out: tuple[Experiment, ...] = ()
    """The runs of the validation."""
    findings: tuple[Finding, ...] = ()
    """What the gate and the recipe reported before the identification."""
    files: tuple[RobotFile, ...] = ()
    """The written robot files."""
    commands: NextCommands = field(default_factory=NextCommands)

    def blocks(self) -> Sequence[Block]:
        """The verdict, the findings, the main figures, and held-out errors joint by joint."""
        if self.check is None:
            verdict = Text("not validated: no held-out data was given", "verdict open")
        else:
            verdict = Text(self.check.verdict, "verdict good" if self.check.passed else "verdict bad")
        estimate = self.fit.estimate
        notes = []
        physical = [name for name in estimate.at_bound if name not in estimate.given_bounds]
        impossible = (
            "Held at the limit of what is physically possible, because the data alone would give impossible values (a "
            "link's name stands for its inertia, IA for a rotor inertia)"
        )
        for words, names in ((impossible, physical), ("Held at a bound that was given", estimate.given_bounds)):
            if names:
                notes.append((words, ", ".join(names)))
        runs = self.held_out if self.check is not None else ()
        residuals = joint_residuals(self.fit, self.check, runs) if self.check is not None and runs else ()
        return [
            verdict,
            *self._files(),
            Heading("What was found, and what to do next"),
            *list_findings([*self._judgements(residuals), *self.findings, *estimate.findings], self.commands),
            Bullets(tuple(notes)),
            Cards(tuple(self._figures())),
            *self._joints(residuals),
            Text(INTRODUCTION, "hint"),
        ]

    def _files(self) -> list[Block]:
        """The held-out error of every written file beside that of the whole model."""
        judged = [file for file in self.files if file.error is not None and file.judged is not None]
        if not judged:
            return []
        errors = ", ".join(f"{file.format} {file.error:.2f} %" for file in judged)
        return [Text(f"Held-out error of the written files: {errors}; whole model {judged[0].judged:.2f} %.")]

    def _judgements(self, residuals: Sequence[JointResidual]) -> list[Finding]:
        """Findings that follow from the validation and the written files."""
        check, place = self.check, HELD_OUT
        if check is None:
            remedy = "Hold out a part of the logs, or validate on another log."
            return [Finding(code="not-validated", severity="warning", where="data",
                            message="no data were held out, so nothing shows how well the model predicts",
                            remedy=remedy)]  # fmt: skip
        found = list(check.causes or explain_failure(self.fit, check, self.held_out))
        for reason, is_noise in (("noise", True), ("model", False)):
            beyond = [(residual, float(error)) for error, residual in zip(check.per_joint, residuals, strict=False)
                      if error > check.limit and residual.is_noise == is_noise]  # fmt: skip
            if beyond:
                names = ", ".join(f"{residual.name} ({error:.3g} %)" for residual, error in beyond)
                message = f"the held-out error of {names} exceeds the limit of {check.limit:g} %; the reason is "
                found.append(Finding(code="joint-error", severity="warning", where=place,
                                     message=message + REASONS[reason], remedy=REMEDIES[reason]))  # fmt: skip
        slow = [residual for residual in residuals if not residual.is_noise]
        if slow:
            names = ", ".join(f"{residual.name} ({residual.noise_percent:.0f} %)" for residual in slow)
            message = (
                "residuals are correlated with the motion, so that the model and not noise limits the accuracy of "
                f"these joints (share of noise in the residual): {names}"
            )
            found.append(Finding(code="correlated-residuals", severity="note", where=place, message=message))
        for file in self.files:
            if not file.is_near:
                remedy = "Use result.json where these terms matter: dynid codegen and dynid.read_result read it."
                found.append(Finding(code="file-error", severity="warning", where=file.path.name,
                                     message=file.sentence, remedy=remedy))  # fmt: skip
        return found

    def _figures(self) -> list[tuple[str, str]]:
        estimate = self.fit.estimate
        figures = [
            ("base parameters", str(len(estimate.names))),
            ("not determined by the motion", str(int(estimate.undetermined.sum()))),
            ("condition number", plain_number(estimate.condition)),
        ]
        if self.check is None:
            return [("training error", f"{self.fit.training_error[-1]:.2f} %"), *figures]
        better = self.check.prior_error / max(self.check.relative_error, 1e-12)
        return [
            ("held-out error", f"{self.check.relative_error:.2f} %"),
            ("prior model, same data", f"{self.check.prior_error:.2f} %"),
            ("factor of improvement", f"{better:.3g}"),
            ("training error", f"{self.check.training_error:.2f} %"),
            *figures,
        ]

    def _joints(self, residuals: Sequence[JointResidual]) -> list[Block]:
        check = self.check
        if check is None:
            return []
        rows: list[tuple[Cell, ...]] = []
        for j, name in enumerate(check.joint_names):
            error = float(check.per_joint[j])
            cells: tuple[Cell, ...] = (name, error, float(check.prior_per_joint[j]), float(check.rms[j]))
            if residuals:
                beyond = "above" if error > check.limit else "within"
                found = residuals[j]
                cells = (*cells, beyond, found.reason, found.noise_percent, found.correlation_s)
            rows.append(cells)
        header: tuple[str, ...] = ("joint", "held-out error %", "prior model error %", "rms residual [N m or N]")
        note = (
            "The error is the norm of measured minus predicted torque, divided by the norm of the measured torque, on "
            "held-out data."
        )
        if residuals:
            limit = f"limit of {check.limit:g} %"
            header = (*header, limit, "residual is mostly", "noise in the residual %", "correlation time [s]")
            note += (
                " The share of noise is estimated from the torques above the band of the motion; the rest of the "
                "residual comes from errors of the model. The correlation time is how long an unfiltered residual "
                "stays alike."
            )
        table = Rows(header, tuple(rows))
        return [Heading("Comparison with the prior model"), Text(note, "hint"), table, *self._logs(check)]

    def _logs(self, check: Validation) -> list[Block]:
        """The errors of every held-out log, where there are several."""
        if len(check.by_log) < 2:
            return []
        table = check.log_table()
        return [Heading("Held-out logs"), Rows(table.header, table.rows)]


@dataclass(frozen=True, slots=True, eq=False)
class Refusal(Section):
    """Why nothing was identified, with everything that was found in the logs."""

    title: ClassVar[str] = "Verdict"

    error: DynidError
    findings: tuple[Finding, ...]
    commands: NextCommands

    def blocks(self) -> Sequence[Block]:
        """The reason and the findings."""
        verdict = Text(f"nothing was identified: {self.error.reason}", "verdict bad")
        heading = Heading("What was found, and what to do next")
        return [verdict, heading, *list_findings(self.findings, self.commands)]


def list_findings(findings: Sequence[Finding], commands: NextCommands) -> list[Block]:
    """List findings, the gravest first, each once and with the command to run next."""
    ordered = QualityReport.of("", {finding.sentence: finding for finding in findings}.values()).findings
    items = tuple(
        (finding.severity, finding.code, _located(finding), commands.after(finding.code, finding.where))
        for finding in ordered
    )
    return [Notices(items)] if items else [Text("Nothing was found that needs attention.")]


def _located(finding: Finding) -> str:
    """The sentence of a finding, with the log or file that it is about."""
    is_file = ":" in finding.where or "." in finding.where
    return f"{finding.where}: {finding.sentence}" if is_file else finding.sentence


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFiles(Section):
    """The robot files beside the report, each judged by itself."""

    title: ClassVar[str] = "Written robot files"

    files: tuple[RobotFile, ...]

    def blocks(self) -> Sequence[Block]:
        """One row per file: its error on the held-out data beside that of the whole model."""
        hint = "The files hold the plain model. Each was read back from disk and judged on the held-out data."
        rows = [
            (file.format, file.path.name, file.error, file.judged, "; ".join(file.lacks) or "nothing")
            for file in self.files
        ]
        header = ("format", "file", "held-out error %", "whole model %", "what the format cannot hold")
        return [Text(hint, "hint"), Rows(header, tuple(rows))]


@dataclass(frozen=True, slots=True, eq=False)
class Torques(Section):
    """Measured, predicted and residual torque of every joint."""

    joints: tuple[JointTorque, ...]
    seen: bool
    """Whether the run was used for the identification."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Torques on the identification data" if self.seen else "Torques on held-out data"

    def blocks(self) -> Sequence[Block]:
        """One zoomable plot per joint."""
        hint = (
            "Point at a plot to read its values; click a name to hide or show its curve. Drag to move. Hold Shift or "
            "Ctrl and turn the wheel, or pinch, to zoom all joints together. Double-click to see everything. The keys "
            "+, -, arrows and Home work on the selected plot."
        )
        return [Text(hint, "hint"), *(self._plot(joint) for joint in self.joints)]

    def _plot(self, joint: JointTorque) -> Plot:
        channels = (joint.measured, joint.identified, joint.prior, joint.residual)
        time, *values = thin(len(self.joints), joint.time, *channels)
        curves = list(zip(("measured", "identified", "prior model", "residual"), values, strict=True))
        label = f"torque of {joint.name}: measured, identified, prior model, residual"
        return Plot.of(label, "time [s]", f"{joint.name} [{joint.unit}]", time, curves, dashed=("identified",))


@dataclass(frozen=True, slots=True, eq=False)
class Residuals(Section):
    """Distribution, autocorrelation and dependence on speed of what the model does not explain."""

    title: ClassVar[str] = "Residuals"

    joints: tuple[JointTorque, ...]
    rate_hz: float
    """Sampling rate of the run [Hz]."""

    def blocks(self) -> Sequence[Block]:
        """Histogram, autocorrelation and mean over speed of every joint."""
        text = (
            "Each joint has three plots. The first shows the distribution of the residuals. The second shows their "
            "autocorrelation: that of white noise falls to zero at once, and a slow decay means model error. The third "
            "shows the mean residual over speed: any shape beyond the noise is friction that the model lacks."
        )
        plots: list[Block] = []
        for joint in self.joints:
            good = joint.counted
            e = joint.residual[good]
            if e.size < FEWEST:
                continue
            for x_label, what, (x, y) in (
                (f"{joint.name}: residual [{joint.unit}]", "samples", bin_residuals(e)),
                (f"{joint.name}: lag [s]", "autocorrelation", autocorrelate(e, self.rate_hz)),
                (f"{joint.name}: speed [{joint.speed_unit}]", "mean residual", mean_over_speed(e, joint.speed[good])),
            ):
                plots.append(Plot.of(f"{what} over {x_label}", x_label, "", x, [(what, y)], small=True))
        return [Text(text, "hint"), *plots] if plots else []
