"""Every part of the torque of many random robots' code, before it is printed as C, against Python; minutes, not hours.

Run: python tests/campaigns/c_parts.py [random robots, default 200] [first, default 0]. The robots are those of
c_robots.py, each with everything folded in, with a load, and with all parameters at run time. What is compared are the
recorded programs that the C is printed from: regrouping, frames and flat bodies are theirs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from dynid.export.c.c_functions import record_function
from dynid.export.c.c_model import build_model
from dynid.export.c.c_reference import reference
from dynid.tape import compile_tape
from support.random_robots import random_robot

PARTS = ("inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "friction", "energy")
OPTIONS = [("folded", None), ("folded", "struct"), ("struct", None)]
STATES = 50
TOLERANCE = 1e-12


def errors(seed: int, parameters: str, load: str | None) -> dict[str, float]:
    """Largest error of each part, relative to the size of its terms."""
    robot = random_robot(seed, tree=seed % 3 == 0, terms=seed % 2 == 0)
    model = build_model(robot, parameters=parameters, base=None, load=load)
    answers, found = reference(model, PARTS, STATES), {}
    inputs = {**answers.inputs, "parameters": answers.inputs["loaded"]}
    for part in PARTS:
        tape = record_function(model, part)
        values = compile_tape(tape, backend="numpy")(*(inputs[entry.name] for entry in tape.inputs))
        difference = np.abs(np.reshape(values, (STATES, -1)) - answers.expected[part])
        found[part] = float((difference / answers.scale[part]).max())
    return found


def main(count: int, first: int) -> int:
    failed, worst = 0, 0.0
    for seed in range(first, first + count):
        for options in OPTIONS:
            for part, error in errors(seed, *options).items():
                worst = max(worst, error)
                if not error <= TOLERANCE:
                    failed += 1
                    print(f"FAILED random {seed} {options}: {part} is off by {error:.1e}", flush=True)
    print(f"{count} robots x {len(OPTIONS)} x {len(PARTS)} parts: {failed} failed, largest error {worst:.1e}")
    return failed


if __name__ == "__main__":
    sys.exit(main(*(int(value) for value in (*sys.argv[1:3], *("200", "0")[len(sys.argv) - 1 :]))))
