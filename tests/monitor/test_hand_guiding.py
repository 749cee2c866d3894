"""Hand guiding of a MuJoCo arm: the force at the hand with the prior model and with an identified one."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.monitor.hand_guiding import HandGuiding
from dynid.processing.simulation import sum_of_sines

POSTURE = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.0])


@pytest.fixture(scope="module")
def models() -> tuple[dynid.Robot, dynid.Robot, dynid.Robot]:
    """The true arm with friction, the prior model without, and the one identified from a noisy log."""
    prior = dynid.robots.panda()
    heavier = prior.with_parameters(prior.parameter_vector * 1.1)
    friction = (dynid.Viscous(1.0), dynid.Coulomb(2.0), dynid.RotorInertia(0.2))
    true = heavier.with_terms(*friction)
    log = dynid.simulate_experiment(
        true, sum_of_sines(7, seed=1), rate_hz=100, duration_s=10, noise=dynid.Noise(effort=0.2)
    )
    kinds = (dynid.Viscous(), dynid.Coulomb(), dynid.RotorInertia())
    fit = dynid.identify(prior.with_terms(*kinds), dynid.process(log, cutoff_hz=10), dynid.Recipe.bare())
    return true, prior, fit.identified


def test_the_hand_needs_five_times_less_force_with_the_identified_model(models) -> None:
    pytest.importorskip("mujoco")
    from support.led_arm import Hand, MujocoPlant, guide_by_hand

    true, prior, identified = models
    hand = Hand(true.bodies[-1].joint.child, way=(0.0, 0.06, 0.04), duration_s=3.0)
    with_prior = guide_by_hand(MujocoPlant(true), HandGuiding(prior), POSTURE, hand, period_s=0.005)
    with_ours = guide_by_hand(MujocoPlant(true), HandGuiding(identified), POSTURE, hand, period_s=0.005)
    assert with_prior.rms_force > 5.0 * with_ours.rms_force
    assert with_ours.error.max() < with_prior.error.max()


def test_the_law_is_gravity_and_a_share_of_the_friction(models) -> None:
    true, _, _ = models
    dq = np.array([0.5, -0.4, 0.3, 0.6, -0.7, 0.2, 0.9])
    law = HandGuiding(true, share=0.5, rest_speed=0.01)
    rest = np.zeros(7)
    friction = dynid.inverse_dynamics(true.with_gravity([0.0, 0.0, 0.0]), POSTURE, dq, rest)
    velocity = dynid.compiled.velocity_torque(true, POSTURE, dq)
    expected = dynid.gravity_torque(true, POSTURE) + 0.5 * (friction - velocity)
    np.testing.assert_allclose(law.torque(POSTURE, dq), expected, atol=1e-9)
    np.testing.assert_allclose(law.torque(POSTURE, rest), dynid.gravity_torque(true, POSTURE), atol=1e-12)


def test_offsets_and_springs_are_balanced_whole(models) -> None:
    """Friction alone has the share, and fades at rest."""
    friction = (dynid.Viscous(1.0), dynid.Coulomb(2.0))
    springs = [dynid.terms.AngleHarmonic(3.0, joint=joint) for joint in range(7)]
    rubbing = models[1].with_terms(*friction)
    sprung = rubbing.with_terms(dynid.Offset(5.0), *springs, keep=True)
    for dq in (np.zeros(7), np.full(7, 0.01), np.full(7, 0.5)):
        more = HandGuiding(sprung).torque(POSTURE, dq) - HandGuiding(rubbing).torque(POSTURE, dq)
        np.testing.assert_allclose(more, 5.0 + 3.0 * np.cos(POSTURE), atol=1e-12)
