"""Descriptions of robots as files: one module or folder per format."""
