# Types of the public names; written by tests/support/public_stub.py.

from dynid.estimation.closed_loop.loop_estimator import DIDIM as DIDIM
from dynid.estimation.closed_loop.loop_estimator import InstrumentalVariables as InstrumentalVariables
from dynid.estimation.equations import Samples as Samples
from dynid.estimation.equations import build_equations as build_equations
from dynid.estimation.estimate import Estimate as Estimate
from dynid.estimation.estimate import Estimator as Estimator
from dynid.estimation.linear.energy_differences import Energy as Energy
from dynid.estimation.linear.least_squares import OLS as OLS
from dynid.estimation.linear.least_squares import WLS as WLS
from dynid.estimation.linear.link_by_link import LinkByLink as LinkByLink
from dynid.estimation.linear.minimum_norm import Ridge as Ridge
from dynid.estimation.linear.minimum_norm import TruncatedSVD as TruncatedSVD
from dynid.estimation.linear.reduced_set import ReducedSet as ReducedSet
from dynid.estimation.linear.robust import Huber as Huber
from dynid.estimation.online.online_energy import OnlineEnergy as OnlineEnergy
from dynid.estimation.online.online_least_squares import OnlineLeastSquares as OnlineLeastSquares
from dynid.estimation.online.online_links import OnlineLinkByLink as OnlineLinkByLink
from dynid.estimation.online.online_links import excitation_table as excitation_table
from dynid.estimation.perturbation import estimate_bounds as estimate_bounds
from dynid.estimation.perturbation import perturbation_bounds as perturbation_bounds
from dynid.estimation.physical.bounds import Bounds as Bounds
from dynid.estimation.physical.feasible import FeasibleWLS as FeasibleWLS
from dynid.estimation.registry import estimators as estimators
