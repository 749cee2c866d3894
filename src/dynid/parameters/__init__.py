"""What can be known: the robot's parameters, their base combinations, and why some of them stay hidden."""

from dynid.dynamics.energy_recursion import (
    EnergyDerivatives,
    count_bound,
    energy_derivatives,
    energy_increment,
    energy_transport,
    potential_transport,
)
from dynid.parameters.base import base_parameters
from dynid.parameters.base_set import BaseParameters, conversion_matrix, convert_values
from dynid.parameters.dh_frames import DistalBase, distal_base_parameters, distal_frames
from dynid.parameters.layout import Parameter, ParameterLayout, parameter_layout

__all__ = [
    "BaseParameters",
    "DistalBase",
    "EnergyDerivatives",
    "Parameter",
    "ParameterLayout",
    "base_parameters",
    "conversion_matrix",
    "convert_values",
    "count_bound",
    "distal_base_parameters",
    "distal_frames",
    "energy_derivatives",
    "energy_increment",
    "energy_transport",
    "parameter_layout",
    "potential_transport",
]
