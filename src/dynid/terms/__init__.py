"""What a joint adds to the rigid-body torque, linear in its parameters."""
