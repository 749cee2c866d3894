"""Counts the calls that pass a log on, from where it is read to its Experiment.

A call counts where a function on the way gives a parameter that is a log in any of its forms
(tables, columns, a recording, its stretches) to another function. Run: ``python tests/support/log_calls.py``
"""

from __future__ import annotations

import ast
import builtins
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "dynid"
FORMS = {"Log", "_OpenLog", "ColumnTable", "Picked", "Recording", "UniformRecording", "Stretch", "PreparedLog"}
"""Types of a log on its way."""
WAY = ("logs/reading.py", "logs/readers/__init__.py", "logs/conversion.py", "logs/columns.py", "logs/joint_order.py",
       "processing/process.py", "processing/uniform.py", "processing/timing.py", "processing/streaming.py",
       "identification/log_reader.py")  # fmt: skip
"""The files between a log file and an Experiment."""
PLAIN = {*dir(builtins), "replace", "Path", "_name", "_path", "_shares", "locate_errors", "torque_remedy", "_warn",
         "_refuse_empty", "refuse_or_warn"}  # fmt: skip
"""Functions of Python, and those that only take the name of a log or say something about it."""


def calls_with_logs(path: Path) -> list[str]:
    """Names of the functions that a file passes a log to, one for each call."""
    found = []
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        arguments = [*function.args.args, *function.args.kwonlyargs]
        logs = {each.arg for each in arguments if each.annotation is not None and _is_log(each.annotation)}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            name = ast.unparse(call.func).rpartition(".")[2]
            if name not in PLAIN and any(isinstance(each, ast.Name) and each.id in logs for each in given):
                found.append(name)
    return found


def _is_log(annotation: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in FORMS for node in ast.walk(annotation))


def count() -> int:
    """Number of calls on the whole way."""
    return sum(len(calls_with_logs(SOURCE / file)) for file in WAY)


if __name__ == "__main__":
    for file in WAY:
        sys.stdout.write(f"{file}: {' '.join(calls_with_logs(SOURCE / file))}\n")
    sys.stdout.write(f"{count()} calls\n")
