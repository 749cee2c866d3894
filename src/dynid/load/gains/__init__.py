"""Gains of drives from the equations of a weighed load."""
