"""Designs against peers: equal robots, limits, period, coefficients; peers get ten times our time or more.

The baseline is what one writes with SciPy and Pinocchio: SLSQP over the same Fourier coefficients, gradients by finite
differences, one constraint per joint and limit. Its result is made feasible by our own amplitude repair. FIGAROH and
FloBaRoID's method run by an interpreter that has ``pin``, ``figaroh`` and ``cyipopt`` (`excitation_peer_worker.py`);
FIGAROH knows no limit of acceleration and moves along splines from waypoint to waypoint. Times are processor times.
Pinocchio judges all by column-scaled condition number and log det of the information of a sample; FIGAROH judges by its
own cost. Run from the repository's root: ``OPENBLAS_NUM_THREADS=1 python tests/campaigns/excitation_peers.py
[--robots puma560 ur10 panda] [--peers path/to/python]``; needs ``pin``. Ends with status 1 where a peer
is better.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.optimize import minimize

from dynid.excitation.constraints import build_constraints
from dynid.excitation.criteria import ColumnScaled, ConditionNumber, DOptimality, InformationCriterion
from dynid.excitation.design import design_excitation
from dynid.excitation.design_problem import DesignProblem
from dynid.excitation.design_settings import DesignGoal, SearchSettings
from dynid.excitation.feasibility import with_feasible_amplitude
from dynid.excitation.limits import MotionLimits
from dynid.excitation.measured import JointTorques
from dynid.excitation.observation import TorqueObservation, with_smooth_friction
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import LinearTrajectory
from dynid.parameters.base import base_parameters
from dynid.robot import zoo
from dynid.robot.formats.urdf import urdf_text
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.tables import Table
from dynid.terms.friction import Coulomb, Viscous

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.pinocchio_oracle import pinocchio_model

Array = np.ndarray
Motion = tuple[Array, Array, Array]
"""Positions, velocities and accelerations, each (N, n)."""
WORKER = Path(__file__).with_name("excitation_peer_worker.py")
PERIOD_S, HARMONICS, SAMPLES = 10.0, 5, 165
HEADER = ["robot", "goal", "dynid", "SciPy + Pinocchio", "FIGAROH", "FloBaRoID's method", "dynid, s"]
LEAST_S = 45.0
"""What a peer gets at least [s]."""
CRITERIA = {"condition number": ColumnScaled(ConditionNumber()), "log det": DOptimality()}
PARTS = ("q", "dq", "ddq")
FROM_PINOCCHIO = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
"""Places of XX XY XZ YY YZ ZZ MX MY MZ M among Pinocchio's parameters of a body."""


