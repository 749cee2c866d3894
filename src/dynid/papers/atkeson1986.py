"""Atkeson, An, Hollerbach 1986: loads and links."""

from __future__ import annotations

from collections.abc import Callable

from dynid.papers import atkeson1986_links, atkeson1986_load, atkeson1986_signals, atkeson1986_statements
from dynid.papers.reproduction import Part

__all__ = ["PARTS", "TITLE"]

TITLE = "Atkeson, An, Hollerbach 1986: estimation of inertial parameters of manipulator loads and links"
PARTS: dict[str, Callable[[bool], Part]] = {
    "Table 1": atkeson1986_load.table1,
    "Table 2, Figs. 4 and 5": atkeson1986_load.table2,
    "Table 5 from Tables 3 and 4": atkeson1986_links.tables345,
    "three groups": atkeson1986_links.groups,
    "links, Fig. 8": atkeson1986_links.links,
    "Appendix I": atkeson1986_links.appendix1,
    "integration": atkeson1986_signals.filtering,
    "Figs. 3 and 9": atkeson1986_signals.vibration,
    "statements": atkeson1986_statements.statements,
}
