"""Estimators on line: samples come while the robot moves, memory is bounded, an estimate can be had at any time."""
