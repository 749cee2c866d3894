"""`inspect_log` with a robot writes a map that reads the usual header styles without editing."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.logs.inspect import inspect_log
from dynid.logs.reading import read_recording
from support.header_styles import NAMES, STYLES, Motion, Style, motion


def arm(names: tuple[str, ...] = NAMES) -> dynid.Robot:
    """A six-joint arm with given joint names."""
    links = [dynid.Link(name=f"link{k}") for k in range(7)]
    joints = [
        dynid.Joint(name=name, kind="revolute", parent=f"link{k}", child=f"link{k + 1}") for k, name in enumerate(names)
    ]
    return dynid.Robot(name="arm", links=links, joints=joints)


ARM, MOTION = arm(), motion()


@pytest.mark.parametrize("style", STYLES, ids=[style.name for style in STYLES])
def test_the_map_of_inspect_reads_the_log(style: Style, tmp_path: Path) -> None:
    path = style.write(tmp_path, MOTION)
    channel_map = tomllib.loads(inspect_log(path, ARM).toml)
    recording = read_recording(path, ARM, channel_map=channel_map)
    assert recording.joint_names == NAMES
    for field in style.holds:
        np.testing.assert_allclose(getattr(recording, field), getattr(MOTION, field), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(recording.time - recording.time[0], MOTION.time, atol=2e-6)
