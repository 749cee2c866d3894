"""Which motion reveals the parameters: trajectories, limits, criteria and their design."""
