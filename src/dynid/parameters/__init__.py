"""What can be known: the robot's parameters, their base combinations, and why some of them stay hidden."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynid.parameters.layout import ParameterLayout
    from dynid.robot.model import Robot


class _Parameters(ModuleType):
    """The folder and the public function have one name; once the folder is loaded, ``dynid.parameters`` is it."""

    def __call__(self, robot: Robot) -> ParameterLayout:
        from dynid.parameters.layout import parameters

        return parameters(robot)


sys.modules[__name__].__class__ = _Parameters
