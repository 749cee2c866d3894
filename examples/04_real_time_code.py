"""Real-time C code of a robot's dynamics, compiled and compared where a compiler is present."""

import sys
import tempfile

import dynid
from dynid.export.c.c_check import find_compiler

code = dynid.generate_c(dynid.robots.puma560(), functions=["inverse_dynamics", "inertia_matrix", "gravity"])
print(code.summary())
if find_compiler() is None:
    sys.exit("no C compiler here: the code is generated, but not compared")
code.check(samples=100)
with tempfile.TemporaryDirectory() as folder:
    code.write(f"{folder}/puma560")
    print("compiled, compared with the model, and written")
