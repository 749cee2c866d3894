"""What the command `dynid load` shows: a load, whether it can be trusted, and how to get a better one.

`check_load_log` checks and processes a raw log before a load is identified from it. `LoadStudy` takes the identified
`Load`, with proposals for the settings of the sensor (`dynid.payload.sensor_faults`), and derives a verdict, problems,
advice, text and JSON from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.diagnosis.log_check import check_and_process
from dynid.dynamics.inertia_maps import UPPER
from dynid.findings import Finding, QualityReport
from dynid.logs.recording import Recording
from dynid.payload.load import CHANNELS, NAMES, SMALL_SHARE, Load, remark
from dynid.payload.recognition import KnownObject, Recognition, recognise
from dynid.payload.sensor_faults import SensorProposal
from dynid.plain_data import json_values
from dynid.processing.process import PreparedLog, Processing
from dynid.robot.model import Robot

UNCERTAIN_COM = 0.05
"""Standard deviation of the centre of mass above which a load is doubtful [m] (convention)."""
Verdict = Literal["all ten parameters", "mass, centre of mass and some moments", "mass and centre of mass", "doubtful"]
"""The part of a load that can be used."""


def check_load_log(
    recording: Recording, robot: Robot, options: Processing, *, by_sensor: bool
) -> tuple[QualityReport, PreparedLog | None]:
    """Check a log before a load is identified from it, and process it.

    Args:
        recording: The raw log, with or without the load.
        robot: The robot that was recorded, without the load. Its inertial parameters do not matter.
        options: How the log will be processed.
        by_sensor: Whether a wrench is used. Joint torques then do not matter, so findings about them are left out.

    Returns:
        The findings, and the processed log as `check_and_process` returns it. Do not identify a load from a log with
        errors (`QualityReport.ok` is false) unless you know that they do no harm.
    """
    if not by_sensor:
        return check_and_process(recording, options, robot)
    report, prepared = check_and_process(replace(recording, effort=None, effort_time=None), options, robot)
    findings = [finding for finding in report.findings if finding.where != "effort"]
    if recording.wrench is None:
        remedy = "Map six wrench columns in the channel map."
        findings.append(remark("missing", "there is no wrench", remedy, severity="error", where="wrench"))
    return QualityReport.of(report.source, findings), prepared


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadStudy:
    """A load with the evidence for and against it."""

    robot: Robot
    """The robot without the load."""
    load: Load
    """The identified load."""
    proposals: tuple[SensorProposal, ...] = ()
    """Settings of the sensor that would explain the data better; none of them was applied."""
    library: Sequence[KnownObject] = ()
    """Known objects, among which the load is recognised."""

    @property
    def recognition(self) -> Recognition | None:
        """Probabilities of known objects; None without a library or a mass."""
        return recognise(self.load, self.library) if self.library and self.load.mass > 0.0 else None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Reasons for doubt: proposals, an uncertain mass or centre of mass, warnings about the estimate."""
        warnings = (finding for finding in self.load.findings if finding.severity != "note")
        return (*(proposal.finding for proposal in self.proposals), *_mass_problems(self.load), *warnings)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Findings about the estimate that are no problems."""
        return tuple(finding for finding in self.load.findings if finding.severity == "note")

    @property
    def advice(self) -> tuple[Finding, ...]:
        """How to get more certain moments of inertia; empty if they are certain enough."""
        return tuple(_advise(self.load))

    @property
    def verdict(self) -> Verdict:
        """The part of the result that can be used."""
        if self.problems:
            return "doubtful"
        if self.load.inertia_is_certain:
            return "all ten parameters"
        return "mass, centre of mass and some moments" if self.load.known_moments else "mass and centre of mass"

    @property
    def verdict_in_words(self) -> str:
        """The verdict with the names of the moments of inertia that are known and of those that are not."""
        if self.verdict != "mass, centre of mass and some moments":
            return self.verdict
        known, unknown = ", ".join(self.load.known_moments), ", ".join(self.load.open_moments)
        return f"mass, centre of mass and the moments {known}; not determined: {unknown}"

    @property
    def robot_with_load(self) -> Robot:
        """The robot with the load fixed to the link that carries it, to write to a file."""
        return self.robot.with_body("load", parent=self.load.frame, inertia=self.load.inertia)

    def __str__(self) -> str:
        """The load, the verdict and the findings, as text."""
        lines = [self.load.table(), "", f"Verdict: {self.verdict_in_words}."]
        for title, findings in (("Problem", self.problems), ("Advice", self.advice), ("Note", self.notes)):
            lines += [f"{title}: {finding.sentence}" for finding in findings]
        if self.load.open_moments and self.load.mass > 0.0:
            lines.append(
                f"Files of the robot with this load hold assumed values for {', '.join(self.load.open_moments)}."
            )
        if known := self.recognition:
            lines += ["", str(known)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all results as plain data, for other programs; None stands for values that are not known."""
        load = self.load
        principal = load.principal
        known = self.recognition
        is_open = load.undetermined
        about_com_stderr = np.zeros((3, 3))
        about_com_stderr[UPPER] = about_com_stderr.T[UPPER] = load.about_com_stderr
        values: dict[str, Any] = {
            "frame": load.frame,
            "method": load.method,
            "verdict": self.verdict,
            "known_moments": load.known_moments,
            "mass_kg": load.mass,
            "mass_stderr_kg": load.mass_stderr,
            "com_m": load.com,
            "com_stderr_m": load.com_stderr,
            "inertia_about_com_kg_m2": load.inertia_about_com,
            "inertia_about_com_stderr_kg_m2": about_com_stderr,
            "principal_moments_kg_m2": principal.moments,
            "principal_moments_stderr_kg_m2": principal.moments_stderr,
            "principal_axes": principal.axes,
            "ill_defined_axes": principal.ill_defined,
            "parameters": dict(zip(NAMES, np.where(is_open, np.nan, load.vector), strict=True)),
            "parameters_stderr": dict(zip(NAMES, load.stderr, strict=True)),
            "covariance": np.where(is_open[:, None] | is_open, np.nan, load.covariance),
            "bias": dict(zip(CHANNELS, load.bias, strict=True)),
            "residual_std": load.residual_std,
            "extras": load.extras,
            "recognition": known and dict(zip(known.names, known.probabilities, strict=True)),
        }
        by_kind = {"problems": self.problems, "advice": self.advice, "notes": self.notes}
        values |= {name: [finding.to_dict() for finding in findings] for name, findings in by_kind.items()}
        return dict(json_values(values))

    def __repr__(self) -> str:
        """The load and the verdict in one line."""
        return f"LoadStudy({self.load!r}: {self.verdict_in_words})"

    def _repr_html_(self) -> str:
        """The load, for notebooks."""
        return self.load._repr_html_()


