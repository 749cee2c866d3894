"""Which wrong code the tests notice: random changes of signs, operators and constants in numeric code.

``python tests/campaigns/mutants.py [COUNT] [SEED]`` changes one place after another in a copy of the source, runs the
tests of its folder and those that import its module until one fails, and prints what survived (about an hour for 60).
"""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("estimation", "processing", "diagnosis", "load", "export", "links", "parameters", "dynamics", "actuators")
"""Folders of numeric code."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
    ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
LONGEST_S = 240
"""Seconds of tests a place [s]; what was not noticed by then has survived."""


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Nodes of functions that can be changed, and what the change is."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in (part for statement in function.body for part in ast.walk(statement)):
            if isinstance(node, ast.BinOp) and type(node.op) in SWAPS and not is_text(node):
                yield node, type(node.op).__name__
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                yield node, type(node.ops[0]).__name__
            elif isinstance(node, ast.BoolOp):
                yield node, type(node.op).__name__
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                yield node, "USub"
            elif isinstance(node, ast.Constant) and type(node.value) is float and node.value not in (0.0, 1e-300):
                yield node, "float"


def is_text(node: ast.BinOp) -> bool:
    """Whether strings are put together."""
    parts = [node.left, node.right]
    return any(
        isinstance(p, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
        or (isinstance(p, ast.Constant) and isinstance(p.value, str))
        for p in parts
    )


def change(node: ast.AST) -> None:
    """Make the change in place."""
    if isinstance(node, ast.BinOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant):
        node.value = 2.0 * float(node.value)  # type: ignore[arg-type]


def is_noticed(source: Path, module: Path) -> bool:
    """Whether a test of the module's folder fails."""
    folder = module.relative_to(source / "dynid").parts[0]
    environment = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}:{ROOT / 'tests'}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests_of(folder, module.stem)]
    try:
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode != 0


def tests_of(folder: str, module: str) -> list[str]:
    """The tests of a folder, those that name the module first."""
    files = sorted((ROOT / "tests" / folder).glob("test_*.py"))
    return [str(file) for file in sorted(files, key=lambda file: f".{module} import" not in file.read_text())]


def main() -> None:
    """Change places one by one."""
    count, seed = map(int, [*sys.argv[1:], *("60", "1")[len(sys.argv) - 1 :]])
    draw, killed = random.Random(seed), 0
    files = [file for folder in FOLDERS for file in sorted((ROOT / "src/dynid" / folder).rglob("*.py"))]
    weights = [len(list(places(ast.parse(file.read_text())))) for file in files]
    for number in range(count):
        file = draw.choices(files, weights)[0]
        tree = ast.parse(file.read_text())
        node, kind = draw.choice(list(places(tree)))
        before = ast.unparse(node)
        change(node)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(shutil.copytree(ROOT / "src", Path(folder) / "src"))
            module = source / file.relative_to(ROOT / "src")
            module.write_text(ast.unparse(ast.fix_missing_locations(tree)))
            noticed = is_noticed(source, module)
        killed += noticed
        place = f"{file.relative_to(ROOT / 'src/dynid')}:{getattr(node, 'lineno', 0)}"
        verdict = "killed  " if noticed else "SURVIVED"
        print(f"{number + 1:3d} {verdict} {place} {kind}: {before} -> {ast.unparse(node)}", flush=True)
    print(f"{killed} of {count} killed ({100 * killed / count:.0f} %), seed {seed}")


if __name__ == "__main__":
    main()
