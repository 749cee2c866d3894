"""Verbs about logs: inspect, identify, validate."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
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
    POSITIVE,
    PROFILE,
    logs_argument,
    print_json,
    robot_argument,
    say_verdict,
    verb,
    with_usual_joint_models,
)
from dynid.cli.progress import progress
from dynid.cli.reading import LogSource, Seconds, read_experiments
from dynid.cli.run_folder import RunFolder, open_run, sha256

if TYPE_CHECKING:
    from dynid.data.recording import Experiment
    from dynid.robot.model import Robot

__all__ = ["identify", "inspect", "validate"]

ESTIMATORS = {
    "feasible": ("dynid.estimation.feasible", "FeasibleWLS"),
    "wls": ("dynid.estimation.least_squares", "WLS"),
    "ols": ("dynid.estimation.least_squares", "OLS"),
    "huber": ("dynid.estimation.robust", "Huber"),
    "cauchy": ("dynid.estimation.robust", "Cauchy"),
    "ridge": ("dynid.estimation.ridge", "Ridge"),
    "svd": ("dynid.estimation.truncated_svd", "TruncatedSVD"),
    "link-by-link": ("dynid.estimation.link_by_link", "LinkByLink"),
}
LIMIT = click.option("--limit", type=POSITIVE, default=15.0, show_default=True,
                      help="Largest relative held-out error that passes [%].")  # fmt: skip
CUTOFF = click.option("--cutoff", type=POSITIVE, help="Low-pass [Hz]; chosen from the data by default.")
CHECK = click.option("--check/--no-check", default=True, show_default=True,
                      help="Refuse logs in which dynid check finds an error.")  # fmt: skip


@verb("dynid inspect run1.csv > map.toml", "dynid inspect run1.mcap --json")
@logs_argument
@JSON
def inspect(logs: tuple[str, ...], as_json: bool) -> None:
    """Look into a log and propose a channel map for it, with the reasons of every guess."""
    from dynid.data.inspect import inspect_log

    with progress("inspecting") as advance:
        advance(0.0, Path(logs[0]).name)
        proposal = inspect_log(logs[0] if len(logs) == 1 else list(logs))
    if as_json:
        print_json(dataclasses.asdict(proposal))
        return
    click.echo(proposal.toml)
    click.echo(str(proposal), err=True)


@verb(
    "dynid identify arm.urdf run1.csv --map map.toml --out result",
    "dynid identify arm.urdf run1.csv run2.csv --map map.toml --validate run3.csv --select --out result",
)
@robot_argument
@logs_argument
@MAP
@PROFILE
@click.option("--estimator", type=click.Choice([*ESTIMATORS]), default="feasible", show_default=True)
@click.option("--validate", "held_out", multiple=True, type=EXISTING, help="Held-out log; repeatable.")
@click.option("--select", is_flag=True, help="Add friction and drive terms that cross-validation approves.")
@LIMIT
@CUTOFF
@DELAY
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
    held_out: tuple[str, ...],
    select: bool,
    limit: float,
    cutoff: float | None,
    delay: Seconds,
    check: bool,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Identify a robot from logs; write a run folder with the result, the identified model and a report.

    Exit code 1 when held-out logs were given and the verdict failed. An interrupted run goes on where it stopped when
    the same command is given again; dynid rerun makes a finished one again.
    """
    from importlib import import_module

    from dynid.estimation.selection import ForwardSelection
    from dynid.export.result_file import result_json
    from dynid.identification.links import identify as identify_links
    from dynid.identification.validation import validate as judge

    _refuse_copies(logs)
    _refuse_copies(held_out)
    _refuse_twice(logs, held_out)
    run = open_run(out, ["result.json", "summary.txt"], force=force)
    model = with_usual_joint_models(robot)
    source = LogSource(model, channel_map, profile, cutoff, gate=check, delay=delay)
    everything = read_experiments((*logs, *held_out), source, run)
    used, proof = everything[: len(logs)], everything[len(logs) :]
    module, name = ESTIMATORS[estimator]
    rule = ForwardSelection() if select else None
    with progress("identifying") as advance:
        advance(0.0, f"{sum(part.samples for part in used)} samples")
        fit = identify_links(model, used, estimator=getattr(import_module(module), name)(), select=rule)
    proven = judge(fit, proof, limit=limit) if proof else None
    _write_identification(run, fit, proven, proof)
    code = 0 if proven is None or proven.passed else 1
    run.finish("result.json", code)
    if as_json:
        print_json(result_json(fit, proven))
    else:
        click.echo(fit.summary() + "\n")
        open_end = "No held-out log was given, so nothing is proven."
        say_verdict(proven.summary() if proven else open_end, good=proven is not None and proven.passed)
        click.echo(f"written: {out}, with {out / 'report.html'} to open in a browser")
    sys.exit(code)


