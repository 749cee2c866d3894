"""Chapters of an identification's report: torques, verdict, residuals, friction, excitation. They only read results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.array_types import Floats
from dynid.errors import DynidError
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.export.robot_files import RobotFile
from dynid.findings import Finding, QualityReport
from dynid.identification.identify import Identification
from dynid.identification.rich.joint_friction import JointFriction, friction_table
from dynid.identification.validation import NOISE_SHARE, Validation
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Block, Bullets, Cards, Code, Heading, Notices, Plot, Text
from dynid.report.page import Chapter
from dynid.report.sections.next_commands import NextCommands
from dynid.report.series import FEWEST, JointTorque, autocorrelate, bin_residuals, mean_over_speed, thin
from dynid.tables import Cell, Table, plain_number

GOOD_CONDITION, POOR_CONDITION = 100.0, 1000.0
"""Condition numbers of the scaled regressor: excitation is called good below the first and poor beyond the second
(convention: one hundred is the usual rule of thumb)."""
INTRODUCTION = (
    "This report shows the masses, inertias and friction of a robot, identified from logs of its motion. The test is "
    "prediction: the identified model predicts the joint torques of a motion that was not used to identify it, and its "
    "error is compared with that of the prior model, the one you started from. The sections below show the residuals, "
    "every parameter with its uncertainty, and how well the motion excites the parameters."
)
"""Text for a reader who sees such a page for the first time."""


# --- verdict ----------------------------------------------------------------------------------------------------------


def verdict_chapter(
    fit: Identification,
    check: Validation | None,
    held_out: Sequence[Experiment] = (),
    findings: Sequence[Finding] = (),
    files: Sequence[RobotFile] = (),
    commands: NextCommands | None = None,
) -> Chapter:
    """Make the chapter with the verdict, the findings with the commands to run next, and key figures.

    Args:
        fit: The identification.
        check: Its validation; None where nothing was held out.
        held_out: The runs of the validation.
        findings: Findings of the diagnosis before the fit and about the recipe.
        files: The written robot files.
        commands: Composes the commands to run next; None where the command of the page is not known.
    """
    if check is None:
        verdict = Text("not validated: no held-out data was given", "verdict open")
    else:
        verdict = Text(check.verdict, "verdict good" if check.passed else "verdict bad")
    estimate = fit.estimate
    impossible = (
        "Held at the limit of what is physically possible, because the data alone would give impossible values (a "
        "link's name stands for its inertia, IA for a rotor inertia)"
    )
    bounds = {
        impossible: [name for name in estimate.at_bound if name not in estimate.given_bounds],
        "Held at a bound that was given": estimate.given_bounds,
    }
    known = None if check is None else check.noise_percent  # share of noise in the power of each residual
    noise = np.zeros(fit.robot.dof) if known is None else np.asarray(known)
    found = [*_judgements(fit, check, held_out, files, noise), *findings, *estimate.findings]
    judged = [file for file in files if file.error is not None]
    errors = ", ".join(f"{file.format} {file.error:.2f} %" for file in judged)
    whole = f"; whole model {judged[0].judged:.2f} %" if judged else ""
    blocks = (
        verdict,
        *([Text(f"Held-out error of the written files: {errors}{whole}.")] if judged else []),
        Heading("What was found, and what to do next"),
        *list_findings(found, commands or NextCommands()),
        *([Code(commands.onward(passed=check is not None and check.passed))] if commands else []),
        Bullets(tuple((words, ", ".join(names)) for words, names in bounds.items() if names)),
        Cards(tuple(_figures(fit, check))),
        *(_joint_errors(check, held_out, noise) if check is not None else []),
        Text(INTRODUCTION, "hint"),
    )
    return Chapter("Verdict", blocks)


def _judgements(
    fit: Identification,
    check: Validation | None,
    held_out: Sequence[Experiment],
    files: Sequence[RobotFile],
    noise: Floats,
) -> Iterator[Finding]:
    """Findings that follow from the validation and the written files."""
    if check is None:
        message = "no data were held out, so nothing shows how well the model predicts"
        yield Finding(code="not-validated", severity="warning", where="data", message=message,
                      remedy="Hold out a part of the logs, or validate on another log.")  # fmt: skip
        return
    yield from check.causes
    is_noise = noise >= NOISE_SHARE  # (n,) whether the residual of a joint is mostly noise
    where = "held-out residuals"
    for mask, reason, remedy in (
        (is_noise, "noise of the measured torques",
         "Compare in the band of the motion (--set band_hz=...), or move the joint with larger torques."),
        (~is_noise, "the model, because noise explains less than half of it",
         "The plots of its residuals below show what the model lacks."),
    ):  # fmt: skip
        errors = zip(check.joint_names, check.per_joint, mask & (check.per_joint > check.limit), strict=True)
        names = ", ".join(f"{name} ({error:.3g} %)" for name, error, beyond in errors if beyond)
        if names and held_out:
            message = f"the held-out error of {names} exceeds the limit of {check.limit:g} %; the reason is {reason}"
            yield Finding(code="joint-error", severity="warning", where=where, message=message, remedy=remedy)
    slow = [f"{name} ({share:.0f} %)" for name, share in zip(check.joint_names, noise, strict=True)
            if share < NOISE_SHARE]  # fmt: skip
    if slow and held_out:
        message = (
            "residuals are correlated with the motion, so that the model and not noise limits the accuracy of "
            f"these joints (share of noise in the residual): {', '.join(slow)}"
        )
        yield Finding(code="correlated-residuals", severity="note", where=where, message=message)
    for file in files:
        if not file.is_near:
            remedy = "Use result.json where these terms matter: dynid codegen and dynid.read_result read it."
            yield Finding(code="file-error", severity="warning", where=file.path.name, message=file.sentence,
                          remedy=remedy)  # fmt: skip


def _figures(fit: Identification, check: Validation | None) -> list[tuple[str, str]]:
    estimate = fit.estimate
    figures = [
        ("base parameters", str(len(estimate.names))),
        ("not determined by the motion", str(int(estimate.undetermined.sum()))),
        ("condition number", plain_number(estimate.condition)),
    ]
    if check is None:
        return [("training error", f"{fit.training_error[-1]:.2f} %"), *figures]
    return [
        ("held-out error", f"{check.relative_error:.2f} %"),
        ("prior model, same data", f"{check.prior_error:.2f} %"),
        ("factor of improvement", f"{check.prior_error / max(check.relative_error, 1e-12):.3g}"),
        ("training error", f"{check.training_error:.2f} %"),
        *figures,
    ]


def _joint_errors(check: Validation, held_out: Sequence[Experiment], noise: Floats) -> list[Block]:
    """Blocks with held-out errors of each joint beside those of the prior model, and of each of several logs."""
    columns = (check.per_joint.tolist(), check.prior_per_joint.tolist(), check.rms.tolist())
    rows: list[tuple[Cell, ...]] = [*zip(check.joint_names, *columns, strict=True)]
    header: tuple[str, ...] = ("joint", "held-out error %", "prior model error %", "rms residual [N m or N]")
    note = (
        "The error is the norm of measured minus predicted torque, divided by the norm of the measured torque, on "
        "held-out data."
    )
    if held_out:
        header = (*header, f"limit of {check.limit:g} %", "residual is mostly", "noise in the residual %")
        words = [("above" if error > check.limit else "within", "noise" if share >= NOISE_SHARE else "model")
                 for error, share in zip(check.per_joint, noise, strict=True)]  # fmt: skip
        rows = [(*row, *words[j], float(noise[j])) for j, row in enumerate(rows)]
        note += (
            " The share of noise is estimated from the torques above the band of the motion; the rest of the "
            "residual comes from errors of the model."
        )
    title = Heading("Comparison with the prior model")
    by_log: list[Block] = [Heading("Held-out logs"), check.log_table()] if len(check.by_log) > 1 else []
    return [title, Text(note, "hint"), Table(header, tuple(rows)), *by_log]


def refusal_chapter(error: DynidError, findings: Sequence[Finding], commands: NextCommands) -> Chapter:
    """Make the chapter that says why nothing was identified, with all findings about the logs."""
    verdict = Text(f"nothing was identified: {error.reason}", "verdict bad")
    heading = Heading("What was found, and what to do next")
    return Chapter("Verdict", (verdict, heading, *list_findings(findings, commands)))


def list_findings(findings: Sequence[Finding], commands: NextCommands) -> list[Block]:
    """List findings, the gravest first, each once and with the command to run next."""
    ordered = QualityReport.of("", {finding.sentence: finding for finding in findings}.values()).findings
    items = tuple((f.severity, f.code, _write_place(f), commands.after(f.code, f.where)) for f in ordered)
    return [Notices(items)] if items else [Text("Nothing was found that needs attention.")]


def _write_place(finding: Finding) -> str:
    """Write the sentence of a finding, with the log or file that it is about."""
    is_file = ":" in finding.where or "." in finding.where
    return f"{finding.where}: {finding.sentence}" if is_file else finding.sentence


def files_chapter(files: Sequence[RobotFile]) -> Chapter:
    """Make the chapter about the robot files: their held-out errors beside that of the whole model."""
    hint = "The files hold the plain model. Each was read back from disk and judged on the held-out data."
    rows = tuple((f.format, f.path.name, f.error, f.judged, "; ".join(f.lacks) or "nothing") for f in files)
    header = ("format", "file", "held-out error %", "whole model %", "what the format has no place for")
    return Chapter("Written robot files", (Text(hint, "hint"), Table(header, rows)) if rows else ())


# --- torques and residuals --------------------------------------------------------------------------------------------


def torques_chapter(joints: Sequence[JointTorque], drawings: Sequence[Block], *, seen: bool) -> Chapter:
    """Make the chapter that opens a page: drawings; measured, predicted and residual torque of every joint.

    Args:
        joints: The torques.
        drawings: Blocks above them.
        seen: Whether the run was used for the identification.
    """
    hint = (
        "Drag across a plot, or pinch, to zoom all joints together. Double-click to see everything. The keys "
        "+, -, arrows and Home work on the selected plot."
    )
    plots = []
    for joint in joints:
        channels = (joint.measured, joint.identified, joint.prior, joint.residual)
        time, *values = thin(joint.time, *channels)
        curves = list(zip(("measured", "identified", "prior model", "residual"), values, strict=True))
        label = f"torque of {joint.name}: measured, identified, prior model, residual"
        plots.append(
            Plot.of(label, "time [s]", f"{joint.name} [{joint.unit}]", time, curves, dashed=("identified",), small=True)
        )
    title = "Torques on the identification data" if seen else "Torques on held-out data"
    return Chapter(title, (*drawings, *plots, Text(hint, "hint")))


def residuals_chapter(joints: Sequence[JointTorque], rate_hz: float) -> Chapter:
    """Make the chapter with distribution, autocorrelation and dependence on speed of the residuals."""
    text = (
        "Each joint has three plots. The first shows the distribution of the residuals. The second shows their "
        "autocorrelation: that of white noise falls to zero at once, and a slow decay means model error. The third "
        "shows the mean residual over speed: any shape beyond the noise is friction that the model lacks."
    )
    plots = [plot for joint in joints for plot in residual_plots(joint, rate_hz)]
    return Chapter("Residuals", (Text(text, "hint"), *plots) if plots else ())


def residual_plots(joint: JointTorque, rate_hz: float) -> list[Plot]:
    """Make the three plots of the residuals of one joint; none where it has too few samples."""
    e = joint.residual[joint.counted]
    speed = joint.speed[joint.counted]
    if e.size < FEWEST:
        return []
    return [
        Plot.of(f"{what} over {label}", label, "", x, [(what, y)], small=True)
        for label, what, (x, y) in (
            (f"{joint.name}: residual [{joint.unit}]", "samples", bin_residuals(e)),
            (f"{joint.name}: lag [s]", "autocorrelation", autocorrelate(e, rate_hz)),
            (f"{joint.name}: speed [{joint.speed_unit}]", "mean residual", mean_over_speed(e, speed)),
        )
    ]


# --- friction and excitation ------------------------------------------------------------------------------------------


def friction_chapter(joints: Sequence[JointFriction]) -> Chapter:
    """Make the chapter about the friction of every joint as a whole: a table, and curves with their 95 % bands."""
    text = (
        "Coulomb and viscous friction are those of the plain model, which files hold. The curves show what the rich "
        "model does at constant speed under the mean load of the data. Intervals and bands are 95 %."
    )
    plots = [
        Plot.of(f"friction of {f.name} over speed, with its 95 % band", f"{f.name}: speed [{f.speed_unit}]",
                f"friction [{f.unit}]", f.speed, [("friction", f.torque)], small=True, half=TWO_SIDED_95 * f.stderr)
        for f in joints
    ]  # fmt: skip
    table = friction_table(joints)
    blocks: list[Block] = [Text(text, "hint"), table, *plots] if joints else []
    return Chapter("Friction", tuple(blocks))


def excitation_chapter(fit: Identification, runs: Sequence[Experiment]) -> Chapter:
    """Make the chapter about ranges and speeds of every joint and the condition number; empty without samples."""
    runs = [run for run in runs if run.samples]
    if not runs:
        return Chapter("Excitation", ())
    header = (
        "joint", "lowest", "highest", "share of range %", "peak speed +", "peak speed -", "share of speed limit %",
        "valid samples",
    )  # fmt: skip
    condition = fit.estimate.condition
    word = "good" if condition < GOOD_CONDITION else "usable" if condition < POOR_CONDITION else "poor"
    text = (
        f"The condition number of the regressor with scaled columns is {plain_number(condition)}: {word}. It is "
        "the factor by which torque errors are amplified in the worst combination of parameters. Below "
        f"{GOOD_CONDITION:g} is good; beyond {POOR_CONDITION:g} a better motion is needed. "
        f"{fit.bounds.sentence} [GautierKhalil1992]. Dry friction needs "
        "every joint to move both ways, inertia needs acceleration, and gravity terms need different poses."
    )
    blocks = (
        Text(text, "hint"),
        Table(header, tuple(_coverage_row(fit, j, runs) for j in range(fit.robot.dof))),
    )
    return Chapter("Excitation", blocks)


def _coverage_row(fit: Identification, j: int, runs: Sequence[Experiment]) -> tuple[Cell, ...]:
    """Write a row of the table: ranges and speeds of joint j in the data, and as shares of its limits."""
    body = fit.robot.bodies[j]
    limits = fit.robot.moving_joints[j].limits
    q = np.concatenate([run.q[:, j] for run in runs])
    dq = np.concatenate([run.dq[:, j] for run in runs])
    scale, unit = (1.0, "m") if body.is_prismatic else (float(np.rad2deg(1.0)), "deg")
    span = limits.upper - limits.lower
    return (
        f"{fit.robot.joint_names[j]} [{unit}]",
        scale * q.min(),
        scale * q.max(),
        100.0 * np.ptp(q) / span if np.isfinite(span) and span > 0.0 else None,
        scale * max(dq.max(), 0.0),
        scale * max(-dq.min(), 0.0),
        100.0 * np.abs(dq).max() / limits.velocity if np.isfinite(limits.velocity) else None,
        int(sum(run.valid[:, j].sum() for run in runs)),
    )
