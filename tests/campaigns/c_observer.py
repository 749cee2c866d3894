"""The momentum observer in C: a million steps against Python, and its time beside Pinocchio's C++ doing the same.

Run: python tests/campaigns/c_observer.py [steps]; `make c-observer`. Needs a C compiler; Pinocchio's headers (pin) and
a C++ compiler for the comparison, which takes minutes to compile. Pinocchio gets the usual code of such observers:
crba for M, computeCoriolisMatrix for C, computeGeneralizedGravity for g, then ``M v``, ``C^T v``, friction and the
recursion. Both sides are compiled with the same flags, and both are the quickest of 300 rounds of processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from c_speed import DEFINITIONS

import dynid
from benchmarks.speed.pinocchio_model import pinocchio_model
from dynid.export.c.c_check import find_compiler
from dynid.export.running.observer_code import CHECKED_GAIN, observer_files, run_observer, wandering_states
from dynid.kernels import kernel
from dynid.links.rich.models import Model
from dynid.monitor.observer import MomentumObserver
from dynid.monitor.observer_model import ObserverModel
from dynid.terms.memory import Hysteresis, LaggedSign

FLAGS = ["-O3"]
"""Of both sides; the library of the wheel knows no wider alignment than that of any processor of its kind."""
MAIN = r"""
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <time.h>
#include "arm_observer.h"
static double now(void)
{ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return 1e9 * (double)t.tv_sec + (double)t.tv_nsec; }
int main(void)
{
    double q[7], dq[7], tau[7], e[7], best = 1e9;
    int i, k, r;
    arm_observer observer;
    for (i = 0; i < 7; i++) { q[i] = 0.1 * (i + 1); dq[i] = 0.3 * (i + 1); tau[i] = 1.0; }
    arm_observer_begin(&observer, 100.0, q, dq, tau);
    for (r = 0; r < 300; r++) {
        double t = now();
        for (k = 0; k < 1000; k++) { arm_observer_step(&observer, q, dq, tau, 1e-3, e); q[0] += 1e-9 * e[0]; }
        t = (now() - t) / 1000; if (t < best) { best = t; }
    }
    printf("%.1f\n", best);
    return 0;
}
"""
PINOCCHIO = r"""
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <ctime>
#include <iostream>
static double now()
{ timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return 1e9 * t.tv_sec + t.tv_nsec; }
int main() {
  pinocchio::Model model; pinocchio::JointIndex at = 0;
  Eigen::Matrix3d R, J; Eigen::Vector3d p, c;
BODIES
  pinocchio::Data data(model);
  const int n = model.nv;
  Eigen::VectorXd q(n), v(n), tau = Eigen::VectorXd::Ones(n), before = Eigen::VectorXd::Zero(n),
      last = Eigen::VectorXd::Zero(n), r = Eigen::VectorXd::Zero(n), momentum(n), balance(n), outside(n);
  for (int i = 0; i < n; i++) { q[i] = 0.1*(i+1); v[i] = 0.3*(i+1); }
  const double period = 1e-3, keep = std::exp(-100.0 * period);
  double best = 1e9;
  for (int round = 0; round < 300; round++) {
    double t = now();
    for (int k = 0; k < 300; k++) {
      pinocchio::crba(model, data, q);
      data.M.triangularView<Eigen::StrictlyLower>() = data.M.transpose().triangularView<Eigen::StrictlyLower>();
      pinocchio::computeCoriolisMatrix(model, data, q, v);
      pinocchio::computeGeneralizedGravity(model, data, q);
      momentum.noalias() = data.M * v; momentum += 0.1 * v;
      balance.noalias() = data.C.transpose() * v;
      balance += tau - data.g - 0.5 * v - 0.3 * v.array().sign().matrix() - Eigen::VectorXd::Constant(n, 0.1);
      outside = (momentum - before) / period - 0.5 * (balance + last);
      r = outside + keep * (r - outside);
      before = momentum; last = balance; q[0] += 1e-9 * r[0];
    }
    best = std::min(best, (now() - t) / 300);
  }
  std::cout << best << std::endl;
}
"""


def arm() -> dynid.Robot:
    """A Panda with the usual terms."""
    terms = (dynid.RotorInertia(0.1), dynid.Viscous(0.5), dynid.Coulomb(0.3), dynid.Offset(0.1))
    return dynid.robots.panda().with_terms(*terms)


def compare(steps: int) -> float:
    """Largest error of C against Python over the steps, over the largest term of the balance."""
    robot = arm()
    terms = (Hysteresis(0.4, joint=1, scale=0.02), LaggedSign(0.3, joint=4, scale=0.05))
    model = ObserverModel(Model(robot, robot.parameter_vector, terms))
    rows = wandering_states(model, steps)
    found = run_observer(model, "arm", "double", rows)
    observer = MomentumObserver(model, gain=CHECKED_GAIN)
    worst = 0.0
    for row, answer in zip(rows, found, strict=True):
        worst = max(worst, float(np.abs(observer.step(row[:7], row[7:14], row[14:21], row[21]) - answer).max()))
    momentum = kernel(robot, "momentum_balance")(rows[:10000, :7], rows[:10000, 7:14])["momentum"]
    return worst / float(np.abs(momentum).max() / rows[0, -1])


def our_time(folder: Path) -> float:
    """Time of one step of ours [ns]."""
    for name, text in {**observer_files(ObserverModel.of(arm()), "arm"), "main.c": MAIN}.items():
        (folder / name).write_text(text)
    command = [find_compiler() or "cc", "-std=c99", *FLAGS, "arm_observer.c", "main.c", "-lm", "-o", "ours"]
    subprocess.run(command, cwd=folder, check=True)
    return min(float(subprocess.run([folder / "ours"], capture_output=True, check=True).stdout) for _ in range(5))


def their_time(folder: Path) -> float | None:
    """Time of one step with Pinocchio's C++ [ns]; None where it cannot be compiled."""
    try:
        pin, _ = pinocchio_model(arm())
    except Exception:  # not installed
        return None
    prefix = next((p for p in Path(pin.__file__).parents if p.name == "cmeel.prefix"), None)
    if prefix is None:
        return None
    eigen = next((p for p in (prefix / "include/eigen3", Path("/usr/include/eigen3")) if p.exists()), None)
    if eigen is None:
        return None
    (folder / "theirs.cpp").write_text(PINOCCHIO.replace("BODIES", "\n".join(bodies())))
    command = ["g++", "-std=c++17", *FLAGS, "-DNDEBUG", "-w", *DEFINITIONS, f"-I{prefix}/include", f"-I{eigen}",
               "theirs.cpp", f"-L{prefix}/lib", "-lpinocchio_default", "-o", "theirs"]  # fmt: skip
    if subprocess.run(command, cwd=folder).returncode:
        return None
    environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    done = [subprocess.run([folder / "theirs"], env=environment, capture_output=True, check=True) for _ in range(5)]
    return min(float(one.stdout) for one in done)


