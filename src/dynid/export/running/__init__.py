"""C code that runs beside a robot: observers and trackers with a state."""
