"""What can be known: the robot's parameters, their base combinations, and why some of them stay hidden."""

from dynid.parameters.base_set import conversion_matrix, convert_values
from dynid.parameters.dh_frames import distal_base_parameters, distal_frames
from dynid.parameters.energy_recursion import (
    count_bound,
    energy_derivatives,
    energy_increment,
    energy_transport,
    potential_transport,
)

__all__ = [
    "conversion_matrix",
    "convert_values",
    "count_bound",
    "distal_base_parameters",
    "distal_frames",
    "energy_derivatives",
    "energy_increment",
    "energy_transport",
    "potential_transport",
]
