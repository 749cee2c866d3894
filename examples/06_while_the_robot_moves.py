"""Identification while the robot moves: which links are excited so far, and what is known of them."""

import numpy as np

import dynid
from dynid.estimators import OnlineEnergy, OnlineLinkByLink, estimate_bounds, excitation_table
from dynid.processing.simulation import sum_of_sines

arm = dynid.robots.gautier_khalil_3r().with_terms(dynid.Viscous(0.4), dynid.Coulomb(0.6))
rate_hz = 250.0
motion = sum_of_sines(3, period_s=8.0, amplitude=0.7, seed=1)(np.arange(6000) / rate_hz)
for channel in motion:
    channel[:2000, 0] = 0.0  # the first axis waits for eight seconds
q, dq, ddq = motion
tau = dynid.inverse_dynamics(arm, q, dq, ddq) + np.random.default_rng(0).normal(scale=0.2, size=q.shape)

links = OnlineLinkByLink(arm)
energy = OnlineEnergy(arm, rate_hz=rate_hz)  # needs no accelerations
for k in range(6000):  # in a controller, this is one control period
    if k == 2000:
        energy.start_stretch()  # the first axis jumps here: no interval spans the gap
    links.update(q[k], dq[k], ddq[k], tau[k])
    energy.update(q[k], dq[k], tau[k])
    if k in (9, 1999, 5999):
        open_by = [int(tracker.estimate().undetermined.sum()) for tracker in (links, energy)]
        print(f"after {k + 1} samples: {open_by[0]} parameters open by torques, {open_by[1]} by energy")
        print(excitation_table(links.excitation), "\n")

estimate = links.estimate()
print(estimate.table(), "\n")
print(estimate_bounds(links.equations, estimate).sentence)
low, high = estimate.interval().T
truth = links.base.project(arm.parameter_vector)
print(f"{np.mean((low <= truth) & (truth <= high)):.0%} of the 95 % intervals hold the true value")
