"""Generate, build and run the example controller: `python examples/controller/run.py [folder]`.

The plant is the PUMA 560 with rotors; the model has parameters one percent off, as an identification would leave them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import dynid
from dynid.export.c.c_check import FLAGS, find_compiler
from dynid.export.c.c_package import generate_c

ROTORS = (1.14, 4.71, 0.827, 0.2, 0.179, 0.193)
"""Reflected rotor inertias [kg m^2] (Armstrong, Khatib and Burdick 1986)."""


def robot() -> dynid.Robot:
    """The PUMA 560 with its rotors."""
    arm = dynid.robots.puma560()
    for name, inertia in zip(arm.joint_names, ROTORS, strict=True):
        arm = arm.with_terms(dynid.RotorInertia(inertia), joints=[name])
    return arm


def main(folder: Path) -> int:
    """Write both packages beside the controller, compile, run."""
    compiler = find_compiler()
    if compiler is None:
        print("no C compiler on this machine: install gcc or clang")
        return 1
    plant = robot()
    generate_c(plant, ["forward_dynamics"], name="plant", two_rate=False).write(folder, force=True)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], plant.parameter_vector.size)
    model = plant.with_parameters(plant.parameter_vector * (1.0 + 0.01 * signs))
    generate_c(model, ["inverse_dynamics"], name="model").write(folder, force=True)
    shutil.copy(Path(__file__).parent / "controller.c", folder)
    sources = ["controller.c", "model.c", "model_two_rate.c", "plant.c"]
    flags = [flag for flag in FLAGS if flag != "-Wconversion"]
    subprocess.run([compiler, *flags, *sources, "-o", "controller", "-lm"], cwd=folder, check=True)
    return subprocess.run([str(folder / "controller")], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) > 1:
        target = Path(sys.argv[1]).resolve()
        target.mkdir(parents=True, exist_ok=True)
        sys.exit(main(target))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