class Pinocchio:
    """The robot as Pinocchio sees it, with the base columns of its regressor."""

    def __init__(self, robot: Robot) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()
        self.n = robot.dof
        columns = np.array(base_parameters(robot).columns)
        links = 10 * self.n
        self.inertial = [10 * (c // 10) + FROM_PINOCCHIO[c % 10] for c in columns[columns < links]]
        self.friction = columns[columns >= links] - links
        self.parameters = robot.parameter_vector

    def regressors(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Regressor of the bodies (N, n, 10 n)."""
        rigid = np.empty((len(q), self.n, 10 * self.n))
        for k, state in enumerate(zip(q, dq, ddq, strict=True)):
            rigid[k] = pin.computeJointTorqueRegressor(self.model, self.data, *state)
        return rigid

    def matrix(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Observation matrix (N n, b)."""
        rigid = self.regressors(q, dq, ddq)
        friction = np.zeros((len(q), self.n, 2 * self.n))  # FV1 FC1 FV2 FC2 ...
        for j in range(self.n):
            friction[:, j, 2 * j], friction[:, j, 2 * j + 1] = dq[:, j], np.sign(dq[:, j])
        W = np.concatenate([rigid[:, :, self.inertial], friction[:, :, self.friction]], axis=2)
        return W.reshape(-1, W.shape[2])

    def torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques (N, n), friction included."""
        rigid = [pin.rnea(self.model, self.data, *s) for s in zip(q, dq, ddq, strict=True)]
        values = self.parameters[10 * self.n :]
        return np.array(rigid) + values[0::2] * dq + values[1::2] * np.sign(dq)


def value(criterion: InformationCriterion, W: Array) -> float:
    """Criterion of an observation matrix, in logarithms; large where it is singular."""
    try:
        found, _ = criterion.of_information(W.T @ W)
    except np.linalg.LinAlgError:
        return 50.0
    return float(np.log(found)) if criterion.positive else found / W.shape[1]


class Late(Exception):
    """The baseline's time is over."""


def baseline(
    robot: Robot, limits: MotionLimits, criterion: InformationCriterion, start: LinearTrajectory, seconds: float
) -> LinearTrajectory:
    """SLSQP with finite differences from the same start; the best feasible motion within the time."""
    peer, constraints = Pinocchio(robot), build_constraints(robot, limits)
    times, recorded = start.grid(SAMPLES)
    basis = [start.basis(times, order) for order in range(3)]
    scale = np.maximum(np.abs(start.coefficients), 0.05)
    centre, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    end = time.process_time() + seconds
    best: tuple[float, LinearTrajectory] = (np.inf, start)

    def motion(x: Array) -> list[Array]:
        return [b @ (x.reshape(scale.shape) * scale) for b in basis]

    def objective(x: Array) -> float:
        if time.process_time() > end:
            raise Late
        return value(criterion, peer.matrix(*(part[recorded] for part in motion(x))))

    def reserves(x: Array) -> Array:
        q, dq, ddq = motion(x)
        parts = [(q - centre) / half, dq / limits.velocity, ddq / limits.acceleration]
        parts.append(peer.torque(q, dq, ddq) / limits.torque)
        return np.concatenate([1.0 - np.abs(part).max(axis=0) for part in parts])

    def keep(x: Array) -> None:
        nonlocal best
        found = with_feasible_amplitude(start.with_coefficients(x.reshape(scale.shape) * scale), constraints, times)
        if found is not None:
            cost = value(criterion, peer.matrix(*found.evaluate(times[recorded])))
            best = min(best, (cost, found), key=lambda pair: pair[0])

    x = (start.coefficients / scale).ravel()
    keep(x)
    try:
        options = {"maxiter": 10000, "ftol": 1e-9}
        limited = [{"type": "ineq", "fun": reserves}]
        minimize(objective, x, method="SLSQP", constraints=limited, callback=keep, options=options)
    except Late:
        pass
    return best[1]


def design(
    robot: Robot,
    limits: MotionLimits,
    criterion: InformationCriterion,
    observation: JointTorques | None = None,
    time_limit_s: float = 600.0,
) -> tuple[LinearTrajectory, float]:
    """Our design from one start, by the default settings, and the time it took [s]."""
    begun = time.process_time()
    plan = design_excitation(
        robot,
        limits,
        period_s=PERIOD_S,
        harmonics=HARMONICS,
        goal=DesignGoal(criterion=criterion, observation=observation),
        settings=SearchSettings(starts=1, time_limit_s=time_limit_s),
    )
    return plan.trajectory, time.process_time() - begun


def recorded(trajectory: LinearTrajectory) -> Motion:
    """1000 samples of the recorded part."""
    times, part = trajectory.grid(1000)
    return trajectory.evaluate(times[part])


def judged(robot: Robot, motion: Motion) -> dict[str, float]:
    """Both criteria of the information per sample, by Pinocchio's regressor."""
    W = Pinocchio(robot).matrix(*motion) / np.sqrt(len(motion[0]))
    return {
        "condition number": CRITERIA["condition number"].value(W),
        "log det": -CRITERIA["log det"].value(W),
    }


def quickest(function: Callable[[], Any], runs: int) -> float:
    """Smallest of several processor times [s]."""
    spent = []
    for _ in range(runs):
        begun = time.thread_time()
        function()
        spent.append(time.thread_time() - begun)
    return min(spent)


def speed_ratio(robot: Robot, limits: MotionLimits) -> tuple[float, float, float]:
    """Value and gradient at 1000 samples: our time, Pinocchio's with forward differences, its regressor calls' [s]."""
    family = FourierTrajectory.still(robot.dof, period_s=PERIOD_S, harmonics=HARMONICS)
    observation = TorqueObservation(with_smooth_friction(robot), base_parameters(robot).columns)
    sizes = (0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration)
    problem = DesignProblem(family, observation, (), sizes=sizes, samples=1000)
    x = 0.3 * np.random.default_rng(0).normal(size=problem.size)
    criterion, peer = CRITERIA["condition number"], Pinocchio(robot)
    times, recorded = family.grid(1000)
    states = problem.trajectory(x).evaluate(times[recorded])
    ours = quickest(lambda: problem.objective(x, criterion), 100)
    theirs = quickest(lambda: value(criterion, peer.matrix(*states)), 10)
    calls = quickest(lambda: peer.regressors(*states), 10)
    return ours, theirs * (problem.size + 1), calls * (problem.size + 1)


class Peers:
    """FIGAROH and FloBaRoID's method on one robot, run by their own interpreter."""

    def __init__(self, python: str, robot: Robot, limits: MotionLimits) -> None:
        self.python, self.robot, self.limits = python, robot, limits
        self.folder = Path(tempfile.mkdtemp())
        places = {name: j for j, name in enumerate(robot.joint_names)}
        joints = [self._limited(joint, places.get(joint.name)) for joint in robot.joints]
        (self.folder / "robot.urdf").write_text(urdf_text(replace(robot, joints=tuple(joints), source=None)))

    def _limited(self, joint: Joint, j: int | None) -> Joint:
        if j is None:
            return joint
        found = self.limits
        bounds = {"lower": found.lower[j], "upper": found.upper[j], "velocity": found.velocity[j]}
        return replace(joint, limits=replace(joint.limits, **bounds, effort=found.torque[j]))

    def run(self, action: str, seconds: float = 0.0, **more: Any) -> dict[str, Array]:
        """What the worker found."""
        oracle = Pinocchio(self.robot)
        problem: dict[str, Any] = {"urdf": str(self.folder / "robot.urdf"), "seconds": seconds, "seed": 0, **more}
        problem |= {"period_s": PERIOD_S, "harmonics": HARMONICS, "samples": SAMPLES}
        problem |= {"inertial": list(map(int, oracle.inertial)), "friction": oracle.friction.tolist()}
        problem |= {"levels": oracle.parameters[10 * oracle.n :].tolist()}
        for name in ("lower", "upper", "velocity", "acceleration", "torque"):
            problem[name] = getattr(self.limits, name).tolist()
        source, target = self.folder / "problem.json", self.folder / f"{action}.npz"
        source.write_text(json.dumps(problem))
        command = [self.python, str(WORKER), action, str(source), str(target)]
        subprocess.run(command, check=True, capture_output=True, timeout=20 * seconds + 600)
        return dict(np.load(target))

    def motion(self, action: str, seconds: float) -> Motion | None:
        """The motion a peer found in the time, None without one."""
        found = self.run(action, seconds)
        return (found["q"], found["dq"], found["ddq"]) if "q" in found else None

    def figaroh_columns(self) -> JointTorques:
        """FIGAROH's base parameters, as an observation of ours."""
        n, places = self.robot.dof, np.argsort(FROM_PINOCCHIO)
        columns = []
        for c in self.run("columns")["columns"]:
            kind, joint = divmod(int(c) - 10 * n, n)  # FV1 FV2 ... FS1 FS2 ...
            columns.append(10 * (c // 10) + int(places[c % 10]) if c < 10 * n else 10 * n + 2 * joint + kind)
        return JointTorques(tuple(columns), tuple(map(str, columns)))

    def figaroh_costs(self, *motions: Motion) -> list[float]:
        """FIGAROH's own cost of motions."""
        path = self.folder / "motions.npz"
        parts = {f"{name}{k}": p for k, motion in enumerate(motions) for name, p in zip(PARTS, motion, strict=True)}
        np.savez(path, **parts)
        return [float(cost) for cost in self.run("judge", motions=str(path), count=len(motions))["cost"]]

    def beyond(self, motion: Motion) -> float:
        """Largest excess over a limit, in units of the limit, by Pinocchio."""
        centre, half = 0.5 * (self.limits.upper + self.limits.lower), 0.5 * (self.limits.upper - self.limits.lower)
        torque = Pinocchio(self.robot).torque(*motion)
        sizes = [(motion[0] - centre) / half, motion[1] / self.limits.velocity, motion[2] / self.limits.acceleration]
        return float(max(np.abs(size).max() for size in (*sizes, torque / self.limits.torque)) - 1.0)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def compare(robot: Robot, limits: MotionLimits, python: str | None) -> list[list[Any]]:
    """One row per goal: ours, then each peer."""
    rows = []
    start, _ = design(robot, limits, CRITERIA["condition number"], time_limit_s=0.0)
    others: dict[str, Motion | None] = {}
    peers = Peers(python, robot, limits) if python else None
    for goal, criterion in CRITERIA.items():
        best, spent = design(robot, limits, criterion)
        ample = max(10 * spent, LEAST_S)
        if peers and not others:
            others = {name: peers.motion(name, ample) for name in ("figaroh", "flobaroid")}
            for name, motion in others.items():
                say(f"  {name}: " + (f"beyond a limit by {peers.beyond(motion):.3g}" if motion else "no motion"))
        peer = baseline(robot, limits, criterion, start, ample)
        found = [judged(robot, recorded(t))[goal] for t in (best, peer)]
        found += [judged(robot, motion)[goal] if motion else np.nan for motion in others.values()]
        rows.append([robot.name, goal, *(round(f, 3) for f in found), *[None] * (4 - len(found)), round(spent, 1)])
    if peers and (motion := others["figaroh"]):
        best, spent = design(robot, limits, ConditionNumber(), peers.figaroh_columns())
        costs = peers.figaroh_costs(recorded(best), motion)
        rows.append([robot.name, "FIGAROH's cost", round(costs[0], 3), None, round(costs[1], 3), None, round(spent, 1)])
    return rows


def is_best(row: list[Any]) -> bool:
    """Whether our figure is at least as good as every peer's."""
    ours, *theirs = (x for x in row[2:6] if x is not None and np.isfinite(x))
    return all(ours >= x if row[1] == "log det" else ours <= x for x in theirs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", nargs="+", default=["puma560", "ur10", "panda"])
    parser.add_argument("--peers", help="interpreter with pin, figaroh and cyipopt; without it SciPy alone is compared")
    options = parser.parse_args()
    good = True
    for name in options.robots:
        robot = getattr(zoo, name)().with_terms(Viscous(), Coulomb())
        limits = MotionLimits.from_robot(robot, acceleration=7.5)
        ours, theirs, calls = speed_ratio(robot, limits)
        good &= theirs > 200 * ours
        say(
            f"{name}: value and gradient, 1000 samples: {1e3 * ours:.2f} ms; Pinocchio with finite differences "
            f"{1e3 * theirs:.0f} ms: {theirs / ours:.0f} times (its regressor calls alone: {calls / ours:.0f} times)"
        )
        found = compare(robot, limits, options.peers)
        good &= all(is_best(row) for row in found)
        say(Table.of(HEADER, found, digits=4).to_text())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
