"""What is typed into controllers describes the same body, in each one's frame, order and units."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid.errors import ExportError
from dynid.export.controller_files import payload_dialogs
from dynid.payload.load import Load
from dynid.robot.inertia import Inertia

Floats = NDArray[np.float64]
TURN = Rotation.from_euler("xyz", [10.0, 20.0, -70.0], degrees=True).as_matrix()
BODY = Inertia.from_com(2.5, [0.012, -0.034, 0.088], TURN @ np.diag([0.012, 0.02, 0.025]) @ TURN.T)


def numbers(text: str) -> Floats:
    return np.array([float(x) for x in re.findall(r"-?\d+\.\d+", text)])


def texts(load: Load) -> dict[str, str]:
    return {dialog.controller: dialog.text for dialog in payload_dialogs(load)}


def test_every_controller_gets_the_same_body() -> None:
    said = texts(Load.of(BODY, "flange"))
    ur = numbers(said["UR"])
    assert said["UR"].startswith("set_target_payload(2.5000, [0.01200, -0.03400, 0.08800], [")
    xx, yy, zz, xy, xz, yz = ur[4:]
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], BODY.about_com, atol=1e-6)
    franka = numbers(said["Franka"])
    np.testing.assert_allclose(franka[4:].reshape(3, 3, order="F"), BODY.about_com, atol=1e-6)
    kuka = numbers(said["KUKA"])
    np.testing.assert_allclose(kuka[1:4], 1e3 * BODY.com, atol=1e-2)
    R = Rotation.from_euler("ZYX", kuka[4:7], degrees=True).as_matrix()
    np.testing.assert_allclose(R @ np.diag(kuka[7:]) @ R.T, BODY.about_com, atol=1e-5)
    abb = numbers(said["ABB"].split(":=")[1])
    R = Rotation.from_quat(np.roll(abb[4:8], -1)).as_matrix()
    np.testing.assert_allclose(R @ np.diag(abb[8:]) @ R.T, BODY.about_com, atol=1e-5)
    assert said["KUKA"].startswith("LOAD_DATA[1]={M 2.500,CM {X 12.00,Y -34.00,Z 88.00,A ")
    assert said["ABB"].endswith("];")


def test_unknown_inertia_is_a_point_mass_and_said_so() -> None:
    open_inertia = np.array([True] * 6 + [False] * 4)
    load = Load(frame="flange", vector=BODY.vector, covariance=np.zeros((10, 10)), undetermined=open_inertia)
    said = texts(load)
    assert said["UR"] == "set_target_payload(2.5000, [0.01200, -0.03400, 0.08800])"
    assert said["ABB"] == (
        "PERS loaddata load1:=[2.500,[12.00, -34.00, 88.00],[1.000000, 0.000000, 0.000000, 0.000000],"
        "0.00000000,0.00000000,0.00000000]; ! zeros: moments of inertia unknown"
    )
    assert said["Franka"].endswith(") // zeros: moments of inertia unknown")
    assert said["KUKA"].endswith("} ; zeros: moments of inertia unknown")
    assert all("the inertia is not determined" in str(dialog) for dialog in payload_dialogs(load))
    some = replace(load, undetermined=np.arange(10) < 2)
    assert texts(some)["KUKA"].endswith("} ; zeros: XX, XY unknown")
    assert "XX, XY are not determined; known about the centre of mass" in str(payload_dialogs(some)[0])


def test_impossible_or_unknown_loads_are_not_typed() -> None:
    with pytest.raises(ExportError, match="no physical body"):
        payload_dialogs(Load.of(Inertia.from_com(1.0, np.zeros(3), np.diag([0.1, 0.1, 0.5])), "flange"))
    with pytest.raises(ExportError, match="not determined"):
        payload_dialogs(Load.of(Inertia.zero(), "flange"))
