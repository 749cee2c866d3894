"""What can be known: the robot's parameters, their base combinations, and why some of them stay hidden."""

from dynid.identifiability.base_set import conversion_matrix
from dynid.identifiability.dh_frames import distal_base_parameters

__all__ = ["conversion_matrix", "distal_base_parameters"]
