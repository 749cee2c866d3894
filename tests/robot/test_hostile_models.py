"""Model files that attack or are broken: one of our errors, or a sound robot; never another file, a crash or a hang."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from attacks.own_files import ARM, MJCF
from campaigns.differential_models import compare
from dynid.cli import main
from dynid.errors import DescriptionError
from dynid.robot.check import check_robot
from dynid.robot.formats.mjcf.read import parse_mjcf, read_mjcf
from dynid.robot.formats.mjcf.write import mjcf_text
from dynid.robot.formats.urdf import parse_urdf, read_urdf, urdf_text
from dynid.robot.formats.xml import MAX_BYTES
from dynid.robot.model import Robot

DATA = Path(__file__).parent / "data"
READERS = {"urdf": read_urdf, "mjcf": read_mjcf}
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
LINK = '<robot name="r"><link name="a"/></robot>'

ATTACKS: dict[str, bytes] = {
    "document type": f"<!DOCTYPE robot>{LINK}".encode(),
    "document type in lower case": f"<!doctype robot>{LINK}".encode(),
    "external document type": b'<!DOCTYPE robot SYSTEM "http://example.com/x.dtd"><robot/>',
    "entity bomb": f'<!DOCTYPE r [<!ENTITY l0 "lol">{LAUGHS}]><robot name="&l9;"/>'.encode(),
    "external entity": b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
    "undeclared entity": b'<robot name="&x;"/>',
    "200 000 levels": b"<robot>" + b"<a>" * 200_000 + b"</a>" * 200_000 + b"</robot>",
    "200 000 levels left open": b"<a>" * 200_000,
    "too many elements": b"<robot>" + b"<a/>" * 150_000 + b"</robot>",
    "cut off in a tag": LINK.encode()[:-12],
    "cut off between tags": LINK.encode()[:-8],
    "empty": b"",
    "blank": b" \n ",
    "no XML": b"robot: {name: arm}",
    "two roots": b"<robot/><robot/>",
    "repeated attribute": b'<robot name="a" name="b"/>',
    "NUL": b"<robot>\0</robot>",
    "UTF-16": LINK.encode("utf-16"),
    "Latin-1": '<?xml version="1.0" encoding="iso-8859-1"?><robot name="Größe"/>'.encode("latin-1"),
    "control character": b'<robot name="\x01"/>',
    "binary": bytes(range(256)) * 10,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_get_our_error(attack: str, reader: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_bytes(ATTACKS[attack])
    with pytest.raises(DescriptionError) as caught:
        READERS[reader](path)
    assert caught.value.path == str(path)
    assert caught.value.place
    assert caught.value.reason
    assert caught.value.remedy
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("reader", READERS)
def test_huge_file_is_not_read_whole(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    tracemalloc.start()
    try:
        with pytest.raises(DescriptionError, match=f"more than {MAX_BYTES} bytes") as caught:
            READERS[reader](path)
        assert tracemalloc.get_traced_memory()[1] < 2.5 * MAX_BYTES
    finally:
        tracemalloc.stop()
    assert caught.value.remedy


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.urdf", Path(os.devnull), "nul\0byte"):
        with pytest.raises(DescriptionError) as caught:
            read_urdf(path)
        assert caught.value.remedy


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_nobody_writes_to_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DescriptionError, match="regular file"):
        read_urdf(tmp_path / "pipe")


# --- other files ------------------------------------------------------------------------------------------------------

WATCH = """
import json, sys
from pathlib import Path
from dynid.errors import DescriptionError
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.urdf import read_urdf
readers = {".urdf": read_urdf, ".xml": read_mjcf}
paths = sys.argv[1:]
def read(path):
    try:
        readers[Path(path).suffix](path, hold={"gripper": 0.0} if path.endswith("arm.urdf") else None)
    except DescriptionError:
        pass
for path in paths:
    read(path)                       # once before watching: whatever is imported late is imported now
events = []
watched = ("open", "os.", "subprocess.", "socket.", "shutil.", "glob.", "import", "urllib.")
def hook(event, arguments):
    if watching and event.startswith(watched):
        events.append([event, str(arguments[0]) if arguments else ""])
watching = False
sys.addaudithook(hook)
watching = True
for path in paths:
    read(path)
