"""From logs to short real-time code: identify, keep the significant parameters, fit them again, generate C."""

import dynid
from dynid.export.c.c_check import find_compiler
from dynid.processing.simulation import sum_of_sines

arm = dynid.robots.puma560().with_terms(dynid.RotorInertia(0.2), dynid.Viscous(2.0), dynid.Coulomb(3.0))
noise = dynid.Noise(effort=0.2)
runs = []
for seed in range(4):
    motion = sum_of_sines(6, period_s=7.0, amplitude=1.0, seed=seed)
    runs.append(dynid.process(dynid.simulate_experiment(arm, motion, rate_hz=100, duration_s=14.0, noise=noise)))
*train, held_out = runs

fit = dynid.identify(arm, train, dynid.Recipe.bare(estimator="wls")).with_significant("1%")
assert fit.significance is not None  # with_significant computes it
full, short = dynid.validate(fit, held_out), dynid.validate(fit.significance, held_out)
print(dynid.export.pruning_cost(fit, full, short))  # parameters, errors and operations before and after

code = dynid.generate_c(fit.significance, functions=["inverse_dynamics"])
print("\n".join(code.text.notes))
if find_compiler() is not None:
    print(f"compiled; largest difference from Python: {max(code.check(samples=100).values()):.0e} of the terms")
