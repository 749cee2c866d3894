"""Page of identified servos: parameters, the ones that stay open, and simulated beside measured motions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.findings import Finding
from dynid.report.html_blocks import MOST_LISTED, Block, Bullets, Cards, Heading, Notices, Plot, Text
from dynid.report.page import Chapter, Page
from dynid.servos.kinds import KINDS, milli
from dynid.servos.motion import CommandedMotion
from dynid.servos.servo_identification import ActuatorEstimate
from dynid.tables import Table


def servo_table(found: ActuatorEstimate) -> Table:
    """Make a table with one row per parameter: value, standard deviation, interval, remark; shared ones first."""
    rows = []
    opened = {name: direction.at_least for direction in found.open_directions for name in direction.names}
    remarks = dict.fromkeys(found.at_bound, "at its bound: no estimate")
    remarks |= {name: "open" if least is None else f"open: at least {least:.3g}" for name, least in opened.items()}
    for k, entry in sorted(enumerate(found.model.entries), key=lambda item: -len(item[1].joints)):
        std = float(found.std[k])
        known = bool(np.isfinite(std))
        low, high = (float(x) if known else None for x in found.interval[k])
        remark = remarks.get(entry.name, "") if found.converged else "not converged"
        shown = float(f"{std:.2g}") if known else None  # a standard deviation is hardly known to more digits
        rows.append((entry.name, float(found.values[k]), shown, low, high, entry.unit, remark))
    return Table(("parameter", "value", "standard deviation", "95 % from", "to", "unit", ""), tuple(rows))


def _values(found: ActuatorEstimate, findings: Sequence[Finding]) -> Chapter:
    """Chapter with key figures, remarks and the table of parameters."""
    where = "the motions of the fit" if found.error.trained else "motions that were not fitted"
    unit = milli(found.model.unit)
    cards = (
        (f"error of the simulated position on {where}, rms [{unit}]", f"{1e3 * found.error.rms:.3g}"),
        (f"error of the command itself, rms [{unit}]", f"{1e3 * found.error.command_rms:.3g}"),
        ("parameters", f"{len(found.values)}"),
        ("of these left open", f"{len({name for direction in found.open_directions for name in direction.names})}"),
    )
    kinds = dict.fromkeys(entry.kind for entry in found.model.entries)
    meaning = "; ".join(f"{kind}: {KINDS[kind].meaning}" for kind in kinds)
    wrong = [f for f in found.findings if f.severity == "error" or f.code == "not-converged"]
    items = tuple((f.severity, f.code, f"Do not use these values. {f.where}: {f.sentence}", "") for f in wrong)
    blocks = (Cards(cards), Bullets(list_remarks(findings)), servo_table(found), Text(f"{meaning}.", "hint"))
    return Chapter("Servos", (Notices(items), *blocks) if items else blocks)


def list_remarks(findings: Sequence[Finding]) -> tuple[tuple[str, str], ...]:
    """Write findings as items of a list: severity and sentence."""
    return tuple((finding.severity.capitalize(), f"{finding.where}: {finding.sentence}") for finding in findings)


def _motions(found: ActuatorEstimate, shown: Sequence[CommandedMotion], joints: Table) -> Chapter:
    """Chapter with the errors of all simulated motions and of the joints, and with the curves of some motions."""
    rows = tuple(
        (e.name, "fitted" if e.trained else "not fitted", 1e3 * e.mean_absolute, 1e3 * e.rms, 1e3 * e.command_rms)
        for e in found.errors
    )  # fmt: skip
    unit = milli(found.model.unit)
    header = ("motion", "", f"mean error [{unit}]", f"rms [{unit}]", f"command, rms [{unit}]")
    hint = (
        "Each motion is simulated from its first reading on by its commands alone. Command: the error of taking "
        "every joint to be where it was sent."
    )
    if " or " in unit:
        hint += " Errors of turning and sliding joints are summed as they are, radians and metres alike."
    blocks: list[Block] = [Table(header, rows), Text(hint, "hint"), joints]
    units = found.model.robot.position_units
    for motion in shown:
        simulated = found.simulate(motion)
        blocks.append(Heading(motion.name))
        for j, name in enumerate(motion.joint_names[:MOST_LISTED]):
            signals = {"measured": motion.position, "simulated": simulated, "commanded": motion.command}
            label = f"{name} of {motion.name}: measured, simulated and commanded position"
            blocks.append(
                Plot.of(label, "time [s]", f"{name} [{units[j]}]", motion.time,
                        [(kind, values[:, j]) for kind, values in signals.items()], dashed=("commanded",), small=True)
            )  # fmt: skip
    return Chapter("Simulated and measured", tuple(blocks))


def servo_page(
    found: ActuatorEstimate,
    shown: Sequence[CommandedMotion],
    extra: Sequence[Chapter],
    findings: Sequence[Finding],
    joints: Table,
) -> Page:
    """Make the page of identified servos.

    Args:
        found: The servos.
        shown: Motions whose curves are drawn.
        extra: Further chapters.
        findings: All findings of the run.
        joints: Table of the errors of each joint.
    """
    chapters = [_values(found, findings), _motions(found, shown, joints), *extra]
    return Page.of(f"{found.model.robot.name}: identified servos", chapters)
