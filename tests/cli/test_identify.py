"""The verb identify: parts kept aside, bands, springs, estimators, the terms it selects by itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dynid
from dynid.cli import main
from dynid.estimators.rows import torque_of_terms
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.urdf import read_urdf, write_urdf
from dynid.robot.zoo import scara
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic
from estimators.planted import arm, planted_run
from support.header_styles import write_columns

ROBOT = scara().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
SPRING = ("--set", "friction=plain", "--set", f"springs={ROBOT.joint_names[0]}")
MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..%d}"
unit = [%s]
[effort]
columns = "tau{1..%d}"
unit = [%s]
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot, a log in which joint 1 has a spring, a map."""
    folder = tmp_path_factory.mktemp("bench")
    write_urdf(scara(), folder / "arm.urdf")
    n = ROBOT.dof
    log = simulate_experiment(ROBOT, sum_of_sines(n, seed=1), rate_hz=100, duration_s=12, noise=Noise(effort=0.05))
    spring = 3.0 * np.sin(log.q[:, :1]) * (np.arange(n) == 0)
    names = ["t", *(f"{what}{j + 1}" for what in ("q", "tau") for j in range(n))]
    write_columns(folder / "run.csv", names, [log.time, log.q, log.effort + spring])
    slides = [joint.kind == "prismatic" for joint in ROBOT.moving_joints]
    units = [", ".join(f'"{a if s else b}"' for s in slides) for a, b in (("m", "rad"), ("N", "N m"))]
    (folder / "map.toml").write_text(MAP % (n, units[0], n, units[1]))
    return folder


def identify(folder: Path, *options: str, log: str = "run.csv") -> Result:
    words = ["identify", folder / "arm.urdf", folder / log, "--map", folder / "map.toml", "--out", folder / "res"]
    return CliRunner().invoke(main, [*map(str, words), "--force", "--no-check", *options])  # the sines leave its limits


def test_a_spring_can_be_told(bench: Path) -> None:
    options = (*SPRING, "--hold-out", "every:3:1", "--set", "band_hz=8", "--json")
    result = identify(bench, *options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    sine = next(entry for entry in found["base_parameters"] if entry["name"] == "HS1_1")
    assert sine["value"] == pytest.approx(3.0, rel=0.1)
    assert found["validation"]["band_hz"] == found["band_hz"] == 8.0
    assert identify(bench, "--set", "springs=elbow").exit_code == 2


def test_a_stated_spring_stays_in_the_rich_model() -> None:
    terms = [AngleHarmonic(joint=0, sine=sine) for sine in (False, True)]
    run = planted_run(arm(), noise=0.01, samples=1500)
    run = replace(run, effort=run.effort + torque_of_terms(arm(), terms, np.full(2, 0.8), run))
    found = dynid.identify(arm(), run, dynid.Recipe(springs=("joint1",)))
    assert {"HC1_1", "HS1_1"} <= {term.name for term in found.terms}


def test_the_identified_robot_comes_as_urdf_and_mjcf(bench: Path) -> None:
    result = identify(bench, "--set", "friction=plain", "--hold-out", "30%", "--set", "limit_percent=99", "--json")
    found = json.loads((bench / "res" / "result.json").read_text())
    assert result.exit_code == 0, result.output
    judged = found["validation"]["relative_error_percent"]
    for kind, reader in (("URDF", read_urdf), ("MJCF", read_mjcf)):
        entry = next(file for file in found["files"] if file["format"] == kind)
        assert reader(bench / "res" / entry["file"]).joint_names == ROBOT.joint_names
        assert entry["judged_error_percent"] == judged
        assert entry["relative_error_percent"] > 0.0


def test_a_large_log_is_read_in_pieces(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.identification import log_reader

    table = np.genfromtxt(bench / "run.csv", delimiter=",", names=True)
    np.save(bench / "run.npy", table)
    table["tau1"] += 0.01  # another log, so that it may judge
    np.save(bench / "held.npy", table)
    settings = ("cutoff_hz=12", "friction=plain", "limit_percent=50")  # its spring is not fitted
    words = ["--json", "--validate", str(bench / "held.npy"), *(word for one in settings for word in ("--set", one))]
    found = []
    for limit in (1e9, 1e-6):
        monkeypatch.setattr(log_reader, "LARGE_MB", limit)
        result = identify(bench, *words, log="run.npy")
        assert result.exit_code == 0, result.output
        assert ("piece by piece" in result.stderr) == (limit < 1.0)
        rows = json.loads(result.stdout)["base_parameters"]
        found.append(np.array([(row["value"], row["std"]) for row in rows]).T)
    (whole, std), (pieces, _) = found  # other blocks of time weigh data and prior a little differently
    assert (np.abs(whole - pieces) < 0.5 * std).all()
    assert (bench / "res" / "report.html").exists()
    kept = identify(bench, "--verbose", "--set", "friction=plain", "--hold-out", "30%")  # needs whole logs
    assert "piece by piece" not in kept.output
    assert "hold_out needs whole logs in memory" in kept.output
