"""What was measured: from a log to an experiment one can trust."""
