"""Which of a robot's parameters act on its torques, and in which combinations."""

import dynid

robot = dynid.robots.puma560()
base = dynid.base_parameters(robot)
print(base)

unmoved = dynid.base_parameters(robot, unmoved=["joint3"])
print(f"\nWithout motion of joint 3 {unmoved.rank} of {base.rank} remain.")
print(f"Standing still: {', '.join(dynid.base_parameters(robot, static=True).names)}")
