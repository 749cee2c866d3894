"""Cache keys of what is made from a robot's equations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from dynid.robot.model import Robot

Fields = TypeVar("Fields", bound=Hashable)


class RobotKey(Generic[Fields]):
    """Cache key of something made from a robot's equations: equal for robots with the same equations."""

    __slots__ = ("_all", "fields", "robot")

    def __init__(self, robot: Robot, fields: Fields) -> None:
        """Build a key.

        Args:
            robot: The robot; only its fingerprint counts.
            fields: The other properties that tell one cached value from another; hashable.
        """
        self.robot, self.fields = robot, fields
        self._all = (robot.fingerprint, fields)

    def __hash__(self) -> int:
        return hash(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RobotKey) and self._all == other._all
