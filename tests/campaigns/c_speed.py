"""Speed of generated inverse dynamics against Pinocchio's C++ and CasADi-generated C, in one run.

Run: python tests/campaigns/c_speed.py [robots]; `make c-speed`. Needs a C compiler; Pinocchio's headers (pin) and
casadi where installed. All three are compiled with the same flags (FLAGS) and timed in one process after the other,
best of many rounds. CasADi gets the kindest treatment: modified DH frames, parameters folded in, common expressions
shared (cse), and no call to sin or cos that ours does not make. Two sets of parameters: the zoo's, in which many are
zero, and the same with small values in place of the zeros, as identification leaves them.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from dynid.export.c.c_check import find_compiler
from dynid.export.c.c_package import generate_c
from dynid.robot import zoo
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot

FLAGS = ["-O3", "-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"]
"""-mcpu on ARM is what -march is elsewhere: instructions and tuning of this processor."""

MAIN = """
#include <stdio.h>
#include <time.h>
#include "{name}.h"
#include "{name}_two_rate.h"
{extra}
static double now(void)
{{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9*(double)t.tv_sec + (double)t.tv_nsec;
}}
int main(void)
{{
    double q[{n}], dq[{n}], ddq[{n}], tau[{n}], inertia[{packed}], best[3] = {{1e9, 1e9, 1e9}};
    int i, r, k;
    for (i = 0; i < {n}; i++) {{ q[i] = 0.1 * (i + 1); dq[i] = 0.3 * (i + 1); ddq[i] = 0.5 - 0.1 * i; tau[i] = 0.0; }}
    for (i = 0; i < {packed}; i++) {{ inertia[i] = 0.1 * i; }}
    for (r = 0; r < 400; r++) {{
        double t = now();
        for (k = 0; k < 1000; k++) {{ {name}_inverse_dynamics(q, dq, ddq, tau); q[0] += 1e-9 * tau[0]; }}
        t = (now() - t) / 1000; if (t < best[0]) {{ best[0] = t; }}
        t = now();
        for (k = 0; k < 1000; k++) {{ {name}_synchronous(inertia, q, dq, ddq, tau); ddq[0] = 0.5 + 1e-9 * tau[0]; }}
        t = (now() - t) / 1000; if (t < best[1]) {{ best[1] = t; }}
        {casadi}
    }}
    printf("%.2f %.2f %.2f\\n", best[0], best[1], best[2]);
    return tau[0] > 1e300;
}}
"""
CASADI_CALL = """t = now();
        for (k = 0; k < 1000; k++) {
            const double *in[3] = {q, dq, ddq}; double *out[1] = {tau};
            static double w[100000];
            static long long iw[1000];
            casadi_id(in, out, iw, w, 0); q[0] += 1e-9 * tau[0]; }
        t = (now() - t) / 1000; if (t < best[2]) { best[2] = t; }"""
DEFINITIONS = [  # those of Pinocchio's own CMake targets
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
    "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
]
PINOCCHIO = """
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <chrono>
#include <iostream>
int main() {
  pinocchio::Model model; pinocchio::JointIndex at = 0;
  Eigen::Matrix3d R, J; Eigen::Vector3d p, c;
BODIES
  pinocchio::Data data(model);
  Eigen::VectorXd q(model.nv), v(model.nv), a(model.nv);
  for (int i = 0; i < model.nv; i++) { q[i] = 0.1*(i+1); v[i] = 0.3*(i+1); a[i] = 0.5-0.1*i; }
  double best = 1e9;
  for (int r = 0; r < 400; r++) {
    auto t = std::chrono::steady_clock::now();
    for (int k = 0; k < 500; k++) { q[0] += 1e-9 * pinocchio::rnea(model, data, q, v, a)[0]; }
    std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - t;
    best = std::min(best, passed.count() / 500);
  }
  std::cout << best << std::endl;
}
"""


def casadi_code(robot: Robot, folder: Path) -> bool:
    """CasADi's C of the same recursion, written from our scalar-agnostic equations on SX symbols."""
    try:
        import casadi
    except ImportError:
        return False
    q, dq, ddq = (casadi.SX.sym(name, robot.dof) for name in ("q", "dq", "ddq"))
    table = modified_dh(robot)
    tau = casadi_newton_euler(casadi, table.robot, q, dq, ddq)
    function = casadi.Function("casadi_id", [q, dq, ddq], [casadi.cse(tau)])
    here = Path.cwd()
    os.chdir(folder)
    function.generate("casadi_id.c")
    os.chdir(here)
    return True


