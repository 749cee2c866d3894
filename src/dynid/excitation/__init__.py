"""Design of motions that reveal the parameters: criteria, limits, search; trajectories and collision geometry."""
