"""The channel map of the small logs that several tests write."""

from __future__ import annotations

MAP = """[time]
column = "t"
unit = "s"
[position]
columns = "q{1..3}"
unit = "rad"
[effort]
columns = "tau{1..3}"
unit = "N m"
"""