watching = False
print(json.dumps(events))
"""


def test_only_the_given_file_is_opened(tmp_path: Path) -> None:
    tricks = {
        "include.xml": '<mujoco><include file="/etc/passwd"/></mujoco>',
        "mesh.xml": '<mujoco><compiler meshdir="/etc"/><asset><mesh file="passwd"/><texture file="../x"/></asset>'
        '<worldbody><body><joint/><geom type="mesh" mesh="passwd"/></body></worldbody></mujoco>',
        "style.urdf": '<?xml-stylesheet href="file:///etc/passwd"?>' + LINK,
        "namespace.urdf": '<robot xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd"/></robot>',
        "entity.urdf": ATTACKS["external entity"].decode(),
        "file.urdf": LINK.replace(
            "/>", '><visual><geometry><mesh filename="file:///etc/shadow"/></geometry></visual></link>'
        ),
    }
    for name, text in tricks.items():
        (tmp_path / name).write_text(text)
    paths = [str(DATA / "arm.urdf"), str(DATA / "arm.xml"), *(str(tmp_path / name) for name in tricks)]
    result = subprocess.run([sys.executable, "-c", WATCH, *paths], capture_output=True, text=True, check=True)
    events = json.loads(result.stdout)
    assert {event for event, _ in events} == {"open"}
    assert list(dict.fromkeys(path for _, path in events if not path.isdigit())) == paths  # a digit: the same, open


# --- mutated files ----------------------------------------------------------------------------------------------------

TOKENS = (
    *b"nan inf -1 0 1e400 1e30 -1e30 1e-320 &amp; &x; \xff \0 \xc3\xa9 floating ball free slide mesh true".split(),
    *b"\" ' < > /> </link> <inertial/> <!-- --> <![CDATA[ ]]> <?x?> base world <joint/> <geom/> <frame/>".split(),
    *(b"", b" "),
)


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """Up to three small accidents: a cut, a flipped bit, a lost, doubled, swapped or foreign piece, another number."""
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(rng.integers(0, len(data) + 1, size=2).tolist())
        b = min(b, a + int(rng.integers(1, 120)))
        kind = rng.integers(0, 8)
        if kind == 0 and rng.random() < 0.3:
            data = data[:a]
        elif kind == 1 and a < len(data):
            data = data[:a] + bytes([data[a] ^ (1 << int(rng.integers(0, 8)))]) + data[a + 1 :]
        elif kind == 2:
            data = data[:a] + data[b:]
        elif kind == 3:
            data = data[:b] + data[a:b] + data[b:]
        elif kind == 4:
            data = data[:a] + TOKENS[rng.integers(len(TOKENS))] + data[a:]
        else:
            data = _replace_a_value(data, rng)
    return data


def _replace_a_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Another text between two quotes: this keeps the XML whole and reaches the reader behind it."""
    quotes = [index for index, byte in enumerate(data) if byte == ord('"')]
    if len(quotes) < 2:
        return data
    k = int(rng.integers(0, len(quotes) // 2)) * 2
    other = int(rng.integers(0, len(quotes) // 2)) * 2
    value = data[quotes[other] + 1 : quotes[other + 1]] if rng.random() < 0.5 else TOKENS[rng.integers(len(TOKENS))]
    return data[: quotes[k] + 1] + value + data[quotes[k + 1] :]


def parse_urdf_bytes(data: bytes) -> Robot:
    return parse_urdf(data.decode("utf-8", "surrogateescape"), "mutant")


def parse_mjcf_bytes(data: bytes) -> Robot:
    return parse_mjcf(data.decode("utf-8", "surrogateescape"), "mutant")


@pytest.mark.parametrize(
    ("sample", "parse", "write"),
    [("arm.urdf", parse_urdf_bytes, urdf_text), ("arm.xml", parse_mjcf_bytes, mjcf_text)],
)
def test_mutants_give_our_error_or_a_sound_robot(
    sample: str, parse: Callable[[bytes], Robot], write: Callable[[Robot], str]
) -> None:
    original = (DATA / sample).read_bytes().replace(b'<mimic joint="reach" multiplier="0.1"/>', b"")
    rng = np.random.default_rng(2024)
    tried = refused = sound = 0
    for _ in range(1000):
        mutant = mutate(original, rng)
        try:
            robot = parse(mutant)
        except DescriptionError as error:
            refused += error.path == "mutant" and bool(error.reason) and bool(error.remedy)
            tried += 1
            continue
        assert np.isfinite(robot.parameter_vector).all()
        if sound % 4 == 0:  # these take as long as reading
            assert write(robot).encode() == mutant
            assert str(check_robot(robot))
        sound += 1
    assert refused == tried > 200
    assert sound > 50


@pytest.mark.parametrize("mode", ["true", "auto", "false"])
@pytest.mark.parametrize("geom", ["", '<geom size="1" mass="0"/>', '<geom size="1" mass="3"/>'])
def test_masses_are_those_of_mujoco_whatever_inertiafromgeom_says(mode: str, geom: str, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    inertial = '<inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>'
    xml = (
        f'<mujoco><compiler inertiafromgeom="{mode}"/><worldbody><body name="a">'
        f'<joint name="j" type="hinge" axis="0 1 0"/>{inertial}{geom}</body></worldbody></mujoco>'
    )
    (tmp_path / "a.xml").write_text(xml)
    read = read_mjcf(tmp_path / "a.xml")
    assert read.bodies[0].inertia.mass == mujoco.MjModel.from_xml_string(xml).body_mass[1]


IMPOSSIBLE = {
    "mass": ('<mass value="1"/>', '<mass value="-1"/>', "the mass is negative: -1 kg"),
    "moment": ('iyy="0.1"', 'iyy="-0.1"', "a principal moment of inertia is negative: -0.1, 0.1, 0.1 kg m^2"),
    "product": ('ixy="0"', 'ixy="0.3"', "a principal moment of inertia is negative: -0.2, 0.1, 0.4 kg m^2"),
    "triangle": ('izz="0.1"', 'izz="0.25"', "its principal moments break the triangle inequality: 0.1, 0.1, 0.25 kg"),
}
"""What is wrong with a link -> the text of the right link, that of the wrong one, and the error."""
VERBS = (["base"], ["codegen", "--out", "c"], ["excite", "--out", "e"], ["identify", "x", "--out", "i"], ["inspect"],
         ["load", "x", "--out", "l"], ["check", "x"])  # fmt: skip


def _impossible(folder: Path, fault: str) -> str:
    """Write a robot whose last link is impossible; its file."""
    right, wrong, _ = IMPOSSIBLE[fault]
    kept, found, last = ARM.rpartition(right)
    assert found
    (folder / "arm.urdf").write_text(kept + wrong + last)
    (folder / "x").write_text("t,q\n0,0\n1,1\n")
    return str(folder / "arm.urdf")


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_impossible_masses_and_tensors_are_refused_by_every_verb(fault: str, verb: list[str], tmp_path: Path) -> None:
    robot = _impossible(tmp_path, fault)
    first, *rest = [str(tmp_path / word) if word in "xceil" else word for word in verb]
    words = {"inspect": ["inspect", str(tmp_path / "x"), "--robot", robot],
             "check": ["check", *rest, "--robot", robot]}.get(first, [first, robot, *rest])  # fmt: skip
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3
    assert IMPOSSIBLE[fault][2] in result.stderr.replace("\n", " ")
    assert "link 'l2'" in result.stderr


@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_impossible_robots_are_used_where_this_is_asked_for_and_listed_by_check(fault: str, tmp_path: Path) -> None:
    robot = _impossible(tmp_path, fault)
    assert CliRunner().invoke(main, ["base", robot, "--allow-unphysical"]).exit_code == 0
    found = CliRunner().invoke(main, ["check", robot])
    assert found.exit_code == 1
    assert IMPOSSIBLE[fault][2][:30] in found.stdout


MISPLACED = {
    "a joint of the world": ("<worldbody>", '<worldbody><joint name="x" axis="1 0 0"/>', "no meaning in <worldbody>"),
    "an inertia beside the bodies": ("<worldbody>", '<inertial pos="0 0 0" mass="9"/><worldbody>', "in <mujoco>"),
    "a joint in a joint": ('axis="1 0 0"/>', 'axis="1 0 0"><inertial pos="0 0 0" mass="9"/></joint>', "in <joint>"),
    "a named default": ("<default><joint ", '<default><joint name="x" ', "has a name, although it stands in <default>"),
    "three armatures": ('armature="0.2"', 'armature="0 0 0"', "'armature' holds 3 numbers"),
    "four sizes": ('size="0.1 0.1 0.2"', 'size="0.1 0.1 0.2 0"', "'size' holds 4 numbers"),
    "a geom without volume": ('size="0.1 0.1 0.2" density', 'size="1e-9 1e-9 1e-9" density', "leaves its mass out"),
}
"""What MuJoCo refuses or leaves out -> text of a right file, that of the wrong one, part of the error."""


@pytest.mark.parametrize("fault", MISPLACED)
def test_parts_that_mujoco_does_not_take_are_not_skipped(fault: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    right, wrong, reason = MISPLACED[fault]
    text = MJCF.replace(right, wrong, 1)
    assert text != MJCF
    if "volume" not in fault:
        with pytest.raises(ValueError, match="Error"):
            mujoco.MjModel.from_xml_string(text)
    with pytest.raises(DescriptionError, match=re.escape(reason)):
        parse_mjcf(text)


@pytest.mark.parametrize(("name", "library"), [("urdf", "pinocchio"), ("mjcf", "mujoco")])
def test_random_files_mean_the_same_elsewhere(name: str, library: str) -> None:
    pytest.importorskip(library)
    compared, differences = compare(name, 60, seed=3)
    assert differences == []
    assert compared > 40


DRY = 'frictionloss="0.1"'
"""Dry friction, which the campaign's comparison with MuJoCo leaves out."""
