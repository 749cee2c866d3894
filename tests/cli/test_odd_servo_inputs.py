"""Odd logs and laws of servos: each is refused in one sentence that names the cause, or warned of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dynid
from dynid.cli import main
from dynid.servos import CommandedMotion, PositionLaw, ServoModel, ServoParameter
from support.header_styles import write_columns
from support.planted_servos import chirp, planted
from support.servo_logs import pendulum

LAW = 'kind = "position"\nkp = {kp}\nkd = {kd}\nfree = ["viscous", "coulomb"]\n[fixed]\narmature = 0.03\n'
MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q1"
unit = "rad"
[reference]
columns = "c1"
unit = "rad"
[enabled]
columns = "on"
"""


@pytest.fixture(scope="module")
def motion() -> CommandedMotion:
    values = {"armature": 0.03, "viscous": 0.2, "coulomb": 0.15}
    kinds = tuple(ServoParameter(kind, start=value) for kind, value in values.items())
    model = ServoModel(pendulum(), PositionLaw(kp=20.0, kd=1.0), kinds)
    return planted(model, model.start, chirp(model.robot, duration_s=3.0), 2e-4, seed=1)


@pytest.fixture
def actuate(tmp_path: Path, motion: CommandedMotion) -> Callable[..., Result]:
    def run(
        *options: str, law: str = LAW.format(kp=20.0, kd=1.0), rows: int | None = None, **changes: object
    ) -> Result:
        columns = {"t": motion.time, "q1": motion.position, "c1": motion.command, "on": np.ones(len(motion.time))}
        table = np.column_stack([np.array(value) for value in (columns | changes).values()])[:rows]
        write_columns(tmp_path / "log.csv", list(columns), [table])
        (tmp_path / "law.toml").write_text(law)
        (tmp_path / "map.toml").write_text(MAP)
        dynid.write_urdf(pendulum(), tmp_path / "arm.urdf", force=True)
        words = ["arm.urdf", "log.csv", "--law", "law.toml", "--map", "map.toml", *options]
        with chdir(tmp_path):
            return CliRunner().invoke(main, ["actuate", "--verbose", *words])

    return run


def _without(command: np.ndarray, rows: object) -> np.ndarray:
    changed = command.copy()
    changed[rows] = np.nan
    return changed


def test_few_commands_are_lost_and_warned_of(actuate: Callable[..., Result], motion: CommandedMotion) -> None:
    done = actuate(c1=_without(motion.command, np.s_[100:104]))
    assert done.exit_code == 0
    assert "warning [not-finite]: log.csv, commands: commanded positions are missing" in done.output


CASES: dict[str, tuple[dict[str, object], str]] = {
    "commands at another rate": ({"gap": np.arange(600) % 10 != 0}, "as a file with its own clock"),
    "no commands at all": ({"gap": np.s_[:]}, "commanded positions are missing"),
    "drives off all the time": ({"on": np.zeros(600)}, "the drive is never on"),
    "one sample": ({"rows": 1}, "the log has one row"),
    "ten samples": ({"rows": 10}, "commands and positions were"),
    "a key that is none": (
        {"law": LAW.format(kp=20.0, kd=1.0).replace("kd", "kdd")},
        "unknown field `kdd`",
    ),
    "a gain in words": ({"law": LAW.format(kp="'20'", kd=1.0)}, "kp: expected `float | array | null`"),
    "gains of three joints": ({"law": LAW.format(kp="[1, 2, 3]", kd=1.0)}, "gains kp have shape (3,)"),
    "all held out": ({"options": ("--held-out", "100%")}, "at most 90%"),
}


@pytest.mark.parametrize("name", CASES)
def test_odd_inputs_are_refused(name: str, actuate: Callable[..., Result], motion: CommandedMotion) -> None:
    given, reason = CASES[name]
    changes = dict(given)
    if "gap" in changes:
        changes["c1"] = _without(motion.command, changes.pop("gap"))
    done = actuate(*changes.pop("options", ()), **changes)  # type: ignore[misc, arg-type]
    assert done.exit_code in (2, 3)
    assert reason in done.output
    assert len(done.output.strip().splitlines()) == 1
