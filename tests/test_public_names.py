"""The table of public names, its stub, and quick loading."""

from __future__ import annotations

import subprocess
import sys

from support.public_stub import PATH, stub


def test_the_stub_is_up_to_date() -> None:
    assert PATH.read_text() == stub(), "run: python tests/support/public_stub.py"


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "llvmlite", "clarabel")
    code = f"import sys, dynid, dynid.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
