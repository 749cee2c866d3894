"""Measurements of dynid: its speed beside other libraries, and its estimators beside each other."""
