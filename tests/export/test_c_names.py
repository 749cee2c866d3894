"""Hostile names become harmless identifiers and comments."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynid.export.c.c_package import generate_c
from dynid.robot import zoo
from dynid.safe_text import c_comment, c_identifier, unique_identifiers

HOSTILE = [
    "int",
    "namespace",
    "*/ int evil(void); /*",
    "a\rb#include <stdio.h>",
    '"quoted\\',
    "größe",
    "関節",
    "x" * 10_000,
    "",
    "1st",
    "??/",
    "__attribute__",
    "a-b",
    "a_b",
    "\x00",
    "con",
    "\ud800",
]


@given(st.text(max_size=200))
def test_any_text_becomes_an_identifier(text):
    name = c_identifier(text)
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,47}", name)
    assert "__" not in name


@given(st.lists(st.text(max_size=20), max_size=20))
def test_identifiers_of_a_list_differ(texts):
    names = unique_identifiers(texts, "joint")
    assert len(set(names)) == len(texts)


@given(st.text(max_size=200))
def test_comments_cannot_be_left(text):
    comment = c_comment(text)
    assert len(comment) <= 60
    assert comment.isascii()
    assert not set(comment) & set('*/\\\n\r"?#')


@pytest.mark.parametrize("compiler", [c for c in ("g++", "clang++") if shutil.which(c)])
@pytest.mark.parametrize("name", ["index", "y1", "time", "signal", "nan", "math", "dynid"])
def test_names_of_the_c_library_do_no_harm(tmp_path, name, compiler):
    package = generate_c(zoo.scara(), ["gravity"], name=name, two_rate=False)
    package.write(tmp_path)
    headers = ["cmath", "ctime", "csignal", "cstdint", "strings.h", "unistd.h", f"{package.name}.h"]
    program = "".join(f"#include <{header}>\n" for header in headers)
    program += f"int main() {{ double q[4] = {{}}, t[4]; {package.name}_gravity(q, t); return t[0] > 1e9; }}\n"
    (tmp_path / "use.cpp").write_text(program)
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Werror", "-I.", "-c", "use.cpp"], cwd=tmp_path, check=True)


def hostile_robot(names):
    robot = zoo.scara()
    joints = tuple(replace(joint, name=name) for joint, name in zip(robot.joints, names, strict=True))
    return replace(robot, name=names[0], joints=joints)


@pytest.mark.usefixtures("compiler")
def test_hostile_names_compile_to_the_same_symbols():
    plain = generate_c(zoo.scara(), ["gravity"], name="arm").files["arm.c"]
    for first in range(0, len(HOSTILE) - 3, 4):
        package = generate_c(hostile_robot(HOSTILE[first : first + 4]), ["gravity"], name="arm")
        assert package.files["arm.c"] == plain
        assert "evil(void)" not in re.sub(r"/\*.*?\*/", "", package.files["arm.h"], flags=re.S)
    package.check(10)
    generate_c(hostile_robot(HOSTILE[2:6]), ["gravity"]).check(10)
