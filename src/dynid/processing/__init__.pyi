# Types of the public names; written by tests/support/public_stub.py.

from dynid.processing.filters import Butterworth as Butterworth
from dynid.processing.filters import CentralDifferences as CentralDifferences
from dynid.processing.filters import MeasuredVelocity as MeasuredVelocity
from dynid.processing.uniform import Cleaning as Cleaning
