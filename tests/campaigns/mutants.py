"""Which wrong code the tests notice: random changes of signs, operators and constants in numeric code.

``python tests/campaigns/mutants.py [COUNT] [SEED] [FOLDER ...]`` changes places of the folders, drawn evenly among all,
one by one in two copies of the source. It runs the tests of the place's folder until one fails, those that name
something of its module first, and prints what survived.
"""

from __future__ import annotations

import ast
import os
import queue
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("estimators", "processing", "diagnosis", "payload", "export")
"""Folders of numeric code that places are drawn from."""
WORKERS = 2
"""Processes of tests at a time."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.And: ast.Or, ast.Or: ast.And, ast.Pow: ast.Mult,
}  # fmt: skip
LONGEST_S = 240
"""Processor time of tests for a place [s]; what was not noticed by then has survived."""
TOO_LONG = (-signal.SIGKILL, -signal.SIGXCPU)
"""What ends tests after that time."""


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Nodes of functions and of the module's constants that can be changed, and what the change is."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    constants = [node for node in getattr(tree, "body", []) if isinstance(node, ast.Assign)]
    for body in (*bodies, constants):
        for node in (part for statement in body for part in ast.walk(statement)):
            if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in SWAPS and not is_text(node):
                yield node, type(node.op).__name__
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                yield node, type(node.ops[0]).__name__
            elif isinstance(node, ast.BoolOp):
                yield node, type(node.op).__name__
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                yield node, "USub"
            elif isinstance(node, ast.Constant) and type(node.value) is float and node.value not in (0.0, 1e-300):
                yield node, "float"


def is_text(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether strings or lists are put together."""
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
    return any(
        isinstance(p, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
        or (isinstance(p, ast.Constant) and isinstance(p.value, str))
        for p in parts
    )


def change(node: ast.AST) -> None:
    """Make the change in place."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant):
        node.value = 2.0 * float(node.value)  # type: ignore[arg-type]


def tests_of(file: Path) -> list[list[str]]:
    """The tests of a module's folder: those that name something of it, most of all first, then the others."""
    folder = file.relative_to(ROOT / "src/dynid").parts[0]
    defined = re.findall(r"^(?:def|class) (\w+)", file.read_text(), re.MULTILINE)
    names = re.compile(rf"\b({'|'.join([f'{file.stem} import', *defined])})\b")
    found = {str(test): len(names.findall(test.read_text())) for test in (ROOT / "tests" / folder).glob("test_*.py")}
    ordered = sorted(found, key=lambda test: (-found[test], test))
    return [[t for t in ordered if found[t]], [t for t in ordered if not found[t]]]


def is_noticed(source: Path, file: Path) -> bool:
    """Whether a test of the module's folder fails with a copy of the source."""
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}:{ROOT / 'tests'}", "OPENBLAS_NUM_THREADS": "1"}
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (LONGEST_S, LONGEST_S))
    for tests in filter(None, tests_of(file)):
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, preexec_fn=limit)
        if ended.returncode != 0:
            return ended.returncode not in TOO_LONG
    return False


def try_place(copies: queue.Queue[Path], file: Path, place: int) -> tuple[bool, str]:
    """Whether a changed place is noticed, and the change in words."""
    tree, source = ast.parse(file.read_text()), copies.get()
    node, kind = list(places(tree))[place]
    before = ast.unparse(node)
    change(node)
    module = source / file.relative_to(ROOT / "src")
    try:
        module.write_text(ast.unparse(ast.fix_missing_locations(tree)))
        noticed = is_noticed(source, file)
    finally:
        shutil.copy2(file, module)
        copies.put(source)
    where = f"{file.relative_to(ROOT / 'src/dynid')}:{getattr(node, 'lineno', 0)}"
    return noticed, f"{where} {kind}: {before} -> {ast.unparse(node)}"


def main() -> None:
    """Draw the places and try them."""
    words = sys.argv[1:]
    count, seed = int(words[0]) if words else 60, int(words[1]) if words[1:] else 1
    files = [file for folder in words[2:] or FOLDERS for file in sorted((ROOT / "src/dynid" / folder).rglob("*.py"))]
    every = [(file, place) for file in files for place, _ in enumerate(places(ast.parse(file.read_text())))]
    drawn = random.Random(seed).sample(every, count)
    with_tests = {file.relative_to(ROOT / "src/dynid").parts[0]: file for file, _ in drawn}
    copies: queue.Queue[Path] = queue.Queue()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(WORKERS) as pool:
        for number in range(WORKERS):
            for part in ("src", "channel_maps"):  # the package finds its maps beside its source
                shutil.copytree(ROOT / part, Path(temporary) / str(number) / part)
            copies.put(Path(temporary) / str(number) / "src")
        for folder, file in with_tests.items():
            if is_noticed(copies.queue[0], file):
                raise SystemExit(f"tests of {folder} fail without any change")
        killed = 0
        for number, (noticed, told) in enumerate(pool.map(lambda one: try_place(copies, *one), drawn), start=1):
            killed += noticed
            print(f"{number:3d} {'killed  ' if noticed else 'SURVIVED'} {told}", flush=True)
    print(f"{killed} of {count} killed ({100 * killed / count:.0f} %), seed {seed}, {len(every)} places in all")


if __name__ == "__main__":
    main()
