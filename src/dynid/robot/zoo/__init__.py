"""Robots to try things on: the papers' robots and today's, from published geometry."""

from dynid.robot.zoo.industrial import panda
from dynid.robot.zoo.papers import puma560

__all__ = ["panda", "puma560"]
