"""Families of motions: each samples positions, velocities and accelerations."""
