"""Robot models to try methods on: the robots of the papers and current industrial arms, from published data."""

from __future__ import annotations

from collections.abc import Callable

from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.robot.zoo import classic_arms, industrial_arms, paper_arms
from dynid.robot.zoo.classic_arms import cartesian, cylindrical, scara, stanford
from dynid.robot.zoo.industrial_arms import iiwa14, panda, tx40, ur10, ur10e
from dynid.robot.zoo.paper_arms import ddarm, gautier_khalil_3r, puma260, puma560

__all__ = [
    "cartesian",
    "cylindrical",
    "ddarm",
    "gautier_khalil_3r",
    "get",
    "iiwa14",
    "names",
    "panda",
    "puma260",
    "puma560",
    "scara",
    "stanford",
    "tx40",
    "ur10",
    "ur10e",
]

_MAKERS: dict[str, Callable[[], Robot]] = {
    name: getattr(module, name) for module in (paper_arms, classic_arms, industrial_arms) for name in module.__all__
}
"""Name of a robot -> the function that builds it."""


def names() -> tuple[str, ...]:
    """Names of all built-in robots, in alphabetical order."""
    return tuple(sorted(_MAKERS))


def get(name: str) -> Robot:
    """Build the robot of that name, with the default arguments of its function.

    Raises:
        ArgumentError: There is no such robot; the error lists those there are.
    """
    if name not in _MAKERS:
        raise ArgumentError(f"there is no built-in robot '{name}'", remedy=f"There are: {', '.join(names())}.")
    return _MAKERS[name]()


def __getattr__(name: str) -> object:
    """Name the robots where a name is unknown."""
    raise AttributeError(f"dynid.robots has no '{name}'; the robots are {', '.join(names())}")
