"""A USD layer with identified masses and joint attributes, read back by USD itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DataError, ExportError
from dynid.export import usd_overlay

pytest.importorskip("pxr", reason="usd-core is not installed")


def arm() -> dynid.Robot:
    terms = (dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.RotorInertia(0.1), dynid.Offset(0.2))
    robot = dynid.robots.scara().with_terms(*terms)
    plate = dynid.Inertia.from_com(0.5, [0.0, 0.0, 0.02], 1e-3 * np.eye(3))
    return robot.with_body("plate", parent="link4", inertia=plate)


def asset(
    robot: dynid.Robot,
    path: Path,
    *,
    metres: float = 1.0,
    kilograms: float = 1.0,
    without: tuple[str, ...] = (),
    q: float = 0.0,
):
    """A stage as an importer makes it: one Xform per link at the pose of position zero, and joints."""
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, metres)
    UsdPhysics.SetStageKilogramsPerUnit(stage, kilograms)
    for link in robot.links:
        if link.name in without:
            continue
        prim = UsdGeom.Xform.Define(stage, f"/arm/{link.name}")
        pose = np.array(dynid.kernels.link_pose(robot, link.name, np.full(robot.dof, q)))
        pose[:3, 3] /= metres
        prim.AddTransformOp().Set(Gf.Matrix4d(pose.T.tolist()))
        UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
    for body in robot.bodies:
        kind = UsdPhysics.PrismaticJoint if body.is_prismatic else UsdPhysics.RevoluteJoint
        kind.Define(stage, f"/arm/joints/{body.joint.name}")
    stage.SetDefaultPrim(stage.GetPrimAtPath("/arm"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.GetRootLayer().Save()
    return path


def read(path: Path, link: str):
    """Mass, centre and tensor about the centre, by USD's own evaluation of the mass properties."""
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.Open(str(path))
    metres, kilograms = UsdGeom.GetStageMetersPerUnit(stage), UsdPhysics.GetStageKilogramsPerUnit(stage)
    api = UsdPhysics.MassAPI(stage.GetPrimAtPath(f"/arm/{link}"))
    assert stage.GetPrimAtPath(f"/arm/{link}").HasAPI(UsdPhysics.MassAPI)
    turn = api.GetPrincipalAxesAttr().Get()
    w, (x, y, z) = turn.GetReal(), turn.GetImaginary()
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R = np.eye(3) + 2 * w * K + 2 * K @ K
    tensor = R @ np.diag(np.array(api.GetDiagonalInertiaAttr().Get())) @ R.T * kilograms * metres**2
    return api.GetMassAttr().Get() * kilograms, np.array(api.GetCenterOfMassAttr().Get()) * metres, tensor


@pytest.mark.parametrize(("metres", "kilograms"), [(1.0, 1.0), (0.01, 0.001)])
def test_usd_reads_the_bodies_and_joints(metres: float, kilograms: float, tmp_path: Path) -> None:
    from pxr import Usd

    robot = arm()
    overlay = usd_overlay(robot, asset(robot, tmp_path / "arm.usda", metres=metres, kilograms=kilograms))
    path = overlay.write(tmp_path / "identified.usda")
    for link in ("link1", "link2", "link3", "link4", "plate"):
        mass, com, tensor = read(path, link)
        inertia = robot.link(link).inertia
        np.testing.assert_allclose(mass, inertia.mass, rtol=1e-6)
        np.testing.assert_allclose(com, inertia.com, atol=1e-7)
        np.testing.assert_allclose(tensor, inertia.about_com, atol=1e-6 * np.trace(inertia.about_com))
    stage = Usd.Stage.Open(str(path))
    for body in robot.bodies:
        prim = stage.GetPrimAtPath(f"/arm/joints/{body.joint.name}")
        axis = "linear" if body.is_prismatic else "angular"
        assert f"PhysxJointAxisAPI:{axis}" in prim.GetPrimTypeInfo().GetAppliedAPISchemas()
        found = {name: prim.GetAttribute(f"physxJointAxis:{axis}:{name}").Get()
                 for name in ("armature", "dynamicFrictionEffort", "viscousFrictionCoefficient")}  # fmt: skip
        inertia_unit = kilograms if body.is_prismatic else kilograms * metres**2
        assert found["armature"] * inertia_unit == pytest.approx(0.1)
        force_unit = kilograms * metres if body.is_prismatic else kilograms * metres**2
        assert found["dynamicFrictionEffort"] * force_unit == pytest.approx(0.3)
        viscous = found["viscousFrictionCoefficient"] * inertia_unit  # per second: length cancels where joints slide
        assert viscous * (1.0 if body.is_prismatic else 57.29577951308232) == pytest.approx(0.5)  # as PhysX multiplies
    assert stage.GetDefaultPrim().GetName() == "arm"
    assert stage.GetMetadata("upAxis") == "Z"
    assert [finding.code for finding in overlay.findings] == ["not-in-format"]
    assert "OFF1" in overlay.findings[0].message


