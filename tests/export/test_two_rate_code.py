"""The two-rate structure in C: with fresh coefficients it gives the inverse dynamics; the hand-over loses nothing."""

from __future__ import annotations

import dataclasses
import subprocess

import numpy as np
import pytest

from dynid.errors import ExportError, GeneratedCodeMismatch
from dynid.export.c.c_check import FLAGS
from dynid.export.c.c_package import generate_c
from dynid.kernels import inverse_dynamics
from dynid.robot import zoo
from dynid.terms.friction import Coulomb
from dynid.terms.motors import Offset, RotorInertia

PROGRAM = """
#include <stdio.h>
#include "arm_two_rate.h"
int main(void)
{
    static arm_exchange exchange;
    static arm_coefficients c;
    double in[18], inertia[21], gravity[6], velocity[6], torque[6];
    int waited = 0;
    arm_exchange_init(&exchange);
    if (arm_collect(&exchange, &c) != 1) { return 1; }
    while (fread(in, sizeof(double), 18, stdin) == 18) {
        arm_background_inertia(in, inertia, gravity);
        arm_publish_inertia(&exchange, inertia, gravity);
        arm_background_velocity(in, in + 6, velocity);
        arm_publish_velocity(&exchange, velocity);
        waited += arm_collect(&exchange, &c);
        arm_synchronous(c.inertia, c.gravity, c.velocity, in + 12, torque);
        fwrite(torque, sizeof(double), 6, stdout);
    }
    return waited;
}
"""


@pytest.mark.parametrize("standard", ["-std=c99", "-std=c11"])
def test_synchronous_torque_is_the_inverse_dynamics(tmp_path, compiler, standard):
    robot = zoo.puma260()
    generate_c(robot, ["gravity"], name="arm").write(tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = ["main.c", "arm.c", "arm_two_rate.c", "-o", "main", "-lm"]
    subprocess.run([compiler, *FLAGS[1:], standard, *sources], cwd=tmp_path, check=True)
    states = np.random.default_rng(0).normal(size=(100, 18))
    out = subprocess.run([tmp_path / "main"], input=states.tobytes(), capture_output=True, check=True).stdout
    torque = np.frombuffer(out).reshape(-1, 6)
    np.testing.assert_allclose(torque, inverse_dynamics(robot, *np.hsplit(states, 3)), atol=1e-12)


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


@pytest.mark.parametrize(("precision", "bound"), [("double", "1e-12"), ("float", "2e-04")])
def test_the_header_states_the_error_of_rounding(precision, bound):
    header = generate_c(zoo.puma260(), ["gravity"], precision=precision, name="arm").files["arm.h"]
    assert f"at most {bound} of" in header
    assert "-ffast-math" in header


def test_the_header_says_where_the_potential_energy_has_another_zero():
    lift = zoo.scara()
    said = [
        "zero of their own" in generate_c(lift, ["energy"], name="arm", **options).files["arm.h"]
        for options in ({}, {"parameters": "struct"}, {"load": "struct"})
    ]
    assert said == [False, False, True]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("options", [{}, {"load": "struct"}, {"parameters": "struct", "precision": "float"}], ids=str)
def test_the_check_covers_the_torque_by_two_rates(options):
    robot = zoo.scara().with_terms(RotorInertia(0.3), Coulomb(2.0), Offset(0.5))
    package = generate_c(robot, ["gravity"], name="arm", **options)
    assert package.check(50)["two_rate"] <= package.tolerance
    source = package.files["arm_two_rate.c"]
    wrong = source.replace("exchange->velocity[slot][i] = velocity[i]", "exchange->velocity[slot][i] = velocity[0]")
    assert wrong != source
    broken = dataclasses.replace(package, files={**package.files, "arm_two_rate.c": wrong})
    with pytest.raises(GeneratedCodeMismatch, match="two_rate"):
        broken.check(50)
    unreadable = dataclasses.replace(package, files={**package.files, "arm_two_rate.c": "#error broken"})
    with pytest.raises(ExportError, match="broken"):
        unreadable.check(1)
