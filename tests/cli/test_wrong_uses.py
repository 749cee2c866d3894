"""Wrong uses of the command line: each gets one helpful message and the right exit code, and no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

MAP = """[time]
column = "t"
unit = "s"
[position]
columns = ["q1", "q2", "q3"]
unit = ["rad", "m", "m"]
[effort]
columns = ["tau1", "tau2", "tau3"]
unit = ["N m", "N", "N"]
"""
PLAIN_URDF = """<robot name="{name}"><link name="a"/><link name="b">{inertial}</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>"""
MAPS = {
    "map": MAP,
    "no_torque": MAP[: MAP.index("[effort]")],
    "not_toml": "[time\n",
    "odd_unit": MAP.replace('"rad"', '"furlong"'),
    "odd_column": MAP.replace('"q3"', '"q9"'),
    "odd_key": MAP + "[efort]\ncolumns = []\n",
    "odd_joints": MAP.replace('["q1", "q2", "q3"]', '["{joint}_pos"]'),
    "twice": MAP.replace('"q2"', '"q1"'),
    "no_unit": MAP.replace('unit = "s"\n', ""),
    "odd_time": MAP.replace('unit = "s"', 'unit = "rad"'),
    "two": MAP.replace(', "q3"', "").replace(', "tau3"', "").replace('"rad", "m", "m"', '"rad", "m"'),
}


RECIPES = {
    "odd_value": "estimator = 3\n",
    "odd_setting": 'estimatr = "wls"\n',
    "no_recipe": "[[[",
    "law": 'kind = "pd"\nkp = [1]\n',
}
PLAIN = ("--estimator", "wls", "--set", "friction=plain", "--set", "cutoff_hz=10")
"""Settings with which an identification takes a part of a second; what is tried here depends on none of them."""


def write_log(path: Path, seed: int, scale: float = 1.0, joints: int = 3) -> list[str]:
    robot = cylindrical().with_terms(RotorInertia(0.1), Viscous(0.5), Coulomb(0.3), Offset(0.1))
    run = simulate_experiment(
        robot, sum_of_sines(3, seed=seed), rate_hz=100, duration_s=8, noise=Noise(effort=0.05), seed=seed
    )
    assert run.effort is not None
    names = ["t", *(f"q{j + 1}" for j in range(joints)), *(f"tau{j + 1}" for j in range(joints))]
    rows = np.column_stack([run.time, scale * run.q[:, :joints], run.effort[:, :joints]])
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="")
    return path.read_text().splitlines()


def standing(row: str) -> str:
    """A line of a log with the positions of a robot at rest."""
    time, *numbers = row.split(",")
    return ",".join([time, "0.1", "0.2", "0.3", *numbers[3:]])


def _in_millimetres(row: str) -> str:
    """A line of a log with the second position, that of a slide, in millimetres."""
    time, first, second, *rest = row.split(",")
    return ",".join([time, first, str(1000.0 * float(second)), *rest])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a robot, good and bad logs and maps, and a finished run."""
    folder = tmp_path_factory.mktemp("desk")
    write_urdf(cylindrical(), folder / "arm.urdf")
    lines = write_log(folder / "run1.csv", 0)
    write_log(folder / "run2.csv", 1)
    (folder / "copy.csv").write_bytes((folder / "run1.csv").read_bytes())
    write_log(folder / "degrees.csv", 0, scale=np.rad2deg(1.0))
    write_log(folder / "two.csv", 0, joints=2)
    head, first = lines[0], lines[1]
    tables = {
        "empty": "",
        "header": head,
        "sample": f"{head}\n{first}",
        "short": "\n".join(lines[:21]),
        "nan": "\n".join([head, *(f"{0.01 * k}" + ",nan" * 6 for k in range(500))]),
        "rest": "\n".join([head, *(f"{0.01 * k},0.1,0.2,0.3,1,2,3" for k in range(800))]),
        "still": "\n".join([head, *(standing(row) for row in lines[1:])]),
        "backwards": "\n".join([head, *lines[:0:-1]]),
    }
    tables["hole"] = "\n".join(
        [head, *(",".join([*row.split(",")[:5], "nan", row.split(",")[6]]) for row in lines[1:])]
    )
    tables["slide"] = "\n".join([head, *(_in_millimetres(row) for row in lines[1:])])
    (folder / "arm.sdf").write_text('<sdf version="1.7"><model name="arm"/></sdf>')
    (folder / "log.json").write_text(
        '{"entries": [{"t": 0.0, "q": [0.1, 0.2, 0.3]}, {"t": 0.01, "q": [0.1, 0.2, 0.3]}]}'
    )
    theta = cylindrical().parameter_vector.copy()
    theta[19] = -1.0
    write_urdf(cylindrical().with_parameters(theta), folder / "negative.urdf", allow_unphysical=True)
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text and text + "\n")
    for name, text in MAPS.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "junk.csv").write_bytes(np.random.default_rng(0).bytes(5000))
    np.savez(folder / "whole.npz", t=np.arange(100.0))
    (folder / "cut.npz").write_bytes((folder / "whole.npz").read_bytes()[:200])
    (folder / "folder").mkdir()
    (folder / "massless.urdf").write_text(PLAIN_URDF.format(name="r", inertial=""))
    (folder / "broken.urdf").write_text("<robot")
    for name, text in RECIPES.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "ragged.csv").write_text(
        "\n".join([head, *(row + ",1" * (k % 7 == 6) for k, row in enumerate(lines[1:]))])
    )
    (folder / "words.csv").write_text(head + "\n" + "\n".join(f"{0.01 * k},a,b,c,d,e,f" for k in range(50)) + "\n")
    (folder / "log.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    (folder / "log.pkl").write_bytes(b"\x80\x04")
    (folder / "arm.urdf.xacro").write_text("<robot/>")
    (folder / "xacro.urdf").write_text('<robot name="r" xmlns:xacro="x"><xacro:macro name="m"/></robot>')
    with inside(folder):
        made = CliRunner().invoke(main, identify("run1.csv", *PLAIN, out="res"))
        assert made.exit_code == 0, made.output
    text = (folder / "res" / "result.json").read_text()
    for name, changed in {
        "newer": json.dumps({**json.loads(text), "schema": 99}),
        "half": text[: len(text) // 2],
        "edited": text.replace('"value": ', '"value": 1', 1),
    }.items():
        (folder / f"{name}.json").write_text(changed)
    return folder


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def identify(log: str, *options: str, robot: str = "arm.urdf", chart: str = "map", out: str = "new") -> list[str]:
    return ["identify", robot, log, "--map", f"{chart}.toml", "--out", out, *options]


VALIDATE = ["--map", "map.toml"]
WRONG: dict[str, tuple[list[str], int, str]] = {
    # files
    "missing log": (identify("nothing_like_it.dat"), 3, "there is no such file"),
    "log with a typing error": (identify("run3.csv"), 3, "Is it run"),
    "missing map": (identify("run1.csv", chart="mop"), 3, "Is it map.toml?"),
    "missing robot file": (["base", "missing.urdf"], 3, "missing.urdf"),
    "missing result": (["validate", "ras", "run2.csv"], 3, "there is no such file"),
    "folder for a log": (identify("folder"), 3, "name the log itself"),
    "folder for a robot": (["base", "folder"], 2, "Built-in robots"),
    "output is a file": (identify("run1.csv", out="arm.urdf"), 5, "Choose another with --out"),
    "output cannot be made": (identify("run1.csv", out="/proc/dynid"), 5, "Choose another with --out"),
    "output holds a run": (identify("run1.csv", out="res"), 5, "Add --force"),
    # robots
    "unknown robot": (["base", "pand"], 2, "Did you mean panda?"),
    "broken robot file": (["base", "broken.urdf"], 3, "line 1"),
    "xacro": (["base", "arm.urdf.xacro"], 3, "xacro arm.urdf.xacro > arm.urdf"),
    "xacro named urdf": (["base", "xacro.urdf"], 3, "xacro in.xacro > out.urdf"),
    "SDF": (["base", "arm.sdf"], 2, "no description of a robot that dynid reads"),
    "JSON for a robot": (["base", "half.json"], 2, "Give a robot file (.urdf"),
    "log for a robot": (["check", "run1.csv", "--robot", "run1.csv"], 2, "no description of a robot that dynid reads"),
    "log before the robot": (identify("arm.urdf", robot="run1.csv"), 2, "The robot comes first, then the logs"),
    "negative mass": (["excite", "negative.urdf", "--out", "new"], 3, "link 'link2': the mass is negative"),
    "robot without inertials": (["check", "massless.urdf"], 0, "Give the body its mass"),
    "unknown joint to hold": (["base", "arm.urdf", "--hold", "nose"], 2, "Its joints are: joint1"),
    "hold without a number": (["base", "arm.urdf", "--hold", "joint1=far"], 2, "--hold JOINT=0.02"),
    "hold of a built-in robot": (["base", "panda", "--hold", "joint1"], 2, "robot files only"),
    # logs
    "degrees": (identify("degrees.csv"), 3, "as if in another unit"),
    "degrees in a check": (["check", "degrees.csv", "--map", "map.toml", "--robot", "arm.urdf"], 1, "degrees"),
    "no torque channel": (identify("run1.csv", chart="no_torque"), 3, "[effort]"),
    "empty log": (identify("empty.csv"), 3, "it is empty"),
    "header alone": (identify("header.csv"), 3, "no line of numbers"),
    "one row held out": (identify("run1.csv", "--validate", "sample.csv"), 3, "the log has one row"),
    "twenty samples": (identify("short.csv"), 3, "at least 34 samples (0.34 s at 100 Hz)"),
    "one sample": (identify("sample.csv"), 3, "sample.csv"),
    "nothing but NaN": (identify("nan.csv"), 3, "missing or not finite"),
    "dead channels": (identify("rest.csv"), 3, "the torque never changes"),
    "robot at rest": (identify("still.csv", "--no-check"), 4, "while all joints move"),
    "time runs backwards": (identify("backwards.csv"), 3, "never increase"),
    "binary rubbish": (identify("junk.csv"), 3, "it is not text"),
    "truncated npz": (identify("cut.npz"), 3, "damaged"),
    "too few joints": (identify("two.csv", chart="two"), 3, "the log lacks"),
    "log without a map": (["identify", "arm.urdf", "run1.csv", "--out", "new"], 3, "dynid inspect run1.csv"),
    "rubbish to inspect": (["inspect", "junk.csv"], 3, "it is not text"),
    "JSON for a log": (identify("log.json"), 3, "the log has no column 'q1'"),
    "one column of NaN": (identify("hole.csv"), 3, "all samples are missing or not finite"),
    "a slide in millimetres": (identify("slide.csv"), 3, "as if in another unit"),
    # maps
    "no TOML": (identify("run1.csv", chart="not_toml"), 3, "line 1"),
    "unknown unit": (identify("run1.csv", chart="odd_unit"), 3, "furlong"),
    "unknown column": (identify("run1.csv", chart="odd_column"), 3, "Columns like it: q3"),
    "unknown section": (identify("run1.csv", chart="odd_key"), 3, "efort"),
    "wrong joint names": (identify("run1.csv", chart="odd_joints"), 3, "list the log's names"),
    "unknown ready map": (["identify", "arm.urdf", "run1.csv", "--map", "x", "--out", "new"], 3, "libfranka"),
    # options
    "no name of a folder": (["codegen", "arm.urdf", "--out", ""], 2, "folder is empty"),
    "unknown verb": (["identfy"], 2, "Did you mean 'identify'?"),
    "no arguments": (["identify"], 2, "Missing argument"),
    "unknown option": (identify("run1.csv", "--estimater", "wls"), 2, "--estimator"),
    "unknown estimator": (identify("run1.csv", "--estimator", "lsq"), 2, "Known names: feasible"),
    "no number": (identify("run1.csv", "--set", "limit_percent=much"), 2, "much"),
    "negative cutoff": (identify("run1.csv", "--set", "cutoff_hz=-1"), 2, "cutoff_hz"),
    "cutoff of nearly zero": (identify("run1.csv", "--set", "cutoff_hz=1e-310"), 2, "cutoff_hz: '1e-310' does not fit"),
    "band of nearly zero": (identify("run1.csv", "--set", "band_hz=1e-310"), 2, "band_hz: '1e-310' does not fit"),
    "gravity of no place": (identify("run1.csv", "--gravity", "1e300,0,0"), 2, "gravity is"),
    "cutoff beyond half the rate": (identify("run1.csv", "--set", "cutoff_hz=500"), 2, "half the sampling rate"),
    "cutoff that is no number": (identify("run1.csv", "--set", "cutoff_hz=nan"), 2, "does not fit. Give"),
    "limit that is no number": (identify("run1.csv", "--set", "limit_percent=nan"), 2, "does not fit. Give"),
    "limit without end": (identify("run1.csv", "--set", "limit_percent=inf"), 2, "does not fit. Give"),
    "delay that is no number": (identify("run1.csv", "--set", "delay_s=nan"), 2, "does not fit. Give"),
    "delay in words": (identify("run1.csv", "--set", "delay_s=some"), 2, "a finite number or \"auto\""),
    "search without end": (["excite", "arm.urdf", "--time-limit", "nan", "--out", "new"], 2, "not a finite number"),
    "share that is no number": (["excite", "arm.urdf", "--set", "scale=nan", "--out", "new"], 2, "does not fit. Give"),
    "delay in milliseconds": (identify("run1.csv", "--set", "delay_s=10"), 2, "write 0.01 for 10 ms"),
    "delay of a check in milliseconds": (["check", "run1.csv", *VALIDATE, "--delay", "10"], 2, "write 0.01 for 10 ms"),
    "rows that are none": (["check", "run1.csv", *VALIDATE, "--rows", "9:3"], 2, "a:b for rows a to b - 1"),
    "rows beyond the log": (identify("run1.csv", "--rows", "100000:"), 3, "nothing is left: the log has"),
    "time that is none": (identify("run1.csv", "--time", "late"), 2, "is no range of time"),
    "gravity with two numbers": (identify("run1.csv", "--gravity", "0,9.81"), 2, "Give x,y,z"),
    "pattern without a match": (["base", "arm.urdf", "--hold", "nose*"], 2, "The joints are: joint1"),
    "hold nowhere": (["base", "arm.urdf", "--hold", "joint1=nan"], 2, "--hold JOINT=0.02"),
    "setting without a value": (identify("run1.csv", "--set", "band_hz"), 2, "cutoff_hz=10"),
    "unknown setting": (identify("run1.csv", "--set", "bandhz=3"), 2, "Did you mean band_hz?"),
    "missing recipe": (identify("run1.csv", "--recipe", "none.toml"), 3, "there is no such file"),
    "a log twice": (identify("run1.csv", "run1.csv"), 2, "run1.csv is given twice"),
    "a copy of a log": (identify("run1.csv", "copy.csv"), 2, "copy.csv has the same content as run1.csv"),
    "a proof twice": (["validate", "res", "run2.csv", "run2.csv", *VALIDATE], 2, "run2.csv is given twice"),
    "own proof": (identify("run1.csv", "--validate", "run1.csv"), 2, "Hold out another run"),
    "sign without sensor": (["load", "arm.urdf", "run1.csv", *VALIDATE, "--set", "sign=-1"], 2, "--sensor"),
    "sensor and unloaded": (
        ["load", "arm.urdf", "run1.csv", *VALIDATE, "--sensor", "link3", "--unloaded", "run2.csv"], 2, "--unloaded"
    ),
    "no wrench": (["load", "arm.urdf", "run1.csv", *VALIDATE, "--sensor", "link3"], 3, "wrench"),
    "no such period": (["excite", "arm.urdf", "--period", "0", "--out", "new"], 2, "--period"),
    "counts as JSON": (["base", "arm.urdf", "--counts", "--json"], 2, "--counts excludes --format"),
    "unknown function": (["codegen", "arm.urdf", "--functions", "fly", "--out", "new"], 2, "inverse_dynamics"),
    "unknown shell": (["completion", "tcsh"], 2, "'bash'"),
    # results
    "result of a newer version": (["validate", "newer.json", "run2.csv", *VALIDATE], 3, "newer dynid"),
    "half a result": (["validate", "half.json", "run2.csv", *VALIDATE], 3, "no JSON"),
    "edited result": (["validate", "edited.json", "run2.csv", *VALIDATE], 3, "checksum"),
    "folder without a result": (["validate", "folder", "run2.csv", *VALIDATE], 3, "dynid identify wrote"),
    "validation on the data used": (["validate", "res", "run1.csv", *VALIDATE], 2, "has not seen"),
    "rerun of nothing": (["rerun", "folder"], 3, "no run is here"),
    "report of nothing": (["report", "folder"], 3, "no run is here"),
    # options of version 0.1
    "an old option for the band": (identify("run1.csv", "--band", "20"), 2, "Write --set band_hz=VALUE."),
    "an old option for the cutoff": (identify("run1.csv", "--cutoff", "10"), 2, "Write --set cutoff_hz=VALUE."),
    "an old option for the delay": (identify("run1.csv", "--delay", "0.01"), 2, "Write --set delay_s=VALUE."),
    "an old option for the limit": (identify("run1.csv", "--limit", "5"), 2, "Write --set limit_percent=VALUE."),
    "an old option of excite": (["excite", "arm.urdf", "--floor", "0", "--out", "new"], 2, "Write --set floor=VALUE."),
    "map for a robot": (["check", "arm.urdf", "--map", "map.toml"], 2, "the check of a robot excludes --map"),
    "points of a series": (
        ["excite", "arm.urdf", "--set", "points=5", "--out", "new"], 2, "choose --method energy-points"
    ),
    # arguments in the wrong place
    "robot for a result": (["validate", "arm.urdf", "run2.csv", *VALIDATE], 3, "logs come after it"),
    "log for a result": (["validate", "run2.csv", "res", *VALIDATE], 3, "this is no result of an identification"),
    "file for a run": (["report", "run1.csv"], 3, "this is a file, not the folder of a run"),
    "result for a run": (["rerun", "res/result.json"], 3, "this is a file, not the folder of a run"),
    "map for a recipe": (identify("run1.csv", "--recipe", "map.toml"), 2, "this is a channel map, not a recipe"),
    "robot to inspect": (["inspect", "arm.urdf"], 2, "give the robot as an option"),
    "log to generate code": (["codegen", "run1.csv", "--out", "new"], 2, "no description of a robot that dynid reads"),
    "code in a run's folder": (["codegen", "arm.urdf", "--out", "res", "--force"], 2, "such as --out res_code"),
    "robot to prune": (["codegen", "arm.urdf", "--prune", "--out", "new"], 2, "needs the data of a run"),
    "help as a command": (["help"], 2, "dynid COMMAND --help explains one"),
    "log for all and for the proof": (
        ["identify", "arm.urdf", "run1.csv", "run2.csv", *VALIDATE, "--validate", "run2.csv", "--out", "new"],
        2, "run2.csv is a log which is identified from. Hold out another run",
    ),
    "two kinds of proof": (
        identify("run1.csv", "--hold-out", "30%", "--validate", "run2.csv"), 2, "--validate and --hold-out"
    ),
    # values
    "hold-out without a percent sign": (identify("run1.csv", "--hold-out", "30"), 2, "Write 40% for the last 40 %"),
    "hold-out of more than all": (identify("run1.csv", "--hold-out", "130%"), 2, "'130%' leaves nothing"),
    "hold-out beyond the log": (identify("run1.csv", "--hold-out", "100:200"), 3, "run1.csv: none of the log's 8 s"),
    "every block held out": (identify("run1.csv", "--hold-out", "every:1:1"), 2, "leaves nothing to identify from"),
    "time beyond the log": (["check", "run1.csv", *VALIDATE, "--time", "100:"], 3, "run1.csv: nothing is left"),
    "significant without a percent sign": (identify("run1.csv", "--significant", "1.5"), 2, "percent sign is missing"),
    "unknown term": (identify("run1.csv", "--set", "terms=rubber"), 2, "Known names: rotor-inertia"),
    "spring at no joint": (identify("run1.csv", "--set", "springs=nose"), 2, "The joints are: joint1"),
    "unknown difference of runs": (identify("run1.csv", "--set", "per_run=weather"), 2, "Known names: offset"),
    "recipe with a number for a name": (
        identify("run1.csv", "--recipe", "odd_value.toml"), 2, "odd_value.toml: estimator: 3 does not fit"
    ),
    "recipe with a typing error": (
        identify("run1.csv", "--recipe", "odd_setting.toml"), 2, "Did you mean estimator?"
    ),
    "recipe that is no TOML": (identify("run1.csv", "--recipe", "no_recipe.toml"), 2, "the file is not TOML"),
    "law without its gains": (
        identify("run1.csv", "--estimator", "iv", "--set", "law=law.toml"), 2, "law.toml: kd is missing"
    ),
    "missing law": (
        identify("run1.csv", "--estimator", "iv", "--set", "law=lew.toml"), 2, "lew.toml: there is no such file"
    ),
    "acceleration in words": (["excite", "arm.urdf", "--acceleration", "fast", "--out", "new"], 2, "does not fit"),
    "acceleration of two joints": (
        ["excite", "arm.urdf", "--acceleration", "1,2", "--out", "new"], 2, "one for each of the 3 joints"
    ),
    "box inside out": (["excite", "arm.urdf", "--set", "box=1:0,:,:", "--out", "new"], 2, "not below its upper end"),
    "joint that does not move": (["base", "arm.urdf", "--unmoved", "nose"], 2, "Its moving joints are: joint1"),
    "no function": (["codegen", "arm.urdf", "--functions", "", "--out", "new"], 2, "no function is requested"),
    # files
    "a column twice": (identify("run1.csv", chart="twice"), 3, "the column 'q1' is named twice"),
    "time without a unit": (identify("run1.csv", chart="no_unit"), 3, 'Add unit = "s"'),
    "time as an angle": (identify("run1.csv", chart="odd_time"), 3, "'rad' is no unit of time"),
    "rows of different length": (identify("ragged.csv"), 3, "Remove or mend these lines"),
    "words for numbers": (identify("words.csv"), 3, "no line of numbers"),
    "spreadsheet": (identify("log.xlsx"), 3, "it is a spreadsheet, which dynid does not read. Save it as CSV"),
    "pickle": (identify("log.pkl"), 3, "save plain arrays"),
    "folder to inspect": (["inspect", "folder"], 3, "a folder without a log that dynid recognises"),
    "another robot to inspect": (
        ["inspect", "run1.csv", "--robot", "panda"], 0, "3 columns look like positions, and robot 'panda' has 7 joints"
    ),
    "load that is its own tare": (
        ["load", "arm.urdf", "run1.csv", *VALIDATE, "--unloaded", "run1.csv"], 2, "Give a run of the robot without"
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("arguments", "code", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_use(desk: Path, arguments: list[str], code: int, words: str) -> None:
    with inside(desk):
        result = CliRunner().invoke(main, arguments)
    text = " ".join(result.output.split())
    assert result.exit_code == code, text
    assert words in text
    assert "Traceback" not in text
    assert "internal error" not in text
    if code > 1:
        assert len([line for line in result.stderr.splitlines() if line.startswith(("dynid:", "Error:"))]) == 1


# --- what only a process of its own shows ---


def run(
    desk: Path, *arguments: str, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dynid", *arguments]
    return subprocess.run(
        command, cwd=desk, env={**os.environ, **environment}, preexec_fn=before, capture_output=True, text=True,
        timeout=120, check=False, encoding="utf-8", errors="replace",
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="file sizes cannot be limited here")
def test_a_full_disk(desk: Path) -> None:
    import resource

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = run(desk, *identify("run1.csv", *PLAIN, out="full"), before=small_files)
    assert result.returncode == 5, result.stderr
    assert "File too large" in result.stderr
    assert "has room" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (desk / "full").exists()
    assert not [name for name in os.listdir(desk) if name.startswith(".")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_that_is_full(desk: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dynid", "robots"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert result.returncode == 5
    assert "No space left" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="no pipes of this kind")
def test_an_output_that_nobody_reads(desk: Path) -> None:
    command = f"{sys.executable} -m dynid base puma560 --format json | head -c 10; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.endswith("0\n")
    assert result.stderr == ""


def test_no_compiler(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CC", "")
    with inside(desk):
        result = CliRunner().invoke(main, ["codegen", "arm.urdf", "--functions", "gravity", "--out", "code"])
    assert result.exit_code == 0, result.output
    assert "there is no C compiler; install gcc or clang" in " ".join(result.output.split())


def test_forty_columns(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    result = CliRunner().invoke(main, ["validate", "--help"])
    text, _, examples = result.output.partition("Examples:")
    assert max(map(len, text.splitlines())) <= 40
    assert "dynid validate result/ run9.csv" in examples
    assert CliRunner().invoke(main, ["frobnicate"]).exit_code == 2


def test_a_locale_without_letters(desk: Path) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (desk / "letters.urdf").write_text(PLAIN_URDF.format(name="Größe→✓", inertial=inertial), encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = run(desk, "base", "letters.urdf", **plain)
    assert result.returncode == 0, result.stderr
    assert "base parameters" in result.stdout
    assert result.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="names are text here")
def test_a_name_that_is_no_text(desk: Path) -> None:
    (desk / "odd").mkdir()
    try:
        os.link(desk / "run1.csv", os.fsencode(desk / "odd") + b"/r\xfcn.csv")
    except OSError:
        pytest.skip("the file system takes text only")
    log = os.fsdecode(b"odd/r\xfcn.csv")
    with inside(desk):
        made = CliRunner().invoke(main, identify(log, *PLAIN, out="odd/run"))
        assert made.exit_code == 0, made.output
        again = CliRunner().invoke(main, ["rerun", "odd/run", "--out", "odd/again"])
        assert again.exit_code == 0, again.output
    assert "\\udcfcn.csv" in (desk / "odd/run/log.txt").read_text(encoding="utf-8")
    assert "\\udcfcn.csv" in (desk / "odd/run/report.html").read_text(encoding="utf-8")
    shown = run(desk, "check", log, "--map", "map.toml", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert shown.returncode == 0, shown.stderr
    assert "n.csv: no objections" in shown.stdout


def test_late_torques_are_moved_back(desk: Path) -> None:
    """Torques stamped 20 ms late: the gate names the option, which then finds what the log on time tells."""
    head, *rows = (desk / "run1.csv").read_text().splitlines()
    table = np.array([[float(word) for word in row.split(",")] for row in rows])
    late = np.column_stack([table[2:, :4], table[:-2, 4:]])
    np.savetxt(desk / "late.csv", late, delimiter=",", header=head, comments="")
    values = {}
    with inside(desk):
        said = CliRunner().invoke(main, ["check", "late.csv", "--map", "map.toml", "--robot", "arm.urdf"]).output
        assert "delay_s=0.0" in said
        for delay in ("0", "0.02", "auto"):
            checked = ["check", "late.csv", "--map", "map.toml", "--robot", "arm.urdf", "--delay", delay]
            assert ("[delay]" in CliRunner().invoke(main, checked).output) == (delay == "0")
            words = identify("late.csv", *PLAIN, "--set", f"delay_s={delay}", out=f"late{delay}")
            made = CliRunner().invoke(main, words)
            assert made.exit_code == 0, made.output
            found = json.loads((desk / f"late{delay}" / "result.json").read_text())
            values[delay] = found["training_error_percent"]["all"]
        on_time = json.loads((desk / "res" / "result.json").read_text())["training_error_percent"]["all"]
    assert values["0.02"] == pytest.approx(on_time, rel=0.2)
    assert values["auto"] == pytest.approx(on_time, rel=0.2)
    assert values["0"] > 3.0 * on_time


def test_no_home_and_no_cache(desk: Path) -> None:
    result = run(desk, "doctor", HOME="", XDG_CACHE_HOME="/proc/nothing", DYNID_CACHE="/proc/nothing")
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="no signals of this kind")
def test_interrupted(desk: Path) -> None:
    command = [sys.executable, "-m", "dynid", "demo", "--out", "demo"]
    process = subprocess.Popen(command, cwd=desk, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
