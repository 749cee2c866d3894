"""Chapters of the report on the origin of a result: data, methods with their papers, settings and versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynid.identification.identify import Identification
from dynid.processing.experiment import Dropped
from dynid.report.html_blocks import Block, Bullets, Code, Heading, Text
from dynid.report.page import Chapter
from dynid.tables import Table

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
    "Janot2014": "A. Janot, P.-O. Vandanjon, M. Gautier, A Generic Instrumental Variable Approach for Industrial Robot "
    "Identification, IEEE Transactions on Control Systems Technology 22(1), 2014",
    "Gautier2013": "M. Gautier, A. Janot, P.-O. Vandanjon, A New Closed-Loop Output Error Method for Parameter "
    "Identification of Robot Dynamics, IEEE Transactions on Control Systems Technology 21(2), 2013",
}
"""Bibliographic entry of every key of docs/references.md that a method may refer to."""
ORIGIN = "Atkeson1986"
"""The paper that every identification rests on: torques are linear in the inertial parameters."""


def citations(references: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Look up the papers of `ORIGIN` and of every reference, each once: (key, bibliographic entry)."""
    return tuple((key, PAPERS[key]) for key in dict.fromkeys([ORIGIN, *references]))


def provenance_chapter(fit: Identification, data: Sequence[Mapping[str, Any]]) -> Chapter:
    """Make the chapter about the data with their processing, and the methods with their papers.

    Args:
        fit: The identification.
        data: Facts of each run, as `dynid.export.result_file.data_facts` returns them.
    """
    estimate = fit.estimate
    columns = (estimate.samples.tolist(), estimate.noise_std.tolist(), estimate.inflation.tolist())
    joints = tuple(zip(fit.robot.joint_names, *columns, fit.training_error[:-1].tolist(), strict=True))
    header = ("joint", "equations", "residual std [N m or N]", "autocorrelation factor", "training error %")
    note = (
        "Equations are the samples that count in the fit, after filtering to its band. The autocorrelation factor "
        "says how many neighbouring equations tell as much as one independent equation. The training error is that "
        "of the torques as they enter the fit, noise included; the verdict states it for the band of the motion."
    )
    how = f"Base parameters were found by the method {fit.base.method}, their values by {estimate.method}."
    papers = Bullets(citations([*fit.base.references, *estimate.references]))
    blocks = [Text(how), Text(note, "hint"), Table(header, joints), *(block for run in data for block in _run(run))]
    return Chapter("Data and methods", (*blocks, Heading("Papers to cite"), papers))


REASONS: Mapping[str, str] = {
    Dropped.SHORT_STRETCH: "in stretches between gaps that are too short for the filter",
    Dropped.TRANSIENT: "at the ends of stretches, where the filter has not settled",
    Dropped.NEAR_GAP: "beside missing torques",
    Dropped.AT_REST: "at rest, where dry friction has no value",
    Dropped.DEAD_BAND: "slower than dead_band, where dry friction is uncertain",
}
"""Reason for which samples were left out -> text; other reasons are texts already."""


def _run(run: Mapping[str, Any]) -> list[Block]:
    """Blocks about one run: name, samples, digest, and the steps of its processing."""
    counts = [f"{count} {REASONS.get(reason, reason)}" for reason, count in run["dropped"].items()]
    dropped = f"left out, counted joint by joint: {', '.join(counts)}" if counts else "none left out"
    facts = (
        f"{run['samples']} samples at {run['rate_hz']:g} Hz; {dropped}. SHA-256 of the files: {run['sha256'] or 'none'}"
    )
    return [Heading(run["source"]), Text(facts, "hint"), Bullets(tuple(("", step) for step in run["recipe"]))]


SETTINGS = "settings"
"""`Chapter.kind` of the chapter that says how a page was made."""


def settings_chapter(
    command: str, options: Mapping[str, str], inputs: Sequence[tuple[str, str]], versions: Mapping[str, str]
) -> Chapter:
    """Make the chapter about the command that made the page.

    Args:
        command: The command line.
        options: Name -> value of every option.
        inputs: Path and SHA-256 of every file that was read.
        versions: Name -> version of the packages.
    """
    blocks = (
        Code(command),
        Table(("option", "value"), tuple(options.items())),
        Heading("Inputs"),
        Table(("file", "SHA-256"), tuple(inputs)),
        Heading("Versions"),
        Table(("package", "version"), tuple(versions.items())),
    )
    return Chapter("Settings", blocks, SETTINGS)


def methods_chapter(*references: str) -> Chapter:
    """Make the chapter with the papers of the methods behind a page, from keys of docs/references.md."""
    return Chapter("Papers to cite", (Bullets(citations(references)),))
