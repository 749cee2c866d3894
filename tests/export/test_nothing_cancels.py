"""The text of generated C adds nothing that it subtracts again, such as ``x - (x + c)``."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dynid.export.c.c_package import generate_c
from dynid.robot import zoo

FUNCTIONS = ["inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "christoffel_coefficients"]
ASSIGNMENT = re.compile(r"const double (\w+) = ([^;]*);")
SUM = re.compile(r"(\w+) ([-+]) (\w+)")


def cancelling(text: str) -> list[str]:
    """Lines ``a = x - y`` where ``y = x + c`` and the like, read from the text alone."""
    found = []
    for function in text.split("\n}\n"):
        signed: dict[str, dict[str, int]] = {}
        for name, formula in ASSIGNMENT.findall(function):
            if match := SUM.fullmatch(formula):
                left, sign, right = match.groups()
                signed[name] = {left: 1, right: 1 if sign == "+" else -1}
        for name, parts in signed.items():
            for inner, sign in parts.items():
                twice = [x for x, own in signed.get(inner, {}).items() if parts.get(x) == -sign * own]
                found += [f"{name}: {x}" for x in twice]
    return found


@pytest.mark.parametrize("options", [{}, {"parameters": "struct"}, {"load": "struct"}], ids=str)
@pytest.mark.parametrize("name", ["puma260", "puma560", "stanford", "scara"])
def test_no_sum_takes_back_what_another_added(name: str, options: dict[str, Any]) -> None:
    code = generate_c(zoo.get(name), FUNCTIONS, **options)
    for file, text in code.files.items():
        if file.endswith(".c") and "selftest" not in file:
            assert len(ASSIGNMENT.findall(text)) > 20
            assert cancelling(text) == []


def test_the_reader_of_the_text_sees_what_cancels() -> None:
    assert cancelling("const double y = x + c;\nconst double a = x - y;\n}\n") == ["a: x"]
    assert cancelling("const double y = t - x;\nconst double a = y + x;\n}\n") == ["a: x"]
    assert cancelling("const double y = x + c;\nconst double a = x + y;\n}\n") == []
