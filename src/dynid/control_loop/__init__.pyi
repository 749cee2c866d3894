# Types of the public names; written by tests/support/public_stub.py.

from dynid.control_loop.laws import Cascade as Cascade
from dynid.control_loop.laws import ComputedTorqueLaw as ComputedTorqueLaw
from dynid.control_loop.laws import PD as PD
from dynid.control_loop.laws import PID as PID
from dynid.control_loop.laws import UserLaw as UserLaw
from dynid.control_loop.laws import assumed_law as assumed_law
from dynid.control_loop.laws import read_law as read_law
from dynid.control_loop.loop import Loop as Loop
from dynid.control_loop.loop import ReferenceMotion as ReferenceMotion
from dynid.control_loop.simulator import simulate_loop as simulate_loop
