"""Generated code of all zoo robots and of many random ones through compilers, analysers and sanitizers.

Run: python tests/campaigns/c_robots.py [random robots, default 200] [states, default 100000]. Tools that are not
installed are left out. Every robot is checked against Python; every warning is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from dynid.export.c_check import FLAGS, _driver, check_code
from dynid.export.c_package import CPackage, generate_c
from dynid.export.c_reference import reference
from dynid.robot import zoo
from dynid.robot.model import Robot
from support.random_robots import random_robot

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
WARNINGS = [flag for flag in FLAGS if flag != "-O2"]
TIDY = "-checks=-*,bugprone-*,cert-*,clang-analyzer-*,-bugprone-easily-swappable-parameters"
SANITIZE = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def run(command: list[str], folder: Path, stdin: bytes = b"") -> bytes:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr + done.stdout).decode(errors='replace')[:3000]}")
    return done.stdout


def analyse(package: CPackage, folder: Path, states: int) -> None:
    package.write(folder)
    sources = [f"{package.name}.c", f"{package.name}_two_rate.c", f"{package.name}_selftest.c"]
    for compiler in COMPILERS:
        run([compiler, *WARNINGS, "-O1", "-c", *sources], folder)
    if shutil.which("cppcheck"):
        quiet = [
            "--suppress=missingIncludeSystem",
            "--suppress=unusedFunction",
            "--suppress=unmatchedSuppression",
        ]
        run(
            ["cppcheck", "--quiet", "--enable=all", "--inline-suppr", "--error-exitcode=1", *quiet, *sources[:2]],
            folder,
        )
    if shutil.which("clang-tidy"):
        run(["clang-tidy", "--quiet", TIDY, "--warnings-as-errors=*", *sources[:2], "--", "-std=c99"], folder)
    symbols = [line.split() for line in run(["nm", "-g", sources[0][:-1] + "o"], folder).decode().splitlines()]
    undefined = {s[-1] for s in symbols if s[-2] == "U"}
    assert undefined <= {n + f for n in ("sin", "cos", "sincos", "sqrt", "fabs") for f in ("", "f")}, undefined
    assert not any(s[-2] in "BDC" for s in symbols)
    answers = reference(package.text.model, tuple(package.text.tapes), states)
    (folder / "driver.c").write_text(_driver(package.text, answers))
    run([COMPILERS[0], *WARNINGS, *SANITIZE, sources[0], "driver.c", "-o", "driver", "-lm"], folder)
    names = ("q", "dq", "ddq", "torque", "values", "load")
    import numpy as np

    precision = np.float64 if package.text.precision == "double" else np.float32
    stream = np.concatenate([answers.inputs[name] for name in names], axis=1).astype(precision)
    run([str(folder / "driver")], folder, stream.tobytes())


def one(robot: Robot, states: int, **options: str) -> float:
    package = generate_c(robot, name="arm", **options)
    with tempfile.TemporaryDirectory() as folder:
        analyse(package, Path(folder), states)
    answers = reference(package.text.model, tuple(package.text.tapes), 1000)
    return max(check_code(package.text, package.files, answers, package.tolerance).values())


def main(count: int, states: int) -> int:
    tools = [*COMPILERS, *(tool for tool in ("cppcheck", "clang-tidy") if shutil.which(tool))]
    print(f"tools: {', '.join(tools)}")
    robots = [(name, zoo.get(name)) for name in zoo.names()]
    robots += [(f"random {s}", random_robot(s, tree=s % 3 == 0, joint_models=s % 2 == 0)) for s in range(count)]
    options: list[dict[str, str]] = [{}, {"load": "struct"}, {"parameters": "struct"}, {"precision": "float"}]
    failures, worst = 0, {"double": 0.0, "float": 0.0}
    for number, (name, robot) in enumerate(robots):
        chosen = options[number % len(options)]
        try:
            error = one(robot, states, **chosen)
            worst[chosen.get("precision", "double")] = max(worst[chosen.get("precision", "double")], error)
        except Exception as problem:
            failures += 1
            print(f"FAILED {name} {chosen}: {type(problem).__name__} {str(problem)[:1500]}", flush=True)
        if number % 10 == 9:
            print(f"{number + 1} of {len(robots)}, {failures} failed, largest error {worst}", flush=True)
    print(f"{len(robots)} robots, {states} states each under sanitizers, {failures} failed, largest error {worst}")
    return failures


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000))
