"""The five papers behind dynid: their tables and figures computed anew, each number with a verdict."""

from papers.all_papers import REPRODUCTIONS, reproduce
from papers.judgement.reproduction import Part, Reproduction
from papers.judgement.verdicts import Row, Verdict

__all__ = ["REPRODUCTIONS", "Part", "Reproduction", "Row", "Verdict", "reproduce"]
