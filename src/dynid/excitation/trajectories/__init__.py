"""Trajectories: Fourier series and fifth-order moves; sampling and file formats."""
