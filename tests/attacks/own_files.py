"""Files of our own kinds and models of robots, broken in many ways: only our errors may come out."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import dynid
from dynid.control_loop.laws import read_law
from dynid.data_reduction import Information, reduce_samples
from dynid.data_reduction.storage import MAGIC
from dynid.export.result_file import _digest, read_result
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import read_channel_map
from dynid.logs.conversion import convert
from dynid.logs.readers.base import ColumnTable
from dynid.payload.load import Load
from dynid.payload.recognition import read_library
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.report.page import Page
from dynid.robot.formats import read_robot
from dynid.robot.zoo import ddarm
from dynid.workflows import Identify
from dynid.workflows import run as run_task
from dynid.workflows.load_run import LoadRecipe
from dynid.workflows.run_folder import read_run

from .mutants import mutate, try_mutants

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.0, -0.0, 1e-320, 1e308, -1e300, 1e30,
    0.5, "", " ", "nan", "inf", "a", "../x", "\x00", "\x1b[2J", "é" * 300, "x" * 3000, "1e99999999999",
    "{joint}{joint}", "*a*a*a*a*a*a*a*a*b", "none", "auto", "-1", "--force", [], [[]], [None], {},
    {"type": "array"}, {"a": {}}, float("nan"), float("inf"), [1, 2, 3], ["a", 1], "joint1", "revolute", "rad",
    "1/0", "9" * 5000,
    {"type": "Robot"}, {"type": "float", "value": "nan"}, "2" * 64,
)  # fmt: skip
"""Values that a file may hold in place of the right one."""


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    name: str
    """Name of the file in the folder."""
    make: Callable[[Path], None]
    """Writes a right one, and what it needs beside it, into a folder."""
    use: Callable[[Path], object]
    """Reads it and uses what was read."""
    break_values: Callable[[random.Random, bytes], bytes] | None = None
    """Breaks it on the level of values."""


# --- mutants on the level of values -----------------------------------------------------------------------------------


def break_json(rng: random.Random, data: bytes) -> bytes:
    """JSON with one to three odd values."""
    content = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _break_tree(rng, content)
    return json.dumps(content).encode()


def break_result(rng: random.Random, data: bytes) -> bytes:
    """A result file with odd values, signed again."""
    content = json.loads(break_json(rng, data))
    content.pop("sha256", None)
    content["sha256"] = _digest(content)
    return json.dumps(content).encode()


def _break_tree(rng: random.Random, content: Any) -> None:
    """Change one value somewhere in nested lists and tables."""
    places = [(content, key) for key in (content if isinstance(content, dict) else range(len(content)))]
    while places:
        holder, key = rng.choice(places)
        inner = holder[key]
        if isinstance(inner, dict | list) and len(inner) and rng.random() < 0.85:
            places = [(inner, k) for k in (inner if isinstance(inner, dict) else range(len(inner)))]
            continue
        step = rng.random()
        if step < 0.7:
            holder[key] = copy.deepcopy(rng.choice(ODD))
        elif step < 0.85:
            del holder[key]
        elif isinstance(holder, dict):
            holder[f"{key}x"] = holder.pop(key)
        else:
            holder.append(copy.deepcopy(holder[key]))
        return


def break_toml(rng: random.Random, data: bytes) -> bytes:
    """TOML with one odd value or line."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines))
    key, equals, _ = lines[at].partition("=")
    step = rng.random()
    if equals and step < 0.75:
        lines[at] = f"{key}= {_toml(rng.choice(ODD))}"
    elif step < 0.85:
        lines.insert(at, rng.choice((lines[at], f"x{lines[at]}", "[x]", "a.b.c = 1", "[" * 400, "gear = [[[[1]]]]")))
    else:
        del lines[at]
    return "\n".join(lines).encode("utf-8", errors="replace")


def _toml(value: Any) -> str:
    if isinstance(value, dict) or value is None:
        return "{a = 1}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value).lower() if isinstance(value, bool | float) else json.dumps(value)


XML_ODD = ("", " ", "nan", "inf", "-inf", "1e400", "1e308", "-1", "0", "0 0 0", "1 1 1", "1e-320", "a", "1e99999999999",
           "base", "true", "auto", "9" * 3000, "1,5", "../x", "-1e300", "1 0 0 0", "fixed", "prismatic")  # fmt: skip
