"""The five papers dynid is built from: their tables and figures, regenerated, each with a verdict."""

from dynid.studies.papers.all_papers import REPRODUCTIONS, documentation, reproduce
from dynid.studies.papers.reproduction import Part, Reproduction, Row, Verdict

__all__ = ["REPRODUCTIONS", "Part", "Reproduction", "Row", "Verdict", "documentation", "reproduce"]
