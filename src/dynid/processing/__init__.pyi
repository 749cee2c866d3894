# Types of the public names; written by tests/support/public_stub.py.

from dynid.processing.differentiation import CentralDifferences as CentralDifferences
from dynid.processing.differentiation import MeasuredVelocity as MeasuredVelocity
from dynid.processing.filters import Butterworth as Butterworth
from dynid.processing.rest import Rest as Rest
from dynid.processing.uniform import Cleaning as Cleaning
