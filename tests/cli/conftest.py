"""One robot, its logs, maps and a finished run, which all tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.header_styles import write_columns

COMMANDS = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
"""
MAP = """[effort]
columns = ["tau1", "tau2", "tau3"]
unit = ["N m", "N", "N"]
"""


class Desk:
    """A folder with ``arm.urdf``, ``run1.csv`` to ``run3.csv``, ``map.toml`` and the finished run ``res``."""

    map = COMMANDS + MAP

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_urdf(cylindrical(), folder / "arm.urdf")
        (folder / "map.toml").write_text(self.map)
        robot = cylindrical().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
        for seed in (1, 2, 3):
            motion = sum_of_sines(3, seed=seed)
            run = simulate_experiment(robot, motion, rate_hz=100, duration_s=8, noise=Noise(effort=0.05), seed=seed)
            self.save(f"run{seed}", np.column_stack([run.time, run.q, np.asarray(run.effort)]))
        self.shown = self.identify("res", "--json")
        assert self.shown.exit_code == 0, self.shown.output

    def save(self, name: str, table: np.ndarray, joints: int = 3) -> None:
        """Write a log: time, then positions and torques of the joints."""
        names = ["t", *(f"{what}{j + 1}" for what in ("q", "tau") for j in range(joints))]
        write_columns(self.folder / f"{name}.csv", names, [table])

    def table(self, name: str) -> np.ndarray:
        """Rows of a log."""
        return np.loadtxt(self.folder / f"{name}.csv", delimiter=",", skiprows=1)

    def run(self, *words: str | Path) -> Result:
        """Give a command; names of files in the folder stand for their paths."""
        return CliRunner().invoke(main, [self.path(word) for word in words])

    def path(self, word: str | Path) -> str:
        """The path of a file in the folder; other words stay."""
        return str(self.folder / word if (self.folder / word).exists() else word)

    def identify(self, out: str, *options: str) -> Result:
        """Identify from the first log, and judge on the second."""
        words = ("identify", "arm.urdf", "run1.csv", "--validate", "run2.csv", "--map", "map.toml")
        return self.run(*words, "--out", self.folder / out, *options)


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))
