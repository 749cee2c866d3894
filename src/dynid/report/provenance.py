"""Where a result comes from: data, settings, versions, and the papers whose methods it used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynid.links.identify import Identification
from dynid.report.html_blocks import Block, Bullets, Code, Heading, Rows, Text
from dynid.report.page import Section

__all__ = ["Methods", "Provenance", "Settings", "citations"]

PAPERS = {
    "Atkeson1986": "C. G. Atkeson, C. H. An, J. M. Hollerbach, Estimation of Inertial Parameters of Manipulator Loads "
    "and Links, International Journal of Robotics Research 5(3), 1986",
    "GautierKhalil1990": "M. Gautier, W. Khalil, Direct Calculation of Minimum Set of Inertial Parameters of Serial "
    "Robots, IEEE Transactions on Robotics and Automation 6(3), 1990",
    "GautierKhalil1992": "M. Gautier, W. Khalil, Exciting Trajectories for the Identification of Base Inertial "
    "Parameters of Robots, International Journal of Robotics Research 11(4), 1992",
    "Lin1995": "S.-K. Lin, Minimal Linear Combinations of the Inertia Parameters of a Manipulator, IEEE Transactions "
    "on Robotics and Automation 11(3), 1995",
    "Izaguirre1992": "A. Izaguirre, M. Hashimoto, R. P. Paul, V. Hayward, A New Computational Structure for Real-Time "
    "Dynamics, International Journal of Robotics Research 11(4), 1992",
    "LeeWensingPark2020": "T. Lee, P. M. Wensing, F. C. Park, Geometric Robot Dynamic Identification: A Convex "
    "Programming Approach, IEEE Transactions on Robotics 36(2), 2020",
}
_USES = (
    ("closed", "GautierKhalil1990"),
    ("minimal", "Lin1995"),
    ("numeric", "Izaguirre1992"),
    ("physical", "LeeWensingPark2020"),
    ("feasible", "LeeWensingPark2020"),
    ("weighted", "Izaguirre1992"),
    ("excit", "GautierKhalil1992"),
    ("link", "Atkeson1986"),
)


def citations(*methods: str) -> tuple[tuple[str, str], ...]:
    """(key, paper) of what methods rest on, by the words in their descriptions; [Atkeson1986] started it all."""
    said = " ".join(methods).lower()
    used = ["Atkeson1986", *(key for word, key in _USES if word in said)]
    return tuple((key, PAPERS[key]) for key in dict.fromkeys(used))


@dataclass(frozen=True, slots=True, eq=False)
class Provenance(Section):
    """Which data, treated how; which methods."""

    fit: Identification
    data: Sequence[Mapping[str, Any]]
    """As `dynid.export.result_file.data_facts` gives them."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Data and methods"

    def blocks(self) -> Sequence[Block]:
        """Recipe of every run, hashes, joints, papers."""
        estimate = self.fit.estimate
        joints = tuple(
            (name, int(count), float(std), float(factor), float(error))
            for name, count, std, factor, error in zip(
                self.fit.robot.joint_names,
                estimate.samples,
                estimate.noise_std,
                estimate.inflation,
                self.fit.training_error,
                strict=False,
            )
        )
        header = ("joint", "samples", "residual std", "samples per independent one", "training error %")
        how = f"Base parameters by {self.fit.base.method}; values by {estimate.method}."
        papers: list[Block] = [Heading("To cite"), Bullets(citations(self.fit.base.method, estimate.method))]
        return [Text(how), Rows(header, joints), *(block for run in self.data for block in _run(run)), *papers]


def _run(run: Mapping[str, Any]) -> list[Block]:
    dropped = ", ".join(f"{count} {reason}" for reason, count in run["dropped"].items()) or "nothing"
    facts = f"sha256 {run['sha256'] or 'none'}; {run['samples']} samples at {run['rate_hz']:g} Hz; left out: {dropped}"
    return [Heading(run["source"]), Text(facts, "hint"), Bullets(tuple(("", step) for step in run["recipe"]))]


@dataclass(frozen=True, slots=True, eq=False)
class Settings(Section):
    """The command that made the page: its options, its inputs' digests, the versions it ran with."""

    command: str
    """To type again."""
    options: Mapping[str, str]
    inputs: Sequence[tuple[str, str]]
    """(path, SHA-256)"""
    versions: Mapping[str, str]

    @property
    def title(self) -> str:
        """Heading."""
        return "Settings"

    def blocks(self) -> Sequence[Block]:
        """Everything needed to make it again."""
        return [
            Code(self.command),
            Rows(("option", "value"), tuple(self.options.items())),
            Heading("Inputs"),
            Rows(("file", "SHA-256"), tuple(self.inputs)),
            Heading("Versions"),
            Rows(("what", "version"), tuple(self.versions.items())),
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Methods(Section):
    """The papers behind a page that is no identification."""

    methods: tuple[str, ...] = field(default=())

    @property
    def title(self) -> str:
        """Heading."""
        return "To cite"

    def blocks(self) -> Sequence[Block]:
        """Papers."""
        return [Bullets(citations(*self.methods))]
