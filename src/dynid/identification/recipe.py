"""The recipe of an identification: all settings by which logs are checked, processed, fitted and judged.

`dynid.identify` and ``dynid identify`` use the same recipe, so they give the same numbers. As a file a recipe is TOML
with the fields of `Recipe` as keys; ``dynid identify`` writes one into its run folder, ``--recipe FILE`` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dynid.checks import check_names
from dynid.diagnosis.refinement import FREEDOMS
from dynid.errors import ArgumentError
from dynid.estimators.registry import ESTIMATORS
from dynid.identification.log_part import HoldOut, read_hold_out
from dynid.identification.run_differences import DIFFERENCES
from dynid.processing.process import check_delay
from dynid.robot.model import Robot
from dynid.robot.term_names import USUAL_TERMS, known_terms
from dynid.settings import NotNegative, Number, Positive, TomlSettings
from dynid.terms.base import Term
from dynid.terms.springs import AngleHarmonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(TomlSettings):
    """All settings from logs to an identification and its validation on held-out data."""

    file_keys: ClassVar[tuple[str, ...]] = ("law",)
    """Fields that hold the path of a file; see `TomlSettings`."""

    terms: tuple[str, ...] = USUAL_TERMS
    """Terms that are added to every joint that lacks them: classes of `dynid.terms.TERMS` in lower case, with hyphens.
    Motors that turn several joints, by the gear matrix of the channel map, get a `Coupling` as well. An empty tuple
    adds nothing."""
    springs: tuple[str, ...] = ()
    """Names of joints with a spring, cylinder or counterweight whose torque depends on the joint's angle."""
    friction: Literal["rich", "plain"] = "rich"
    """Whether the links are fitted together with rich friction (with memory, with the load, another law over speed, a
    tilted base, each if it predicts left-out stretches better), or with plain friction alone."""
    estimator: str = "feasible"
    """Name of the estimator, a key of `dynid.estimators.registry.ESTIMATORS`."""
    law: str | None = None
    """File with the control law and its rate (TOML), for estimators that simulate the control loop; None assumes
    computed torque."""
    gate: bool = True
    """Whether logs are diagnosed first, and refused if the diagnosis finds an error."""
    cutoff_hz: Positive | Literal["auto"] | None = "auto"
    """Cutoff of the low-pass of the positions [Hz]; "auto" takes one for all logs from the spectra
    of their positions, None filters nothing."""
    band_hz: Positive | None = None
    """Upper end of the band in which torques are fitted and compared [Hz]; None for all frequencies."""
    delay_s: Number | Literal["auto"] = 0.0
    """Delay of the torques behind the positions [s]; "auto" estimates it from each log."""
    dead_band: NotNegative | None = None
    """Speed below which the samples of a joint are left out [rad/s or m/s]. None leaves out standstill, where dry
    friction can have any value up to its limit. With a number, also 0, standstill counts in held-out data."""
    max_gap_s: Positive | None = None
    """Longest step of the clock that does not count as a gap [s]; None for three sampling periods."""
    per_run: tuple[str, ...] = ()
    """What may differ from run to run: "offset", "friction", "trend", "warming" (see
    `dynid.identification.run_differences`)."""
    free: tuple[str, ...] = ()
    """Errors of geometry that are estimated together with the parameters: "zeros" of encoders, "lengths" of links,
    "tilt" of the base, "angles" between axes (see `dynid.diagnosis.refinement`); the identified robot is corrected by
    them."""
    hold_out: str | None = None
    """Part of every log that is held out for the validation: "40%", "12:16" [s] or "every:3:0.75" [s] (see
    `dynid.identification.log_part.read_hold_out`)."""
    limit_percent: Positive = 15.0
    """Largest relative torque error on held-out data that passes [%] (convention)."""

    def __post_init__(self) -> None:
        """Check every setting: its type and range, then names and rules."""
        self.settle_kinds()  # types and ranges, from the annotations
        check_names("terms", self.terms, known_terms())
        check_names("estimator", (self.estimator,), ESTIMATORS)
        check_delay("delay_s", self.delay_s)
        check_names("per_run", self.per_run, DIFFERENCES)
        check_names("free", self.free, FREEDOMS)
        if self.hold_out is not None:
            read_hold_out(self.hold_out)

    @classmethod
    def bare(cls, **settings: Any) -> Recipe:
        """Make the recipe that adds nothing to the robot: no terms, plain friction.

        Args:
            **settings: Other fields of the recipe.
        """
        nothing: dict[str, Any] = {"terms": (), "friction": "plain"}
        return cls(**nothing | settings)

    @property
    def hold_out_rule(self) -> HoldOut | None:
        """Rule that selects the held-out part of every log; None if nothing is held out."""
        return None if self.hold_out is None else read_hold_out(self.hold_out)

    def spring_terms(self, robot: Robot) -> tuple[Term, ...]:
        """Make two terms per spring: its torque is a cosine and a sine of the joint's angle.

        A spring on a lever gives a torque of this form, as does a counterweight; MJCF can hold it as a tendon.

        Raises:
            ArgumentError: The robot has no such joint.
        """
        for name in self.springs:
            if name not in robot.joint_names:
                known = ", ".join(robot.joint_names)
                raise ArgumentError(f"springs: there is no moving joint '{name}'", remedy=f"The joints are: {known}.")
        joints = [robot.joint_names.index(name) for name in dict.fromkeys(self.springs)]
        return tuple(AngleHarmonic(joint=joint, sine=sine) for joint in joints for sine in (False, True))
