"""Logs as files: read, mapped to quantities and units, not yet processed."""

from __future__ import annotations

from dynid.lazy import lazy_names

NAMES = {
    "channel_map": ["ChannelMap", "read_channel_map"],
    "drives": ["CurrentGains", "ThreePhase"],
    "in_memory": ["as_recording"],
    "inspect": ["inspect_log"],
    "joint_order": ["match_joints"],
    "lerobot": ["read_lerobot"],
    "reading": ["read_recording", "read_stream", "runs_in"],
    "recording": ["Commands", "Recording"],
}
"""Module -> its public names, loaded at first use."""

__all__, __getattr__, __dir__ = lazy_names(__name__, NAMES)
