"""Counts the calls that pass a log on, from one function to another, in the source as it stands.

Run ``python tests/support/call_count.py`` for the table, or with the folder of another version. A call counts if its
caller is reached from the start and one of its arguments is a log or what a log was turned into, by the argument's name
(`DATA`). Functions are found by their imports, and ``estimator.solve`` is that of the default estimator. A function
that is given an Estimate comes after it, and is not looked into.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "dynid"
DATA = frozenset(
    (
        "log",
        "logs",
        "data",
        "run",
        "runs",
        "train",
        "recording",
        "experiment",
        "experiments",
        "equations",
        "problem",
        "wide",
    )
)
"""Names of arguments that hold a log, or what it was turned into."""
WAYS = {
    "identify to Estimate": (
        "dynid.identification.identify",
        "identify",
        ("dynid.identification", "dynid.estimators"),
        60,
    )
}
"""Name -> module and function at the start, packages that are followed, and the most calls."""
SOLVE = ("dynid.estimators.physical.feasible", "estimate")
"""Where the default estimator solves equations."""
ENDS = (
    "dynid.identification.log_reader",
    "dynid.identification.log_part",
    "dynid.identification.given_data",
)
"""Modules that read logs: another way, which is not followed."""


class Module:
    """The functions of a file, and where its imported names come from."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_text())
        self.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        self.imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }


def calls(node: ast.FunctionDef) -> Iterator[str]:
    """Name of the called function, for every call in a function with a log as an argument."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            values = [*part.args, *(keyword.value for keyword in part.keywords)]
            bare = {v.value if isinstance(v, ast.Starred) else v for v in values}
            if any(isinstance(v, ast.Name) and v.id in DATA for v in bare):
                yield part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")


def count_calls(way: str, source: Path = SOURCE) -> tuple[int, list[str]]:
    """Number of calls that pass a log on, and the functions that make them, in the order in which they are reached."""
    start, name, packages, _ = WAYS[way]
    files = {".".join(("dynid", *p.relative_to(source).with_suffix("").parts)): p for p in source.rglob("*.py")}
    modules = {key: Module(path) for key, path in files.items() if key.startswith(packages)}

    def arguments(module: str, function: str) -> list[ast.arg]:
        return modules[module].functions[function].args.args

    waiting, seen, total, reached = [(start, name)], {(start, name)}, 0, list[str]()
    while waiting:
        here, function = waiting.pop(0)
        if any(isinstance(a.annotation, ast.Name) and a.annotation.id == "Estimate" for a in arguments(here, function)):
            continue
        reached.append(function)
        for called in calls(modules[here].functions[function]):
            place = SOLVE if called == "solve" else modules[here].imported.get(called, (here, called))
            if place[0] not in modules or place[1] not in modules[place[0]].functions:
                continue
            total += 1
            if place not in seen and place[0] not in ENDS:
                seen.add(place)
                waiting.append(place)
    return total, reached


if __name__ == "__main__":
    for way in WAYS:
        number, path = count_calls(way, *map(Path, sys.argv[1:2]))
        sys.stdout.write(f"{way}: {number} calls by {len(path)} functions: {', '.join(path)}\n")
