"""What a design is asked for: the goal of the motion, the effort of the search, and the complete task of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number, as_whole
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError
from dynid.excitation.criteria import ColumnScaled, ConditionNumber, Criterion, InformationCriterion
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import Measured
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.excitation.excitation import Excitation


_PRIOR_ROUNDING = 1e-9
"""Asymmetry and negative eigenvalues of a prior, relative to its largest entry, that count as rounding. Convention."""
_OFFERED = "ColumnScaled(ConditionNumber()), DOptimality(), AOptimality(), EOptimality() or PredictedDeviation(...)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DesignGoal:
    """What a motion shall reveal, and from which measurements."""

    observation: Measured | None = None
    """The measured quantities and the parameters that they shall reveal: `JointTorques.of` with the robot's noise,
    `LoadWrench` for a load beyond a wrist sensor, `LoadTorques` for a load on a known robot. By default the robot's
    base parameters from joint torques with a noise of 1 N m or N."""
    criterion: Criterion = field(default_factory=lambda: ColumnScaled(ConditionNumber()))
    """The number to minimise, a function of the information: by default the condition number of the observation matrix
    with columns of unit length. A `WeightedCost` or `GeometricCost` of such criteria is one too; `Equilibrium` is not,
    because it needs every entry of the observation matrix, and torques have entries that are always zero."""
    rate_hz: float = 100.0
    """Independent measurements per second [Hz]. The predicted accuracy and the weight of the prior depend on it."""
    prior: ArrayLike | None = None
    """(b, b) information of earlier runs, for example `Excitation.information`: the motion then fills the gaps
    [inverse of the product of the parameters' units]."""
    speed_coverage: float = 0.0
    """Share (0 to 1) of its speed limit that each joint shall reach in both directions where its range allows it; for
    friction models that depend on the speed."""

    def __post_init__(self) -> None:
        """Refuse what is no criterion, no rate, no share or no information."""
        _information_criterion(self.criterion)
        object.__setattr__(self, "rate_hz", as_number("rate_hz", self.rate_hz, above=0.0))
        object.__setattr__(
            self, "speed_coverage", as_number("speed_coverage", self.speed_coverage, least=0.0, most=1.0)
        )
        if self.prior is not None:
            object.__setattr__(self, "prior", _symmetric_information(self.prior))

    @property
    def information_criterion(self) -> InformationCriterion:
        """The criterion as a function of the information alone."""
        return _information_criterion(self.criterion)

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
    """Where a search looks, and how long."""

    family: LinearTrajectory | None = None
    """The family of trajectories to search, for example `SplineTrajectory.still`; its own coefficients do not matter.
    By default a Fourier series."""
    initial: Excitation | LinearTrajectory | None = None
    """An earlier design to continue from, in addition to the random starts; its path is run in the new time."""
    starts: int = 2
    """Number of random starts; 0 is allowed with ``initial``."""
    time_limit_s: float = 60.0
    """Time after which the search stops and the best motion so far is returned [s]."""
    processes: int = 1
    """Number of processes that share the starts; a script that asks for several needs the usual main guard."""
    scheduler: str | None = None
    """Address of a Dask cluster that runs the starts instead, each with the whole time limit."""
    iterations: int = 80
    """Steps of L-BFGS per outer iteration."""
    outer: int = 12
    """Outer iterations per start; the stages of the criterion share them."""
    weight: float = 10.0
    """Weight of the squared relative excess over the limits in the augmented Lagrangian."""

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        as_whole("starts", self.starts, least=1 if self.initial is None else 0)
        as_number("time_limit_s", self.time_limit_s, least=0.0)
        as_whole("processes", self.processes, least=1)
        as_whole("iterations", self.iterations, least=1)
        as_whole("outer", self.outer, least=0)
        as_number("weight", self.weight, above=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignTask:
    """All that a start of a search needs; it is sent to other processes where several share the starts."""

    robot: Robot
    """The robot with its true, not smoothed friction."""
    limits: MotionLimits
    """The limits that the motion keeps."""
    family: LinearTrajectory
    """The family of trajectories that is searched."""
    measured: Measured
    """The measured quantities and the parameters that they shall reveal."""
    criterion: InformationCriterion
    """The number to minimise."""
    prior: Floats | None
    """(b, b) information of earlier runs."""
    rate_hz: float
    """Independent measurements per second [Hz]."""
    speed_coverage: float
    """Share (0 to 1) of the speed limits to reach in both directions."""
    initial: LinearTrajectory | None
    """An earlier motion of the same family to continue from."""
    seed: int
    """Seed of the random starts."""
    starts: int
    """Number of random starts."""
    iterations: int
    """Steps of L-BFGS per outer iteration."""
    outer: int
    """Outer iterations per start."""
    weight: float
    """Weight of the squared relative excess over the limits."""
    begun: float
    """Time at which the search began, by `time.monotonic` [s]."""
    deadline: float
    """Time at which the search ends, by `time.monotonic` [s]."""

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
        return self.rate_hz * (end - start) / self.samples


def _information_criterion(criterion: object) -> InformationCriterion:
    """A criterion as a function of the information alone; others are refused."""
    if not isinstance(criterion, Criterion):
        raise ArgumentError(f"{criterion!r} is no criterion", remedy=f"Use {_OFFERED}.")
    found = criterion.as_information()
    if found is None:
        raise ArgumentError(
            f"{type(criterion).__name__} needs every entry of the observation matrix; the search sees information only",
            remedy=f"Use {_OFFERED}, or design_energy_points.",
        )
    return found


def _symmetric_information(prior: ArrayLike) -> Floats:
    """A prior (b, b) made exactly symmetric; refused where it is not finite, symmetric and positive semidefinite."""
    remedy = "Give Excitation.information."
    try:
        array = np.array(prior, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"prior is no matrix of numbers: {error}", remedy=remedy) from error
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ArgumentError(f"prior has shape {array.shape}, not (b, b)", remedy=remedy)
    scale = float(np.abs(array).max(initial=0.0))
    if not np.isfinite(array).all() or np.abs(array - array.T).max(initial=0.0) > _PRIOR_ROUNDING * scale:
        raise ArgumentError("prior must be finite and symmetric", remedy=remedy)
    if array.size and eigvalsh(array)[0] < -_PRIOR_ROUNDING * scale:
        raise ArgumentError(
            "prior must be positive semidefinite: a negative eigenvalue takes information away", remedy=remedy
        )
    return np.asarray(0.5 * (array + array.T))
