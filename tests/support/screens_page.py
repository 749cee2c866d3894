"""Writes docs/screens.md: the first screen of the verbs that make a run, on data that pass and on data that fail.

Run: ``PYTHONPATH=tests python tests/support/screens_page.py``. All robots and logs are simulated.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

import dynid
from dynid.cli import main
from dynid.processing.simulation import sum_of_sines
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.servos import PositionLaw, ServoModel, ServoParameter
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset
from support.header_styles import write_columns
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum
from support.three_joints import HEADER, MAP

PAGE = Path(__file__).parents[2] / "docs" / "screens.md"
MOST_LINES = 25
"""Lines of a screen."""
SERVO_MAP = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2"]
unit = "rad"
[reference]
columns = ["c1", "c2"]
unit = "rad"
"""
LAW = """kind = "position"
kp = {}
kd = {}
free = ["armature", "viscous", "coulomb"]
"""
SCREENS = {
    "identify, passed": "dynid identify arm.urdf run1.csv --validate run2.csv --map map.toml --out result",
    "identify, failed": "dynid identify arm.urdf run1.csv --validate loaded.csv --map map.toml --out failed",
    "load, passed": "dynid load arm.urdf loaded.csv --unloaded run1.csv --map map.toml --out load",
    "load, doubtful": "dynid load arm.urdf short.csv --arm 0.3,0.1 --map map.toml",
    "watch, quiet": "dynid watch result run3.csv --map map.toml",
    "watch, alarm": "dynid watch result pushed.csv --map map.toml --out watched",
    "fleet, one differs": "dynid fleet arm.urdf 'fleet/{arm}.csv' --map map.toml --set gate=false --out fleet-found",
    "fleet, all alike": "dynid fleet arm.urdf 'alike/{arm}.csv' --map map.toml --set gate=false --out fleet-alike",
    "excite, passed": "dynid excite ur10 --time-limit 3 --out plan",
    "excite, refused": "dynid excite arm.urdf --set floor=9 --out nothing",
    "actuate, usable": "dynid actuate legs.urdf sent.csv --law law.toml --map servo_map.toml --held-out 30%",
    "actuate, not usable": "dynid actuate legs.urdf sent.csv --law weak.toml --map servo_map.toml --held-out 30%",
}
"""Title -> command; later ones read what earlier ones wrote."""
QUICK = ("identify, passed", "watch, quiet", "watch, alarm", "excite, refused")
"""Titles of the screens that a test shows."""


LINKS = [dynid.Inertia.from_com(m, com, np.diag([0.2, 0.25, 0.1])) for m, com in (
    (12.0, (0.0, 0.0, -0.1)), (9.0, (0.25, 0.0, 0.05)), (5.0, (0.2, 0.01, 0.03)),
)]  # fmt: skip
ROWS = [DH(), DH(alpha=-90.0), DH(d=0.5, r=0.1)]
BELIEVED = from_dh(
    ROWS,
    degrees=True,
    name="arm",
    inertias=LINKS,
    limits=[JointLimits(lower=-2.5, upper=2.5, velocity=2.0, effort=150.0)] * 3,
)
"""The robot as its file describes it: 13 % lighter than it is, without friction."""


def arm(number: int, worn: bool = False, load_kg: float = 0.0) -> Robot:
    """One true arm: its friction scatters by 4 %; worn, joint 2 has twice the dry friction."""
    factor = 1.0 + 0.04 * np.random.default_rng(number).standard_normal()
    theta = 1.15 * BELIEVED.parameter_vector
    robot = BELIEVED.with_parameters(theta).with_terms(Viscous(2.0 * factor), Coulomb(3.0 * factor), Offset(0.2))
    robot = robot.with_terms(Coulomb(3.0, joint=1), keep=True) if worn else robot
    load = dynid.Inertia.from_com(load_kg, [0.02, 0.01, 0.08], 0.005 * np.eye(3))
    return robot.with_body("load", parent=robot.bodies[-1].joint.child, inertia=load) if load_kg else robot


def write_log(robot: Robot, path: Path, seed: int, push: bool = False, duration_s: float = 12.0) -> None:
    """A log of a motion of its own; with a push against joint 2 after 6 s."""
    motion = sum_of_sines(3, period_s=5.0, harmonics=5, amplitude=0.7, seed=seed)
    log = dynid.simulate_experiment(robot, motion, rate_hz=100, duration_s=duration_s,
                                    noise=dynid.Noise(position=1e-5, effort=0.2), seed=seed)  # fmt: skip
    effort = np.array(log.effort)
    effort[600:700, 1] -= 20.0 * push
    path.parent.mkdir(exist_ok=True)
    write_columns(path, [HEADER], [log.time, log.q, effort])


def write_files(folder: Path) -> None:
    """The robots, logs, maps and laws of all screens."""
    dynid.write_urdf(BELIEVED, folder / "arm.urdf")
    (folder / "map.toml").write_text(MAP)
    for seed, (name, mass) in enumerate({"run1": 0.0, "run2": 0.0, "run3": 0.0, "pushed": 0.0, "loaded": 3.0}.items()):
        write_log(arm(0, load_kg=mass), folder / f"{name}.csv", seed, push=name == "pushed")
    write_log(arm(0, load_kg=0.2), folder / "short.csv", 6, duration_s=4.0)
    for number in range(5):
        write_log(arm(number, worn=number == 3), folder / "fleet" / f"r{number}.csv", number)
        write_log(arm(number), folder / "alike" / f"r{number}.csv", number)


def write_servo_files(folder: Path) -> None:
    """A leg of two servos, its log, and two laws."""
    legs = double_pendulum()
    dynid.write_urdf(legs, folder / "legs.urdf")
    truth = {"armature": [0.03, 0.02], "viscous": [0.2, 0.1], "coulomb": [0.15, 0.3]}
    parameters = tuple(ServoParameter(kind, start=value, free=False) for kind, value in truth.items())
    model = ServoModel(legs, PositionLaw(kp=20.0, kd=1.0), parameters)
    motion = planted(model, [], chirp(legs, duration_s=6.0, seed=1), 2e-4, seed=1)
    write_columns(folder / "sent.csv", ["t,q1,q2,c1,c2"], [motion.time, motion.position, motion.command])
    (folder / "servo_map.toml").write_text(SERVO_MAP)
    (folder / "law.toml").write_text(LAW.format(20.0, 1.0))
    (folder / "weak.toml").write_text(LAW.format(0.3, 0.02))


def screen(folder: Path, title: str) -> tuple[int, str]:
    """Exit code and screen of one command."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, shlex.split(SCREENS[title])[1:])
    return done.exit_code, done.output.rstrip()


def page(folder: Path) -> str:
    """The page, with all screens."""
    write_files(folder)
    write_servo_files(folder)
    parts = [
        "# Screens",
        "What the commands print first, on simulated data that pass and that fail. Every screen has the same order:\n"
        "the verdict with the errors of the rich, the plain and the prior model; tables; at most five findings, the\n"
        "strongest first; the files with their errors; the next commands. `--verbose` and the report show the rest.\n"
        "`tests/support/screens_page.py` writes this page.",
    ]
    for title in SCREENS:
        code, text = screen(folder, title)
        assert len(text.splitlines()) <= MOST_LINES, text
        parts += [f"## {title.capitalize()}", f"```text\n$ {SCREENS[title]}\n{text}\n```", f"Exit code {code}."]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        PAGE.write_text(page(Path(temporary)), encoding="utf-8")
