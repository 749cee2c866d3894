"""Results for other programs: result files, values for robot controllers, real-time C code."""
