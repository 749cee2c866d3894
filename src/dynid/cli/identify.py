"""The verb identify: from a robot and its logs to a run folder with the result and the proof."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid import errors
from dynid.cli.common import (
    DELAY,
    EXISTING,
    FORCE,
    JSON,
    MAP,
    OUT,
    PROFILE,
    logs_argument,
    print_json,
    robot_argument,
    say_verdict,
    verb,
    with_usual_terms,
)
from dynid.cli.estimators import CONTROL_RATE, ESTIMATOR, IN_MEMORY, LAW, LOOPS, chosen_estimator
from dynid.cli.logs import BAND, CHECK, CUTOFF, DEAD_BAND, JUDGE_REST, LIMIT, MAX_GAP, TRIM, refuse_copies
from dynid.cli.progress import progress
from dynid.cli.reading import LogSource, LogStream, Seconds, is_large, read_experiments, read_parts
from dynid.cli.run_folder import RunFolder, open_run, sha256

if TYPE_CHECKING:
    from dynid.estimation.estimate import Estimator
    from dynid.links.identify import Identification
    from dynid.processing.experiment import Experiment
    from dynid.robot.model import Robot
    from dynid.terms.base import Term

__all__ = ["identify"]


def _known_part(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse a part that is none before anything is done."""
    from dynid.links.hold_out import read_hold_out

    return value if value is None or read_hold_out(value) else None


@verb(
    "dynid identify arm.urdf run1.csv --map map.toml --hold-out 30% --out result",
    "dynid identify arm.urdf run1.csv run2.csv --map map.toml --validate run3.csv --band 10 --out result",
    "dynid identify arm.urdf run1.csv --map map.toml --estimator iv --law law.toml --control-rate 500 --out result",
)
@robot_argument
@logs_argument
@MAP
@PROFILE
@ESTIMATOR
@LAW
@CONTROL_RATE
@click.option("--validate", "held_out", multiple=True, type=EXISTING, help="Held-out log; repeatable.")
@click.option("--hold-out", "kept_aside", metavar="PART", callback=_known_part,
              help="Or a part of every log: 40% (the last), 12:16 (s), every:3:0.75 (blocks of s).")  # fmt: skip
@click.option("--select/--no-select", default=True, show_default=True,
              help="Add friction and drive terms that cross-validation inside the training data approves.")  # fmt: skip
@click.option("--spring", "springs", multiple=True, metavar="JOINT",
              help="A joint with a spring, cylinder or counterweight that turns with it; repeatable.")  # fmt: skip
@click.option("--stream/--no-stream", default=None,
              help="Read logs piece by piece, without selection of terms; those above 2 GB by default.")  # fmt: skip
