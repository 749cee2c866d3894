# Types of the public names; written by tests/support/public_stub.py.

from dynid.robot.formats import read_robot as read_robot
from dynid.robot.formats.dh import StandardDH as StandardDH
from dynid.robot.formats.modified_dh import modified_dh as modified_dh
from dynid.robot.formats.simulator_models import to_mujoco as to_mujoco
from dynid.robot.formats.simulator_models import to_pinocchio as to_pinocchio
from dynid.robot.parts import JointLimits as JointLimits
