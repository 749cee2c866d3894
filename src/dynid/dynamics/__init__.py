"""How a robot moves: the mathematics of rigid bodies, once, in plain NumPy."""
