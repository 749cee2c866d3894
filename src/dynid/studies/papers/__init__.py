"""The five papers behind dynid: their tables and figures computed anew, each number with a verdict."""

from dynid.studies.papers.all_papers import REPRODUCTIONS, build_page, reproduce
from dynid.studies.papers.judgement.reproduction import Part, Reproduction
from dynid.studies.papers.judgement.verdicts import Row, Verdict

__all__ = ["REPRODUCTIONS", "Part", "Reproduction", "Row", "Verdict", "build_page", "reproduce"]
