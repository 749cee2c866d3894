"""Generated code of all zoo robots and of many random ones through compilers, analysers and sanitizers.

Run: python tests/campaigns/c_robots.py [random robots, default 200] [states, default 100000]; `make c-robots`. Tools
that are not installed are left out. Every robot is checked against Python at every state, in the program that the
address and undefined-behaviour sanitizers watch; every warning is a failure. Results go to out/c-robots.jsonl, one line
per package; a package that stands there already, with the same code, is not run again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"  # leaks are found by tracing, which containers forbid; nothing allocates

from dynid.export.c.c_check import FLAGS, compare, package_driver, reference
from dynid.export.c.c_package import CPackage, generate_c
from dynid.robot import zoo
from support.random_robots import random_robot

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
WARNINGS = [flag for flag in FLAGS if flag != "-O2"]
TIDY = "-checks=-*,bugprone-*,cert-*,clang-analyzer-*,-bugprone-easily-swappable-parameters"
SANITIZE = [*WARNINGS, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CHUNK = 5_000
LOG = Path("out/c-robots.jsonl")
OPTIONS: list[dict[str, str]] = [{}, {"load": "struct"}, {"parameters": "struct"}, {"precision": "float"}]
PATIENCE_S = 300
"""Of processor time: cppcheck follows values through long straight-line functions in more than linear time."""
LIBM = {name + suffix for name in ("sin", "cos", "sincos", "sqrt", "fabs") for suffix in ("", "f")}
COMPILERS_OWN = {"memset"}
"""clang clears long runs of zeros by it; even free-standing C has it."""


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr + done.stdout)[:3000]}")
    return done.stdout


def analyse(package: CPackage, folder: Path) -> str:
    """Compilers, symbols, analysers; says whether cppcheck came to its end."""
    package.write(folder)
    sources = [f"{package.name}.c", f"{package.name}_two_rate.c", f"{package.name}_selftest.c"]
    for compiler in COMPILERS:
        run([compiler, *WARNINGS, "-O1", "-c", *sources], folder)
        for source in sources[:2]:
            symbols = [line.split() for line in run(["nm", "-g", source[:-1] + "o"], folder).splitlines()]
            undefined = {s[-1] for s in symbols if s[-2] == "U"}
            assert undefined <= LIBM | COMPILERS_OWN, undefined
            assert not any(s[-2] in "BDC" for s in symbols), "global state"
            assert all(s[-1].startswith(f"{package.name}_") for s in symbols if s[-2] != "U"), symbols
    if shutil.which("clang-tidy"):
        run(["clang-tidy", "--quiet", TIDY, "--warnings-as-errors=*", *sources[:2], "--", "-std=c99"], folder)
    return cppcheck(sources[:2], folder)


def cppcheck(sources: list[str], folder: Path) -> str:
    if not shutil.which("cppcheck"):
        return "missing"
    quiet = [f"--suppress={what}" for what in ("missingIncludeSystem", "unusedFunction", "unmatchedSuppression")]
    command = ["cppcheck", "--quiet", "--enable=all", "--error-exitcode=1", "-D__GNUC__", *quiet, *sources]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=patience)
    if done.returncode > 0:
        raise RuntimeError(f"cppcheck: {(done.stderr + done.stdout)[:3000]}")
    return "stopped" if done.returncode else "clean"


def patience() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE_S, PATIENCE_S))


def agreement(package: CPackage, folder: Path, states: int) -> float:
    """Largest error against Python over all states, under the sanitizers."""
    text, worst = package.text, 0.0
    driver = package_driver(text, reference(text.model, text.answered, 1))
    program = driver.build(package.files, str(folder), SANITIZE)
    for seed in range(max(1, states // CHUNK)):
        answers = reference(text.model, text.answered, min(CHUNK, states), seed)
        errors = compare(text, driver.run(program, answers.rows), answers, package.tolerance)
        worst = max(worst, *errors.values())
    return worst


def one(name: str, number: int, states: int, known: dict[str, dict[str, object]]) -> dict[str, object]:
    """Take one robot through everything; what is known of the same code is not found out again."""
    robot = zoo.get(name) if number < len(zoo.names()) else random_of(number - len(zoo.names()))
    options = OPTIONS[number % len(OPTIONS)]
    package = generate_c(robot, name="arm", **options)
    code = "".join(package.files[f"{package.name}{end}"] for end in (".c", ".h", "_two_rate.c", "_two_rate.h"))
    spoken = re.sub(r"/\*.*?\*/", "", code, flags=re.S)  # comments change nothing
    key = hashlib.sha256(spoken.encode()).hexdigest()[:16] + f"-{states}"
    if key in known:
        return known[key]
    row: dict[str, object] = {"key": key, "robot": name, "options": options, "states": states}
    with tempfile.TemporaryDirectory() as folder:
        try:
            row["cppcheck"] = analyse(package, Path(folder))
            row["error"] = agreement(package, Path(folder), states)
        except Exception as problem:
            row["failed"] = f"{type(problem).__name__}: {str(problem)[:1500]}"
    with LOG.open("a") as log:
        log.write(json.dumps(row) + "\n")
    return row


def random_of(seed: int):
    return random_robot(seed, tree=seed % 3 == 0, terms=seed % 2 == 0)


def main(count: int, states: int) -> int:
    tools = [*COMPILERS, *(tool for tool in ("cppcheck", "clang-tidy") if shutil.which(tool))]
    print(f"tools: {', '.join(tools)}")
    LOG.parent.mkdir(exist_ok=True)
    lines = LOG.read_text().splitlines() if LOG.exists() else []
    known = {row["key"]: row for row in map(json.loads, lines) if "failed" not in row and row["cppcheck"] != "stopped"}
    names = [*zoo.names(), *(f"random {seed}" for seed in range(count))]
    rows: list[dict[str, object]] = []
    for number, name in enumerate(names):
        rows.append(one(name, number, states, known))
        if "failed" in rows[-1]:
            print(f"FAILED {name} {rows[-1]['options']}: {rows[-1]['failed']}", flush=True)
        if number % 5 == 4 or number + 1 == len(names):
            print(summary(rows, len(names)), flush=True)
    return sum("failed" in row for row in rows)


def summary(rows: list[dict[str, object]], total: int) -> str:
    good = [row for row in rows if "failed" not in row]
    worst = {
        kind: max(
            (row["error"] for row in good if (row["options"] == {"precision": "float"}) == (kind == "float")),
            default=0.0,
        )
        for kind in ("double", "float")
    }
    checked = Counter(row["cppcheck"] for row in good)
    return (
        f"{len(rows)} of {total}: {len(rows) - len(good)} failed, largest error {worst['double']:.1e} (double) "
        f"{worst['float']:.1e} (float), cppcheck {dict(checked)}"
    )


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000))
