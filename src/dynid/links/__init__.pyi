# Types of the public names; written by tests/support/public_stub.py.

from dynid.links.identify import Identification as Identification
from dynid.links.recipe import Recipe as Recipe
from dynid.links.rich.joint_friction import joint_friction as joint_friction
from dynid.links.significance import significant_parameters as significant_parameters
from dynid.links.validation import Validation as Validation
from dynid.links.validation import cross_validate as cross_validate
from dynid.links.validation import validate as validate
