# Types of the public names; written by tests/support/public_stub.py.

from dynid.information.information import Information as Information
from dynid.information.reduction import reduce_samples as reduce_samples
