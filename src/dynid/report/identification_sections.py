"""Sections of an identification's report: verdict, torques and residuals. They only read finished results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.export.robot_files import RobotFile
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.report.html_blocks import Block, Bullets, Cards, Heading, Plot, Rows, Text
from dynid.report.page import Section
from dynid.report.series import (
    FEWEST,
    JointTorque,
    autocorrelate,
    bin_residuals,
    mean_over_speed,
    relative_error,
    thin,
)

__all__ = ["Residuals", "Torques", "Verdict", "WrittenFiles"]

INTRODUCTION = (
    "This report shows the masses, inertias and friction of a robot, identified from logs of its motion. The test is "
    "prediction: the identified model predicts the joint torques of a motion that was not used to identify it, and its "
    "error is compared with that of the prior model, the one you started from. The sections below show the torques of "
    "each joint, the residuals, every parameter with its uncertainty, and how well the motion excites the parameters."
)
"""Text for a reader who sees such a page for the first time."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(Section):
    """The judgement, and the figures behind it."""

    fit: Identification
    check: Validation | None
    held_out: tuple[tuple[JointTorque, ...], ...] = ()
    """Torques of every held-out run, for the errors of the prior model joint by joint."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Verdict"

    def blocks(self) -> Sequence[Block]:
        """The verdict, the main figures, and held-out errors joint by joint."""
        if self.check is None:
            verdict = Text("not validated: no held-out data was given", "verdict open")
        else:
            verdict = Text(self.check.verdict, "verdict good" if self.check.passed else "verdict bad")
        estimate = self.fit.estimate
        notes = [("", finding.sentence) for finding in estimate.findings]
        physical = [name for name in estimate.at_bound if name not in estimate.given_bounds]
        for words, names in (("physical constraint", physical), ("given bound", estimate.given_bounds)):
            if names:
                notes.append((f"Held by a {words}", ", ".join(names)))
        return [verdict, Text(INTRODUCTION), Cards(tuple(self._figures())), *self._joints(), Bullets(tuple(notes))]

    def _figures(self) -> list[tuple[str, str]]:
        estimate = self.fit.estimate
        figures = [
            ("base parameters", str(len(estimate.names))),
            ("not determined by the motion", str(int(estimate.undetermined.sum()))),
            ("condition number", f"{estimate.condition:.3g}"),
            ("training error", f"{self.fit.training_error[-1]:.2f} %"),
        ]
        if self.check is None:
            return figures
        better = self.check.prior_error / max(self.check.relative_error, 1e-12)
        return [
            ("held-out error", f"{self.check.relative_error:.2f} %"),
            ("prior model, same data", f"{self.check.prior_error:.2f} %"),
            ("factor of improvement", f"{better:.3g}"),
            *figures,
        ]

    def _joints(self) -> list[Block]:
        check = self.check
        if check is None:
            return []
        rows = [
            (
                name,
                float(check.per_joint[j]),
                relative_error([run[j] for run in self.held_out], prior=True) if self.held_out else None,
                float(check.rms[j]),
                float(check.whiteness[j]),
            )
            for j, name in enumerate(check.joint_names)
        ]
        header = ("joint", "held-out error %", "prior model error %", "rms residual", "lag-one correlation")
        note = (
            "The error is the norm of measured minus predicted torque, divided by the norm of the measured torque, on "
            "held-out data. The lag-one correlation is that of successive residuals: a value near 1 means that the "
            "residuals come from errors of the model rather than from noise."
        )
        return [Heading("Comparison with the prior model"), Text(note, "hint"), Rows(header, tuple(rows))]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFiles(Section):
    """The robot files beside the report, each judged by itself."""

    files: tuple[RobotFile, ...]

    @property
    def title(self) -> str:
        """Heading."""
        return "Written robot files"

    def blocks(self) -> Sequence[Block]:
        """One row per file: its error on the held-out data beside that of the whole model."""
        hint = (
            "The verdict judges the whole identified model. A file format holds a part of its terms only: the robot in "
            "the file was refitted with these, read back from disk, and judged on the same held-out data."
        )
        rows = [
            (file.format, file.path.name, file.error, file.judged, ", ".join(file.lacks) or "nothing")
            for file in self.files
        ]
        header = ("format", "file", "held-out error %", "whole model %", "terms that the format cannot hold")
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
            "Drag to move. Hold Shift or Ctrl and turn the wheel, or pinch, to zoom. Double-click to see everything. "
            "The keys +, -, arrows and Home work on the selected plot."
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

    joints: tuple[JointTorque, ...]
    rate_hz: float
    """Sampling rate of the run [Hz]."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Residuals"

    def blocks(self) -> Sequence[Block]:
        """Histogram, autocorrelation and mean over speed of every joint."""
        text = (
            "Each joint has three plots. The first shows the distribution of the residuals. The second shows their "
            "autocorrelation: that of white noise falls to zero at once, and a slow decay means model error. The third "
            "shows the mean residual over speed: any shape other than zero is friction that the model lacks."
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
