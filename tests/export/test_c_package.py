"""Generated C: it compiles without a warning, agrees with Python, and is the same every time."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess

import numpy as np
import pytest

from dynid.compiled import inverse_dynamics
from dynid.errors import ArgumentError, DescriptionError, ExportError
from dynid.export.c.c_check import FLAGS, package_driver, reference
from dynid.export.c.c_functions import FUNCTIONS
from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.robot.formats.dh import DH, from_dh
from dynid.safe_files import file_digest, write_atomically
from dynid.terms.friction import Coulomb, SmoothSign
from support.random_robots import random_robot

SMALL = ["inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "friction", "energy", "forward_dynamics"]


def run(command, cwd=None, **options):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "precision"), [("stanford", "double"), ("scara", "float")])
def test_zoo_robots_agree_with_python(name, precision):
    package = generate_c(zoo.get(name), precision=precision)
    errors = package.check(200)
    assert set(errors) == {*FUNCTIONS, "two_rate"}
    assert max(errors.values()) <= package.tolerance


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("row", [DH(alpha=1e-4, d=0.3), DH(alpha=1.5, d=1e5)], ids=str)
def test_regrouping_that_loses_digits_is_refused_with_loads_too(row):
    """Axes nearly parallel, or far apart: with regrouped parameters the torques would be off by 1e-8 to 3e-12."""
    theta = zoo.ddarm().parameter_vector[:30]
    robot = from_dh([DH(), row, DH(alpha=row.alpha, d=0.4)], name="arm").with_parameters(theta)
    package = generate_c(robot, ["inverse_dynamics", "gravity"], load="struct", two_rate=False)
    assert max(package.check(100).values()) <= 1e-13


@pytest.mark.usefixtures("compiler")
def test_wrong_code_is_found_with_its_sample():
    package = generate_c(zoo.scara(), ["gravity", "inverse_dynamics"])
    source = package.files["scara_rrpr.c"]
    assert "9.81" in source
    wrong = dataclasses.replace(package, files={**package.files, "scara_rrpr.c": source.replace("9.81", "9.82")})
    with pytest.raises(ExportError, match="sample"):
        wrong.check(50)
    broken = dataclasses.replace(package, files={**package.files, "scara_rrpr.c": source + "}"})
    with pytest.raises(ExportError, match="error"):
        broken.check(50)


def test_a_missing_compiler_is_said(monkeypatch):
    monkeypatch.setattr("dynid.export.c.c_check._compiler_command", list)
    with pytest.raises(ExportError, match="Install gcc"):
        generate_c(zoo.scara(), ["gravity"]).check(5)


@pytest.mark.usefixtures("compiler")
def test_package_builds_and_tests_itself(tmp_path, compiler):
    robot = zoo.scara()
    folder = generate_c(robot, SMALL, name="arm", load="struct").write(tmp_path / "arm")
    with pytest.raises(ExportError, match="force=True"):
        generate_c(robot, name="arm").write(folder)
    if shutil.which("cmake"):
        chosen = ["-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_C_COMPILER={compiler}"]
        run(["cmake", *chosen, "-S", folder, "-B", tmp_path / "build"])
        run(["cmake", "--build", tmp_path / "build"])
        out = run([tmp_path / "build" / "arm_selftest"])
    else:
        run([compiler, *FLAGS, "arm.c", "arm_two_rate.c", "arm_selftest.c", "-o", "selftest", "-lm"], cwd=folder)
        out = run([folder / "selftest"])
    assert "FAILED" not in out
    assert out.count("largest relative error") == len(SMALL) + 1
    assert "two_rate" in out


@pytest.mark.parametrize("options", [{}, {"parameters": "struct"}, {"precision": "float"}])
def test_the_readme_example_compiles(tmp_path, compiler, options):
    package = generate_c(zoo.scara(), ["inverse_dynamics", "gravity"], name="arm", **options)
    folder = package.write(tmp_path)
    block = package.files["README.md"].split('    #include "arm.h"\n')[1].split("\n`arm_two_rate.h`")[0]
    (folder / "main.c").write_text(f'#include "arm.h"\nint main(void) {{\n{block}\n(void)torque; return 0; }}\n')
    run([compiler, *FLAGS, "main.c", "arm.c", "-o", "main", "-lm"], cwd=folder)
    run([folder / "main"])


@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake on this machine")
@pytest.mark.usefixtures("compiler")
def test_package_installs_for_other_projects(tmp_path):
    folder = generate_c(zoo.scara(), ["gravity"], name="arm").write(tmp_path / "arm")
    user = tmp_path / "user"
    user.mkdir()
    (user / "main.c").write_text(
        "#include <arm.h>\nint main(void) { double q[4] = {0}, t[4]; arm_gravity(q, t); return 0; }\n"
    )
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(user C)\nfind_package(arm REQUIRED)\n"
        "add_executable(user main.c)\ntarget_link_libraries(user arm::arm)\n"
    )
    run(["cmake", "-S", folder, "-B", tmp_path / "b", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'there'}"])
    run(["cmake", "--build", tmp_path / "b"])
    run(["cmake", "--install", tmp_path / "b"])
    run(["cmake", "-S", user, "-B", tmp_path / "c", f"-DCMAKE_PREFIX_PATH={tmp_path / 'there'}"])
    run(["cmake", "--build", tmp_path / "c"])
    run([tmp_path / "c" / "user"])


def test_symbols_and_sanitizers(tmp_path, compiler, sanitized):
    robot = random_robot(3, joints=3, terms=True)
    folder = generate_c(robot, ["gravity", "friction"], name="arm", parameters="struct").write(tmp_path)
    sources = ["arm.c", "arm_two_rate.c"]
    run([compiler, *sanitized, *sources, "arm_selftest.c", "-o", "selftest", "-lm"], cwd=folder)
    assert "FAILED" not in run([folder / "selftest"], env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    run([compiler, *FLAGS, "-c", *sources], cwd=folder)
    lines = run(["nm", "-g", "arm.o", "arm_two_rate.o"], cwd=folder).splitlines()
    symbols = [line.split()[-2:] for line in lines if " " in line]
    assert {name.lstrip("_") for kind, name in symbols if kind == "U"} <= {
        "sin", "cos", "sincos", "sqrt", "stack_chk_fail"}  # fmt: skip
    assert all(name.lstrip("_").startswith("arm_") for kind, name in symbols if kind != "U")
    assert not any(kind in "BDC" for kind, _ in symbols)  # no global state


def test_header_says_what_the_model_is():
    robot = zoo.puma260()
    package = generate_c(robot, ["gravity", "regressor"], base=base_parameters(robot))
    header = package.files["puma260.h"]
    assert package.text.model.model_hash in header
    for words in ("mul  add", "rad, m, s, kg", "(0, 0, -9.81) m/s^2", "ZZR1", "PUMA260_JOINT_JOINT1 = 0"):
        assert words in header
    assert "gravity" in package.summary()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"precision": "half"}, "precision is 'half'"),
        ({"load": True}, "load is True. Choose 'struct' or None"),
        ({"base": base_parameters(zoo.puma560())}, "another robot"),
    ],
)
def test_wrong_options_are_refused_by_name(options, named):
    with pytest.raises(ArgumentError, match=named) as refused:
        generate_c(zoo.scara(), **options)
    assert refused.value.remedy


@pytest.mark.parametrize("options", [{}, {"load": "struct"}], ids=str)
def test_a_last_link_without_mass_has_no_forward_dynamics_but_everything_else(options):
    arm = zoo.puma560()
    theta = arm.parameter_vector.copy()
    theta[50:60] = 0.0
    bare = arm.with_parameters(theta)
    with pytest.raises(DescriptionError, match="'joint6' moves nothing"):
        generate_c(bare, ["forward_dynamics"], **options)
    assert generate_c(bare, ["gravity"], two_rate=False, **options)


@pytest.mark.usefixtures("compiler")
def test_the_compiler_that_was_asked_for_is_used(monkeypatch):
    package = generate_c(zoo.scara(), ["gravity"], two_rate=False)
    monkeypatch.setenv("CC", "cc -O1 -DUNUSED")
    assert package.check(5)
    for wrong in ("nonexistent", "false"):
        monkeypatch.setenv("CC", wrong)
        with pytest.raises(ExportError, match=wrong) as refused:
            package.check(5)
        assert "CC" in refused.value.remedy


def test_a_package_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch):
    folder = generate_c(zoo.scara(), ["gravity"], name="arm").write(tmp_path / "code")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    other = generate_c(zoo.ddarm(), ["gravity"], name="arm")

    def fail(path, content, **options):
        if path.name == "arm.c":
            raise ExportError("no room", path=path)
        return write_atomically(path, content, **options)

    monkeypatch.setattr("dynid.export.c.c_package.write_atomically", fail)
    with pytest.raises(ExportError, match="no room"):
        other.write(folder, force=True)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert os.listdir(tmp_path) == ["code"]


def test_a_package_takes_away_the_files_of_an_earlier_one_that_nobody_changed(tmp_path):
    folder = generate_c(zoo.scara(), ["gravity", "observer_step"], name="arm").write(tmp_path / "code")
    (folder / "mine.c").write_text("int mine;")
    record = folder / "generated.json"
    entry = f'"outputs": {{"mine.c": "{file_digest(folder / "mine.c")}",'  # a stranger wrote the record
    record.write_text(record.read_text().replace('"outputs": {', entry))
    (folder / "arm_two_rate.c").write_text("int changed;")
    other = generate_c(zoo.scara(), ["gravity"], name="arm", two_rate=False)
    other.write(folder, force=True)
    assert set(os.listdir(folder)) == {*other.files, "generated.json", "mine.c", "arm_two_rate.c"}


def test_a_joint_whose_name_is_an_identifier_keeps_it():
    arm = zoo.scara()
    names = dict(zip(arm.joint_names, ("Joint 1", "joint_1", "a", "b"), strict=True))
    named = [dataclasses.replace(joint, name=names.get(joint.name, joint.name)) for joint in arm.joints]
    robot = dataclasses.replace(arm, joints=tuple(named))
    header = generate_c(robot, ["gravity"], name="arm", two_rate=False).files["arm.h"]
    assert "ARM_JOINT_JOINT_1 = 1," in header
    assert "ARM_JOINT_JOINT_1_2 = 0," in header


@pytest.mark.usefixtures("compiler")
def test_a_narrow_smooth_sign_stays_beside_dry_friction():
    """Far above its scale it looks like a sign, but at low speed the torques differ."""
    robot = zoo.ddarm().with_terms(Coulomb(2.25), SmoothSign(2.77, scale=0.004))
    base = base_parameters(robot)
    dry = base.layout.names[30:]
    assert len(dry) == 6
    assert set(dry) <= set(base.names)
    package = generate_c(robot, ["inverse_dynamics"], name="arm", two_rate=False)
    drawn = reference(package.text.model, ("inverse_dynamics",), 20)
    still, creep = np.zeros((20, 3)), np.full((20, 3), 0.001)
    slow = dataclasses.replace(drawn, inputs={**drawn.inputs, "q": still, "dq": creep, "ddq": still})
    found = package_driver(package.text, slow).answer(package.files, slow.rows)
    links = inverse_dynamics(robot.with_terms(), still, creep, still)
    np.testing.assert_allclose(found - links, 2.25 + 2.77 * np.tanh(0.25), rtol=1e-9)
