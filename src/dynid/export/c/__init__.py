"""Real-time C99 code, generated from tapes."""