def _mass_problems(load: Load) -> Iterator[Finding]:
    """Find out whether the mass is undetermined, negative or uncertain, or the centre of mass uncertain."""
    mass = load.mass
    stderr = load.mass_stderr
    worst = float(np.max(load.com_stderr))
    interval = f"{max(mass - 1.96 * stderr, 0.0):.3g} to {mass + 1.96 * stderr:.3g} kg hold it with 95 %"
    for is_problem, message in (
        (load.undetermined[9], "the data do not determine the mass"),
        (mass <= 0.0, f"the mass is {mass:.3g} kg: {interval}"),
        (mass > 0.0 and stderr > SMALL_SHARE * mass, f"the mass is uncertain: {interval}"),
        (np.isfinite(mass) and worst > UNCERTAIN_COM, f"the centre of mass is uncertain by {100 * worst:.2g} cm"),
    ):
        if is_problem:
            numbers = {"mass [kg]": mass, "std [kg]": stderr, "largest std [m]": worst}
            yield remark("load-uncertain", message, severity="warning", evidence=numbers)


def _advise(load: Load) -> Iterator[Finding]:
    """Give advice for better moments of inertia, if they are open or uncertain."""
    if not load.has_inertia:
        axes = [axis for axis, name in zip("xyz", ("XX", "YY", "ZZ"), strict=True) if name in load.open_moments]
        about = f"about {' and '.join(axes)} of '{load.frame}'" if 0 < len(axes) < 3 else "about at least two axes"
        message = f"the data do not determine {', '.join(load.open_moments) or 'the inertia'}"
        turn = "Turn single wrist joints back and forth as fast as they can (wrist_test_motion)"
        yield remark("load-uncertain", message, f"{turn}, {about}.")
        return
    principal = load.principal
    largest = float(principal.moments[-1])
    worst = float(np.max(principal.moments_stderr)) / largest if largest > 0.0 else 0.0
    if worst > SMALL_SHARE:
        more = worst / SMALL_SHARE
        message = f"the moments of inertia are uncertain by {100 * worst:.0f} % of the largest"
        remedy = (
            f"Use {more:.1f} times the angular accelerations, or {more**2:.0f} times the data, "
            "or hold the load nearer to its centre of mass."
        )
        yield remark("load-uncertain", message, remedy, evidence={"relative std": worst, "factor": more})
