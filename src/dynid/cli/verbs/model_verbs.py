"""The commands without a run folder: robots and base, logs (check, inspect, drives), code (codegen)."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument, option

from dynid.cli.options import (
    EXISTING,
    FORCE,
    GRAVITY,
    HOLD,
    JSON,
    LOGS,
    MAP,
    OUT,
    ROBOT,
    ROWS,
    TIME,
    LogPath,
    command,
    read_robot,
    refuse_run,
)
from dynid.cli.screen import echo, print_json, progress, show_finding, wrap_lines
from dynid.errors import ArgumentError
from dynid.findings import Finding, QualityReport

if TYPE_CHECKING:
    from dynid.robot.model import Robot

RECORDED_ROBOT = option(
    "--robot", "recorded", metavar="ROBOT", help="Robot that was recorded: a file or a built-in robot."
)
"""The robot of commands whose argument is a log."""


# --- robots -----------------------------------------------------------------------------------------------------------


@command(JSON, examples=["dynid robots --json"])
def robots(as_json: bool) -> None:
    """List the built-in robots."""
    from dynid.robot import zoo

    if as_json:
        print_json(list(zoo.names()))
        return
    for name in zoo.names():
        echo(f"{name:22s} {zoo.get(name)!r}")


@command(
    *ROBOT,
    option("--method", type=click.Choice(["closed-form", "minimal-combinations", "numeric", "structural"]),
           help="Method that finds the base parameters; by default the first one that fits the robot."),
    JSON,
    option("--usual-terms", is_flag=True,
           help="Add rotor inertia, viscous and dry friction and offset to every joint."),
    option("--frames", type=click.Choice(["body", "distal"]), default="body", show_default=True,
           help="Frames of the links: the robot's own, or standard DH frames at their far ends."),
    option("--counts", is_flag=True, help="Also print the operation count of inverse dynamics."),
    option("--torques", type=click.Choice(["text", "latex", "python"]),
           help="Print the joint torques as formulas of the base parameters instead."),
    examples=["dynid base puma560 --method numeric", "dynid base arm.urdf --usual-terms --json",
              "dynid base ddarm --torques latex"],
)  # fmt: skip
def base(robot: str, hold: tuple[str, ...], gravity: str | None, **given: Any) -> None:
    """Show which parameters can be identified.

    Parameters that cannot be separated are shown as combinations.
    """
    from dynid.export.formulas import torque_expressions
    from dynid.identifiability.base import base_parameters
    from dynid.identifiability.dh_frames import distal_base_parameters, has_closed_form
    from dynid.identifiability.minimal_dynamics import count_inverse_dynamics
    from dynid.robot.term_names import add_terms

    model = read_robot(robot, hold, gravity)
    as_json = given["as_json"]
    torques = given["torques"]
    is_distal = given["frames"] == "distal"
    _exclude("--counts", given["counts"], {"--json": as_json})
    _exclude("--torques", torques, {"--counts": given["counts"], "--json": as_json})
    _exclude("--frames distal", is_distal, {"--method": given["method"], "--torques": torques})
    described = add_terms(model) if given["usual_terms"] else model
    result = distal_base_parameters(described).base if is_distal else base_parameters(described, method=given["method"])
    if torques is not None:
        write = getattr(torque_expressions(described, result), torques)  # its text, latex or python method
        echo(write().rstrip("\n"))
        return
    echo(result.to_json() if as_json else wrap_lines(result.to_text(), tables=False))
    if given["counts"]:
        echo(f"\nInverse dynamics of this robot's links: {count_inverse_dynamics(model)}")
        if has_closed_form(model.with_terms()):
            echo(f"In minimal linear combinations: {count_inverse_dynamics(model, form='minimal')}")


def _exclude(name: str, is_used: Any, others: dict[str, Any]) -> None:
    """Refuse option ``name``, if it is used, together with any used one of the others (name -> value)."""
    if is_used and (found := [other for other, value in others.items() if value]):
        raise ArgumentError(f"{name} excludes {', '.join(found)}", remedy=f"Leave out {found[0]}, or {name}.")


# --- logs -------------------------------------------------------------------------------------------------------------


@command(
    argument("what", metavar="ROBOT|LOG"), HOLD, RECORDED_ROBOT, MAP,
    GRAVITY, ROWS, TIME, JSON,
    examples=["dynid check arm.urdf", "dynid check run1.csv --map map.toml --robot arm.urdf",
              "dynid check run1.csv --map map.toml --robot arm.urdf --time 2:30 --hold 'finger*'"],
)  # fmt: skip
def check(what: str, hold: tuple[str, ...], gravity: str | None, as_json: bool, **given: Any) -> None:
    """List the faults of a robot model or of a log.

    Every finding comes with a remedy. The exit code is 1 if there is an error, and 0 if there are at most warnings.
    """
    from dynid.identification.log_part import check_part
    from dynid.robot.check import check_robot
    from dynid.robot.formats import is_robot_file
    from dynid.robot.term_names import add_terms
    from dynid.robot.zoo import names

    check_part(given["rows"], given["time"])
    notes = tuple[str, ...]()  # a log's reader has notes, a robot none
    if is_robot_file(what) or what in names():
        options = {"--robot": "recorded", "--map": "channel_map", "--rows": "rows", "--time": "time"}
        _exclude("the check of a robot", True, {name: given[key] for name, key in options.items()})
        result = check_robot(read_robot(what, hold, gravity, tell=False, judge=False))
    else:
        robot = None if given["recorded"] is None else add_terms(read_robot(given["recorded"], hold, gravity))
        result, notes = _check_log(what, robot, given)
    if as_json:
        print_json([finding.to_dict() for finding in result.findings])
    else:
        shown = dataclasses.replace(result, findings=tuple(map(_shorten, result.findings)))
        echo(wrap_lines("\n".join([str(shown), *(f"  read: {note}" for note in notes)]), tables=False))
    sys.exit(0 if result.ok else 1)


def _shorten(finding: Finding) -> Finding:
    """Replace the message of a finding by its brief form, where it has one: counts instead of a long list."""
    brief = f"{finding.brief}; --json lists them"
    return dataclasses.replace(finding, message=brief, evidence={}) if finding.brief else finding


def _check_log(what: str, robot: Robot | None, given: dict[str, Any]) -> tuple[QualityReport, tuple[str, ...]]:
    """Check a log; return the findings and the notes of its reader. Reading is half of the progress bar."""
    from dynid.diagnosis.log_check import check_and_process
    from dynid.identification.log_part import cut_recording
    from dynid.logs.reading import read_recording
    from dynid.processing.process import Processing

    path = LogPath().convert(what, None, None)
    with progress(Path(path).name) as advance:
        recording = read_recording(path, robot, channel_map=given["channel_map"],
                                   progress=lambda share, note: advance(0.5 * share, "reading"))  # fmt: skip
        recording = cut_recording(recording, rows=given["rows"], time=given["time"])
        result, _ = check_and_process(
            recording, Processing(), robot, progress=lambda share, note: advance(0.5 + 0.5 * share, "checking")
        )
    return result, recording.notes


@command(
    LOGS, RECORDED_ROBOT, HOLD, JSON,
    examples=["dynid inspect run1.csv --robot arm.urdf > map.toml", "dynid inspect runs/ --robot arm.urdf > map.toml",
              "dynid inspect run1.mcap --json"],
)  # fmt: skip
def inspect(logs: tuple[str, ...], recorded: str | None, hold: tuple[str, ...], as_json: bool) -> None:
    """Propose a channel map, with the reason for every proposal.

    LOGS is one log, the files of one run or their folder, or several runs with the same columns, which share one map.
    The map goes to the standard output, the reasons to the error stream.
    """
    from dynid.logs.inspect import inspect_log

    robot = None if recorded is None else read_robot(recorded, hold)
    with progress("inspecting") as advance:
        proposal = inspect_log(list(logs), robot, progress=advance)
    if as_json:
        print_json(dataclasses.asdict(proposal))
        return
    echo(f"{proposal.explanation}\n", err=True)
    echo(proposal.toml)


@command(
    *ROBOT, LOGS, MAP,
    option("--unloaded", multiple=True, required=True, type=EXISTING, metavar="LOG",
           help="Log of the robot without the load; repeatable."),
    option("--mass", "mass_kg", required=True, type=float, metavar="KG", help="Mass of the load, weighed."),
    option("--com", nargs=3, type=float, metavar="X Y Z",
           help="Its centre of mass in the frame of the link that carries it [m]; estimated otherwise."),
    option("--link", metavar="LINK", help="Link that carries the load; by default the last one."), JSON,
    examples=["dynid drives arm.urdf held.csv --unloaded empty.csv --map map.toml --mass 2.805",
              "dynid drives arm.urdf held.csv --unloaded empty.csv --mass 2.805 --com 0 0 0.1 --json"],
)  # fmt: skip
def drives(robot: str, hold: tuple[str, ...], gravity: str | None, as_json: bool, **given: Any) -> None:
    """Calibrate the gains of a robot's drives with a weighed load.

    The logs hold motor currents. Gains that the channel map states with an uncertainty count together with the logs.
    The command prints the gains with their standard deviations and the line for the channel map.
    """
    from dynid.workflows.drives_run import calibrate_drives

    found = calibrate_drives(read_robot(robot, hold, gravity), **given)
    for finding in found.findings:
        show_finding(finding)
    if as_json:
        findings = [finding.to_dict() for finding in found.findings]
        print_json({"joints": found.joint_names, "gain": found.gain, "stderr": found.stderr,
                    "map": found.map_line, "findings": findings})  # fmt: skip
        return
    section = "[effort]" if found.unit == "1" else "[current]"
    echo(f"{found}\n\nFor {section} in the channel map:\n{found.map_line}")


# --- code -------------------------------------------------------------------------------------------------------------


@command(
    argument("model", metavar="RUN|ROBOT"), HOLD, OUT[0],
    option("--functions", default="inverse_dynamics,inertia_matrix,gravity,velocity_torque,friction",
           metavar="NAME[,NAME...]",
           help="Functions to write: inverse_dynamics, inertia_matrix, gravity, velocity_torque, friction (these by "
           "default); also available: christoffel_coefficients, forward_dynamics, energy, regressor, observer_step, "
           "load_tracker, least_squares."),
    option("--precision", type=click.Choice(["double", "float"]), default="double", show_default=True,
           help="Type of the numbers in the code."),
    option("--parameters", type=click.Choice(["folded", "struct"]), default="folded", show_default=True,
           help="Write parameters as constants (folded), or in a struct that can change at run time."),
    option("--load", is_flag=True, help="Add a load on the last link that can change at run time."),
    option("--prune", is_flag=True,
           help="Write the short model of a run that was identified with --significant: without the parameters that "
           "contribute little to the torques, the others fitted again."),
    option("--verify/--no-verify", default=True, show_default=True,
           help="Compile the code with the system's compiler, and compare it with the model."),
    FORCE, JSON,
    examples=["dynid codegen result/ --out arm_dynamics",
              "dynid codegen arm.urdf --functions gravity,friction --out arm_dynamics",
              "dynid codegen ur10 --precision float --load --out ur10_dynamics",
              "dynid codegen result/ --prune --out short_dynamics"],
)  # fmt: skip
def codegen(
    model: str, hold: tuple[str, ...], out: Path, verify: bool, force: bool, as_json: bool, **given: Any
) -> None:
    """Write C99 code of a robot's dynamics, with a self-test.

    The code runs in real time. RUN is a folder that dynid identify wrote, or its result.json; the code then contains
    everything that was identified. The code of a ROBOT contains what its file states; URDF files cannot state rotor
    inertias and offsets.
    """
    from dynid.export.c.c_check import find_compiler
    from dynid.export.c.c_package import generate_c
    from dynid.export.result_file import is_result, read_result

    path = Path(model)
    if is_result(path):
        _exclude("a result", True, {"--hold": hold})
    elif given["prune"]:
        remedy = "Give a run of dynid identify; for planned motions of a robot use dynid.export.prune in Python."
        raise ArgumentError("--prune needs the data of a run, and this is a robot", remedy=remedy)
    saved = read_result(path) if is_result(path) else None
    pruned = saved.pruned() if saved is not None and given["prune"] else None
    code = generate_c(
        pruned or saved or read_robot(model, hold),
        [name.strip() for name in given["functions"].split(",") if name.strip()],
        precision=given["precision"], parameters=given["parameters"], load="struct" if given["load"] else None,
    )  # fmt: skip
    refuse_run(out, "C files", "code")
    is_verified = verify and find_compiler() is not None
    if is_verified:
        code.check(samples=200)
    code.write(out, force=force)
    summary = code.summary() + (f"\n\n{pruned.cost}\n" if pruned is not None and pruned.cost else "")
    if as_json:
        facts = {"folder": str(out), "compiled_and_compared": is_verified, "summary": summary.splitlines()}
        print_json(facts | {"warnings": [" ".join(code.warnings)] if code.warnings else []})
        return
    echo(summary)
    missing = "not compiled: there is no C compiler; install gcc or clang, or set CC" if verify else "not compiled"
    echo(f"written: {out} ({'compiled and compared with the model' if is_verified else missing})")
    if code.warnings:
        echo(f"{code.warnings[0]} Read the summary above before you use the code.", err=True)
