"""Model files that attack or are broken: one of our errors, or a sound robot; never another file, a crash or a hang."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from attacks.own_files import ARM, MJCF
from campaigns.differential_models import compare
from dynid.cli import main
from dynid.errors import DescriptionError
from dynid.robot.formats.mjcf.read import read_mjcf
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.formats.xml import MAX_BYTES
from support.described import parse_mjcf

DATA = Path(__file__).parent / "data"
READERS = {"urdf": read_urdf, "mjcf": read_mjcf}
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
LINK = '<robot name="r"><link name="a"/></robot>'

ATTACKS: dict[str, bytes] = {
    "document type": f"<!DOCTYPE robot>{LINK}".encode(),
    "entity bomb": f'<!DOCTYPE r [<!ENTITY l0 "lol">{LAUGHS}]><robot name="&l9;"/>'.encode(),
    "external entity": b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>',
    "200 000 levels": b"<robot>" + b"<a>" * 200_000 + b"</a>" * 200_000 + b"</robot>",
    "too many elements": b"<robot>" + b"<a/>" * 150_000 + b"</robot>",
    "cut off in a tag": LINK.encode()[:-12],
    "empty": b"",
    "no XML": b"robot: {name: arm}",
    "NUL": b"<robot>\0</robot>",
    "UTF-16": LINK.encode("utf-16"),
    "Latin-1": '<?xml version="1.0" encoding="iso-8859-1"?><robot name="Größe"/>'.encode("latin-1"),
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


# --- impossible robots -----------------------------------------------------------------------------------------------

IMPOSSIBLE = {
    "mass": ('<mass value="1"/>', '<mass value="-1"/>', "the mass is negative: -1 kg"),
    "moment": ('iyy="0.1"', 'iyy="-0.1"', "a principal moment of inertia is negative: -0.1, 0.1, 0.1 kg m^2"),
    "product": ('ixy="0"', 'ixy="0.3"', "a principal moment of inertia is negative: -0.2, 0.1, 0.4 kg m^2"),
    "triangle": ('izz="0.1"', 'izz="0.25"', "its principal moments break the triangle inequality: 0.1, 0.1, 0.25 kg"),
}
"""What is wrong with a link -> the text of the right link, that of the wrong one, and the error."""


def invoke_with(fault: str, words: list[str], folder: Path) -> Result:
    """Run a verb on a robot whose last link is impossible."""
    right, wrong, _ = IMPOSSIBLE[fault]
    kept, found, last = ARM.rpartition(right)
    assert found
    (folder / "arm.urdf").write_text(kept + wrong + last)
    (folder / "x").write_text("t,q\n0,0\n1,1\n")
    return CliRunner().invoke(
        main, [str(folder / word) if word in ("x", "out", "arm.urdf") else word for word in words]
    )


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("mass", ["base", "arm.urdf"]),
        ("moment", ["codegen", "arm.urdf", "--out", "out"]),
        ("product", ["excite", "arm.urdf", "--out", "out"]),
        ("triangle", ["identify", "arm.urdf", "x", "--out", "out"]),
        ("mass", ["inspect", "x", "--robot", "arm.urdf"]),
        ("moment", ["load", "arm.urdf", "x", "--out", "out"]),
        ("product", ["check", "x", "--robot", "arm.urdf"]),
    ],
)
def test_impossible_links_are_refused_by_every_verb(fault: str, words: list[str], tmp_path: Path) -> None:
    result = invoke_with(fault, words, tmp_path)
    assert result.exit_code == 3
    assert IMPOSSIBLE[fault][2] in result.stderr.replace("\n", " ")
    assert "link 'l2'" in result.stderr


@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_impossible_robots_are_used_where_this_is_asked_for_and_listed_by_check(fault: str, tmp_path: Path) -> None:
    assert invoke_with(fault, ["base", "arm.urdf", "--allow-unphysical"], tmp_path).exit_code == 0
    found = invoke_with(fault, ["check", "arm.urdf"], tmp_path)
    assert found.exit_code == 1
    assert IMPOSSIBLE[fault][2][:30] in found.stdout


MISPLACED = {
    "three armatures": ('armature="0.2"', 'armature="0 0 0"', "'armature' holds 3 values"),
    "four sizes": ('size="0.1 0.1 0.2"', 'size="0.1 0.1 0.2 0"', "'size' holds 4 numbers"),
    "a geom without volume": ('size="0.1 0.1 0.2" density', 'size="1e-9 1e-9 1e-9" density', "leaves its mass out"),
}
"""Numbers that MuJoCo refuses or leaves out -> text of a right file, that of the wrong one, part of the error."""


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
    compared, differences = compare(name, 30, seed=3)
    assert differences == []
    assert compared > 20
