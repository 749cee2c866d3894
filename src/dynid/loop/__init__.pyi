# Types of the public names; written by tests/support/public_stub.py.

from dynid.loop.laws import Cascade as Cascade
from dynid.loop.laws import ComputedTorqueLaw as ComputedTorqueLaw
from dynid.loop.laws import PD as PD
from dynid.loop.laws import PID as PID
from dynid.loop.laws import UserLaw as UserLaw
from dynid.loop.laws import assumed_law as assumed_law
from dynid.loop.laws import read_law as read_law
from dynid.loop.loop import Loop as Loop
from dynid.loop.loop import ReferenceMotion as ReferenceMotion
from dynid.loop.simulator import simulate_loop as simulate_loop
