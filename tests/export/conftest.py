from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dynid.export.c.c_check import FLAGS, find_compiler


@pytest.fixture(scope="session")
def compiler() -> str:
    path = find_compiler()
    if path is None:
        pytest.skip("no C compiler on this machine")
    return path


@pytest.fixture(scope="session")
def sanitized(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options of the compiler, with sanitizers where it has them."""
    folder: Path = tmp_path_factory.mktemp("probe")
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    checks = [*FLAGS, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    built = subprocess.run([compiler, *checks, "probe.c", "-o", "probe"], cwd=folder, capture_output=True)
    return list(FLAGS) if built.returncode else checks
