"""The recipe of an identification: how logs are read, checked, processed, fitted and judged.

`dynid.identify` and ``dynid identify`` use the same recipe, so they give the same numbers. A recipe is a TOML file with
the fields of `Recipe` as keys; ``dynid identify`` writes one into its run folder, ``--recipe FILE`` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from dynid.diagnosis.refined_geometry import check_freedoms
from dynid.engines.engine_names import check_engine
from dynid.errors import ArgumentError
from dynid.estimation.registry import ESTIMATORS
from dynid.links.common.run_differences import check_differences
from dynid.links.hold_out import HoldOut, read_hold_out
from dynid.links.log_part import check_part
from dynid.links.pruning import read_share
from dynid.parameters.base import Method
from dynid.processing.process import check_delay
from dynid.robot.model import Robot
from dynid.robot.term_names import USUAL_TERMS, known_terms
from dynid.settings import Count, NotNegative, Number, Positive, TomlSettings
from dynid.terms.base import Term
from dynid.terms.springs import AngleHarmonic

ControlRate = Annotated[float, Meta(gt=0.0, le=1e5, description="the rate of the control law [Hz], at most 1e5")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe(TomlSettings):
    """All settings from logs to an identification and its proof."""

    file_keys: ClassVar[tuple[str, ...]] = ("law",)

    terms: tuple[str, ...] = USUAL_TERMS
    """Terms that every joint without them gets: classes of `dynid.terms.TERMS` in lower case, with hyphens."""
    springs: tuple[str, ...] = ()
    """Joints with a spring, cylinder or counterweight that turns with the joint."""
    couplings: bool = True
    """Whether motors that turn several joints, by the gear matrix of the channel map, get a `Coupling`."""
    friction: Literal["rich", "plain"] = "rich"
    """Whether the links are fitted together with rich friction (with memory, with the load, another viscous law, a
    tilted base, each where it predicts left-out parts better), or with plain friction alone."""
    estimator: str = "feasible"
    """Name of the estimator."""
    base: Method | Literal["auto"] = "auto"
    """Set of base parameters in which the result is stated: "auto", or a method of `dynid.base_parameters`, such as
    "minimal-combinations" for Lin's."""
    significant: str | None = None
    """Share of a joint's largest torque, such as "1%", below which parameters are left out of a second model that is
    fitted again ([Izaguirre1992] section 7), for short real-time code; None makes no such model."""
    law: str | None = None
    """File with the control law (TOML), for estimators that simulate the control loop; None assumes computed torque."""
    control_rate_hz: ControlRate | None = None
    """Rate of the control law [Hz], a multiple of the log's; None assumes one."""
    stream: bool | Literal["auto"] = "auto"
    """Whether logs are read piece by piece, with plain friction alone; "auto" does so above 200 MB, or 2 GB if
    something in the recipe needs whole logs."""
    engine: Literal["local", "processes", "dask"] = "local"
    """Where logs are reduced: one after the other in this process, in a pool of processes, or on a Dask cluster. The
    last two read logs piece by piece, with plain friction alone; the result is the same for any number of workers."""
    workers: Count | None = None
    """Number of processes of the engine; None for as many as there are processors."""
    scheduler: str | None = None
    """Address of a running Dask cluster, such as "tcp://10.0.0.5:8786"; None starts one on this machine."""
    gate: bool = True
    """Whether logs are checked first, and refused when the check finds an error."""
    cutoff_hz: Positive | Literal["auto"] | None = "auto"
    """Cutoff of the low-pass of the positions [Hz]; "auto" takes one for all logs from the spectra
    of their positions, None filters nothing."""
    band_hz: Positive | None = None
    """Upper end of the band in which torques are fitted and compared [Hz]; None for all frequencies."""
    delay_s: Number | Literal["auto"] = 0.0
    """Delay of the torques behind the positions [s]; "auto" estimates it from each log."""
    dead_band: NotNegative = 0.0
    """Rows of a joint slower than this are left out [rad/s or m/s]."""
    rows: str | None = None
    """Rows of every log that are used, such as "100:5000", counted from 0; None for all."""
    time: str | None = None
    """Time of every log that is used since its start [s], such as "2.5:30"; None for all."""
    gravity: tuple[Number, ...] | None = None
    """Gravity (3,) in the frame of the robot's root link [m/s^2], such as 0, 0, 9.81 for a robot that hangs from a
    ceiling; None for that of the robot file."""
    max_gap_s: Positive | None = None
    """Longest step of the clock that is not a gap [s]; None for three sampling periods."""
    per_run: tuple[str, ...] = ()
    """What each run has for itself: "offset", "friction", "trend", "warming" (see
    `dynid.links.common.run_differences`)."""
    free: tuple[str, ...] = ()
    """Geometry that is estimated beside the parameters: "zeros" of encoders, "lengths" of links, "tilt" of the base,
    "angles" between axes (see `dynid.diagnosis.refined_geometry`); the identified robot has what was found."""
    hold_out: str | None = None
    """Part of every log that is held out for the proof: "40%", "12:16" [s] or "every:3:0.75" [s]."""
    judge_rest: bool = False
    """Whether standstill counts in held-out data; there dry friction can have any value up to its limit."""
    trim_s: NotNegative | None = None
    """Time left out at the ends of every stretch that is compared in a band [s]; None for the settling time."""
    limit_percent: Positive = 15.0
    """Largest relative torque error on held-out data that passes [%] (convention)."""

    def __post_init__(self) -> None:
        """Check every setting: its type and range, then names and rules."""
        self.settle_kinds()
        _check_names("terms", self.terms, known_terms())
        _check_names("estimator", (self.estimator,), ESTIMATORS)
        check_delay("delay_s", self.delay_s)
        check_part(self.rows, self.time, self.gravity)
        check_differences(self.per_run)
        check_freedoms(self.free)
        if self.hold_out is not None:
            read_hold_out(self.hold_out)
        if self.significant is not None:
            read_share(self.significant)
        check_engine(self.engine, self.workers, self.scheduler)

    @classmethod
    def bare(cls, **settings: Any) -> Recipe:
        """The recipe that adds nothing to the robot: no terms, no couplings, plain friction.

        Args:
            **settings: Other fields of the recipe.
        """
        nothing: dict[str, Any] = {"terms": (), "couplings": False, "friction": "plain"}
        return cls(**nothing | settings)

    @property
    def hold_out_rule(self) -> HoldOut | None:
        """Rule that selects the held-out part of every log."""
        return None if self.hold_out is None else read_hold_out(self.hold_out)

    def placed(self, robot: Robot) -> Robot:
        """The robot under the gravity of the recipe, if it states one."""
        return robot if self.gravity is None else robot.with_gravity(self.gravity)

    def spring_terms(self, robot: Robot) -> tuple[Term, ...]:
        """Torques of the springs: cosine and sine of the angles of their joints, which MJCF holds as tendons.

        Raises:
            ArgumentError: The robot has no such joint.
        """
        for name in self.springs:
            if name not in robot.joint_names:
                known = ", ".join(robot.joint_names)
                raise ArgumentError(f"springs: there is no moving joint '{name}'", remedy=f"The joints are: {known}.")
        joints = [robot.joint_names.index(name) for name in dict.fromkeys(self.springs)]
        return tuple(AngleHarmonic(joint=joint, sine=sine) for joint in joints for sine in (False, True))


def _check_names(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in tuple(known):
            raise ArgumentError(f"{key}: there is no '{name}'", remedy=f"Known names: {', '.join(known)}.")
