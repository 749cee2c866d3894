"""A sampled-data system integrated through time in machine code."""