def casadi_newton_euler(casadi, robot, q, dq, ddq):
    """Plain recursive Newton-Euler in CasADi's own matrices."""
    n = robot.dof
    w, dw, a = casadi.DM.zeros(3), casadi.DM.zeros(3), casadi.DM(-robot.gravity)
    motions, tau = [], [None] * n
    for j, body in enumerate(robot.bodies):
        z = casadi.DM(body.axis)
        c, s = casadi.cos(q[j]), casadi.sin(q[j])
        one = casadi.SX(1)
        turn = casadi.vertcat(casadi.horzcat(c, -s, 0), casadi.horzcat(s, c, 0), casadi.horzcat(0, 0, one))
        R = casadi.DM(body.R_parent_joint) @ turn
        p = casadi.DM(body.p_parent_joint)
        a = R.T @ (a + casadi.cross(dw, p) + casadi.cross(w, casadi.cross(w, p)))
        w_before = R.T @ w
        dw = R.T @ dw + z * ddq[j] + casadi.cross(w_before, z * dq[j])
        w = w_before + z * dq[j]
        motions.append((R, p, w, dw, a))
    f, m = casadi.DM.zeros(3), casadi.DM.zeros(3)
    for j in reversed(range(n)):
        R, p, w, dw, a = motions[j]
        inertia = robot.bodies[j].inertia
        h, J = casadi.DM(inertia.first_moment), casadi.DM(inertia.about_origin)
        own_f = inertia.mass * a + casadi.cross(dw, h) + casadi.cross(w, casadi.cross(w, h))
        own_m = J @ dw + casadi.cross(w, J @ w) + casadi.cross(h, a)
        f, m = f + own_f, m + own_m
        tau[j] = m[2]
        f = R @ f
        m = R @ m + casadi.cross(p, f)
    return casadi.vertcat(*tau)


def identified(robot: Robot) -> Robot:
    """The robot with no parameter equal to zero, as an identification leaves it."""
    theta = robot.parameter_vector
    small = 1e-3 * np.random.default_rng(0).uniform(0.5, 1.5, theta.size)
    return robot.with_parameters(np.where(theta == 0.0, small, theta))


def measure(name: str, *, dense: bool) -> None:
    robot = zoo.get(name).with_terms()
    robot = identified(robot) if dense else robot
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        package = generate_c(robot, ["inverse_dynamics"], name="arm")
        package.check(1000)
        package.write(folder)
        with_casadi = casadi_code(robot, folder)
        n = robot.dof
        (folder / "main.c").write_text(
            MAIN.format(
                name="arm",
                n=n,
                packed=n * (n + 1) // 2,
                extra="int casadi_id(const double **arg, double **res, long long *iw, double *w, int mem);"
                if with_casadi
                else "",
                casadi=CASADI_CALL if with_casadi else "",
            )
        )
        sources = ["main.c", "arm.c", "arm_two_rate.c", *(["casadi_id.c"] if with_casadi else [])]
        subprocess.run([find_compiler() or "cc", *FLAGS, *sources, "-o", "main", "-lm"], cwd=folder, check=True)
        pinocchio = build_pinocchio(robot, folder)
        rounds = []
        for _ in range(3):
            ours = [float(x) for x in subprocess.run([folder / "main"], capture_output=True, check=True).stdout.split()]
            other = (
                float(subprocess.run([pinocchio], capture_output=True, check=True, text=True).stdout)
                if pinocchio
                else np.nan
            )
            rounds.append([*ours, other])
        ours, synchronous, casadi_time, other = np.min(rounds, axis=0)
        title = f"{name}{', no parameter zero' if dense else ''}"
        print(
            f"{title}: inverse dynamics {ours:.0f} ns ({package.counts['inverse_dynamics']}), "
            f"synchronous task {synchronous:.1f} ns"
        )
        print(
            f"  pinocchio {other:.0f} ns: {other / ours:.2f}x"
            if pinocchio
            else "  pinocchio's headers are not installed"
        )
        print(
            f"  casadi C {casadi_time:.0f} ns: {casadi_time / ours:.2f}x"
            if with_casadi
            else "  casadi is not installed"
        )


def bodies_in_cpp(robot: Robot) -> str:
    """The same robot built joint by joint: every axis is a z axis, the kindest case for Pinocchio."""
    lines = []
    for body in modified_dh(robot).robot.bodies:
        values = [", ".join(map(repr, a.ravel().tolist())) for a in (body.R_parent_joint, body.p_parent_joint)]
        values += [", ".join(map(repr, a.ravel().tolist())) for a in (body.inertia.about_com, body.inertia.com)]
        lines.append(f"  R << {values[0]}; p << {values[1]}; J << {values[2]}; c << {values[3]};")
        lines.append(
            f'  at = model.addJoint(at, pinocchio::JointModelRZ(), pinocchio::SE3(R, p), "{body.joint.name}");'
        )
        inertia = f"pinocchio::Inertia({body.inertia.mass!r}, c, J)"
        lines.append(f"  model.appendBodyToJoint(at, {inertia}, pinocchio::SE3::Identity());")
    gravity = ", ".join(map(repr, modified_dh(robot).robot.gravity.tolist()))
    return "\n".join([*lines, f"  p << {gravity}; model.gravity.linear(p);"])


def build_pinocchio(robot: Robot, folder: Path) -> Path | None:
    prefix = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages", "cmeel.prefix")
    if not (prefix / "include" / "pinocchio").exists():
        return None
    eigen = [p for p in (prefix / "include" / "eigen3", Path("/usr/include/eigen3")) if p.exists()]
    (folder / "pin.cpp").write_text(PINOCCHIO.replace("BODIES", bodies_in_cpp(robot)))
    libraries = [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lpinocchio_default"]
    command = [
        "g++",
        "-std=c++17",
        *FLAGS,
        "-DNDEBUG",
        *DEFINITIONS,
        f"-I{prefix}/include",
        *(f"-I{p}" for p in eigen),
        "pin.cpp",
        "-o",
        "pin",
        *libraries,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-1500:])
        return None
    return folder / "pin"


if __name__ == "__main__":
    for robot_name in sys.argv[1:] or ("puma560", "panda"):
        for is_dense in (False, True):
            measure(robot_name, dense=is_dense)