_VALUE = re.compile(rb'"[^"]*"')
_TAG = re.compile(rb"<[^>]*>")


def break_xml(rng: random.Random, data: bytes) -> bytes:
    """XML with an odd attribute, or a tag that is lost, doubled or moved."""
    step = rng.random()
    if step < 0.75:
        found = rng.choice(list(_VALUE.finditer(data)))
        return data[: found.start()] + b'"' + rng.choice(XML_ODD).encode() + b'"' + data[found.end() :]
    tags = list(_TAG.finditer(data))
    found, other = rng.choice(tags), rng.choice(tags)
    if step < 0.85:
        return data[: found.start()] + data[found.end() :]
    return data[: other.start()] + found[0] + data[other.start() :]


# --- the kinds --------------------------------------------------------------------------------------------------------

ARM = """<robot name="arm"><link name="base"/>
<link name="l1"><inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0"
 izz="0.1"/></inertial></link>
<joint name="j1" type="revolute"><parent link="base"/><child link="l1"/><origin xyz="0 0 0.1" rpy="0 0 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="9" velocity="2"/>
<dynamics damping="0.1" friction="0.2"/></joint>
<link name="l2"><inertial><mass value="1"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<joint name="j2" type="prismatic"><parent link="l1"/><child link="l2"/><origin xyz="0 0.2 0.1" rpy="0.3 0 0"/>
<axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="10" velocity="2"/></joint></robot>"""
MJCF = """<mujoco model="arm"><compiler angle="radian" inertiafromgeom="auto"/><option gravity="0 0 -9.81"/>
<default><joint damping="0.1"/><default class="big"><joint armature="0.2"/></default></default>
<worldbody><body name="b1" pos="0 0 0.1"><joint name="j1" type="hinge" axis="0 0 1" class="big" range="-1 1"
 frictionloss="0.1"/><inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
<body name="b2" pos="0.3 0 0" quat="1 0 0 0"><joint name="j2" type="slide" axis="1 0 0"/>
<geom type="box" size="0.1 0.1 0.2" density="500"/></body></body></worldbody></mujoco>"""
MAP = """joints = ["a", "b"]
[time]
column = "t"
unit = "s"
[position]
columns = "q_{0..1}"
unit = "deg"
sign = [1, -1]
offset = [0.0, -90.0]
[effort]
columns = ["tau_*0", "tau_1"]
unit = "N m"
gear = [100, "221/3"]
[current]
columns = "i_{0..1}"
unit = "A"
[reader]
decimal = "."
"""
LAW = 'kind = "pid"\nkp = [300.0, 60.0]\nki = [1.0, 2.0]\nkd = [3, 4]\n'
DH_TABLE = """convention = "modified"
angles = "degrees"
[[joint]]
name = "turn"
d = 0.3
lower = -170
upper = 170
[[joint]]
alpha = -90
a = 0.1
mass = 3.0
com = [0.2, 0, 0]
inertia = [0.01, 0, 0, 0.1, 0, 0.1]
[[joint]]
type = "prismatic"
alpha = 90
rotor_inertia = 0.3
"""
LIBRARY = (
    '[[object]]\nname = "cup"\nmass = 0.3\nprincipal_moments = [0.1, 0.1, 0.15]\n[[object]]\nname = "box"\nmass = 1\n'
)


def _use_robot(path: Path) -> None:
    """Torques of two states."""
    robot = read_robot(path)
    if robot.dof:
        states = np.linspace(-0.5, 0.5, 2 * robot.dof).reshape(2, robot.dof)
        dynid.inverse_dynamics(robot, states, states, states)


def _table() -> ColumnTable:
    names = ("t", "q_0", "q_1", "tau_0", "tau_1", "i_0", "i_1")
    return ColumnTable(columns={name: np.linspace(0.0, 1.0, 20) * (k + 1) for k, name in enumerate(names)})


@cache
def _run_files() -> dict[str, bytes]:
    """Files of a run by name."""
    robot = ddarm()
    run = simulate_experiment(robot, sum_of_sines(3, seed=1), rate_hz=50, duration_s=4, seed=1)
    recipe = Recipe(friction="plain", estimator="wls", gate=False)
    with tempfile.TemporaryDirectory() as folder:
        run_task(Identify(robot, run, recipe), Path(folder) / "run")
        return {file.name: file.read_bytes() for file in (Path(folder) / "run").iterdir()}