def test_the_asset_stays_and_is_named_by_its_relative_path(tmp_path: Path) -> None:
    robot = arm()
    (tmp_path / "layers").mkdir()
    source = asset(robot, tmp_path / "arm.usda")
    before = source.read_bytes()
    overlay = usd_overlay(robot, source)
    path = overlay.write(tmp_path / "layers" / "identified.usda")
    assert source.read_bytes() == before
    assert "@../arm.usda@" in path.read_text()
    assert read(path, "link2")[0] == pytest.approx(robot.link("link2").inertia.mass)
    with pytest.raises(ExportError, match="exists"):
        overlay.write(path)
    with pytest.raises(ExportError, match="replace its asset"):
        overlay.write(source, force=True)
    with pytest.raises(ExportError, match=r"\.usda"):
        overlay.write(tmp_path / "x.usdc")


def test_merged_links_count_with_their_carrier(tmp_path: Path) -> None:
    robot = arm()
    path = usd_overlay(robot, asset(robot, tmp_path / "arm.usda", without=("plate",))).write(tmp_path / "o.usda")
    mass, com, _ = read(path, "link4")
    whole = robot.bodies[-1].inertia
    assert mass == pytest.approx(whole.mass)
    np.testing.assert_allclose(com, whole.com, atol=1e-6)


def test_other_frames_missing_prims_and_no_usd_are_refused(tmp_path: Path) -> None:
    robot = arm()
    source = asset(robot, tmp_path / "arm.usda")
    other = dynid.robots.puma560()
    with pytest.raises(DataError, match="no prim"):
        usd_overlay(other, source)
    with pytest.raises(DataError, match="no prim 'link3'"):
        usd_overlay(robot, asset(robot, tmp_path / "less.usda", without=("link3",)))
    bent = asset(robot, tmp_path / "bent.usda", q=0.5)
    with pytest.raises(DataError, match="frame of the prim"):
        usd_overlay(robot, bent)
    assert usd_overlay(robot, bent, check_frames=False).links
    (tmp_path / "no.usda").write_text("nothing")
    for path in (tmp_path / "no.usda", tmp_path / "absent.usd"):
        with pytest.raises(DataError, match="cannot be read"):
            usd_overlay(robot, path)
    with pytest.raises(ExportError, match="link1"):
        usd_overlay(dynid.robots.ddarm(), asset(dynid.robots.ddarm(), tmp_path / "dd.usda"))


def test_gravity_that_a_scene_has_to_set_is_named(tmp_path: Path) -> None:
    upright = dynid.robots.scara()
    path = asset(upright, tmp_path / "arm.usda")
    assert not usd_overlay(upright, path).findings
    (finding,) = usd_overlay(upright.with_gravity((0.0, 0.0, 9.81)), path).findings
    assert finding.code == "not-in-format"
    assert "gravity (0, 0, 9.81) m/s^2" in finding.message
