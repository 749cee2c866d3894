"""Trajectories: Fourier series, splines, fifth-order moves; sampling, file formats and time scaling."""
