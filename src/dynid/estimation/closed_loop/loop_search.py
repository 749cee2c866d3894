"""Estimators that simulate the control loop: what they declare, where they begin, and how far they go at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, Self, TypeVar

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.errors import EstimationError
from dynid.estimation.closed_loop.loop_stability import sample_poses
from dynid.estimation.equations import Factors, LoopedRuns, StreamedLogs
from dynid.estimation.estimate import Estimator
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.nearest import find_near_possible
from dynid.findings import Finding
from dynid.kernels import kernel


class LoopEstimator(Estimator, ABC):
    """An estimator that simulates the control loop of every experiment.

    Links and the robot's own terms are simulated, no other terms, and the simulation knows single samples only.
    """

    needs: ClassVar[tuple[type[Factors], ...]] = (LoopedRuns, StreamedLogs)
    accepts_terms: ClassVar[bool] = False
    accepts_band: ClassVar[bool] = False
    simulates_loop: ClassVar[bool] = True
    compares: ClassVar[Literal["torques", "instruments"]]
    """What of the simulated loop is compared with the measured one: torques, or nothing where the simulated motion only
    makes instruments, which need not follow the motion of the log."""


Result = TypeVar("Result")
Simulated = TypeVar("Simulated")
"""The simulation of all experiments, or what is kept of it."""
WORSE = 2.0
"""Steps that raise the misfit by more than this factor are shortened. Convention."""
ENOUGH = (0.02, 0.5, np.inf)
"""Misfits below which a start is used before the next one is tried. Convention."""
FINER = (1, 4)
"""Factors by which the integrator's steps are shortened, one after the other. Convention."""
HALVINGS = 6
"""How often a step is halved before it is given up. Convention."""


class WrongLawError(EstimationError):
    """No parameters make up for the control law; another start would not either."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchStart(Generic[Simulated]):
    """Where an iteration begins."""

    beta: Floats
    """(b,)"""
    motions: Simulated
    """Of the experiments with these parameters"""
    findings: tuple[Finding, ...]
    """What a person should know about the start."""


class LoopSearch(ABC, Generic[Simulated]):
    """Experiments in their loops, simulated with parameters that change."""

    __slots__ = ()

    equations: Factors

    @abstractmethod
    def attempt(self, beta: Floats, near: Simulated | None = None) -> Simulated | None:
        """The motion of every experiment; None where the loop is not stable or the robot leaves its reference."""

    @abstractmethod
    def misfit(self, motions: Simulated) -> float:
        """Squares of measured minus simulated torques over those of the measured ones, summed over the joints."""

    @abstractmethod
    def finer(self, factor: int) -> Self:
        """The same with more steps of the integrator between control instants."""

    def solve_from_starts(self, iterate: Callable[[Self, SearchStart[Simulated]], Result]) -> Result:
        """The result of the first start from which an iteration comes to an end.

        Where none does, all are tried once more with shorter steps of the integrator: the prior's friction and inertia,
        from which its steps follow, may be far off.

        Args:
            iterate: Goes on from a start, or raises EstimationError.

        Raises:
            WrongLawError: As the iteration does, at once: the law is the same from every start.
            EstimationError: No start follows the references, or none leads to an answer.
        """
        failure: EstimationError | None = None
        for factor in FINER:
            runs = self if factor == 1 else self.finer(factor)
            for start in runs.starts():
                try:
                    return iterate(runs, start)
                except WrongLawError:
                    raise
                except EstimationError as error:
                    failure = failure or error
        if failure is not None:
            raise failure
        raise EstimationError(
            "no start follows the references: neither a fit nor the robot's own values",
            remedy="Check the control law and the reference, or give the robot better prior values.",
        )

    def starts(self) -> Iterator[SearchStart[Simulated]]:
        """Where to begin: with weighted least squares, if that robot's torques are near the measured ones.

        Noise of differentiated positions makes least squares underrate inertia, at worst until the simulated robot
        hardly moves as it should. The robot's own values, and a physically possible fit, are then tried too, and the
        nearest to the measured torques comes first.
        """
        equations = self.equations
        tries: tuple[tuple[str, Callable[[], Floats]], ...] = (
            ("", lambda: equations.information.weight(refined_weights(equations)).solve(minimum_norm=True)),
            ("the robot's own values", lambda: equations.base.project(equations.robot.parameter_vector)),
            ("a physically possible fit", lambda: FeasibleWLS(prior_weight=1.0).solve(equations).values),
        )
        waiting: list[tuple[float, SearchStart[Simulated]]] = []
        for (origin, values), enough in zip(tries, ENOUGH, strict=True):
            beta = values()
            motions = self.attempt(beta)
            if motions is not None:
                start = SearchStart(beta, motions, _other_start_finding(origin) if origin else ())
                waiting.append((self.misfit(motions), start))
                waiting.sort(key=lambda entry: entry[0])
            while waiting and waiting[0][0] < enough:
                yield waiting.pop(0)[1]

    def advance(
        self,
        beta: Floats,
        wanted: Floats,
        motions: Simulated,
        normal: Floats,
        merit: Callable[[Simulated], float] | None = None,
    ) -> tuple[Floats, Simulated]:
        """The parameters on the way from beta to the wanted ones, as far as the robot still follows, and its motion.

        Where the wanted robot cannot be simulated, the way leads to a possible one near it.

        Args:
            beta: (b,) where it is.
            wanted: (b,) where to go.
            motions: Simulated with beta.
            normal: (b, b) information of the data, by which robots are near one another.
            merit: What must not grow much; the misfit of torques by default.

        Raises:
            EstimationError: Not even a small step is possible.
        """
        judge, best = merit or self.misfit, wanted
        limit = WORSE * judge(motions) + 1e-12
        for halvings in range(HALVINGS):
            values = beta + (wanted - beta) * 0.5**halvings
            found = self.attempt(values, motions)
            if found is not None and judge(found) <= limit:
                return values, found
            if halvings == 0:
                wanted = find_near_possible(self.equations, wanted, 0.5 * (normal + normal.T))
                found = self.attempt(wanted, motions)
                if found is not None and judge(found) <= limit:
                    return wanted, found
        raise EstimationError(
            "the simulated robot stops following its reference as soon as the estimate improves"
            if self._has_inertia(best)
            else "the estimate improves only towards a robot whose inertia is not positive, which cannot be simulated",
            remedy="Check the control law, or start from better prior values.",
        )

    def _has_inertia(self, beta: Floats) -> bool:
        """Whether a robot of base parameters (b,) has some in all directions."""
        evaluate = kernel(self.equations.robot, "inertia_matrix", symbolic_parameters=True)
        poses = np.concatenate([sample_poses(run) for run in self.equations.excerpts])
        return bool(eigvalsh(evaluate(poses, self.equations.representative(beta))).min() > 0.0)


def _other_start_finding(origin: str) -> tuple[Finding, ...]:
    message = f"the iteration started from {origin}, because least squares gives torques far from the measured ones"
    return (Finding(code="other-start", severity="note", where="estimate", message=message),)


def unsettled_finding(count: int) -> Finding:
    """The finding that an iteration ended after so many simulations before it settled."""
    message = f"the iteration has not settled after {count} simulations"
    return Finding(code="not-settled", severity="warning", where="estimate", message=message)