@BAND
@TRIM
@DEAD_BAND
@LIMIT
@CUTOFF
@DELAY
@MAX_GAP
@JUDGE_REST
@CHECK
@OUT
@FORCE
@JSON
def identify(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    estimator: str,
    law: str | None,
    control_rate: float | None,
    held_out: tuple[str, ...],
    kept_aside: str | None,
    select: bool,
    springs: tuple[str, ...],
    stream: bool | None,
    band: float | None,
    trim: float | None,
    dead_band: float,
    limit: float,
    cutoff: float | None,
    delay: Seconds,
    max_gap: float | None,
    judge_rest: bool,
    check: bool,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Identify a robot from logs; write a run folder with the result, the identified model and a report.

    Exit code 1 when held-out data were given and the verdict failed. An interrupted run goes on where it stopped when
    the same command is given again; dynid rerun makes a finished one again.
    """
    from dynid.estimation.selection import ForwardSelection
    from dynid.export.result_file import result_json
    from dynid.links.couplings import with_coupled_motors
    from dynid.links.identify import identify as identify_links
    from dynid.links.recipe import Recipe
    from dynid.links.validation import validate as judge

    _refuse_unclear(logs, held_out, kept_aside)
    model = with_usual_terms(robot)
    if channel_map is not None:
        model = with_coupled_motors(model, channel_map)
    terms = _spring_terms(model, springs)
    source = LogSource(model, channel_map, profile, cutoff, gate=check, delay=delay, band=band, dead_band=dead_band,
                       max_gap=max_gap, judge_rest=judge_rest)  # fmt: skip
    method = chosen_estimator(estimator, source, logs, law, control_rate, bool(springs))
    run = open_run(out, ["result.json", "summary.txt"], force=force)
    if stream or (stream is None and any(is_large(log) for log in logs)):
        _refuse_rows(estimator, {"--hold-out": kept_aside, "--band": band, "--spring": springs})
        proof = read_experiments(held_out, source, run, fitted=0)
        fit = _identify_stream(model, [LogStream(log, source) for log in logs], method)
    else:
        used, proof = _read(logs, held_out, kept_aside, source, run)
        with progress("identifying") as advance:
            advance(0.0, f"{sum(part.samples for part in used)} samples")
            rule = ForwardSelection() if select and estimator not in LOOPS else None
            if select and rule is None:
                click.echo("terms are not selected: the simulated loop knows the robot's own terms only", err=True)
            recipe = Recipe.bare(selection=rule, band_hz=band)
            fit = identify_links(model, used, recipe, estimator=method, terms=terms)
    proven = judge(fit, proof, limit=limit, trim_s=trim) if proof else None
    lost = _write_identification(run, fit, proven, proof)
    code = 0 if proven is None or proven.passed else 1
    run.finish("result.json", code)
    if as_json:
        print_json(result_json(fit, proven))
    else:
        click.echo(fit.summary() + "\n")
        open_end = "No held-out data were given (--validate, --hold-out), so nothing is proven."
        say_verdict(proven.summary() if proven else open_end, good=proven is not None and proven.passed)
        click.echo(f"written: {out}, with {out / 'report.html'} to open in a browser")
        click.echo(lost, nl=bool(lost))
    sys.exit(code)


def _refuse_rows(estimator: str, options: Mapping[str, object]) -> None:
    """Refuse what needs a whole log in memory."""
    wanted = [name for name, value in options.items() if value]
    wanted += [f"--estimator {estimator}"] if estimator in IN_MEMORY else []
    if wanted:
        raise errors.ArgumentError(
            f"{wanted[0]} needs a whole log in memory, and this one is read piece by piece",
            remedy="Leave it out, or add --no-stream where the memory is large enough.",
        )


def _identify_stream(robot: Robot, logs: Sequence[LogStream], method: Estimator) -> Identification:
    """Identify from logs of which only factors are kept."""
    from dynid.estimation.stream_equations import stream_equations
    from dynid.links.identify import identify_equations

    click.echo("logs are read piece by piece: terms are not selected", err=True)
    return identify_equations(stream_equations(robot, logs), method)


def _spring_terms(robot: Robot, joints: Sequence[str]) -> tuple[Term, ...]:
    """What springs add: a torque that repeats with the joint's angle, in its first two harmonics."""
    from dynid.terms.springs import AngleHarmonic

    unknown = [name for name in joints if name not in robot.joint_names]
    if unknown:
        known = ", ".join(robot.joint_names)
        raise errors.ArgumentError(f"--spring: there is no moving joint '{unknown[0]}'", remedy=f"Joints: {known}.")
    places = [robot.joint_names.index(name) for name in dict.fromkeys(joints)]
    return tuple(
        AngleHarmonic(joint=j, order=order, sine=sine) for j in places for order in (1, 2) for sine in (False, True)
    )


def _read(
    logs: Sequence[str], held_out: Sequence[str], kept_aside: str | None, source: LogSource, run: RunFolder
) -> tuple[list[Experiment], list[Experiment]]:
    """What is identified from, and what proves it."""
    from dynid.links.hold_out import read_hold_out

    if kept_aside is not None:
        pairs = read_parts(logs, read_hold_out(kept_aside), source, run)
        return [used for used, _ in pairs], [kept for _, kept in pairs]
    everything = read_experiments((*logs, *held_out), source, run, fitted=len(logs))
    return everything[: len(logs)], everything[len(logs) :]


def _refuse_unclear(logs: Sequence[str], held_out: Sequence[str], kept_aside: str | None) -> None:
    """A log cannot be its own proof, nor be given twice."""
    if held_out and kept_aside:
        raise errors.ArgumentError(
            "--validate and --hold-out are two ways to the same", remedy="Use one: logs of their own, or parts of logs."
        )
    refuse_copies(logs)
    refuse_copies(held_out)
    used = {sha256(Path(log)): log for log in logs}
    for log in held_out:
        if (twin := used.get(sha256(Path(log)))) is not None:
            raise errors.ArgumentError(
                f"--validate {log} has the same content as {twin}, which is identified from",
                remedy="Keep one run aside, or a part of it with --hold-out: what was fitted proves nothing.",
            )


def _write_identification(run: RunFolder, fit: Any, check: Any, held_out: Sequence[Experiment]) -> str:
    """Write everything; returns what the robot files cannot hold."""
    from dynid.export.description_files import terms_note
    from dynid.export.result_file import write_result
    from dynid.report.report import identification_page
    from dynid.robot.formats.mjcf.write import write_mjcf
    from dynid.robot.formats.urdf import write_urdf

    write_result(fit, run.path / "result.json", check, force=run.overwrite)
    name = f"{Path(fit.robot.name).name or 'robot'}_identified"
    write_mjcf(fit.identified, run.path / f"{name}.xml", force=run.overwrite)
    write_urdf(fit.identified, run.path / f"{name}.urdf", force=run.overwrite)
    lost = terms_note(fit, run.path)
    parts = [fit.summary(), check.summary() if check else "", lost]
    run.write("summary.txt", "\n\n".join(part for part in parts if part) + "\n")
    run.note(lost or "the robot files hold all that was identified")
    run.write_page(identification_page(fit, check, held_out, [run.settings()]))
    return lost
