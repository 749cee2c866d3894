"""Real-time C99 code generated from a tape."""
