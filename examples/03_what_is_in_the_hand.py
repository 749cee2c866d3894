"""A load from joint torques: one run with it, one without."""

import numpy as np

import dynid

arm = dynid.robots.iiwa14().with_terms(dynid.Viscous(0.3), dynid.Coulomb(0.4))
held = dynid.Inertia.from_com(2.0, [0.01, -0.02, 0.12], np.diag([0.008, 0.007, 0.004]))
loaded_arm = arm.with_body("load", parent=arm.bodies[-1].joint.child, inertia=held)

limits = dynid.MotionLimits.from_robot(arm, scale=0.4)
plan = dynid.design_excitation(
    arm, limits, period_s=8, harmonics=4, seed=1, settings=dynid.excitation.SearchSettings(time_limit_s=4)
)
unloaded, loaded = (
    dynid.process(
        dynid.simulate_experiment(robot, plan.trajectory, rate_hz=250, noise=dynid.Noise(effort=0.1), seed=seed)
    )
    for seed, robot in enumerate((arm, loaded_arm))
)
load = dynid.identify_payload(arm, loaded=loaded, unloaded=unloaded)
print(load)
for dialog in dynid.export.payload_dialogs(load):
    print(dialog)
