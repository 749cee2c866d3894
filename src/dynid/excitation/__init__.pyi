# Types of the public names; written by tests/support/public_stub.py.

from dynid.excitation.collision_shapes import urdf_hulls as urdf_hulls
from dynid.excitation.criteria import Criterion as Criterion
from dynid.excitation.design import design_excitation as design_excitation
from dynid.excitation.energy_points import EnergyPoints as EnergyPoints
from dynid.excitation.energy_points import PointSequence as PointSequence
from dynid.excitation.energy_points import optimise_points as optimise_points
from dynid.excitation.excitation import Excitation as Excitation
from dynid.excitation.hulls import skeleton_hulls as skeleton_hulls
from dynid.excitation.limits import MotionLimits as MotionLimits
from dynid.excitation.limits import Workspace as Workspace
from dynid.excitation.measured import Measured as Measured
from dynid.excitation.point_design import design_energy_points as design_energy_points
from dynid.excitation.search import SearchSettings as SearchSettings
from dynid.excitation.trajectories.quintic import QuinticTrajectory as QuinticTrajectory
from dynid.excitation.trajectories.quintic import minimum_jerk as minimum_jerk
