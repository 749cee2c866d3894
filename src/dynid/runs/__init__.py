"""Runs on disk: what the command line does, as functions of the library that make a run folder."""
