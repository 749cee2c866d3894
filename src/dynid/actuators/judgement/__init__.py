"""What an estimate of servos is worth: its covariance, and the terms that a training part supports."""
