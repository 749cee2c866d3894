"""Verdict, torques and residuals of an identification, each made from the finished result alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Bullets, Cards, Heading, Plot, Rows, Text
from dynid.report.page import Section
from dynid.report.series import (
    FEWEST,
    JointTorque,
    autocorrelation,
    histogram,
    joint_torques,
    over_speed,
    relative_error,
    thinned,
)

__all__ = ["Residuals", "Torques", "Verdict"]

INTRODUCTION = (
    "Mass properties and friction of a robot were identified from logs of its motion. The proof is prediction: how "
    "well the identified model gives the joint torques of a motion that it has not seen, beside the model before. "
    "Below: torques joint by joint, what is left unexplained, every parameter with its uncertainty and what supports "
    "it, and how well the motion could reveal it."
)
"""For a reader who sees such a page for the first time."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(Section):
    """The judgement, and the figures behind it."""

    fit: Identification
    check: Validation | None
    held_out: tuple[Experiment, ...] = ()
    """What the check was made with, for the errors of the model before."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Verdict"

    def blocks(self) -> Sequence[Block]:
        """One sentence, some large numbers, held-out errors joint by joint."""
        if self.check is None:
            verdict = Text("not proven: no held-out data was given", "verdict open")
        else:
            verdict = Text(self.check.verdict, "verdict good" if self.check.passed else "verdict bad")
        estimate = self.fit.estimate
        notes = [("", note) for note in estimate.notes]
        physical = [name for name in estimate.at_bound if name not in estimate.given_bounds]
        for words, names in (("physical constraint", physical), ("bound that was given", estimate.given_bounds)):
            if names:
                notes.append((f"Held by a {words}", ", ".join(names)))
        return [verdict, Text(INTRODUCTION), Cards(tuple(self._figures())), *self._joints(), Bullets(tuple(notes))]

    def _figures(self) -> list[tuple[str, str]]:
        estimate = self.fit.estimate
        figures = [
            ("base parameters", str(len(estimate.names))),
            ("left open by the motion", str(int(estimate.undetermined.sum()))),
            ("condition number", f"{estimate.condition:.3g}"),
            ("training error", f"{self.fit.training_error[-1]:.2f} %"),
        ]
        if self.check is None:
            return figures
        better = self.check.prior_error / max(self.check.relative_error, 1e-12)
        return [
            ("held-out error", f"{self.check.relative_error:.2f} %"),
            ("model before, same data", f"{self.check.prior_error:.2f} %"),
            ("times better", f"{better:.3g}"),
            *figures,
        ]

    def _joints(self) -> list[Block]:
        check = self.check
        if check is None:
            return []
        runs = [joint_torques(self.fit, run) for run in self.held_out]
        rows = [
            (
                name,
                float(check.per_joint[j]),
                relative_error([run[j] for run in runs], before=True) if runs else None,
                float(check.rms[j]),
                float(check.whiteness[j]),
            )
            for j, name in enumerate(check.joint_names)
        ]
        header = ("joint", "held-out error %", "model before %", "rms residual", "lag-one correlation")
        note = (
            "Error: size of measured minus predicted torque over size of the measured one, on data that the "
            "identification has not seen. A lag-one correlation near 1 means error of the model rather than noise."
        )
        return [Heading("Against the model before"), Text(note, "hint"), Rows(header, tuple(rows))]


@dataclass(frozen=True, slots=True, eq=False)
class Torques(Section):
    """Measured, predicted and residual torque of every joint."""

    fit: Identification
    run: Experiment
    seen: bool
    """Whether the run was used for the identification."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Torques on the data used" if self.seen else "Torques on held-out data"

    def blocks(self) -> Sequence[Block]:
        """One zoomable plot per joint."""
        hint = (
            "Drag to move, turn the wheel with Shift or Ctrl (or pinch) to zoom, double-click for all; "
            "keys on a focused plot: + - arrows Home."
        )
        joints = joint_torques(self.fit, self.run)
        return [Text(hint, "hint"), *(self._plot(joint, len(joints)) for joint in joints)]

    def _plot(self, joint: JointTorque, joints: int) -> Plot:
        time, *channels = thinned(joints, joint.time, joint.measured, joint.found, joint.before, joint.residual)
        curves = list(zip(("measured", "identified", "before", "residual"), channels, strict=True))
        label = f"torque of {joint.name}: measured, identified, before, residual"
        return Plot.of(label, "time [s]", f"{joint.name} [{joint.unit}]", time, curves, dashed=("identified",))


@dataclass(frozen=True, slots=True, eq=False)
class Residuals(Section):
    """What the model leaves unexplained: distribution, memory, dependence on speed."""

    fit: Identification
    run: Experiment

    @property
    def title(self) -> str:
        """Heading."""
        return "Residuals"

    def blocks(self) -> Sequence[Block]:
        """Histogram, autocorrelation and mean over speed of every joint."""
        text = (
            "Of each joint, first: how residuals are distributed. Second: white residuals fall to zero at once; a slow "
            "fall means model error rather than noise. Third: a shape over speed is friction that the model lacks."
        )
        plots: list[Block] = []
        for joint in joint_torques(self.fit, self.run):
            good = joint.counted
            e = joint.residual[good]
            if e.size < FEWEST:
                continue
            for x_label, what, (x, y) in (
                (f"{joint.name}: residual [{joint.unit}]", "samples", histogram(e)),
                (f"{joint.name}: lag [s]", "autocorrelation", autocorrelation(e, self.run.rate_hz)),
                (f"{joint.name}: speed [{joint.speed_unit}]", "mean residual", over_speed(e, joint.speed[good])),
            ):
                plots.append(Plot.of(f"{what} over {x_label}", x_label, "", x, [(what, y)], small=True))
        return [Text(text, "hint"), *plots] if plots else []
