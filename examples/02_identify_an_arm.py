"""From a designed motion to an identified robot and its proof, with a simulated arm in place of a real one."""

import dynid

sheet = dynid.robots.ur10().with_terms(dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())
real = sheet.with_parameters(1.15 * sheet.parameter_vector)  # what the data sheet does not know

limits = dynid.MotionLimits.from_robot(sheet, scale=0.5)
plan = dynid.design_excitation(
    sheet, limits, period_s=8, harmonics=4, seed=0, settings=dynid.excitation.SearchSettings(time_limit_s=4)
)
print(plan.summary())

noise = dynid.Noise(effort=0.5)
run1, run2 = (
    dynid.process(dynid.simulate_experiment(real, plan.trajectory, rate_hz=250, noise=noise, seed=seed))
    for seed in (1, 2)
)
fit = dynid.identify(sheet, run1)
check = dynid.validate(fit, run2)
print(fit.summary())
print(check.verdict)
