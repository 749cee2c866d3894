"""Estimators under noisy positions: bias, coverage, agreement, time, speed of the simulation, wrong control laws.

    PYTHONPATH=tests python tests/campaigns/estimators_noise.py [agreement|coverage|time|simulation|law] [--runs 40]
    [--first 0] [--robots gautier_khalil_3r,puma560,tx40]

The scene: a PD law at 500 Hz, logged at 100 Hz for 10 s with 1e-3 rad of white noise on positions and 0.1 N m on
torques; the robot's prior values are up to 20 % off.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import dynid
from dynid.loop.arm import Arm
from dynid.loop.integrator.runge_kutta import RK2, RK3, RK4, Scheme
from dynid.loop.sensitivity import differentiate_loop
from dynid.loop.simulator import LoopSimulator
from dynid.robot.formats.mjcf.write import mjcf_text
from support.closed_loops import EVERY, Scene, scene

FIRST = 0
"""Seed of the first run."""
ROBOTS = "gautier_khalil_3r,puma560,tx40"
METHODS: dict[str, dynid.estimation.Estimator] = {
    "OLS": dynid.OLS(),
    "IV": dynid.estimation.InstrumentalVariables(),
    "DIDIM": dynid.estimation.DIDIM(),
}


def agreement(chosen: Scene, runs: int) -> None:
    """Without noise all methods find the truth."""
    problem = chosen.equations(chosen.clean())
    for name, estimator in METHODS.items():
        values = estimator.solve(problem).values
        away = np.linalg.norm(values - chosen.values) / np.linalg.norm(chosen.values)
        print(f"  {name:6s} without noise: relative distance from the truth {away:.1e}", flush=True)


def coverage(chosen: Scene, runs: int) -> None:
    """Monte Carlo: how far the mean is from the truth, and how often intervals hold it."""
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    refused: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + runs):
        raw = chosen.equations(chosen.noisy(seed, cutoff_hz=None))
        filtered = chosen.equations(chosen.noisy(seed))
        cases = {"OLS unfiltered": (METHODS["OLS"], raw)}
        cases |= {name: (METHODS[name], filtered) for name in ("OLS", "IV", "DIDIM")}
        for name, (estimator, problem) in cases.items():
            try:
                estimate = estimator.solve(problem)
            except dynid.errors.EstimationError:
                refused[name] += 1
                continue
            found.setdefault(name, []).append((estimate.values, estimate.stderr))
        if (seed + 1 - FIRST) % 20 == 0 or seed + 1 - FIRST == runs:
            _report(chosen, found)
            print(f"  refused: {dict(refused) or 'none'}", flush=True)


def _report(chosen: Scene, found: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> None:
    for name, pairs in found.items():
        values, stderr = np.array([v for v, _ in pairs]), np.array([s for _, s in pairs])
        away = (values - chosen.values) / stderr
        bias = np.abs(values.mean(axis=0) - chosen.values) / stderr.mean(axis=0)
        inside, spread = np.mean(np.abs(away) < 1.96), np.median(stderr.mean(axis=0) / values.std(axis=0))
        within = np.mean(np.abs(away) < 2.0)
        print(
            f"  {name:14s} {len(pairs):3d} runs: covered {100 * inside:5.1f} %, within 2 std {100 * within:5.1f} %, "
            f"bias/std median {np.median(bias):.2f} largest {bias.max():.2f}, std claimed/seen {spread:.2f}, "
            f"median relative error {100 * np.median(np.abs(values / chosen.values - 1.0)):.3g} %",
            flush=True,
        )


def _seconds(action: Callable[[], object], repeats: int = 5) -> float:
    action()
    best = np.inf
    for _ in range(repeats):
        begin = time.thread_time()
        action()
        best = min(best, time.thread_time() - begin)
    return best


def duration(chosen: Scene, runs: int) -> None:
    """Time from the recording to the estimate over that of ordinary least squares, in one process."""

    def whole(estimator: dynid.estimation.Estimator) -> float:
        return _seconds(lambda: estimator.solve(chosen.equations(chosen.noisy(0))))

    plain = whole(METHODS["OLS"])
    print(f"  OLS {1e3 * plain:.1f} ms, processing of the log included")
    variants = {name: e for name, e in METHODS.items() if name != "OLS"}
    variants |= {f"{e.__class__.__name__} consistent": replace(e, consistent=True) for e in (dynid.estimation.DIDIM(),)}
    for name, estimator in variants.items():
        taken = whole(estimator)
        print(f"  {name:17s} {1e3 * taken:7.1f} ms, {taken / plain:5.1f} x OLS", flush=True)


def simulation(chosen: Scene, runs: int) -> None:
    """Speed against MuJoCo stepped from Python, on one core; how accurate both are; drift of the energy."""
    rigid = chosen.robot.with_terms(dynid.RotorInertia(0.3), dynid.Viscous(2.0))
    rigid = replace(rigid, couplings=())
    law, reference = dynid.loop.assumed_law(rigid, 6.0), chosen.loop.reference
    loop = dynid.loop.Loop(law=law, reference=reference, substeps=1, friction_speed=0.1)
    base = dynid.base_parameters(rigid)
    beta, arm = base.project(rigid.parameter_vector), Arm(rigid, base.columns, loop.friction_speed)
    ticks, n = len(reference.q), rigid.dof

    def positions(scheme: Scheme, substeps: int = 1) -> np.ndarray:
        return LoopSimulator(arm, loop, scheme=scheme, substeps=substeps).run(beta).state[0, :, :n]

    exact = positions(RK4, 16)
    try:
        stepped = _mujoco(rigid, loop, exact)
    except (dynid.errors.ExportError, ValueError) as error:
        print(f"  MuJoCo does not take this robot: {str(error).splitlines()[0][:80]}")
        return
    single = LoopSimulator(arm, loop)
    together = LoopSimulator(arm, loop, lanes=0)
    asked = {"every": 5, "ticks": ticks}
    known = single.reference_run(5)
    cases = {
        "one run": lambda: single.run(beta, **asked),
        f"one run in {together.lanes} pieces side by side": lambda: single.run_near(beta, known, **asked),
        f"{together.lanes} runs side by side, each": lambda: together.run(beta, **asked),
    }
    times = [_seconds(action, 9) / ticks for action in cases.values()]
    times[2] /= together.lanes
    for name, taken in zip(cases, times, strict=True):
        print(f"  {name}: {1e6 * taken:.2f} us a period: {stepped / taken:.0f} x MuJoCo")
    slopes = _seconds(lambda: differentiate_loop(single, beta, every=5)) / ticks
    print(
        f"  a run and its derivatives by {beta.size} parameters: {1e6 * slopes:.1f} us a period, "
        f"{(beta.size + 1) * stepped / slopes:.0f} x MuJoCo's differences of {beta.size + 1} runs"
    )
    pieces = np.abs(single.run_near(beta, known, **asked).state[0, :, :n] - positions(RK4)[::5]).max()
    print(f"  pieces differ from the whole by {pieces:.1e} rad")
    for name, scheme in (("second", RK2), ("third", RK3), ("fourth", RK4)):
        run = LoopSimulator(arm, loop, scheme=scheme)
        taken = _seconds(lambda run=run: run.run(beta, **asked)) / ticks  # type: ignore[misc]
        off = np.abs(positions(scheme) - exact).max()
        print(
            f"  ours, {name} order: {1e6 * taken:.2f} us a period, {off:.1e} rad off: {stepped / taken:.0f} x its RK4"
        )
    truth = chosen.truth
    print(
        f"  energy drift with friction {truth.energy_error:.1e} J, "
        f"{truth.energy_error / truth.energy_turned_over:.1e} of the work"
    )


def _mujoco(rigid: dynid.Robot, loop: dynid.loop.Loop, exact: np.ndarray) -> float:
    """Seconds of a control period of MuJoCo's fourth-order method, the law in NumPy; prints those of all its methods.

    The law is sampled, so that no step is longer than its period; positions are logged.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf_text(rigid.with_terms()))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.dof_armature[:], model.dof_damping[:] = 0.3, 2.0
    reference, law = loop.reference, loop.law
    assert isinstance(law, dynid.loop.PD)

    def stepped(substeps: int, controlled: bool = True) -> np.ndarray:
        model.opt.timestep = loop.period_s / substeps
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = reference.q[0], reference.dq[0]
        positions = np.empty_like(reference.q)
        for k in range(len(positions)):
            if controlled:
                positions[k] = data.qpos
                data.qfrc_applied[:] = law.kp * (reference.q[k] - data.qpos) + law.kd * (reference.dq[k] - data.qvel)
            mujoco.mj_step(model, data, substeps)
        return positions

    taken = np.nan
    for name, substeps in (("EULER", 1), ("EULER", 4), ("IMPLICITFAST", 1), ("RK4", 1)):
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{name}")
        taken = _seconds(lambda k=substeps: stepped(k), 3) / len(reference.q)  # type: ignore[misc]
        bare = _seconds(lambda k=substeps: stepped(k, False), 3) / len(reference.q)  # type: ignore[misc]
        print(
            f"  MuJoCo, {substeps} {name}: {1e6 * taken:.1f} us a period with law and log, {1e6 * bare:.1f} us bare, "
            f"{np.abs(stepped(substeps) - exact).max():.1e} rad off"
        )
    return taken


