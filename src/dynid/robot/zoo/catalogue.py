"""The zoo by name."""

from __future__ import annotations

from collections.abc import Callable

from dynid.errors import ArgumentError
from dynid.robot.model import Robot
from dynid.robot.zoo import classic_arms as classic
from dynid.robot.zoo import industrial_arms as industrial
from dynid.robot.zoo import paper_arms as papers

__all__ = ["get", "names"]

_MAKERS: dict[str, Callable[[], Robot]] = {
    name: getattr(module, name) for module in (papers, classic, industrial) for name in module.__all__
}


def names() -> tuple[str, ...]:
    """Names of all robots of the zoo, in alphabetical order."""
    return tuple(sorted(_MAKERS))


def get(name: str) -> Robot:
    """The robot of that name, with the default arguments of its function.

    Raises:
        ArgumentError: There is no such robot; the error lists those there are.
    """
    if name not in _MAKERS:
        raise ArgumentError(f"the zoo has no robot '{name}'", remedy=f"It has: {', '.join(names())}.")
    return _MAKERS[name]()
