"""The estimator of physically possible robots: cone program, prior, constraints, and checks of other estimates."""
