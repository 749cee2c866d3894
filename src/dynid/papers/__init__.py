"""The five papers dynid is built from: their tables and figures, regenerated, each with a verdict."""

from dynid.papers.registry import REPRODUCTIONS, documentation, reproduce
from dynid.papers.reproduction import Part, Reproduction
from dynid.papers.rows import Row, Verdict

__all__ = ["REPRODUCTIONS", "Part", "Reproduction", "Row", "Verdict", "documentation", "reproduce"]
