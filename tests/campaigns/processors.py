"""The compiled functions on x86-64 processors with narrow and wide vectors, compared with plain NumPy.

Run ``make processors``. Each level of x86-64 (SSE2; AVX2 with fused products; AVX-512) is compiled in a process of its
own, where the rest of dynid believes to run on such a processor, and every function of a robot is compared with NumPy
for one state, for batches that fill vectors and for batches that do not. A level that this processor lacks runs under
qemu-user (``qemu-x86_64 -cpu max``) where that is installed, and is named as not run where it is not.

The instructions of the regressor's kernel are counted in its assembly text, those in loops once, and divided by the
samples in a vector.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

LEVELS = {
    "x86-64": ("SSE2", 2, 16, False),
    "x86-64-v3": ("AVX2", 4, 16, True),
    "x86-64-v4": ("AVX-512", 8, 32, True),
}
"""LLVM's name of a processor -> its vectors, doubles in one of them, vector registers, fused products."""
NEEDED = {"x86-64": (), "x86-64-v3": ("avx2", "fma"), "x86-64-v4": ("avx512f", "avx512dq", "avx512vl", "avx512bw")}
"""Level -> flags of /proc/cpuinfo without which it cannot run here."""
ROBOTS = ("puma560", "panda", "scara", "stanford")
SIZES = (1, 2, 3, 7, 8, 16, 49, 200, 1001)
AGREE = 1e-11
"""Largest difference from NumPy, relative to the largest number of a result (convention: some thousand roundings)."""


def compare(level: str) -> None:
    """Compile for a level, compare with NumPy, print the largest difference and the instructions as JSON."""
    from dynid.tape.llvm import engine

    _, lanes, registers, fused = LEVELS[level]
    believed = engine.Host(name=level, features="", lanes=lanes, registers=registers, fused=fused)
    engine._initialise()
    engine.host = lambda: believed  # before any other module asks which processor this is

    import llvmlite.binding as llvm
    import numpy as np

    import dynid
    from dynid import kernels
    from dynid.tape import compile_tape
    from dynid.tape.llvm.backend import STORE_BLOCK
    from dynid.tape.llvm.blocks import BlockLayout, BlockPrinter

    worst, checked, counts = 0.0, 0, {}
    for name in ROBOTS:
        robot = getattr(dynid.robots, name)().with_terms(*dynid.terms.usual_terms())
        for quantity, entry in kernels._QUANTITIES.items():
            compiled = kernels.kernel(robot, quantity)
            plain = compile_tape(compiled.tape, "numpy")
            for size in SIZES:
                states = np.random.default_rng(size).normal(size=(len(entry.states), size, robot.dof))
                found, expected = compiled(*states), plain(*states)
                pairs = [(found[k], expected[k]) for k in found] if isinstance(found, dict) else [(found, expected)]
                if not isinstance(found, dict):
                    pairs.append((compiled.single(*(state[0].copy() for state in states)), expected[0]))
                    pairs.append((compiled.single(*states), expected))
                for mine, right in pairs:
                    worst = max(worst, float(np.abs(mine - right).max() / max(np.abs(right).max(), 1e-300)))
                    checked += 1
        tape = kernels.kernel(robot, "regressor").tape
        module = llvm.parse_assembly(BlockPrinter(BlockLayout(tape), STORE_BLOCK, believed).text(False))
        module.triple = llvm.get_process_triple()
        text = engine._target_machine(0).emit_assembly(module)
        counts[name] = len(re.findall(r"^\t[a-z]", text, flags=re.MULTILINE)) / lanes
    print(json.dumps({"worst": worst, "checked": checked, "instructions": counts}))


def can_run(level: str) -> bool:
    """Whether this processor has what a level needs."""
    with open("/proc/cpuinfo") as file:
        flags = set(re.findall(r"\w+", next(line for line in file if line.startswith("flags"))))
    return flags.issuperset(NEEDED[level])


def main() -> None:
    """Run every level in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=LEVELS, help="compare one level in this process")
    options = parser.parse_args()
    if options.level:
        compare(options.level)
        return
    if platform.machine() not in ("x86_64", "AMD64"):
        sys.exit("this campaign needs an x86-64 processor, or a Python for x86-64 under qemu-user")
    wrong = 0
    for level, (vectors, *_) in LEVELS.items():
        emulator = [] if can_run(level) else ["qemu-x86_64", "-cpu", "max"]
        if emulator and shutil.which(emulator[0]) is None:
            print(f"{level} ({vectors}): not run, this processor lacks it and qemu-x86_64 is not installed")
            continue
        with tempfile.TemporaryDirectory() as cache:
            words = [*emulator, sys.executable, __file__, "--level", level]
            done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "DYNID_CACHE_DIR": cache})
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout)
        wrong += found["worst"] > AGREE
        counts = ", ".join(f"{name} {count:.0f}" for name, count in found["instructions"].items())
        where = "emulated" if emulator else "on this processor"
        print(f"{level} ({vectors}), {where}: {found['checked']} results, largest difference {found['worst']:.1e}")
        print(f"  instructions of the regressor per sample: {counts}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