def bodies() -> list[str]:
    """C++ statements that build the arm."""
    lines = []
    for j, body in enumerate(arm().bodies):
        inertia = body.inertia

        def write(array: np.ndarray) -> str:
            return ", ".join(f"{value:.17g}" for value in np.asarray(array).ravel())

        lines.append(f"  R << {write(body.R_parent_joint)}; p << {write(body.p_parent_joint)};")
        lines.append(f'  at = model.addJoint(at, pinocchio::JointModelRZ(), pinocchio::SE3(R, p), "j{j}");')
        lines.append(f"  c << {write(inertia.com)}; J << {write(inertia.about_com)};")
        lines.append(
            f"  model.appendBodyToJoint(at, pinocchio::Inertia({inertia.mass:.17g}, c, J), pinocchio::SE3::Identity());"
        )
    return lines


def main() -> None:
    """Print errors and times beside their targets."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    start = time.process_time()
    error = compare(steps)
    spent = time.process_time() - start
    print(f"{'ok  ' if error <= 1e-12 else 'MISS'} {steps} steps: largest error {error:.1e} of the largest term"
          f" ({spent:.0f} s)", flush=True)  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        ours, theirs = our_time(Path(name)), their_time(Path(name))
    print(f"{'ok  ' if ours <= 300.0 else 'MISS'} one step of 7 joints: {ours:.0f} ns (at most 300)")
    if theirs is None:
        print("     Pinocchio's C++ is not here")
        sys.exit(int(error > 1e-12 or ours > 300.0))
    ratio = theirs / ours
    verdict = "ok  " if ratio >= 4.0 else "MISS"
    print(f"{verdict} Pinocchio's C++: {theirs:.0f} ns, {ratio:.1f} times as long (at least 4)")
    sys.exit(int(error > 1e-12 or ours > 300.0 or ratio < 4.0))


if __name__ == "__main__":
    main()