def _refuse_copies(logs: Sequence[str]) -> None:
    """The same samples twice look like twice the knowledge: intervals would shrink, and none of it would be true."""
    seen: dict[str, str] = {}
    for log in logs:
        digest = sha256(Path(log))
        if (twin := seen.get(digest)) is not None:
            what = "is given twice" if twin == log else f"has the same content as {twin}"
            raise errors.ArgumentError(f"{log} {what}", remedy="Give each log once: a copy tells nothing new.")
        seen[digest] = log


def _refuse_twice(logs: Sequence[str], held_out: Sequence[str]) -> None:
    """A log cannot be its own proof."""
    used = {sha256(Path(log)): log for log in logs}
    for log in held_out:
        if (twin := used.get(sha256(Path(log)))) is not None:
            raise errors.ArgumentError(
                f"--validate {log} has the same content as {twin}, which is identified from",
                remedy="Keep one run aside: what was fitted proves nothing.",
            )


def _write_identification(run: RunFolder, fit: Any, check: Any, held_out: Sequence[Experiment]) -> None:
    from dynid.export.result_file import write_result
    from dynid.report.report import identification_page
    from dynid.robot.mjcf_writer import write_mjcf
    from dynid.robot.urdf_writer import write_urdf

    write_result(fit, run.path / "result.json", check, force=run.overwrite)
    source = fit.robot.source
    name = f"{Path(fit.robot.name).name or 'robot'}_identified"
    if source is not None and source.format == "mjcf":
        write_mjcf(fit.identified, run.path / f"{name}.xml", force=run.overwrite)
    else:
        write_urdf(fit.identified, run.path / f"{name}.urdf", force=run.overwrite)
    run.write("summary.txt", fit.summary() + (f"\n\n{check.summary()}\n" if check else "\n"))
    run.write_page(identification_page(fit, check, held_out, [run.settings()]))


@verb(
    "dynid validate result/ run9.csv --map map.toml",
    "dynid validate result/ run9.csv --map map.toml --limit 5 --out proof",
)
@click.argument("result", type=EXISTING)
@logs_argument
@MAP
@PROFILE
@LIMIT
@CUTOFF
@DELAY
@CHECK
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the verdict and a report.")
@FORCE
@JSON
def validate(
    result: str,
    logs: tuple[str, ...],
    channel_map: str | None,
    profile: str | None,
    limit: float,
    cutoff: float | None,
    delay: Seconds,
    check: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Judge a saved result on logs that it has not seen.

    RESULT is a folder that dynid identify wrote, or its result.json. Exit code 1 when the verdict failed.
    """
    from dynid.export.result_file import read_result
    from dynid.identification.validation import validate as judge
    from dynid.report.report import identification_page

    _refuse_copies(logs)
    saved = read_result(result)
    fit = saved.identification()
    used = {facts["sha256"]: facts["source"] for facts in saved.content["data"] if facts["sha256"]}
    for log in logs:
        if (digest := sha256(Path(log))) in used:
            raise errors.ArgumentError(
                f"{log} was used for the identification, as {used[digest]}", remedy="Give a log that it has not seen."
            )
    run = None if out is None else open_run(out, ["validation.json"], force=force)
    runs = read_experiments(logs, LogSource(fit.robot, channel_map, profile, cutoff, gate=check, delay=delay), run)
    verdict = judge(fit, runs, limit=limit)
    code = 0 if verdict.passed else 1
    if run is not None:
        run.write("validation.json", json.dumps(verdict.to_json(), indent=1) + "\n")
        run.write_page(identification_page(fit, verdict, runs, [run.settings()], saved.content["data"]))
        run.finish("validation.json", code)
    if as_json:
        print_json(verdict.to_json())
    else:
        say_verdict(verdict.summary(), good=verdict.passed)
        if out is not None:
            click.echo(f"written: {out}, with {out / 'report.html'} to open in a browser")
    sys.exit(code)
