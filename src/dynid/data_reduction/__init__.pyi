# Types of the public names; written by tests/support/public_stub.py.

from dynid.data_reduction.information import Information as Information
from dynid.data_reduction.reduction import reduce_samples as reduce_samples
