# Types of the public names; written by tests/support/public_stub.py.

from dynid.estimators.closed_loop.loop_estimator import DIDIM as DIDIM
from dynid.estimators.closed_loop.loop_estimator import InstrumentalVariables as InstrumentalVariables
from dynid.estimators.equations import Samples as Samples
from dynid.estimators.equations import build_equations as build_equations
from dynid.estimators.estimate import Estimate as Estimate
from dynid.estimators.estimate import Estimator as Estimator
from dynid.estimators.linear.energy_differences import Energy as Energy
from dynid.estimators.linear.least_squares import OLS as OLS
from dynid.estimators.linear.least_squares import WLS as WLS
from dynid.estimators.linear.link_by_link import LinkByLink as LinkByLink
from dynid.estimators.linear.minimum_norm import Ridge as Ridge
from dynid.estimators.linear.minimum_norm import TruncatedSVD as TruncatedSVD
from dynid.estimators.linear.reduced_set import ReducedSet as ReducedSet
from dynid.estimators.linear.robust import Huber as Huber
from dynid.estimators.online.online_energy import OnlineEnergy as OnlineEnergy
from dynid.estimators.online.online_least_squares import OnlineLeastSquares as OnlineLeastSquares
from dynid.estimators.online.online_links import OnlineLinkByLink as OnlineLinkByLink
from dynid.estimators.online.online_links import excitation_table as excitation_table
from dynid.estimators.perturbation import estimate_bounds as estimate_bounds
from dynid.estimators.perturbation import perturbation_bounds as perturbation_bounds
from dynid.estimators.physical.bounds import Bounds as Bounds
from dynid.estimators.physical.feasible import FeasibleWLS as FeasibleWLS
from dynid.estimators.registry import estimators as estimators
