"""What a design is asked for: the goal of the motion, the effort of the search, and the complete task of a search."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.excitation.criteria import Criterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import ROUNDING
from dynid.robot.model import Robot


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignGoal:
    """What a motion shall reveal, and from which measurements."""

    observation: Measured | None = None
    """The measured quantities and the parameters that they shall reveal: `Measured.joint_torques` with the robot's
    noise, `Measured.load_wrench` or `Measured.load_torques` for a load. By default the robot's base parameters from
    joint torques with a noise of 1 N m or N."""
    criterion: Any = "scaled-condition"
    """The `Criterion` to minimise, or what its terms may be; one of the information alone."""
    rate_hz: float = 100.0
    """Independent measurements per second [Hz]. The predicted accuracy and the weight of the prior depend on it."""
    prior: ArrayLike | None = None
    """(b, b) information of earlier runs, for example `Excitation.information`: the motion then fills the gaps
    [inverse of the product of the parameters' units]."""

    def __post_init__(self) -> None:
        """Refuse what is no criterion, no rate or no information."""
        criterion = Criterion.of(self.criterion)
        if criterion.needs_every_entry:
            raise ArgumentError(
                f"criterion: {criterion} needs every entry of the observation matrix; the search sees information only",
                remedy="Choose another measure, or design_energy_points.",
            )
        object.__setattr__(self, "criterion", criterion)
        as_number("rate_hz", self.rate_hz, above=0.0)
        if self.prior is not None:
            object.__setattr__(self, "prior", _as_information(self.prior))

    def prior_for(self, size: int) -> Floats | None:
        """The prior information (b, b) for b parameters; None without one.

        Raises:
            ArgumentError: The prior is about another number of parameters.
        """
        if self.prior is None:
            return None
        prior = np.asarray(self.prior, dtype=float)
        if prior.shape != (size, size):
            raise ArgumentError(
                f"prior has shape {prior.shape}, the parameters need ({size}, {size})",
                remedy="Give Excitation.information of the same robot and parameters.",
            )
        return prior


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchSettings:
    """How long a search looks, and from where."""

    initial: Any = None
    """An earlier design (`Excitation`) or Fourier series to continue from, in addition to the random starts; its path
    is run in the new time."""
    starts: int = 2
    """Number of random starts; 0 is allowed with ``initial``."""
    time_limit_s: float = 60.0
    """Time after which the search stops and the best motion so far is returned [s]."""
    iterations: int = 80
    """Steps of L-BFGS per outer iteration."""
    outer: int = 12
    """Outer iterations per start; the stages of the criterion share them."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        as_whole("starts", self.starts, least=1 if self.initial is None else 0)
        as_number("time_limit_s", self.time_limit_s, least=0.0)
        as_whole("iterations", self.iterations, least=1)
        as_whole("outer", self.outer, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignTask:
    """All that a search needs."""

    robot: Robot
    """The robot with its true, not smoothed friction."""
    limits: MotionLimits
    """The limits that the motion keeps."""
    family: FourierTrajectory
    """A series of the period and the harmonics that are searched."""
    measured: Measured
    """The measured quantities and the parameters that they shall reveal."""
    goal: DesignGoal
    """What the motion shall reveal."""
    settings: SearchSettings
    """The effort of the search."""
    initial: FourierTrajectory | None
    """An earlier motion of the same family to continue from."""
    seed: int
    """Seed of the random starts."""
    begun: float = field(default_factory=time.monotonic)
    """Time at which the search began, by `time.monotonic` [s]."""

    @property
    def elapsed_s(self) -> float:
        """Time since the search began [s]."""
        return time.monotonic() - self.begun

    @property
    def is_late(self) -> bool:
        """Whether the time of the search is over."""
        return self.elapsed_s > self.settings.time_limit_s

    @property
    def prior(self) -> Floats | None:
        """(b, b) information of earlier runs."""
        return self.goal.prior_for(len(self.measured.names))

    @property
    def samples(self) -> int:
        """Number of samples over the recorded part: thirty per period of the fastest harmonic, at least 100.

        Convention: a Fourier series of K harmonics has 1 + 2 K coefficients, so 15 per coefficient are 30 per period.
        """
        return max(100, 15 * len(self.family.coefficients))

    @property
    def repetitions(self) -> float:
        """Number of real measurements that each of the samples stands for."""
        start, end = self.family.recorded
        return self.goal.rate_hz * (end - start) / self.samples


def _as_information(prior: ArrayLike) -> Floats:
    """A prior (b, b) made exactly symmetric; refused where it is not finite, symmetric and positive semidefinite."""
    try:
        array = np.array(prior, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    good = array.ndim == 2 and array.shape[0] == array.shape[1] and bool(np.isfinite(array).all())
    if good:
        rounding = ROUNDING * float(np.abs(array).max(initial=0.0))
        good = np.abs(array - array.T).max(initial=0.0) <= rounding and eigvalsh(array).min(initial=0.0) >= -rounding
    if not good:
        raise ArgumentError(
            "prior is no finite, symmetric and positive semidefinite matrix (b, b)",
            remedy="Give Excitation.information.",
        )
    return np.asarray(0.5 * (array + array.T))
