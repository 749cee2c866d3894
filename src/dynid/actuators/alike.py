"""Which joints are alike: whether one value serves several joints, such as the same joint of four legs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from dynid.actuators.identify_actuators import ActuatorEstimate
from dynid.errors import ArgumentError
from dynid.public_calls import public

__all__ = ["AlikeTest", "compare_joints", "compare_repeats"]

LEVEL = 0.05
"""Probability below which a common value is rejected. Convention."""


@dataclass(frozen=True, slots=True)
class AlikeTest:
    """Whether the values of some entries are equal within what the intervals say."""

    kind: str
    names: tuple[str, ...]
    """The entries, or the runs, that were compared."""
    mean: float
    """Their common value, weighted by their covariance."""
    spread: float
    """Standard deviation of the values around it."""
    expected: float
    """Mean standard deviation that the intervals state."""
    p_value: float
    """Probability of differences as large as these if the true values are equal."""

    @property
    def alike(self) -> bool:
        """Whether one value serves all."""
        return self.p_value >= LEVEL


@public
def compare_joints(found: ActuatorEstimate, groups: Sequence[Sequence[str]]) -> tuple[AlikeTest, ...]:
    """Test for every kind and every group of joints whether they share one value (Wald's test).

    Args:
        found: An estimate with values for each joint.
        groups: Groups of joint names, such as the four hips, the four thighs and the four calves.

    Returns:
        One test per kind and group with two known values or more; open values and values at bounds are left out.

    Example:
        >>> dynid.actuators.compare_joints(servos, [pendulum.joint_names])
        ()
    """
    names = found.model.robot.joint_names
    for name in (name for group in groups for name in group):
        if name not in names:
            raise ArgumentError(f"no joint is called {name}", remedy=f"The joints are {', '.join(names)}.")
    tests = []
    for kind in dict.fromkeys(entry.kind for entry in found.model.entries):
        for group in groups:
            places = [
                k
                for k, entry in enumerate(found.model.entries)
                if entry.kind == kind
                and np.isfinite(found.std[k])
                and len(entry.joints) == 1
                and names[entry.joints[0]] in group
            ]
            if len(places) > 1:
                covariance = found.covariance[np.ix_(places, places)]
                shown = tuple(found.names[k] for k in places)
                tests.append(_test(kind, shown, found.values[places], covariance))
    return tuple(tests)


@public
def compare_repeats(runs: Sequence[ActuatorEstimate]) -> tuple[AlikeTest, ...]:
    """Whether estimates from repeated recordings differ by more than their intervals say; one test per entry.

    Args:
        runs: Estimates of the same model, each from its own recording.

    Example:
        >>> [test.alike for test in dynid.actuators.compare_repeats([servos, servos])]
        [True, True, True]
    """
    if len(runs) < 2 or any(run.names != runs[0].names for run in runs):
        raise ArgumentError("repeats are two estimates or more of one model", remedy="Fit each recording alone.")
    tests = []
    for k, name in enumerate(runs[0].names):
        values, std = np.array([run.values[k] for run in runs]), np.array([run.std[k] for run in runs])
        if np.isfinite(std).all():
            shown = tuple(run.errors[0].name for run in runs)
            tests.append(_test(name, shown, values, np.diag(std**2)))
    return tuple(tests)


def _test(kind: str, names: tuple[str, ...], values: np.ndarray, covariance: np.ndarray) -> AlikeTest:
    """Differences from the common value against their covariance."""
    n = len(values)
    floor = np.diag(np.maximum(1e-12 * values**2, 1e-300))
    weight = np.linalg.inv(covariance + floor)
    total = float(weight.sum())
    mean = float(weight.sum(axis=0) @ values / total)
    statistic = float((values - mean) @ weight @ (values - mean))
    return AlikeTest(
        kind=kind,
        names=names,
        mean=mean,
        spread=float(np.std(values, ddof=1)),
        expected=float(np.sqrt(np.mean(np.diagonal(covariance)))),
        p_value=float(chi2.sf(statistic, n - 1)),
    )
