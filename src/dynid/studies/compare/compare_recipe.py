"""The settings of a comparison of estimators: conditions, methods, numbers of runs."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.checks import check_number
from dynid.errors import ArgumentError
from dynid.settings import TomlSettings
from dynid.studies.compare.compared_methods import DEFAULT
from dynid.studies.compare.condition import Condition, conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRecipe(TomlSettings):
    """All settings of a comparison; every combination of the lists is a condition."""

    noise: tuple[float, ...] = (1e-4,)
    """Standard deviations of the noise of the positions [rad or m]."""
    torque_noise: tuple[float, ...] = (0.02,)
    """Standard deviations of the noise of the torques, as shares of each joint's rms torque."""
    rate: tuple[float, ...] = (100.0,)
    """Sampling rates of the log [Hz]."""
    quantisation: tuple[float, ...] = (0.0,)
    """Steps of the encoders [rad or m]."""
    gains: tuple[float, ...] = (0.0,)
    """Relative errors of the controller gains that estimators get."""
    start: tuple[float, ...] = (0.1,)
    """Relative errors of the parameters at the start."""
    methods: tuple[str, ...] = DEFAULT
    """Short names of estimators; "+f" low-passes the positions."""
    runs: int = 20
    """Number of logs per condition."""
    duration_s: float = 10.0
    """Duration of a log [s]."""
    amplitude: float = 0.8
    """Approximate excursion of the joints [rad or m]."""
    seed: int = 0
    """Seed of all random numbers."""
    jobs: int = 1
    """Number of processes that share the work."""
    scheduler: str | None = None
    """Address of a running Dask cluster that does the work instead, such as "tcp://10.0.0.5:8786"."""

    def __post_init__(self) -> None:
        """Refuse numbers that no comparison has."""
        self.settle_kinds()
        check_number("duration_s", self.duration_s, "a time above zero [s]")
        check_number("amplitude", self.amplitude, "an excursion above zero [rad or m]")
        for name, least in (("runs", 1), ("seed", 0), ("jobs", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name} is {getattr(self, name)}", remedy=f"Give {least} or more.")

    def conditions(self) -> tuple[Condition, ...]:
        """Every combination of the lists."""
        return tuple(
            conditions(
                position_std=self.noise,
                torque_std=self.torque_noise,
                rate_hz=self.rate,
                quantisation=self.quantisation,
                gain_error=self.gains,
                start_error=self.start,
            )
        )
