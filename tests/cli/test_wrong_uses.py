"""Wrong uses of the command line: each gets one helpful message and the right exit code, and no traceback."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dynid.cli import main
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.zoo import cylindrical
from dynid.workflows.run_folder import read_run

from .conftest import COMMANDS, Desk

PLAIN_URDF = """<robot name="{name}"><link name="a"/><link name="b">{inertial}</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>"""
CHANGES = {
    "odd_unit": ('"rad"', '"furlong"'),
    "odd_column": ('"q3"', '"q9"'),
    "odd_joints": ('["q1", "q2", "q3"]', '["{joint}_pos"]'),
    "twice": ('"q2"', '"q1"'),
    "no_unit": ('unit = "s"\n', ""),
    "odd_time": ('unit = "s"', 'unit = "rad"'),
    "percent": ('["N m", "N", "N"]', '"%"'),
}
"""Wrong map -> what it has, and in the place of what."""
TEXTS = {
    "no_torque.toml": COMMANDS,
    "commands.toml": COMMANDS + COMMANDS[COMMANDS.index("[position]") :].replace("position", "reference"),
    "two.toml": Desk.map.replace(', "q3"', "").replace(', "tau3"', "").replace('"rad", "m", "m"', '"rad", "m"'),
    "not_toml.toml": "[time\n",
    "odd_key.toml": Desk.map + "[efort]\ncolumns = []\n",
    "odd_value.toml": "estimator = 3\n",
    "odd_setting.toml": 'estimatr = "wls"\n',
    "no_recipe.toml": "[[[",
    "law.toml": 'kind = "pd"\nkp = [1]\n',
    "pd.toml": 'kind = "pd"\nkp = [1, 1, 1]\nkd = [1, 1, 1]\n',
    "broken.toml": "kind = \n",
    "empty.toml": "",
    "empty.json": "{}",
    "cut.json": "[1, 2",
    "list.json": "[]",
    "light.toml": "[[object]]\nname = 'x'\nmass = -1.0",
    "weight.toml": "[[object]]\nname = 'x'\nweight = 1.0",
    "moments.toml": "[[object]]\nname = 'x'\nmass = 1.0\nprincipal_moments = [1.0]",
    "rock.urdf": '<robot name="rock"><link name="stone"/></robot>',
    "arm.sdf": '<sdf version="1.7"><model name="arm"/></sdf>',
    "log.json": '{"entries": [{"t": 0.0, "q": [0.1, 0.2, 0.3]}, {"t": 0.01, "q": [0.1, 0.2, 0.3]}]}',
    "massless.urdf": PLAIN_URDF.format(name="r", inertial=""),
    "broken.urdf": "<robot",
    "arm.urdf.xacro": "<robot/>",
    "xacro.urdf": '<robot name="r" xmlns:xacro="x"><xacro:macro name="m"/></robot>',
}
PLAIN = ("--estimator", "wls", "--set", "friction=plain", "--set", "cutoff_hz=10")
"""Settings with which an identification takes a part of a second; what is tried here depends on none of them."""


@pytest.fixture(scope="session")
def here(desk: Desk) -> Path:
    """The shared folder with bad logs, maps, laws and results."""
    folder = desk.folder
    head, first, *others = lines = (folder / "run1.csv").read_text().splitlines()
    log = desk.table("run1")
    wide, nan, slide, still = log.copy(), log.copy(), log.copy(), log.copy()
    wide[:, 1:4], nan[:, 5], slide[:, 2], still[:, 1:4] = np.rad2deg(log[:, 1:4]), np.nan, 1e3 * log[:, 2], 0.1
    for name, table in {"degrees": wide, "hole": nan, "slide": slide, "still": still}.items():
        desk.save(name, table)
    desk.save("two", log[:, [0, 1, 2, 4, 5]], joints=2)
    tables = {
        "empty": [],
        "header": [head],
        "sample": [head, first],
        "short": lines[:21],
        "nan": [head, *(f"{0.01 * k}" + ",nan" * 6 for k in range(500))],
        "rest": [head, *(f"{0.01 * k},0.1,0.2,0.3,1,2,3" for k in range(800))],
        "commas": [row.replace(".", ",") for row in lines],
        "backwards": [head, *lines[:0:-1]],
        "ragged": [head, *(row + ",1" * (k % 7 == 6) for k, row in enumerate([first, *others]))],
        "words": [head, *(f"{0.01 * k},a,b,c,d,e,f" for k in range(50))],
    }
    maps = {f"{name}.toml": Desk.map.replace(*change) for name, change in CHANGES.items()}
    result = (folder / "res" / "result.json").read_text()
    results = {
        "newer.json": json.dumps({**json.loads(result), "schema": 99}),
        "half.json": result[: len(result) // 2],
        "edited.json": result.replace('"value": ', '"value": 1', 1),
    }
    texts = {f"{name}.csv": "".join(f"{row}\n" for row in rows) for name, rows in tables.items()}
    for name, text in {**texts, **maps, **results, **TEXTS}.items():
        (folder / name).write_text(text)
    np.savez(folder / "whole.npz", t=np.arange(100.0))
    for name, content in {
        "copy.csv": (folder / "run1.csv").read_bytes(), "junk.csv": np.random.default_rng(0).bytes(5000),
        "cut.npz": (folder / "whole.npz").read_bytes()[:200], "log.xlsx": b"PK\x03\x04" + bytes(100),
        "log.pkl": b"\x80\x04",
    }.items():  # fmt: skip
        (folder / name).write_bytes(content)
    theta = cylindrical().parameter_vector.copy()
    theta[19] = -1.0
    write_urdf(cylindrical().with_parameters(theta), folder / "negative.urdf", allow_unphysical=True)
    (folder / "folder").mkdir()
    desk.run(*identify("degrees.csv", out=str(folder / "refused")))
    return folder


@pytest.fixture(autouse=True)
def _inside(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def call(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def identify(log: str, *options: str, out: str) -> list[str]:
    return ["identify", "arm.urdf", log, "--map", "map.toml", "--out", out, *options]


WRONG = r"""
base missing.urdf -> 3: missing.urdf
base folder -> 2: Built-in robots
base pand -> 2: Did you mean panda?
base arm.urf -> 2: Is it arm.urdf?
base am.urdf -> 3: Is it arm.urdf?
base broken.urdf -> 3: line 1
base arm.urdf.xacro -> 3: xacro arm.urdf.xacro > arm.urdf
base xacro.urdf -> 3: xacro in.xacro > out.urdf
base arm.sdf -> 2: no description of a robot that dynid reads
base half.json -> 2: Give a robot file (.urdf
base arm.urdf --hold nose -> 2: Its joints are: joint1
base arm.urdf --hold joint1=far -> 2: --hold JOINT=0.02
base panda --hold joint1 -> 2: robot files only
base arm.urdf --hold 'nose*' -> 2: The joints are: joint1
base arm.urdf --hold joint1=nan -> 2: --hold JOINT=0.02
base arm.urdf --counts --json -> 2: --counts excludes --json
base ddarm --torques text --counts -> 2: --torques excludes --counts
base puma260 --frames distal --method numeric -> 2: --frames distal excludes --method
check '' -> 3: there is no such file
check run1.csv --robot run1.csv -> 2: no description of a robot that dynid reads
check massless.urdf -> 0: Give the body its mass
check degrees.csv --map map.toml --robot arm.urdf -> 1: degrees
check run1.csv --map map.toml --rows 9:3 -> 2: a:b for rows a to b - 1
check arm.urdf --map map.toml -> 2: the check of a robot excludes --map
check run1.csv --map map.toml --time 100: -> 3: run1.csv: nothing is left
inspect junk.csv -> 3: it is not text
inspect arm.urdf -> 2: give the robot as an option
inspect folder -> 3: a folder without a log that dynid recognises
inspect run1.csv --robot panda -> 0: robot 'panda' has 7 joints; the log lacks joint4
identify arm.urdf nothing_like_it.dat --map map.toml --out new -> 3: there is no such file
identify arm.urdf run12.csv --map map.toml --out new -> 3: Is it run
identify arm.urdf run1.csv --map mop.toml --out new -> 3: Is it map.toml?
identify arm.urdf folder --map map.toml --out new -> 3: name the log itself
identify arm.urdf run1.csv --map map.toml --out arm.urdf -> 5: Choose another with --out
identify arm.urdf run1.csv --map map.toml --out /proc/dynid -> 5: Choose another with --out
identify arm.urdf run1.csv --map map.toml --out res -> 5: Add --force
identify run1.csv arm.urdf --map map.toml --out new -> 2: The robot comes first, then the logs
identify arm.urdf degrees.csv --map map.toml --out new -> 3: as if in another unit
identify arm.urdf run1.csv --map no_torque.toml --out new -> 3: [effort]
identify arm.urdf empty.csv --map map.toml --out new -> 3: it is empty
identify arm.urdf header.csv --map map.toml --out new -> 3: no line of numbers
identify arm.urdf run1.csv --map map.toml --out new --validate sample.csv -> 3: the log has one row
identify arm.urdf short.csv --map map.toml --out new -> 3: at least 34 samples (0.34 s at 100 Hz)
identify arm.urdf sample.csv --map map.toml --out new -> 3: sample.csv
identify arm.urdf nan.csv --map map.toml --out new -> 3: missing or not finite
identify arm.urdf rest.csv --map map.toml --out new -> 3: the torque never changes
identify arm.urdf still.csv --map map.toml --out new --no-check -> 4: while all joints move
identify arm.urdf backwards.csv --map map.toml --out new -> 3: never increase
identify arm.urdf junk.csv --map map.toml --out new -> 3: it is not text
identify arm.urdf cut.npz --map map.toml --out new -> 3: damaged
identify arm.urdf two.csv --map two.toml --out new -> 3: the log lacks
identify arm.urdf run1.csv --out new -> 3: dynid inspect run1.csv
identify arm.urdf log.json --map map.toml --out new -> 3: the log has no column 'q1'
identify arm.urdf hole.csv --map map.toml --out new -> 3: all samples are missing or not finite
identify arm.urdf slide.csv --map map.toml --out new -> 3: as if in another unit
identify arm.urdf run1.csv --map not_toml.toml --out new -> 3: line 1
identify arm.urdf run1.csv --map odd_unit.toml --out new -> 3: furlong
identify arm.urdf run1.csv --map odd_column.toml --out new -> 3: Columns like it: q3
identify arm.urdf run1.csv --map odd_key.toml --out new -> 3: efort
identify arm.urdf run1.csv --map odd_joints.toml --out new -> 3: list the log's names
identify arm.urdf run1.csv --map x --out new -> 3: libfranka
identify -> 2: Missing argument
identify arm.urdf run1.csv --map map.toml --out new --estimater wls -> 2: --estimator
identify arm.urdf run1.csv --map map.toml --out new --estimator fesible -> 2: Did you mean feasible? Known names: f
identify arm.urdf run1.csv --map map.toml --out new --set limit_percent=much -> 2: much
identify arm.urdf run1.csv --map map.toml --out new --set cutoff_hz=-1 -> 2: cutoff_hz
identify arm.urdf run1.csv --map map.toml --out new --set cutoff_hz=1e-310 -> 2: cutoff_hz: '1e-310' does not fit
identify arm.urdf run1.csv --map map.toml --out new --gravity 1e300,0,0 -> 2: gravity is
identify arm.urdf run1.csv --map map.toml --out new --set cutoff_hz=500 -> 2: half the sampling rate
identify arm.urdf run1.csv --map map.toml --out new --set limit_percent=nan -> 2: does not fit. Give
identify arm.urdf run1.csv --map map.toml --out new --set delay_s=some -> 2: a finite number or "auto"
identify arm.urdf run1.csv --map map.toml --out new --set delay_s=10 -> 2: write 0.01 for 10 ms
identify arm.urdf run1.csv --map map.toml --out new --rows 100000: -> 3: nothing is left: the log has
identify arm.urdf run1.csv --map map.toml --out new --time late -> 2: is no range of time
identify arm.urdf run1.csv --map map.toml --out new --gravity 0,9.81 -> 2: gravity is '0,9.81'. Give x,y,z
identify arm.urdf run1.csv --map map.toml --out new --set band_hz -> 2: cutoff_hz=10
identify arm.urdf run1.csv --map map.toml --out new --set bandhz=3 -> 2: Did you mean band_hz?
identify arm.urdf run1.csv --map map.toml --out new --recipe none.toml -> 3: there is no such file
identify arm.urdf run1.csv --map map.toml --out new run1.csv -> 2: run1.csv is given twice
identify arm.urdf run1.csv --map map.toml --out new copy.csv -> 2: copy.csv has the same content as run1.csv
identify arm.urdf run1.csv --map map.toml --out new --validate run1.csv -> 2: Hold out another run
identify arm.urdf run1.csv --map map.toml --out new --delay 0.01 -> 2: Write --set delay_s=VALUE.
identify arm.urdf run1.csv --map map.toml --out new --recipe map.toml -> 2: this is a channel map, not a recipe
identify arm.urdf run1.csv run2.csv --map map.toml --validate run2.csv --out new -> 2: Hold out another run
identify arm.urdf run1.csv --map map.toml --out new --hold-out 30 -> 2: Write 40% for the last 40 %
identify arm.urdf run1.csv --map map.toml --out new --hold-out 30% --validate run2.csv -> 2: mutually exclusive
identify arm.urdf run1.csv --map map.toml --out new --hold-out some -> 2: some
identify arm.urdf run1.csv --map map.toml --out new --estimator energy --set band_hz=5 -> 2: without band_hz
identify arm.urdf run1.csv --map map.toml --out new --estimator iv --set band_hz=5 -> 2: without band_hz
identify arm.urdf run1.csv --map map.toml --out new --estimator iv --set springs=joint1 -> 2: no springs
identify arm.urdf run1.csv --map map.toml --out new --estimator iv --engine pieces -> 2: whole log in memory
identify arm.urdf run1.csv --map map.toml --out new --estimator huber --engine pieces -> 2: whole log in memory
identify arm.urdf run1.csv --map map.toml --out new --set band_hz=5 --engine pieces -> 2: whole log in memory
identify arm.urdf run1.csv --map map.toml --out new --set springs=joint1 --engine pieces -> 2: in memory
identify arm.urdf run1.csv --map map.toml --out new --hold-out 30% --engine pieces -> 2: whole log in memory
identify arm.urdf run1.csv --map map.toml --out new --estimator wls --set law=pd.toml -> 2: the law has no effect
identify arm.urdf run1.csv --map map.toml --out new --hold-out 130% -> 2: '130%' leaves nothing
identify arm.urdf run1.csv --map map.toml --out new --hold-out 100:200 -> 3: run1.csv: none of the log's 8 s
identify arm.urdf run1.csv --map map.toml --out new --hold-out every:1:1 -> 2: leaves nothing to identify from
identify arm.urdf run1.csv --map map.toml --out new --significant 1.5 -> 2: percent sign is missing
identify arm.urdf run1.csv --map map.toml --out new --set terms=rubber -> 2: Known names: rotor-inertia
identify arm.urdf run1.csv --map map.toml --out new --set springs=nose -> 2: The joints are: joint1
identify arm.urdf run1.csv --map map.toml --out new --set per_run=weather -> 2: Known names: offset
identify arm.urdf run1.csv --map map.toml --out new --recipe odd_value.toml -> 2: estimator: 3 does not fit
identify arm.urdf run1.csv --map map.toml --out new --recipe odd_setting.toml -> 2: Did you mean estimator?
identify arm.urdf run1.csv --map map.toml --out new --recipe no_recipe.toml -> 2: the file is not TOML
identify arm.urdf run1.csv --map map.toml --out new --estimator iv --set law=law.toml -> 2: law.toml: kd is missing
identify arm.urdf run1.csv --map map.toml --out new --estimator iv --set law=lew.toml -> 2: lew.toml: there is no
identify arm.urdf run1.csv --map twice.toml --out new -> 3: the column 'q1' is named twice
identify arm.urdf run1.csv --map no_unit.toml --out new -> 3: Add unit = "s"
identify arm.urdf run1.csv --map odd_time.toml --out new -> 3: 'rad' is no unit of time
identify arm.urdf ragged.csv --map map.toml --out new -> 3: Remove or mend these lines
identify arm.urdf words.csv --map map.toml --out new -> 3: no line of numbers
identify arm.urdf log.xlsx --map map.toml --out new -> 3: it is a spreadsheet, which dynid does not read
identify arm.urdf log.pkl --map map.toml --out new -> 3: save plain arrays
identify arm.urdf run1.csv --map percent.toml --out new -> 3: Add rated = [...]
identify arm.urdf commas.csv --map map.toml --out new -> 3: line 2: commas separate the fields and the decimals
validate refused run2.csv --map map.toml -> 3: Its report.html says why
codegen refused --out new -> 3: the run was refused
export refused --to csv --out new -> 3: the run was refused
compare-runs res refused -> 3: the run was refused
rerun refused -> 3: interrupted or refused
validate ras run2.csv -> 3: there is no such file
validate res run2.csv run2.csv --map map.toml -> 2: run2.csv is given twice
validate newer.json run2.csv --map map.toml -> 3: newer dynid
validate half.json run2.csv --map map.toml -> 3: no JSON
validate edited.json run2.csv --map map.toml -> 3: checksum
validate folder run2.csv --map map.toml -> 3: dynid identify wrote
validate res run1.csv --map map.toml -> 2: has not seen
validate arm.urdf run2.csv --map map.toml -> 3: logs come after it
validate run2.csv res --map map.toml -> 3: this is no result of an identification
load arm.urdf run1.csv --map map.toml --set sign=-1 -> 2: --sensor
load arm.urdf run1.csv --map map.toml --set find=drift -> 2: --sensor
load arm.urdf run1.csv --map map.toml --sensor link3 --set link=link3 -> 2: link is for joint torques
load arm.urdf run1.csv --map map.toml --sensor link3 --arm 0.1,0.01 -> 2: --arm
load arm.urdf run1.csv --map map.toml --arm unknown -> 2: MASS,COM
load arm.urdf run1.csv --map map.toml --arm -1,0.1 -> 2: from 0 up
load arm.urdf run1.csv --map map.toml --arm 0.1,0.1 --unloaded run2.csv -> 2: does not matter
load arm.urdf run1.csv --map map.toml --unloaded copy.csv -> 2: which holds the load
load arm.urdf run1.csv --map map.toml --tare empty.json -> 3: missing required field `parameters`
load arm.urdf run1.csv --map map.toml --tare cut.json -> 3: no JSON
load arm.urdf run1.csv --map map.toml --tare list.json -> 3: got `array`
load arm.urdf run1.csv --map map.toml --set library=empty.toml -> 3: missing required field `object`
load arm.urdf run1.csv --map map.toml --set library=light.toml -> 3: object[0].mass: expected
load arm.urdf run1.csv --map map.toml --set library=weight.toml -> 3: unknown field `weight`
load arm.urdf run1.csv --map map.toml --set library=moments.toml -> 3: object[0].principal_moments
load arm.urdf run1.csv --map map.toml --sensor link3 --unloaded run2.csv -> 2: --unloaded
load arm.urdf run1.csv --map map.toml --sensor link3 -> 3: wrench
load arm.urdf run1.csv --map map.toml --unloaded run1.csv -> 2: Give a run of the robot without
drives arm.urdf run1.csv --unloaded run2.csv --map map.toml -> 2: Missing option '--mass'
drives arm.urdf run1.csv --unloaded run2.csv --map map.toml --mass -2 -> 2: the load has a mass of -2.0 kg
drives arm.urdf run1.csv --unloaded run2.csv --map map.toml --mass 2805 -> 2: give kilograms: 2.805
drives arm.urdf run1.csv --unloaded run1.csv --map map.toml --mass 2 -> 2: --unloaded empty.csv
drives arm.urdf run1.csv --unloaded run2.csv --map map.toml --mass 2 --com 0 0 -> 2: requires 3 arguments
drives arm.urdf run1.csv --unloaded run2.csv --map map.toml --mass 2 --link hand -> 2: Its links are: base, link1
excite negative.urdf --out new -> 3: link 'link2': the mass is negative
excite arm.urdf --time-limit nan --out new -> 2: not a finite number
excite arm.urdf --set scale=nan --out new -> 2: does not fit. Give
excite arm.urdf --period 5 --out new -> 2: Write --set period_s=VALUE
excite arm.urdf --floor 0 --out new -> 2: Write --set floor=VALUE.
excite arm.urdf --set points=5 --out new -> 2: choose --method energy-points
excite arm.urdf --set velocity=1 --set rate_hz=0.01 --out new -> 2: a rate of 0.01 Hz does not fit this motion
excite arm.urdf --set velocity=1 --set rate_hz=1e9 --out new -> 2: a rate of 1e+09 Hz does not fit this motion
excite arm.urdf --set velocity=1 --set jerk=1,2 --out new -> 2: one for each of the 3 joints
excite arm.urdf --set velocity=1 --set box=1,2 --out new -> 2: box: three ranges
excite arm.urdf --set velocity=1 --method energy-points --out new -> 2: needs a limit of acceleration
excite arm.urdf --set velocity=1 --method energy-points --set points=3 --acceleration 5 --out new -> 2: cannot reveal
excite rock.urdf --out new -> 2: no moving joint
excite ur10 --set clearance=0.01 --out new -> 2: clearance: the robot was not read from a URDF
excite arm.urdf --acceleration fast --out new -> 2: does not fit
excite arm.urdf --acceleration 1,2 --out new -> 2: one for each of the 3 joints
excite arm.urdf --set box=1:0,:,: --out new -> 2: not below its upper end
excite arm.urdf pd.toml --out new -> 2: unexpected extra argument (pd.toml)
actuate arm.urdf run1.csv --map commands.toml -> 2: Missing option '--law'
actuate arm.urdf run1.csv --map commands.toml --law lew.toml -> 3: lew.toml: there is no such file
actuate arm.urdf run1.csv --map commands.toml --law broken.toml -> 2: the file is not TOML
actuate arm.urdf run1.csv --map commands.toml --law empty.toml -> 2: field `kind`. Kinds are position, motor
actuate arm.urdf run1.csv --map commands.toml --law pd.toml -> 2: kind: invalid enum value 'pd'
actuate arm.urdf run1.csv --map commands.toml --law map.toml -> 2: this is a channel map, not the law of drives
actuate arm.urdf run1.csv run1.csv --map commands.toml --law pd.toml -> 2: is given twice
actuate arm.urdf run1.csv --map commands.toml --law pd.toml --held-out run1.csv -> 2: is a log that is trained on
actuate arm.urdf --law pd.toml -> 2: Missing argument 'LOGS...'
actuate arm.urdf run1.csv --map commands.toml --law pd.toml --out res -> 5: holds a finished run
actuate run1.csv arm.urdf --law pd.toml -> 2: The robot comes first, then the logs
actuate res run1.csv --law pd.toml -> 2: nor a built-in robot
watch arm.urdf run2.csv --map map.toml -> 3: this is no result of an identification
watch res -> 2: there is no log to watch. Give a log, or --live
watch folder run2.csv --map map.toml -> 3: dynid identify wrote
watch run2.csv res --map map.toml -> 3: logs come after it
watch res run9.csv --map map.toml -> 3: there is no such file. Is it run
watch res run2.csv -> 3: Run `dynid inspect run2.csv`
watch res run2.csv --map map.toml --per-hour 0 -> 2: not in the range
watch res run2.csv --map map.toml --per-hour nan -> 2: not a finite number
watch res run2.csv --map map.toml --clean run2.csv -> 2: a push in the log would set its own threshold
watch res run2.csv run2.csv --map map.toml -> 2: run2.csv is given twice
watch res run2.csv --live -> 2: --live reads samples, not logs
watch res --live --out new -> 2: Omit the logs and --out
watch res run2.csv --map map.toml --out res -> 5: holds a finished run
watch res run2.csv --map arm.urdf -> 3: not a channel map
compare-runs res -> 2: Missing argument 'LATER...'
compare-runs res res -> 2: res is the stored result. Give later logs
compare-runs res run1.csv --map map.toml -> 2: run1.csv was used for the identification
compare-runs res run2.csv run2.csv --map map.toml -> 2: run2.csv is given twice
compare-runs arm.urdf res -> 3: this is no result of an identification
compare-runs res folder -> 3: a folder without a log
compare-runs res run2.csv -> 3: Run `dynid inspect run2.csv`
compare-runs res run2.csv --map commands.toml -> 3: no joint torques are mapped
export res --out new -> 2: Missing option '--to'
export res --to matlab --out new -> 2: Choose from tables, parquet
export res --to urscript --out new -> 3: Give the load.json that
export arm.urdf --to csv --out new -> 3: no result of an identification
export folder --to csv --out new -> 3: dynid identify wrote
export res run2.csv --to csv --out new -> 3: Run `dynid inspect run2.csv`
export res --to csv --out res -> 2: --out, such as res_files
export res --to csv --out arm.urdf -> 5: Choose another folder (--out)
codegen arm.urdf --out '' -> 2: folder is empty
codegen arm.urdf --functions gravty --out new -> 2: Did you mean gravity? Known names: inverse_dynamics
codegen run1.csv --out new -> 2: no description of a robot that dynid reads
codegen arm.urdf --out res --force -> 2: --out, such as res_code
codegen arm.urdf --prune --out new -> 2: needs the data of a run
codegen arm.urdf --functions '' --out new -> 2: no function is requested
fleet arm.urdf 'run*.csv' --map map.toml --out new -> 2: which part is the arm's
fleet arm.urdf 'no/{arm}.csv' --map map.toml --out new -> 3: no file fits
fleet arm.urdf '{arn}.csv' --map map.toml --out new -> 2: which part is
fleet arm.urdf 'run{arm}.csv' --out new -> 3: give it: --map map.toml
fleet arm.urdf 'no/{arm}.csv' -> 3: no file fits
fleet arm.urdf 'run{arm}.csv' --map map.toml --out new --window 0 -> 2: not in the range
fleet arm.urdf 'run{arm}.csv' --map map.toml --out new --engine spark -> 2: there is no engine 'spark'
fleet arm.urdf 'run{arm}.csv' --map map.toml --out new --store arm.urdf -> 2: Directory 'arm.urdf' is a file
fleet arm.urdf '{arm}n1.csv' --map map.toml --out alone -> 0: Does {arm} stand for the right part
identfy -> 2: Did you mean identify?
demo --out res -> 2: the demo would mix
rerun folder -> 3: no run is here
report folder -> 3: no run is here
report run1.csv -> 3: this is a file, not the folder of a run
rerun res/result.json -> 3: this is a file, not the folder of a run
help -> 2: dynid COMMAND --help explains one
""".strip().splitlines()
"""Words after ``dynid`` -> exit code: what the message says."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_use(here: Path, line: str) -> None:
    command, _, expected = line.partition(" -> ")
    code, _, words = expected.partition(": ")
    shutil.rmtree(here / "new", ignore_errors=True)
    result = call(*shlex.split(command))
    text = " ".join(result.output.split())
    assert result.exit_code == int(code), text
    assert words in text
    assert "Traceback" not in text
    assert "internal error" not in text
    if int(code) > 1:
        assert len([line for line in result.stderr.splitlines() if line.startswith(("dynid:", "Error:"))]) == 1
    assert not (here / "new").exists() or read_run(here / "new")["refused"]


# --- what only a process of its own shows ---


def run(
    here: Path, *arguments: str, before: Callable[[], None] | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dynid", *arguments]
    return subprocess.run(
        command, cwd=here, env={**os.environ, **environment}, preexec_fn=before, capture_output=True, text=True,
        timeout=120, check=False, encoding="utf-8", errors="replace",
    )  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="file sizes cannot be limited here")
def test_a_full_disk(here: Path) -> None:
    import resource

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = run(here, *identify("run1.csv", *PLAIN, out="full"), before=small_files)
    assert result.returncode == 5, result.stderr
    assert "File too large" in result.stderr
    assert "has room" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (here / "full").exists()
    assert not [name for name in os.listdir(here) if name.startswith(".")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_that_is_full(here: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dynid", "robots"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert result.returncode == 5
    assert "No space left" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="no pipes of this kind")
def test_an_output_that_nobody_reads(here: Path) -> None:
    command = f"{sys.executable} -m dynid base puma560 --json | head -c 10; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout.endswith("0\n")
    assert result.stderr == ""


def test_no_compiler(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CC", "")
    result = call("codegen", "arm.urdf", "--functions", "gravity", "--out", "code")
    assert result.exit_code == 0, result.output
    assert "there is no C compiler; install gcc or clang" in " ".join(result.output.split())


def test_forty_columns(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    result = call("validate", "--help")
    text, _, examples = result.output.partition("Examples:")
    assert max(map(len, text.splitlines())) <= 40
    assert "dynid validate result/ run9.csv" in examples


def test_a_locale_without_letters(here: Path) -> None:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (here / "letters.urdf").write_text(PLAIN_URDF.format(name="Größe→✓", inertial=inertial), encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    result = run(here, "base", "letters.urdf", **plain)
    assert result.returncode == 0, result.stderr
    assert "base parameters" in result.stdout
    assert result.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="names are text here")
def test_a_name_that_is_no_text(here: Path) -> None:
    (here / "bytes").mkdir()
    try:
        os.link(here / "run1.csv", os.fsencode(here / "bytes") + b"/r\xfcn.csv")
    except OSError:
        pytest.skip("the file system takes text only")
    log = os.fsdecode(b"bytes/r\xfcn.csv")
    made = call(*identify(log, *PLAIN, out="bytes/run"))
    assert made.exit_code == 0, made.output
    again = call("rerun", "bytes/run", "--out", "bytes/again")
    assert again.exit_code == 0, again.output
    assert "\\udcfcn.csv" in (here / "bytes/run/log.txt").read_text(encoding="utf-8")
    assert "\\udcfcn.csv" in (here / "bytes/run/report.html").read_text(encoding="utf-8")
    shown = run(here, "check", log, "--map", "map.toml", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert shown.returncode == 0, shown.stderr
    assert "n.csv: no objections" in shown.stdout


def test_late_torques_are_moved_back(here: Path, desk: Desk) -> None:
    """Torques stamped 20 ms late: the gate names the option, which then finds what the log on time tells."""
    table = desk.table("run1")
    desk.save("tardy", np.column_stack([table[2:, :4], table[:-2, 4:]]))
    said = call("check", "tardy.csv", "--map", "map.toml", "--robot", "arm.urdf").output
    assert "delay_s=0.0" in said
    errors = []
    for log, delay in (("run1.csv", "0"), ("tardy.csv", "0.02"), ("tardy.csv", "auto"), ("tardy.csv", "0")):
        words = identify(log, *PLAIN, "--set", f"delay_s={delay}", "--force", "--json", out="moved")
        errors.append(json.loads(call(*words).stdout)["training_error_percent"]["all"])
    on_time, *mended, late = errors
    assert mended == pytest.approx([on_time, on_time], rel=0.2)
    assert late > 3.0 * on_time


def test_no_home_and_no_cache(here: Path) -> None:
    result = run(here, "doctor", HOME="", XDG_CACHE_HOME="/proc/nothing", DYNID_CACHE="/proc/nothing")
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="no signals of this kind")
def test_interrupted(here: Path) -> None:
    command = [sys.executable, "-m", "dynid", "demo", "--out", "demo"]
    process = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("- robot")  # the run has begun
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