def _make_run(folder: Path) -> None:
    for name, content in _run_files().items():
        (folder / name).write_bytes(content)


def _use_result(path: Path) -> None:
    (path.parent / "run.json").unlink(missing_ok=True)  # its digest would refuse every mutant
    fit = read_result(path).identification()
    fit.predict(np.zeros((2, 3)), np.ones((2, 3)), np.ones((2, 3)))
    str(fit)


def _text(name: str, text: str, use: Callable[[Path], object], breaks: Callable[[random.Random, bytes], bytes]) -> Kind:
    """A file of text that needs no other."""
    return Kind(name, lambda folder: (folder / name).write_text(text) and None, use, breaks)


def _make_load(folder: Path) -> None:
    load = Load.of(dynid.Inertia.from_com(2.0, [0.1, 0, 0], np.eye(3)), "tool", stderr=np.full(10, 0.01))
    names = dict(zip(dynid.payload.load.NAMES, load.vector.tolist(), strict=True))
    content = {"parameters": names, "frame": "tool", "covariance": load.covariance.tolist(), "method": "given"}
    (folder / "load.json").write_text(json.dumps(content | {"logs": {"a" * 64: "run.csv"}}))


def _use_load(path: Path) -> None:
    load = Load.read(path)
    str(load.minus(Load.of(dynid.Inertia.from_com(0.1, [0, 0, 0], 1e-3 * np.eye(3)), "tool")))


def _make_information(folder: Path) -> None:
    robot = ddarm()
    run = process(simulate_experiment(robot, sum_of_sines(3, seed=1), rate_hz=20, duration_s=2, seed=1))
    reduce_samples(robot, run.q, run.dq, run.ddq, run.effort).save(folder / "a.info")


def break_information(rng: random.Random, data: bytes) -> bytes:
    """An information file with odd values or bytes, signed again."""
    start = len(MAGIC) + hashlib.sha256().digest_size
    body = bytearray(data[start:])
    content = msgspec.msgpack.decode(body)
    _break_tree(rng, content)
    try:
        body = msgspec.msgpack.encode(content, enc_hook=str)
    except OverflowError:  # MessagePack has no such number
        body[rng.randrange(len(body))] = rng.randrange(256)
    return MAGIC + hashlib.sha256(body).digest() + body


KINDS: dict[str, Kind] = {
    "run": Kind("run.json", _make_run, lambda path: read_run(path.parent), break_json),
    "report": Kind("report.json", _make_run, Page.read, break_json),
    "result": Kind("result.json", _make_run, _use_result, break_result),
    "recipe": Kind("recipe.toml", _make_run, Recipe.read, break_toml),
    "load_recipe": Kind("l.toml", lambda f: LoadRecipe().write(f / "l.toml") and None, LoadRecipe.read, break_toml),
    "map": _text(
        "map.toml",
        MAP,
        lambda path: convert(read_channel_map(path), {"log": _table()}),
        break_toml,
    ),
    "law": _text("law.toml", LAW, read_law, break_toml),
    "library": _text("objects.toml", LIBRARY, read_library, break_toml),
    "load": Kind("load.json", _make_load, _use_load, break_json),
    "information": Kind("a.info", _make_information, Information.load, break_information),
    "urdf": _text("arm.urdf", ARM, _use_robot, break_xml),
    "mjcf": _text("arm.xml", MJCF, _use_robot, break_xml),
    "dh": _text("arm.toml", DH_TABLE, _use_robot, break_toml),
}


def attack_kind(name: str, count: int, seed: int) -> list[str]:
    """Use mutants of one kind of file."""
    kind, rng = KINDS[name], random.Random(f"{name}-{seed}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kind.make(folder)
        path = folder / kind.name
        original = path.read_bytes()
        kind.use(path)

        def spoil() -> None:
            breaks = kind.break_values if kind.break_values is not None and rng.random() < 0.7 else mutate
            path.write_bytes(breaks(rng, original))

        return try_mutants(count, spoil, lambda: kind.use(path))
