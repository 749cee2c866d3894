"""Robot models to try methods on: the robots of the papers and current industrial arms, from published data."""

from dynid.robot.zoo.catalogue import get, names
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
