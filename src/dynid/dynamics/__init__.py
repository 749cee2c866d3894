"""Kinematics and dynamics of rigid bodies in plain NumPy: the equations that `dynid.compiled` records and compiles."""
