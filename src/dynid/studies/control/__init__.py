"""Simulated robots under controllers that use an identified model."""
