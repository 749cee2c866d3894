# Types of the public names; written by tests/support/public_stub.py.

from dynid.robot.check import check_robot as check_robot
from dynid.robot.formats import read_robot as read_robot
from dynid.robot.formats.dh import DH as DH
from dynid.robot.formats.dh import StandardDH as StandardDH
from dynid.robot.formats.dh import from_dh as from_dh
from dynid.robot.formats.mjcf.read import read_mjcf as read_mjcf
from dynid.robot.formats.mjcf.write import write_mjcf as write_mjcf
from dynid.robot.formats.modified_dh import modified_dh as modified_dh
from dynid.robot.formats.simulator_models import from_mujoco as from_mujoco
from dynid.robot.formats.simulator_models import from_pinocchio as from_pinocchio
from dynid.robot.formats.simulator_models import to_mujoco as to_mujoco
from dynid.robot.formats.simulator_models import to_pinocchio as to_pinocchio
from dynid.robot.formats.urdf import read_urdf as read_urdf
from dynid.robot.formats.urdf import snapped_joints as snapped_joints
from dynid.robot.formats.urdf import write_urdf as write_urdf
from dynid.robot.inertia import Inertia as Inertia
from dynid.robot.model import Robot as Robot
from dynid.robot.parts import Joint as Joint
from dynid.robot.parts import JointLimits as JointLimits
from dynid.robot.parts import Link as Link
