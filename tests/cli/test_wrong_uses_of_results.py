"""Wrong uses of the commands after an identification: actuate, watch, compare-runs, export, drives, fleet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dynid.cli import main
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.zoo import cylindrical
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

POSITIONS = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
"""
EFFORTS = """[effort]
columns = ["tau1", "tau2", "tau3"]
unit = ["N m", "N", "N"]
"""
REFERENCES = """[reference]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a robot, three logs, maps, laws, and a finished run."""
    folder = tmp_path_factory.mktemp("desk")
    write_urdf(cylindrical(), folder / "arm.urdf")
    robot = cylindrical().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
    for seed in (1, 2, 3):
        motion = sum_of_sines(3, seed=seed)
        run = simulate_experiment(robot, motion, rate_hz=100, duration_s=6, noise=Noise(effort=0.05), seed=seed)
        rows = np.column_stack([run.time, run.q, np.asarray(run.effort)])
        header = "t,q1,q2,q3,tau1,tau2,tau3"
        np.savetxt(folder / f"run{seed}.csv", rows, delimiter=",", header=header, comments="")
    (folder / "folder").mkdir()
    texts = {
        "map": POSITIONS + EFFORTS,
        "commands": POSITIONS + REFERENCES,
        "percent": POSITIONS + EFFORTS.replace('["N m", "N", "N"]', '"%"'),
        "pd": 'kind = "pd"\nkp = [1, 1, 1]\nkd = [1, 1, 1]\n',
        "broken": "kind = \n",
        "empty": "",
    }
    for name, text in texts.items():
        (folder / f"{name}.toml").write_text(text)
    plain = ("--estimator", "wls", "--set", "friction=plain", "--set", "cutoff_hz=10")
    words = ["identify", "arm.urdf", "run1.csv", "--map", "map.toml", *plain, "--out", "res"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert CliRunner().invoke(main, words).exit_code == 0
    return folder


MAP = ("--map", "map.toml")
ACTUATE = ("actuate", "arm.urdf", "run1.csv", "--map", "commands.toml")
DRIVES = ("drives", "arm.urdf", "run1.csv", "--unloaded", "run2.csv", *MAP)
FLEET = ("fleet", "arm.urdf", "run{arm}.csv", *MAP, "--out", "new")
WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    # servos
    "no law": (ACTUATE, 2, "Missing option '--law'"),
    "missing law": ((*ACTUATE, "--law", "lew.toml"), 3, "lew.toml: there is no such file"),
    "law that is no TOML": ((*ACTUATE, "--law", "broken.toml"), 2, "the file is not TOML"),
    "empty law": ((*ACTUATE, "--law", "empty.toml"), 2, "missing required field `kind`. Kinds are position, motor"),
    "map for a law": ((*ACTUATE, "--law", "map.toml"), 2, "this is a channel map, not the law of drives"),
    "law of a loop": ((*ACTUATE, "--law", "pd.toml"), 2, "kind: invalid enum value 'pd'. Kinds are position, motor"),
    "logs forgotten": (("actuate", "arm.urdf", "--law", "pd.toml"), 2, "Missing argument 'LOGS...'"),
    "commands of a law to excite": (
        ("excite", "arm.urdf", "pd.toml", "--out", "new"), 2, "unexpected extra argument (pd.toml)"
    ),
    "servos in the folder of a run": ((*ACTUATE, "--law", "pd.toml", "--out", "res"), 5, "holds a finished run"),
    "robot after its log": (
        ("actuate", "run1.csv", "arm.urdf", "--law", "pd.toml"), 2, "The robot comes first, then the logs"
    ),
    "result for a robot": (("actuate", "res", "run1.csv", "--law", "pd.toml"), 2, "nor a built-in robot"),
    # watching
    "robot to watch with": (("watch", "arm.urdf", "run2.csv", *MAP), 3, "this is no result of an identification"),
    "nothing to watch": (("watch", "res"), 2, "there is no log to watch. Give a log, or --live"),
    "folder without a result": (("watch", "folder", "run2.csv", *MAP), 3, "dynid identify wrote"),
    "log before the result": (("watch", "run2.csv", "res", *MAP), 3, "logs come after it"),
    "missing log to watch": (("watch", "res", "run9.csv", *MAP), 3, "there is no such file. Is it run"),
    "watch without a map": (("watch", "res", "run2.csv"), 3, "Run `dynid inspect run2.csv`"),
    "no false alarms at all": (("watch", "res", "run2.csv", *MAP, "--per-hour", "0"), 2, "not in the range"),
    "a thousand alarms a second": (("watch", "res", "run2.csv", *MAP, "--per-hour", "1e9"), 2, "not in the range"),
    "rate that is no number": (("watch", "res", "run2.csv", *MAP, "--per-hour", "nan"), 2, "not a finite number"),
    "clean log that is watched": (
        ("watch", "res", "run2.csv", *MAP, "--clean", "run2.csv"), 2, "a push in the log would set its own threshold"
    ),
    "log watched twice": (("watch", "res", "run2.csv", "run2.csv", *MAP), 2, "run2.csv is given twice"),
    "live and logs": (("watch", "res", "run2.csv", "--live"), 2, "--live reads samples, not logs"),
    "live and a folder": (("watch", "res", "--live", "--out", "new"), 2, "Omit the logs and --out"),
    "watch in the folder of a run": (("watch", "res", "run2.csv", *MAP, "--out", "res"), 5, "holds a finished run"),
    "robot for a map": (("watch", "res", "run2.csv", "--map", "arm.urdf"), 3, "not a channel map"),
    # drift
    "nothing later": (("compare-runs", "res"), 2, "Missing argument 'LATER...'"),
    "a run beside itself": (("compare-runs", "res", "res"), 2, "res is the stored result. Give later logs"),
    "its own log": (("compare-runs", "res", "run1.csv", *MAP), 2, "run1.csv is a log that res was identified from"),
    "a later log twice": (("compare-runs", "res", "run2.csv", "run2.csv", *MAP), 2, "run2.csv is given twice"),
    "robot for the stored run": (("compare-runs", "arm.urdf", "res"), 3, "this is no result of an identification"),
    "later folder of nothing": (("compare-runs", "res", "folder"), 3, "a folder without a log"),
    "later log without a map": (("compare-runs", "res", "run2.csv"), 3, "Run `dynid inspect run2.csv`"),
    "later log without torques": (
        ("compare-runs", "res", "run2.csv", "--map", "commands.toml"), 3, "no joint torques are mapped"
    ),
    # tables
    "export of no kind": (("export", "res", "--out", "new"), 2, "Missing option '--to'"),
    "unknown kind of export": (("export", "res", "--to", "matlab", "--out", "new"), 2, "Choose from tables, parquet"),
    "load program of links": (("export", "res", "--to", "urscript", "--out", "new"), 3, "Give the load.json that"),
    "export of a robot": (("export", "arm.urdf", "--to", "csv", "--out", "new"), 3, "no result of an identification"),
    "export of nothing": (("export", "folder", "--to", "csv", "--out", "new"), 3, "dynid identify wrote"),
    "tables of a log without a map": (
        ("export", "res", "run2.csv", "--to", "csv", "--out", "new"), 3, "Run `dynid inspect run2.csv`"
    ),
    "tables in the folder of a run": (
        ("export", "res", "--to", "csv", "--out", "res"), 2, "--out, such as res_files"
    ),
    "tables in a file": (("export", "res", "--to", "csv", "--out", "arm.urdf"), 5, "Choose another folder (--out)"),
    # gains
    "load without its mass": (DRIVES, 2, "Missing option '--mass'"),
    "mass below zero": ((*DRIVES, "--mass", "-2"), 2, "the load has a mass of -2.0 kg. Weigh the load"),
    "mass in grams": ((*DRIVES, "--mass", "2805"), 2, "Weigh the load, and give kilograms: 2.805"),
    "load that is its own tare": (
        ("drives", "arm.urdf", "run1.csv", "--unloaded", "run1.csv", *MAP, "--mass", "2"), 2, "--unloaded empty.csv"
    ),
    "centre of mass with two numbers": ((*DRIVES, "--mass", "2", "--com", "0", "0"), 2, "requires 3 arguments"),
    "unknown link of a load": ((*DRIVES, "--mass", "2", "--link", "hand"), 2, "Its links are: base, link1"),
    "torques in percent of nothing": (
        ("identify", "arm.urdf", "run1.csv", "--map", "percent.toml", "--out", "new"), 3, "Add rated = [...]"
    ),
    # fleets
    "pattern without an arm": (("fleet", "arm.urdf", "run*.csv", *MAP, "--out", "new"), 2, "which part is the arm's"),
    "pattern without a file": (("fleet", "arm.urdf", "no/{arm}.csv", *MAP, "--out", "new"), 3, "no file fits"),
    "misspelled place of the arm": (("fleet", "arm.urdf", "{arn}.csv", *MAP, "--out", "new"), 2, "which part is"),
    "fleet without a map": (("fleet", "arm.urdf", "run{arm}.csv", "--out", "new"), 3, "give it: --map map.toml"),
    "pattern without a file, nor --out": (("fleet", "arm.urdf", "no/{arm}.csv"), 3, "no file fits"),
    "no window": ((*FLEET, "--window", "0"), 2, "not in the range"),
    "unknown engine": ((*FLEET, "--engine", "spark"), 2, "there is no engine 'spark'"),
    "store that is a file": ((*FLEET, "--store", "arm.urdf"), 2, "Directory 'arm.urdf' is a file"),
    "fleet of one arm": (
        ("fleet", "arm.urdf", "{arm}n1.csv", *MAP, "--out", "alone"), 0, "Does {arm} stand for the right part"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("arguments", "code", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_use(
    desk: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, words: str
) -> None:
    monkeypatch.chdir(desk)
    result = CliRunner().invoke(main, arguments)
    text = " ".join(result.output.split())
    assert result.exit_code == code, text
    assert words in text
    assert "Traceback" not in text
    assert "internal error" not in text
    if code > 1:
        assert len([line for line in result.stderr.splitlines() if line.startswith(("dynid:", "Error:"))]) == 1
    assert not (desk / "new").exists()
