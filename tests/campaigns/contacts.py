"""Contacts on every link of a MuJoCo arm, and hand guiding, with noise and with models that are a little wrong.

Run ``python tests/campaigns/contacts.py`` (``--quick`` for a tenth); `make contacts`. Needs MuJoCo.

Contacts: 40 N at a random point of the surface of each link of a moving Panda. The watch has a model whose parameters
are each wrong by a normal error of 0, 2 or 5 %, and the noise of a Panda's torque sensors, once and twice. The torques
are judged as they are, with the standard deviation of noise and model together, and less what they were before the
contact, which the errors of a model share. ``isolated`` is the share of pushes whose link is found; ``within 20 %`` is
that of forces among those whose own standard deviation is below 10 %; the others say that the posture does not tell.

Hand guiding: root mean square force of the hand with the prior model over that with the other one, for hands that go 7
cm there and back in 1 to 4 s, for the true model and for models that are wrong by 2 and 5 %.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.monitor.contact import contact_wrench, find_touched_link
from dynid.monitor.hand_guiding import HandGuiding
from dynid.monitor.observer import observe
from dynid.tables import Table
from support.led_arm import Hand, MujocoPlant, guide_by_hand
from support.pushed_arm import ONSET, STD, Push, push, simulation

Floats = NDArray[np.float64]
ERRORS = (0.0, 0.02, 0.05)
NOISES = (1.0, 2.0)
DURATIONS_S = (1.0, 2.0, 3.0, 4.0)
MODELS = 3
"""Wrong models per error."""


def wrong(robot: dynid.Robot, error: float, seed: int) -> dynid.Robot:
    """The robot with all parameters wrong by normal errors."""
    theta = robot.parameter_vector
    return robot.with_parameters(theta * (1.0 + error * np.random.default_rng(seed).normal(size=theta.size)))


def contacts(pushes: list[Push]) -> Table:
    """Isolation and force for each noise and error of the model."""
    _, robot, _ = simulation()
    rng = np.random.default_rng(1)
    rows = []
    for error in ERRORS:
        models = [wrong(robot, error, seed) for seed in range(MODELS if error else 1)]
        seen = [observe(models[k % len(models)], one.run) for k, one in enumerate(pushes)]
        spread = [_spread(robot, one.run.q[-1], error) for one in pushes]
        for noise in NOISES:
            for relative in (False, True):
                own = noise * STD * np.sqrt(1.0 + relative / ONSET)  # before the contact ten samples are averaged
                std = [np.sqrt(np.square(own) + (0.0 if relative else part**2)) for part in spread]
                torque = [one[-1] - relative * one[ONSET] + rng.normal(size=7) * own for one in seen]
                words = "less those before" if relative else "as they are"
                rows.append((f"{100 * error:g} %", f"{noise:g}", words, *_judge(robot, pushes, torque, std)))
    header = ["error of the model", "noise", "torques", "isolated %", "within 20 % of the force %", "posture tells %"]
    return Table.of(header, rows)


def _spread(robot: dynid.Robot, q: Floats, error: float) -> Floats:
    """(n,) standard deviation of the torques of gravity by the errors of the parameters."""
    rest = np.zeros((1, robot.dof))
    columns = dynid.regressor(robot, q[None], rest, rest)[0] * robot.parameter_vector
    return np.asarray(error * np.sqrt(np.square(columns).sum(axis=1)))


def _judge(robot: dynid.Robot, pushes: list[Push], torques: list[Floats], std: list[Floats]) -> tuple[str, str, str]:
    hits, errors = [], []
    for one, torque, spread in zip(pushes, torques, std, strict=True):
        hits.append(find_touched_link(robot, torque, spread).body == one.body)
        link = robot.bodies[one.body].joint.child
        found = contact_wrench(robot, link, one.run.q[-1], torque, spread, point=one.point, with_moment=False)
        if np.linalg.norm(found.stderr) < 0.1 * np.linalg.norm(found.force):
            errors.append(np.linalg.norm(found.force - one.force) / np.linalg.norm(one.force))
    within = 100.0 * np.mean(np.array(errors) < 0.2) if errors else np.nan
    return f"{100 * np.mean(hits):.0f}", f"{within:.0f}", f"{100 * len(errors) / len(pushes):.0f}"


def guiding() -> Table:
    """How many times less force a hand needs than with the prior model."""
    prior = dynid.robots.panda()
    friction = (dynid.Viscous(1.0), dynid.Coulomb(2.0), dynid.RotorInertia(0.2))
    true = prior.with_parameters(prior.parameter_vector * 1.1).with_terms(*friction)
    posture = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.0])
    rows = []
    for duration in DURATIONS_S:
        hand = Hand(true.bodies[-1].joint.child, way=(0.0, 0.06, 0.04), duration_s=duration)

        def force(model: dynid.Robot, hand: Hand = hand) -> float:
            return guide_by_hand(MujocoPlant(true), HandGuiding(model), posture, hand, period_s=0.005).rms_force

        without = force(prior)
        times = [[without / force(wrong(true, error, seed)) for seed in range(MODELS if error else 1)]
                 for error in ERRORS]  # fmt: skip
        rows.append((f"{duration:g}", f"{without:.1f}", *(f"{min(one):.1f}" for one in times)))
    header = ["there and back in [s]", "force with the prior model [N]"]
    return Table.of([*header, *(f"times less, {100 * error:g} % wrong, worst" for error in ERRORS)], rows)


def main() -> None:
    """Print both tables; exit 1 where a target is missed at the sensors' own noise and 2 % errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the pushes")
    count = 3 if parser.parse_args().quick else 30
    rng = np.random.default_rng(0)
    table = contacts([push(body, rng) for body in range(7) for _ in range(count)])
    led = guiding()
    print(table.to_markdown(), led.to_markdown(), sep="\n\n")
    good = next(row for row in table.rows if row[:3] == ("2 %", "1", "less those before"))
    sys.exit(0 if float(good[3]) >= 90.0 and float(good[4]) >= 90.0 else 1)


if __name__ == "__main__":
    main()
