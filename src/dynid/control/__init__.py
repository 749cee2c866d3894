"""The answers at work: a simulated robot, controllers that use the model, the two-rate structure."""
