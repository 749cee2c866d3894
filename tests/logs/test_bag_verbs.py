"""The folder of a ROS 2 bag as the log of the command line: inspect, identify, validate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from campaigns.log_writers import JOINTS, TIMES_NS, Planted, write_bag_folder
from dynid.cli import main
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia


def write_folder(folder: Path, seed: int) -> None:
    """A simulated run as a bag of two files."""
    robot = cylindrical().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
    path, noise = sum_of_sines(3, seed=seed), Noise(effort=0.05)
    run = simulate_experiment(robot, path, rate_hz=100, duration_s=8, noise=noise, seed=seed)
    assert run.dq is not None
    assert run.effort is not None
    stamps = TIMES_NS + np.round(1e9 * run.time).astype(np.int64)
    write_bag_folder(folder, Planted(stamps, run.q, run.dq, run.effort, np.zeros((stamps.size, 6))))


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_inspect_identify_and_validate_take_the_folder_of_a_bag(tmp_path: Path) -> None:
    first, second, chart = tmp_path / "one", tmp_path / "two", tmp_path / "map.toml"
    write_folder(first, 1)
    write_folder(second, 2)
    write_urdf(cylindrical(), tmp_path / "arm.urdf")
    proposed = run("inspect", first)
    assert proposed.exit_code == 0
    assert all(joint in proposed.stdout for joint in JOINTS)
    joints = ", ".join(f'"{joint}"' for joint in JOINTS)
    chart.write_text(f'profile = "joint_state"\njoints = [{joints}]\n')
    made = run("identify", tmp_path / "arm.urdf", first, "--map", chart, "--out", tmp_path / "res")
    assert made.exit_code == 0, made.output
    judged = run("validate", tmp_path / "res", second, "--map", chart)
    assert judged.exit_code == 0, judged.output
    again = run("validate", tmp_path / "res", first, "--map", chart)
    assert again.exit_code != 0
    assert "was used for the identification" in again.output