def wrong_law(chosen: Scene, runs: int) -> None:
    """How often a law with wrong gains is accused, and one with the right gains."""
    law, n = chosen.loop.law, chosen.robot.dof
    assert isinstance(law, dynid.loop.PD)
    kp, kd = np.asarray(law.kp), np.asarray(law.kd)
    late = dynid.loop.UserLaw(
        lambda q, dq, qr, dqr, ddqr, held, period: (held, kp * (qr - q) + kd * (dqr - dq)), memory=n
    )
    laws: dict[str, dynid.loop.ControlLaw] = {"right": law, "kp + 5 %": dynid.loop.PD(1.05 * kp, kd)}
    laws |= {"kp + 20 %": dynid.loop.PD(1.2 * kp, kd), "kd - 30 %": dynid.loop.PD(kp, 0.7 * kd)}
    laws |= {"PID instead": dynid.loop.PID(kp, 3.0 * kp, kd), "one tick late": late}
    for name, other in laws.items():
        for cutoff_hz, methods in ((20.0, ("IV", "DIDIM")), (None, ("IV",))):
            accused: dict[str, list[bool]] = {method: [] for method in methods}
            for seed in range(FIRST, FIRST + max(2, runs // 4)):
                log = replace(chosen.noisy(seed, cutoff_hz=cutoff_hz), loop=replace(chosen.loop, law=other))
                problem = chosen.equations(log)
                for method in methods:
                    try:
                        accused[method].append(METHODS[method].solve(problem).extras["controller_mismatch"] > 0.0)
                    except dynid.errors.EstimationError as error:  # refused: that must name the law too
                        accused[method].append("control law" in str(error))
            counts = ", ".join(f"{method} {sum(said)} of {len(said)}" for method, said in accused.items())
            kind = "positions as measured" if cutoff_hz is None else "low-passed"
            print(f"  law {name:13s} ({kind}): accused {counts}", flush=True)


PARTS = {"agreement": agreement, "coverage": coverage, "time": duration, "simulation": simulation, "law": wrong_law}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first run")
    parser.add_argument("--robots", default=ROBOTS)
    parser.add_argument("--sharp", type=float, help="true dry friction is full above this speed [rad/s]")
    given = parser.parse_args()
    global FIRST  # the same for every part
    FIRST = given.first
    for name in given.robots.split(","):
        stated, chosen = scene(name), scene(name, friction_speed=None)
        if given.sharp is not None:
            truth = dynid.loop.simulate_loop(
                chosen.robot, replace(chosen.loop, friction_speed=given.sharp), every=EVERY
            )
            chosen = replace(chosen, truth=truth)
        print(f"{name}: {chosen.base.rank} base parameters, {chosen.truth.q.shape[0]} samples")
        for part in given.parts or PARTS:
            # to rounding only where truth and estimates are integrated in the same steps
            PARTS[part](stated if part == "agreement" else chosen, given.runs)


if __name__ == "__main__":
    main()
