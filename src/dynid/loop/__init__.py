"""The robot in its control loop: laws, references and the simulated loop."""
