"""What estimators that simulate the control loop declare."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Literal

from dynid.estimation.equations import Factors, LoopedRuns, StreamedLogs
from dynid.estimation.estimate import Estimator

__all__ = ["LoopEstimator"]


class LoopEstimator(Estimator, ABC):
    """An estimator that simulates the control loop of every experiment.

    Links and joint models are simulated, no other terms, and the simulation knows single samples only.
    """

    needs: ClassVar[tuple[type[Factors], ...]] = (LoopedRuns, StreamedLogs)
    accepts_terms: ClassVar[bool] = False
    accepts_band: ClassVar[bool] = False
    compares: ClassVar[Literal["torques", "positions", "instruments"]]
    """What of the simulated loop is compared with the measured one: torques, positions, or nothing, where the simulated
    motion only makes instruments. Who compares positions learns the size of the torques from the control law alone;
    instruments need not follow the motion of the log."""
