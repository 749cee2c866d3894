"""Verbs about logs: inspect, identify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dynid.cli.common import (
    FORCE,
    JSON,
    MAP,
    OUT,
    PROFILE,
    make_folder,
    print_json,
    progress,
    robot_argument,
    with_usual_joint_models,
)

if TYPE_CHECKING:
    from dynid.robot.model import Robot

__all__ = ["identify", "inspect"]


@click.command()
@click.argument("logs", nargs=-1, required=True, type=click.Path())
def inspect(logs: tuple[str, ...]) -> None:
    """Look into a log and propose a channel map for it, with the reasons of every guess.

    Example: dynid inspect run1.csv > map.toml
    """
    from dynid.data.inspect import inspect_log

    proposal = inspect_log(logs[0] if len(logs) == 1 else list(logs))
    click.echo(proposal.toml)
    click.echo(str(proposal), err=True)


@click.command()
@robot_argument
@click.argument("logs", nargs=-1, required=True, type=click.Path(exists=True))
@MAP
@PROFILE
@click.option("--estimator", type=click.Choice(["feasible", "wls", "ols"]), default="feasible", show_default=True)
@click.option("--validate", "held_out", multiple=True, type=click.Path(exists=True), help="Held-out log; repeatable.")
@click.option("--select", is_flag=True, help="Add friction and drive terms that cross-validation approves.")
@click.option("--limit", default=15.0, show_default=True, help="Largest relative held-out error that passes [%].")
@click.option("--cutoff", type=float, help="Low-pass [Hz]; chosen from the data by default.")
@OUT
@FORCE
@JSON
def identify(
    robot: Robot,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    estimator: str,
    held_out: tuple[str, ...],
    select: bool,
    limit: float,
    cutoff: float | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Identify a robot from logs; write result.json, the identified URDF or MJCF, a summary and a report.

    Exit code 1 when held-out logs were given and the verdict failed.

    Example: dynid identify arm.urdf run1.csv run2.csv --map map.toml --validate run3.csv --out result
    """
    from dynid.data.processing import process
    from dynid.data.reading import read_recording
    from dynid.estimation.feasible import FeasibleWLS
    from dynid.estimation.least_squares import OLS, WLS
    from dynid.estimation.selection import ForwardSelection
    from dynid.identification.links import identify as identify_links
    from dynid.identification.validation import validate

    def experiment(path: str) -> Any:
        recording = read_recording(path, model, channel_map=channel_map, profile=profile)
        return process(recording, cutoff_hz=cutoff if cutoff is not None else "auto")

    model = with_usual_joint_models(robot)
    kinds = {"feasible": FeasibleWLS(), "wls": WLS(), "ols": OLS()}
    with progress("reading and reducing", len(logs)) as advance:
        runs = []
        for number, log in enumerate(logs, start=1):
            runs.append(experiment(log))
            advance(number, Path(log).name)
    rule = ForwardSelection() if select else None
    fit = identify_links(model, runs, estimator=kinds[estimator], select=rule)
    proof = [experiment(log) for log in held_out]
    check = validate(fit, proof, limit=limit) if proof else None
    _write_identification(fit, check, proof[0] if proof else None, out, force)
    if as_json:
        from dynid.export.result_file import result_json

        print_json(result_json(fit, check))
    else:
        click.echo(fit.summary())
        click.echo(f"\n{check.summary() if check else 'No held-out log was given, so nothing is proven.'}")
        click.echo(f"written: {out}")
    sys.exit(0 if check is None or check.passed else 1)


def _write_identification(fit: Any, check: Any, held_out: Any, out: Path, force: bool) -> None:
    from dynid.export.result_file import write_result
    from dynid.files import write_atomically
    from dynid.report.report import write_report
    from dynid.robot.mjcf_writer import write_mjcf
    from dynid.robot.urdf_writer import write_urdf

    make_folder(out)
    write_result(fit, out / "result.json", check, force=force)
    source = fit.robot.source
    if source is not None and source.format == "mjcf":
        write_mjcf(fit.identified, out / f"{fit.robot.name}_identified.xml", force=force)
    else:
        write_urdf(fit.identified, out / f"{fit.robot.name}_identified.urdf", force=force)
    write_atomically(out / "summary.txt", fit.summary() + "\n", force=force)
    write_report(fit, out / "report.html", check, held_out, force=force)
