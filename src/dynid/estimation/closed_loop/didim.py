"""DIDIM ([Gautier2013]): parameters for which the simulated loop has the torques of the real one.

Along the simulated motion the torques are linear in the parameters, ``tau_sim = Y(q_sim) beta``; the motion itself
hardly depends on them where the loop is stiff. So every round is a linear least-squares problem. Measured positions are
not differentiated, so their noise does not bias the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dynid.arrays import Floats
from dynid.estimation.closed_loop.loop_estimator import LoopEstimator
from dynid.estimation.closed_loop.loop_runs import LoopRun, SimulatedMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class DIDIM(LoopEstimator):
    """Direct and inverse dynamic identification: minimises measured minus simulated torques ([Gautier2013]).

    The regressor of the simulated motion stands for the exact derivatives. Use it where the control law is known.
    """

    name: ClassVar[str] = "didim"
    title: ClassVar[str] = "DIDIM"
    use: ClassVar[str] = "only torques shall be compared, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Gautier2013",)
    compares_torques: ClassVar[bool] = True

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""

    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        columns = run.columns(motion) * run.run.valid[:, :, None]
        return columns, columns, run.torque_residual(motion)
