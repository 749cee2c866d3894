"""The two-rate structure in C: with fresh coefficients it gives the inverse dynamics; the hand-over loses nothing."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest

from dynid.errors import ExportError
from dynid.export.c.c_package import generate_c
from dynid.robot import zoo
from dynid.terms.friction import Coulomb
from dynid.terms.motors import Offset, RotorInertia


def test_the_example_in_the_header_sends_no_torque_before_the_tasks_have_published(tmp_path, compiler):
    package = generate_c(zoo.puma260(), ["gravity"], name="arm")
    comment = package.files["arm_two_rate.h"].split("every control period:")[1].split(" *\n")[0]
    example = "\n".join(line.removeprefix(" *") for line in comment.splitlines() if "brakes" not in line)
    program = f"""
    #include <string.h>
    #include "arm_two_rate.h"
    int main(void)
    {{
        static arm_exchange exchange;
        arm_coefficients coefficients;
        double ddq[6] = {{0}}, torque[6] = {{0}};
        memset(&coefficients, 0x7f, sizeof(coefficients)); /* whatever the stack holds */
        arm_exchange_init(&exchange);
        {example}
        return torque[0] != 0.0;
    }}
    """
    package.write(tmp_path)
    (tmp_path / "main.c").write_text(program)
    sources = ["main.c", "arm.c", "arm_two_rate.c", "-o", "main", "-lm"]
    subprocess.run([compiler, "-std=c99", *sources], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


def test_the_header_says_where_the_potential_energy_has_another_zero():
    lift = zoo.scara()
    said = [
        "zero of their own" in generate_c(lift, ["energy"], name="arm", **options).files["arm.h"]
        for options in ({}, {"parameters": "struct"}, {"load": "struct"})
    ]
    assert said == [False, False, True]


@pytest.mark.usefixtures("compiler")
def test_the_check_covers_the_torque_by_two_rates():
    robot = zoo.scara().with_terms(RotorInertia(0.3), Coulomb(2.0), Offset(0.5))
    package = generate_c(robot, ["gravity"], name="arm", parameters="struct", precision="float")
    assert package.check(50)["two_rate"] <= package.tolerance
    source = package.files["arm_two_rate.c"]
    wrong = source.replace("exchange->velocity[slot][i] = velocity[i]", "exchange->velocity[slot][i] = velocity[0]")
    assert wrong != source
    broken = dataclasses.replace(package, files={**package.files, "arm_two_rate.c": wrong})
    with pytest.raises(ExportError, match="two_rate"):
        broken.check(50)
