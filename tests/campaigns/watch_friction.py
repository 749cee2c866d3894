"""False alarms of ``dynid.watch`` on clean simulated logs of five minutes with friction that the model does not have.

Run ``python tests/campaigns/watch_friction.py [--logs 20] [--seed 0]``. The arm has Stribeck friction, friction that
grows with the load and presliding; a model is identified from three logs of 30 s with dry and viscous friction. The
watched motions are like those of the calibration, slower, faster or wider. Counted are alarms at a stated rate of one
an hour, where the watch states a rate, and where it says that it cannot.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from numpy.typing import NDArray

import dynid
from dynid.cli import main as main_of_dynid
from dynid.logs.recording import Recording
from dynid.monitor.alarms import Watch
from dynid.processing.simulation import TimeFunction

RATE_HZ, TRAIN_S, WATCH_S = 100.0, 30.0, 298.0
"""Rate of the logs [Hz], and lengths of those of the calibration and of the watched ones [s]."""
MOTIONS = {"alike": (0.05, 0.5, 0.7), "slower": (0.02, 0.2, 0.7), "faster": (0.1, 1.0, 0.7), "wider": (0.05, 0.5, 1.4)}
"""Lowest and highest frequency of the sines [Hz], and the size of their sum [rad]."""
COULOMB, STRIBECK, STRIBECK_SPEED, LOAD, BREAKAWAY = 0.6, 0.2, 0.05, 0.03, 2e-3
"""Dry friction, what it has more at creep speed [N m], that speed [rad/s], friction per torque, presliding [rad]."""
CHANNELS = {"position": ("q", "rad"), "velocity": ("dq", "rad/s"), "effort": ("tau", "N m")}
MAP = {"time": {"column": "t", "unit": "s"}} | {
    name: {"columns": [f"{sign}{j}" for j in range(3)], "unit": unit} for name, (sign, unit) in CHANNELS.items()
}
ROBOT = dynid.robots.get("ddarm").with_terms(dynid.Viscous(0.4), dynid.Coulomb(COULOMB), dynid.Offset())


def wander(seed: int, low: float, high: float, size: float) -> TimeFunction:
    """A motion that never repeats: six sines of random frequencies for each joint."""
    rng = np.random.default_rng(seed)
    w, phase = 2.0 * np.pi * rng.uniform(low, high, size=(6, 3)), rng.uniform(0.0, 2.0 * np.pi, size=(6, 3))

    def trajectory(t: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        angle, part = np.multiply.outer(t, w) + phase, size / np.sqrt(6.0)
        s, c = np.sin(angle), np.cos(angle)
        return part * s.sum(axis=1), part * (w * c).sum(axis=1), -part * (w**2 * s).sum(axis=1)

    return trajectory


def clean_log(seed: int, motion: str, duration_s: float) -> Recording:
    """A log in which nothing pushes."""
    noise = dynid.Noise(position=2e-5, velocity=2e-3, effort=0.2)
    plain = ROBOT.with_terms(dynid.Viscous(0.4))
    log = dynid.simulate_experiment(
        plain, wander(seed, *MOTIONS[motion]), rate_hz=RATE_HZ, duration_s=duration_s, noise=noise, seed=seed
    )
    assert log.effort is not None
    dq, z = np.gradient(log.q, 1.0 / RATE_HZ, axis=0), np.zeros(3)
    friction = np.empty_like(dq)
    for k, speed in enumerate(dq):
        z = np.clip(z + speed / RATE_HZ / BREAKAWAY, -1.0, 1.0)
        size = COULOMB + STRIBECK * np.exp(-((speed / STRIBECK_SPEED) ** 2)) + LOAD * np.abs(log.effort[k])
        friction[k] = z * size
    return replace(log, effort=log.effort + friction)


def write(log: Recording, path: Path) -> Path:
    """A log as a file."""
    header = ",".join(["t", *(f"{sign}{j}" for sign in ("q", "dq", "tau") for j in range(3))])
    table = np.column_stack([log.time, log.q, log.dq, log.effort])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.9g")
    return path


def watch_clean(
    seed: int, folder: Path, names: tuple[str, ...] = tuple(MOTIONS), seconds: float = WATCH_S
) -> list[Watch]:
    """Identify, calibrate and watch as ``dynid identify`` and ``dynid watch`` do; one watch per motion."""
    logs = [write(clean_log(100 * seed + k, "alike", TRAIN_S), folder / f"train{seed}_{k}.csv") for k in range(3)]
    result, mapped, model = folder / f"result{seed}", folder / "map.toml", folder / "arm.urdf"
    mapped.write_text("\n".join(
        f"[{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in facts.items())
        for name, facts in MAP.items()
    ))  # fmt: skip
    dynid.write_urdf(ROBOT, model, force=True)
    words = ["identify", str(model), *map(str, logs), "--map", str(mapped), "--out", str(result), "--no-check"]
    done = CliRunner().invoke(main_of_dynid, [*words, "--allow-unphysical"])
    assert (result / "result.json").exists(), done.output
    watched = [write(clean_log(100 * seed + 50, name, seconds), folder / f"{name}{seed}.csv") for name in names]
    return list(dynid.watch(result, watched, channel_map=mapped).watches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    stated, silent, hours = [], [], 0.0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(given.seed, given.seed + given.logs // len(MOTIONS)):
            for motion, found in zip(MOTIONS, watch_clean(seed, Path(name)), strict=True):
                (silent if found.unlike else stated).append(len(found.alarms))
                hours += 0.0 if found.unlike else found.seconds / 3600.0
                print(f"{seed} {motion}: {found.verdict}", flush=True)
    print(f"{len(stated)} logs with a stated rate of one an hour: {sum(stated)} alarms in {hours:.2f} h; "
          f"{len(silent)} logs for which no rate is stated: {sum(silent)} alarms")  # fmt: skip
    sys.exit(1 if sum(stated) > 2.0 * hours + 3.0 else 0)


if __name__ == "__main__":
    main()
