# Types of the public names; written by tests/support/public_stub.py.

from dynid.diagnosis.log_check import check_recording as check_recording
from dynid.diagnosis.refinement import find_delay as find_delay
from dynid.diagnosis.refinement import refine_geometry as refine_geometry
