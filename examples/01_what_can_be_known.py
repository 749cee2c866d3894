"""Which of a robot's parameters act on its torques, and in which combinations."""

import dynid

robot = dynid.robots.puma560()
base = dynid.base_parameters(robot)
print(base)

locked = dynid.base_parameters(robot, locked=["joint3"])
print(f"\nWith joint 3 locked {locked.rank} of {base.rank} remain.")
print(f"Standing still: {', '.join(dynid.base_parameters(robot, static=True).names)}")
