"""The five papers behind dynid: their tables and figures computed anew, each number with a verdict."""

from dynid.studies.papers.all_papers import REPRODUCTIONS, build_page, reproduce
from dynid.studies.papers.reproduction import Part, Reproduction, Row, Verdict

__all__ = ["REPRODUCTIONS", "Part", "Reproduction", "Row", "Verdict", "build_page", "reproduce"]
