"""docs/extending.md is true: all its files and diffs are applied to a copy of the package, and what they add works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
USES = {
    "robot": """
        import dynid
        assert dynid.base_parameters(dynid.robots.get("pendulum")).rank == 3
    """,
    "term": """
        import dynid
        from dynid.terms import TERMS, AirDrag
        assert AirDrag in TERMS
        assert "FD2" in dynid.parameter_layout(dynid.robots.scara().with_terms(AirDrag(0.3))).names
    """,
    "log format": """
        from pathlib import Path
        import dynid
        Path("run.bin").write_text("PAIRS\\nt 0.0\\nq1 0.25\\nt 0.1\\nq1 0.5\\n")
        columns = {"time": {"column": "t", "unit": "s"}, "position": {"columns": "q1", "unit": "rad"}}
        assert dynid.read_recording("run.bin", channel_map=columns).q.ravel().tolist() == [0.25, 0.5]
    """,
    "estimator": """
        import numpy as np
        import dynid
        from dynid.estimators import EverySecond, build_equations, estimators
        assert {entry.name: entry for entry in estimators()}["every-second"] is EverySecond
        assert dynid.Recipe(estimator="every-second").estimator == "every-second"
        path = lambda t: tuple(np.outer(np.sin(2 * t + k * np.pi / 2) * 2**k, [1.0, 0.5, 0.2]) for k in range(3))
        robot = dynid.robots.cylindrical()
        run = dynid.process(dynid.simulate_experiment(robot, path, rate_hz=100.0, duration_s=10.0))
        equations = build_equations(robot, [run])
        half, whole = (kind().solve(equations) for kind in (EverySecond, dynid.OLS))
        assert half.method == "least squares on every second sample"
        np.testing.assert_allclose(half.values, whole.values, rtol=0.05, atol=0.01)
    """,
    "suspect": """
        from dataclasses import replace
        import numpy as np
        import dynid
        from dynid.processing.simulation import Noise, simulate_experiment
        robot = dynid.robots.scara()
        size, speed = np.array([0.9, 0.8, 0.05, 1.2]), np.array([1.1, 1.7, 2.3, 2.9])
        path = lambda t: tuple(size * speed**k * np.sin(np.outer(t, speed) + k * np.pi / 2) for k in range(3))
        log = simulate_experiment(robot, path, rate_hz=100.0, duration_s=30.0, noise=Noise(effort=0.05), seed=1)
        log = replace(log, effort=log.effort + 20.0 * np.eye(4)[1] * log.q**3)
        found = [f for f in dynid.check_recording(log, robot).findings if f.severity != "note"]
        assert [(f.code, f.joint) for f in found] == [("spring", "joint2")], found
        assert "hardens" in found[0].message, found
    """,
}
"""Title of a section, without its article -> a program that uses what the section adds."""


def sections() -> dict[str, str]:
    parts = re.split(r"^## \.\.\. an? ", PAGE, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part for part in parts}


def apply_diff(root: Path, diff: str) -> None:
    """Replace the old lines of every hunk, which must stand in the file exactly once, by the new ones."""
    for change in re.split(r"^--- a/\S+\n", diff, flags=re.MULTILINE)[1:]:
        name = re.match(r"\+\+\+ b/(\S+)\n", change)
        assert name, change
        path = root / name[1]
        text = path.read_text(encoding="utf-8")
        for hunk in re.split(r"^@@\n", change, flags=re.MULTILINE)[1:]:
            lines = [line or " " for line in hunk.splitlines()]
            old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in kinds) for kinds in (" -", " +"))
            assert text.count(old) == 1, f"{name[1]} has these lines {text.count(old)} times:\n{old}"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree with every addition of the page."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        if language == "diff":
            apply_diff(root, block)
        else:
            head, _, text = block.partition("\n")
            path = root / head.removeprefix("# ")
            assert not path.exists(), path
            path.write_text(text, encoding="utf-8")
    return root


def test_every_section_is_used() -> None:
    assert [title for title, text in sections().items() if "```" in text] == list(USES)


def test_an_addition_is_one_line_beside_its_file() -> None:
    added = {title: len(re.findall(r"^\+(?!\+\+)", text, re.MULTILINE)) for title, text in sections().items()}
    assert [added[title] for title in ("term", "log format", "estimator")] == [1, 1, 1]
    assert added["suspect"] == 2, "a row of a table, without a file"


def test_what_the_sections_add_works(extended: Path, tmp_path: Path) -> None:
    program = "\n".join(line.strip() for use in USES.values() for line in use.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(extended / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_added_files_pass_the_linter(extended: Path) -> None:
    new = re.findall(r"^# (src/\S+\.py)$", PAGE, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), *new],
        cwd=extended,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
