"""What several logs, runs or models have in common, and what each has for itself."""
