# Types of the public names; written by tests/support/public_stub.py.

from dynid.control.bang_coast_bang import BangCoastBang as BangCoastBang
from dynid.control.control_simulation import Imperfections as Imperfections
from dynid.control.control_simulation import Simulation as Simulation
from dynid.control.control_simulation import simulate as simulate
from dynid.control.controllers import ComputedTorque as ComputedTorque
from dynid.control.controllers import FeedForward as FeedForward
from dynid.control.controllers import GravityCompensation as GravityCompensation
from dynid.control.controllers import OpenLoopTorque as OpenLoopTorque
from dynid.control.experiments import Tracking as Tracking
from dynid.control.experiments import hold_still as hold_still
from dynid.control.experiments import robustness as robustness
from dynid.control.experiments import track as track
from dynid.control.experiments import tracking_table as tracking_table
from dynid.control.experiments import with_wrong_parameters as with_wrong_parameters
from dynid.control.hand_guiding import Guiding as Guiding
from dynid.control.hand_guiding import Hand as Hand
from dynid.control.hand_guiding import HandGuiding as HandGuiding
from dynid.control.hand_guiding import guide_by_hand as guide_by_hand
from dynid.control.mujoco_plant import MujocoPlant as MujocoPlant
from dynid.control.plant import AdaptivePlant as AdaptivePlant
from dynid.control.plant import RungeKuttaPlant as RungeKuttaPlant
from dynid.control.two_rate import Bandwidths as Bandwidths
from dynid.control.two_rate import TwoRateStudy as TwoRateStudy
from dynid.control.two_rate import bandwidths as bandwidths
from dynid.control.two_rate import two_rate_study as two_rate_study
