"""Everything one wants to know of a load, in one object: what `dynid load` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.load.load import CHANNELS, NAMES, Load
from dynid.load.load_motions import inertia_advice
from dynid.load.payload import ArmUncertainty, Runs, identify_end_link, identify_payload
from dynid.load.recognition import KnownObject, Recognition, recognise
from dynid.load.sensor_checks import SURE, Proposal, check_wrench
from dynid.load.wrench_equations import WrenchForm
from dynid.load.wrist import Sensing, identify_load
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

__all__ = ["LoadStudy", "Verdict", "study_load", "study_payload"]

Floats = NDArray[np.float64]
LARGE = 0.2
"""Unexplained torque over the load's that makes an arm taken as known doubtful."""
Verdict = Literal["all ten parameters", "mass and centre of mass", "doubtful"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadStudy:
    """A load with the evidence for and against it."""

    robot: Robot
    load: Load
    proposals: tuple[Proposal, ...]
    """What the data say against the settings; nothing of it was applied."""
    advice: tuple[str, ...]
    """How to find out more."""
    recognition: Recognition | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What makes the result doubtful, in words."""
        load = self.load
        found = [proposal.text for proposal in self.proposals]
        if not load.undetermined[9]:
            found += _mass_problems(load.mass, load.mass_stderr)
        else:
            found.append("the mass cannot be told")
        if not load.undetermined[9] and np.any(load.com_stderr > 0.05):
            found.append("the centre of mass is uncertain by more than 5 cm")
        shift = float(load.extras.get("shift", np.zeros(1))[0])
        if shift > SURE:
            found.append(
                f"no body can have what the data say: the nearest possible one is {shift:.2g} standard deviations off; "
                "look at signs, units, axes, the link and the delay of the wrench"
            )
        off = float(load.extras.get("arm_off", np.zeros(1))[0])
        if off > 0.0:
            found.append(
                f"the arm differs from its model by more than was stated ({off:.1f} standard deviations, rms): state a "
                "larger uncertainty, or give a run without the load"
            )
        unexplained = float(load.extras.get("unexplained", np.zeros(1))[0])
        if unexplained > LARGE:
            found.append(
                f"what neither the arm's model nor the load explains is {100 * unexplained:.0f} % of the load's "
                "torque: give a run without the load, an arm with identified parameters and friction, or say how well "
                "its model is known"
            )
        return tuple(found)

    @property
    def verdict(self) -> Verdict:
        """What may be used of the result."""
        if self.problems:
            return "doubtful"
        return "all ten parameters" if self.load.inertia_is_certain else "mass and centre of mass"

    @property
    def robot_with_load(self) -> Robot:
        """The robot with the load fixed to the link that carries it, to write to a file."""
        return self.robot.with_body("load", parent=self.load.frame, inertia=self.load.inertia)

    def summary(self) -> str:
        """A page to read."""
        lines = [self.load.summary(), "", f"Verdict: {self.verdict}."]
        lines += [f"Problem: {text}." for text in self.problems]
        lines += [f"Advice: {text}." for text in self.advice]
        if self.recognition is not None:
            lines += ["", self.recognition.summary()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for other programs; None stands for what is not known."""
        load, principal = self.load, self.load.principal
        return {
            "frame": load.frame,
            "method": load.method,
            "verdict": self.verdict,
            "mass_kg": _plain(load.mass),
            "mass_stderr_kg": _plain(load.mass_stderr),
            "com_m": _plain(load.com),
            "com_stderr_m": _plain(load.com_stderr),
            "inertia_about_com_kg_m2": _plain(load.inertia_about_com),
            "principal_moments_kg_m2": _plain(principal.moments),
            "principal_moments_stderr_kg_m2": _plain(principal.moments_stderr),
            "principal_axes": _plain(principal.axes),
            "ill_defined_axes": [list(pair) for pair in principal.ill_defined],
            "parameters": dict(zip(NAMES, _plain(np.where(load.undetermined, np.nan, load.vector)), strict=True)),
            "covariance": _plain(load.covariance),
            "bias": dict(zip(CHANNELS, _plain(load.bias), strict=True)),
            "residual_std": _plain(load.residual_std),
            "extras": {name: _plain(value) for name, value in load.extras.items()},
            "notes": list(load.notes),
            "problems": list(self.problems),
            "advice": list(self.advice),
            "recognition": None
            if self.recognition is None
            else dict(zip(self.recognition.names, _plain(self.recognition.probabilities), strict=True)),
        }

    def __str__(self) -> str:
        return self.summary()


def study_load(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    sensor_frame: str,
    sensing: Sensing | None = None,
    form: WrenchForm | None = None,
    tare: Load | None = None,
    library: Sequence[KnownObject] = (),
) -> LoadStudy:
    """Identify a load by a force and torque sensor, question the data, and recognise it; see `identify_load`.

    Args:
        robot: Geometry and gravity.
        experiments: With a wrench channel.
        sensor_frame: Link in whose frame the wrench is measured.
        sensing: What is known of the sensor, and what of it to estimate.
        form: How equations are made.
        tare: The gripper or tool alone.
        library: Known objects to recognise it among.
    """
    proposals = check_wrench(robot, experiments, sensor_frame=sensor_frame, sensing=sensing, form=form)
    load = identify_load(robot, experiments, sensor_frame=sensor_frame, sensing=sensing, form=form, tare=tare)
    return _study(robot, load, proposals, library)


def study_payload(
    robot: Robot,
    *,
    loaded: Runs,
    unloaded: Runs | None = None,
    link: str | None = None,
    arm: ArmUncertainty | Literal["known", "unknown"] = "known",
    tare: Load | None = None,
    library: Sequence[KnownObject] = (),
) -> LoadStudy:
    """Identify a load by joint torques and recognise it.

    Args:
        robot: Geometry and joint models.
        loaded: Experiments with the load.
        unloaded: Experiments without it.
        link: Link that carries the load; the last body's by default.
        arm: What is known of the arm where there is no unloaded run: all that its model says (see `identify_payload`),
            that within limits, or nothing (see `identify_end_link`).
        tare: A tool identified before.
        library: Known objects to recognise it among.
    """
    if arm == "unknown":
        if unloaded is not None or tare is not None:
            raise ArgumentError(
                "of an unknown arm only the last body with all that it carries is told: no run and no tool comes off",
                remedy="Leave unloaded and tare out, or say what is known of the arm.",
            )
        return _study(robot, identify_end_link(robot, loaded, link=link), (), library)
    stated = arm if isinstance(arm, ArmUncertainty) else None
    load = identify_payload(robot, loaded=loaded, unloaded=unloaded, link=link, arm=stated, tare=tare)
    return _study(robot, load, (), library)


def _mass_problems(mass: float, stderr: float) -> list[str]:
    """What makes a mass doubtful, with the interval of 95 % as far as a mass can be in it."""
    highest = mass + 1.96 * stderr
    if highest < 0.0:
        return [f"the mass is {mass:.3g} kg, below zero by more than its uncertainty"]
    interval = f"{max(mass - 1.96 * stderr, 0.0):.3g} to {highest:.3g} kg hold it with 95 %"
    if mass <= 0.0:
        return [f"the mass is {mass:.3g} kg: {interval}"]
    return [f"the mass is uncertain by {100 * stderr / mass:.0f} %: {interval}"] if stderr > 0.1 * mass else []


def _study(robot: Robot, load: Load, proposals: tuple[Proposal, ...], library: Sequence[KnownObject]) -> LoadStudy:
    known = not load.undetermined[9] and load.mass > 0.0
    return LoadStudy(
        robot=robot,
        load=load,
        proposals=proposals,
        advice=inertia_advice(load),
        recognition=recognise(load, library) if library and known else None,
    )


def _plain(values: float | Floats) -> Any:
    """Numbers as Python's own, None where they are not finite."""
    if isinstance(values, float):
        return values if np.isfinite(values) else None
    return [_plain(value) for value in values.tolist()] if values.ndim == 1 else [_plain(row) for row in values]
