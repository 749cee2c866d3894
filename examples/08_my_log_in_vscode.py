"""A log of one's own, cell by cell, as VS Code and Spyder run them. Change the first cell."""

# %% The robot and its logs: here a simulated arm writes them; put your own URDF, logs and folder in their place
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import dynid
from dynid.processing.simulation import sum_of_sines

folder = Path(mkdtemp())
robot = dynid.robots.ddarm().with_terms(dynid.RotorInertia(), dynid.Viscous(), dynid.Coulomb(), dynid.Offset())
# robot = dynid.read_urdf("my_robot.urdf")
arm = robot.with_parameters(1.2 * robot.parameter_vector).with_terms(
    dynid.RotorInertia(0.02), dynid.Viscous(0.4), dynid.Coulomb(0.6), dynid.Offset(0.1)
)
for number in (1, 2):
    motion = sum_of_sines(robot.dof, period_s=8.0, amplitude=0.8, seed=number)
    log = dynid.simulate_experiment(arm, motion, rate_hz=200, duration_s=16.0, noise=dynid.Noise(effort=0.05))
    heads = ["t", *(f"{channel}_{name}" for channel in ("q", "tau") for name in robot.joint_names)]
    assert log.effort is not None  # a simulated log has torques
    columns = np.column_stack([log.time, log.q, log.effort])
    np.savetxt(folder / f"run{number}.csv", columns, delimiter=",", header=",".join(heads), comments="")

# %% Which column is what: read the map, correct it where it is wrong
logs = [folder / "run1.csv", folder / "run2.csv"]
found = dynid.inspect_log(logs[0], robot)
print(found)
map_file = folder / "map.toml"
map_file.write_text(found.toml)

# %% Is the log fit for identification?
recording = dynid.read_recording(logs[0], channel_map=map_file)
print(dynid.check_recording(recording, robot))

# %% Identify with the first log, judge with the second
fit = dynid.identify(robot, logs[:1], channel_map=map_file)
check = dynid.validate(fit, logs[1], channel_map=map_file)
print(check.verdict)
print(fit.friction.to_pandas())

# %% Keep it
print(dynid.write_result(fit, folder / "result.json", check))
print(dynid.write_report(fit, folder / "report.html", check))
