"""Identification while the robot moves: samples come one by one, memory is bounded, what is known is there any time."""
