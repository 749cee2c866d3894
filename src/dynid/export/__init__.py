"""Results for other programs: real-time C code."""
