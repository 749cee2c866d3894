"""The robot in its control loop: laws, commanded motions, and the compiled simulation with its derivatives."""
