# Types of the public names; written by tests/support/public_stub.py.

from dynid.identification.identify import Identification as Identification
from dynid.identification.recipe import Recipe as Recipe
from dynid.identification.rich.joint_friction import joint_friction as joint_friction
from dynid.identification.significance import significant_parameters as significant_parameters
from dynid.identification.validation import Validation as Validation
from dynid.identification.validation import validate as validate
