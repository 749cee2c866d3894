"""Pinocchio from C++: a program compiled with the headers and library of the wheel; needs a compiler and Eigen."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.speed.case import Case, NotInstalled, Workload, batch_workloads
from benchmarks.speed.pinocchio_model import pinocchio_model

_DEFINITIONS = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
)
"""Definitions with which the wheel was compiled: Pinocchio has more joint kinds than Boost's lists hold by default."""

_SOURCE = r"""
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>
using namespace pinocchio;

static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

template <class F> static double best(F f, int repeats) {
  double least = 1e9;
  f();
  for (int k = 0; k < repeats; ++k) { double t = now(); f(); least = std::min(least, now() - t); }
  return least;
}

static JointModel joint(int kind, const Eigen::Vector3d& axis) {
  if (kind == 0) return JointModelRZ();
  if (kind == 1) return JointModelPZ();
  if (kind == 2) return JointModelRevoluteUnaligned(axis);
  return JointModelPrismaticUnaligned(axis);
}

static Eigen::Vector3d read3() {
  double x, y, z;
  std::cin >> x >> y >> z;
  return Eigen::Vector3d(x, y, z);
}

static Eigen::Matrix3d read9() {
  Eigen::Matrix3d m;
  for (int row = 0; row < 3; ++row) m.row(row) = read3();
  return m;
}

int main() {
  Model model;
  int samples, repeats, bodies;
  std::cin >> samples >> repeats >> bodies;
  model.gravity.linear() = read3();
  for (int k = 0; k < bodies; ++k) {
    int parent, kind;
    double mass;
    std::cin >> parent >> kind;
    Eigen::Vector3d axis = read3();
    Eigen::Matrix3d R = read9();
    SE3 placement(R, read3());
    std::cin >> mass;
    Eigen::Vector3d com = read3();
    JointIndex index = model.addJoint(parent, joint(kind, axis), placement, "j" + std::to_string(k));
    model.appendBodyToJoint(index, Inertia(mass, com, read9()), SE3::Identity());
  }
  const int n = model.nv;
  Data data(model);
  std::vector<Eigen::VectorXd> q(samples), v(samples), a(samples);
  for (int i = 0; i < samples; ++i) {
    q[i] = Eigen::VectorXd::Random(n); v[i] = Eigen::VectorXd::Random(n); a[i] = Eigen::VectorXd::Random(n); }
  double sum = 0;
  double regressor = best([&] { for (int i = 0; i < samples; ++i) {
    computeJointTorqueRegressor(model, data, q[i], v[i], a[i]);
    sum += data.jointTorqueRegressor(0, 0); } }, repeats);
  double torque = best([&] { for (int i = 0; i < samples; ++i) {
    rnea(model, data, q[i], v[i], a[i]); sum += data.tau[0]; } }, repeats);
  double forward = best([&] { for (int i = 0; i < samples; ++i) {
    aba(model, data, q[i], v[i], a[i]); sum += data.ddq[0]; } }, repeats);
  double inertia = best([&] { for (int i = 0; i < samples; ++i) {
    crba(model, data, q[i]); sum += data.M(0, 0); } }, repeats);
  double gravity = best([&] { for (int i = 0; i < samples; ++i) {
    computeGeneralizedGravity(model, data, q[i]); sum += data.g[0]; } }, repeats);
  std::printf("%.9e %.9e %.9e %.9e %.9e %g\n", regressor / samples, torque / samples, forward / samples,
              inertia / samples, gravity / samples, sum);
}
"""


class PinocchioCpp:
    """Pinocchio's functions in a C++ loop; results stay in the model's data."""

    name = "Pinocchio, C++"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds per sample."""
        pin, _ = pinocchio_model(case.robot)
        prefix = next((p for p in Path(pin.__file__).parents if p.name == "cmeel.prefix"), None)
        if prefix is None:
            raise NotInstalled("the headers of the pin wheel")
        program = Path(_compile(prefix).name) / "bench"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
        done = subprocess.run(
            [program], input=_format_input(case), env=environment, capture_output=True, text=True, check=True
        )
        *seconds, _ = (float(word) for word in done.stdout.split())
        functions = ("regressor", "inverse_dynamics", "forward_dynamics", "inertia_matrix", "gravity_torque")
        measured = {"regressor streamed": seconds[0], "inverse dynamics, batch": seconds[1]}
        for function, spent in zip(functions, seconds, strict=True):
            measured |= batch_workloads(function, spent)
        return measured


@functools.cache
def _compile(prefix: Path) -> tempfile.TemporaryDirectory[str]:
    """Compile the program ``bench`` (about a minute); its folder lives as long as this process."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NotInstalled("a C++ compiler")
    eigen = next((p for p in (prefix / "include/eigen3", Path("/usr/include/eigen3")) if p.exists()), None)
    if eigen is None:
        raise NotInstalled("Eigen's headers: cmeel-eigen")
    folder = tempfile.TemporaryDirectory(prefix="dynid-bench-")
    source = Path(folder.name) / "bench.cpp"
    source.write_text(_SOURCE)
    command = [compiler, "-O3", "-DNDEBUG", "-std=c++17", "-w", *_DEFINITIONS, f"-I{prefix}/include", f"-I{eigen}"]
    command += [str(source), f"-L{prefix}/lib", "-lpinocchio_default", "-o", str(source.with_suffix(""))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        complaint = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
        raise NotInstalled(f"does not compile: {complaint.partition('error: ')[2][:60]}")
    return folder


def _format_input(case: Case) -> str:
    """Write the input of the program: sizes, gravity, and the bodies."""
    robot = case.robot
    words: list[float] = [case.few, case.repeats, robot.dof, *robot.gravity]
    for body in robot.bodies:
        along_z = body.axis.tolist() == [0.0, 0.0, 1.0]
        words += [body.parent + 1, (0 if along_z else 2) + body.is_prismatic, *body.axis, *body.R_parent_joint.ravel()]
        words += [*body.p_parent_joint, body.inertia.mass, *body.inertia.com, *body.inertia.about_com.ravel()]
    return " ".join(f"{word:.17g}" for word in words)
