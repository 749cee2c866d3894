"""What a command loads: heavy packages take longer than the work itself."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

from dynid.runs.run_folder import versions


def test_no_verb_is_loaded_before_it_is_asked_for():
    words = ("-c", "import sys; from dynid.cli import main; print(*(n for n in sys.modules if 'cli.verbs.' in n))")
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []


def test_the_versions_of_a_run_are_those_that_the_standard_library_knows() -> None:
    found = versions()
    for name in ("numpy", "llvmlite", "clarabel"):
        assert found[name] == importlib.metadata.version(name)
