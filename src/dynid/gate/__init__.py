"""Checks of a log before identification; every objection is a Finding."""
