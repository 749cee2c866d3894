"""The robot in its control loop: laws, reference motions, and a compiled simulation of both."""
