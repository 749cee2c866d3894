"""Logs as files: read, mapped to quantities and units, not yet processed."""
