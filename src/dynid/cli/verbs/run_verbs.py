"""The commands that make a run: identify, validate, load, actuate, excite, fleet, compare-runs, watch.

`run_command` makes each from the name of its task, a table of parameters, and the decorated function, which turns the
result of the task into the screen; its docstring is the help. Every screen has the same order: verdict with errors,
tables, findings, files, the next two commands.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click import argument, option

from dynid.cli.execute import execute, run_command
from dynid.cli.options import (
    ENGINE,
    EXISTING,
    GATE,
    LOGS,
    MAP,
    POSITIVE,
    ROBOT,
    ROWS,
    TIME,
    TRIM,
    FiniteRange,
    LogOrShare,
    command,
    output_options,
    recipe_options,
)
from dynid.cli.screen import Screen, show_finding
from dynid.errors import ArgumentError
from dynid.tables import Table

if TYPE_CHECKING:
    from dynid.fleet.fleet import Fleet
    from dynid.identification.validation import Validation
    from dynid.workflows.actuator_run import ActuatorRun, ServoCheck
    from dynid.workflows.drift_run import Drift
    from dynid.workflows.identification_run import IdentificationRun
    from dynid.workflows.load_run import LoadRun
    from dynid.workflows.plan_run import DesignRun
    from dynid.workflows.validation_run import ValidationRun
    from dynid.workflows.watch_run import WatchRun


def _given(*names: str) -> list[Any]:
    """Get parameters of the running command by name, quoted for a shell, as the next commands name them.

    Lists stay lists, what was not given is empty, and of the channel map it is the text " --map NAME".
    """
    params = click.get_current_context().params
    found: list[Any] = []
    for name in names:
        value = params[name]
        if isinstance(value, list | tuple):
            found.append([quote(str(one)) for one in value])
        else:
            text = quote(str(value)) if value else ""
            found.append(f" --map {text}" if name == "channel_map" and text else text)
    return found


def _verdict(check: Validation) -> str:
    """Make the text of a verdict: of a failed one with the errors of the other models; the joints above the limit."""
    others = f"plain model {check.plain_error:.2f} %, prior model {check.prior_error:.2f} % on the same data"
    return "\n".join(filter(None, (check.verdict, "" if check.passed else others, check.joints_above_limit)))


@run_command(
    "dynid.workflows.identification_run.Identify", "identifying", *ROBOT, LOGS, MAP,
    option("--estimator", metavar="NAME",
           help="Estimator, feasible by default: wls, ols, huber, ridge, svd, energy, reduced-set, link-by-link; these "
           "simulate the control loop, for noisy positions: iv, didim. docs/choosing-an-estimator.md says when to use "
           "which."),
    option("--validate", "held_out", multiple=True, type=EXISTING, metavar="LOG",
           help="Log to validate on; not used for the fit; repeatable."),
    option("--hold-out", metavar="PART",
           help="Held-out part of every log: 40% (the last 40 %), 12:16 (seconds), or every:3:0.75 "
           "(every third block of 0.75 s)."),
    option("--friction", type=click.Choice(["rich", "plain"]),
           help="Friction that is fitted together with the links: rich (default; with memory, load, another viscous "
           "law, a tilted base, where it predicts better), or plain alone."),
    option("--significant", metavar="PERCENT",
           help="Also fit a short model without the parameters that contribute less than this part of a joint's "
           "largest torque, such as 1%, and print what it costs."),
    option("--base", type=click.Choice(["closed-form", "minimal-combinations", "numeric", "structural"]),
           help="Set of base parameters in which the result is stated."),
    ROWS, TIME, TRIM, ENGINE, recipe_options("band_hz=30, delay_s=auto or springs=joint2"), GATE,
    output_options("the result, the identified model and a report", required=True),
    examples=[
        "dynid identify arm.urdf run1.csv --map map.toml --hold-out 30% --out out",
        "dynid identify arm.urdf run1.csv --map map.toml --validate run2.csv --out res",
        "dynid identify arm.urdf run1.csv --map map.toml --recipe r.toml --out out",
        "dynid identify arm.urdf run*.csv --significant 1% --hold-out 30% --out out",
    ],
)  # fmt: skip
def identify(run: IdentificationRun) -> Screen:
    """Identify a robot from logs.

    The run folder gets the result, the identified model, the recipe and a report. The exit code is 1 if the result
    fails on the held-out data. dynid rerun repeats a finished run.
    """
    from dynid.identification.rich.joint_friction import friction_table, joint_friction

    out, chart, logs, held_out, robot = _given("out", "channel_map", "logs", "held_out", "robot")
    check = run.validation
    friction = joint_friction(run.fit)
    unproven = "No data were held out (--validate, --hold-out), so the result is not validated."
    commands = [f"dynid check {log}{chart} --robot {robot}" for log in (*held_out, *logs)]
    if check is None or check.passed:
        commands = [f"dynid validate {out} NEW_LOG{chart}", f"dynid codegen {out} --out {out}_c"]
    details = [run.fit.summary(), str(run.cost or ""), "" if check is None else check.summary()]
    return Screen(
        verdict=unproven if check is None else _verdict(check),
        good=None if check is None else check.passed,
        tables=[friction_table(friction, stated=(0.5,))] if friction else [],
        findings=[*(() if check is None else check.causes), *run.fit.estimate.findings],
        files=run.note.splitlines(),
        commands=commands,
        details="\n\n".join(filter(None, details)),
    )


@run_command(
    "dynid.workflows.validation_run.Validate", "validating", argument("result", type=EXISTING), LOGS, MAP,
    ROWS, TIME, TRIM, recipe_options("limit_percent=5, cutoff_hz=10 or delay_s=0.004"), GATE,
    output_options("the verdict and a report"),
    examples=[
        "dynid validate result/ run9.csv --map map.toml",
        "dynid validate result/ run9.csv --map map.toml --set limit_percent=5 --out proof",
        "dynid validate servos/ log9.csv --map map.toml",
    ],
)  # fmt: skip
def validate(run: ValidationRun | ServoCheck) -> Screen:
    """Validate a saved result on held-out logs.

    RESULT is a folder that dynid identify or dynid actuate wrote, or its result.json or servos.json. The exit code is 1
    if the validation fails.
    """
    from dynid.workflows.actuator_run import ServoCheck

    result, chart, logs = _given("result", "channel_map", "logs")
    log = logs[0]
    if isinstance(run, ServoCheck):
        return Screen(verdict=run.verdict, good=run.is_usable, tables=[run.table()], findings=run.findings,
                      files=[run.scope], commands=[] if run.is_usable else [f"dynid inspect {log}"])  # fmt: skip
    verdict = run.verdict
    by_log = [verdict.log_table()] if len(verdict.by_log) > 1 else []
    return Screen(
        verdict=_verdict(verdict),
        good=verdict.passed,
        tables=[verdict.table(), *by_log],
        findings=verdict.causes,
        commands=[f"dynid codegen {result} --out code" if verdict.passed else f"dynid check {log}{chart}"],
    )


@run_command(
    "dynid.workflows.load_run.IdentifyLoad", "identifying the load", *ROBOT, LOGS, MAP,
    option("--sensor", metavar="LINK",
           help="Link that carries a force and torque sensor; without it, joint torques are used."),
    option("--unloaded", multiple=True, type=EXISTING, metavar="LOG",
           help="Log of the robot without the load; only for joint torques; repeatable."),
    option("--arm", metavar="known|MASS,COM",
           help="How well the arm's model is known, if no --unloaded log is given: known (default), or the "
           "standard deviations of each link's mass (relative) and centre of mass [m]."),
    option("--tare", type=EXISTING, metavar="FILE",
           help="The load.json of the gripper alone; it is subtracted, with its uncertainty."),
    TIME, recipe_options("link=tool, sign=-1, delay_s=auto or gate=false"),
    output_options("the load, the URDF of the robot with the load, and a report"),
    examples=[
        "dynid load arm.urdf held.csv --map map.toml --sensor tool0",
        "dynid load arm.urdf held.csv --unloaded empty.csv --map map.toml --out load",
        "dynid load arm.urdf held.csv --map map.toml --arm 0.1,0.01",
        "dynid load arm.urdf held.csv --map map.toml --sensor tool0 --set find=drift",
    ],
)  # fmt: skip
def load(run: LoadRun) -> Screen:
    """Identify the load of a robot.

    The data come from a wrist sensor or from joint torques. The command prints the values to enter in the robot
    controller's payload dialog. The exit code is 1 if the result is doubtful.
    """
    from dynid.estimators.estimate import TWO_SIDED_95

    study = run.study
    (out,) = _given("out")
    good = study.verdict != "doubtful"
    mass = study.load.mass
    # NaN, a mass that is not known, is not equal to itself
    size = f": {mass:.4g} ± {TWO_SIDED_95 * study.load.mass_stderr:.2g} kg (95 %)" if mass == mass else ""
    return Screen(
        verdict=f"{study.verdict_in_words}{size}",
        good=good,
        tables=[study.load.table()],
        findings=[*study.problems, *study.advice, *study.notes],
        files=[text.splitlines()[0] for text in run.dialogs[:2]],  # what to enter in the payload dialogs
        commands=[f"dynid export {out} --to urscript --out payload"] if out and good else [],
        details=run.text,
    )


@run_command(
    "dynid.workflows.actuator_run.IdentifyServos", "identifying servos", *ROBOT, LOGS,
    option("--law", required=True, type=EXISTING, metavar="FILE",
           help="TOML file with the law of the drives and the parameters to find; docs/servos.md shows examples."),
    MAP,
    option("--held-out", multiple=True, type=LogOrShare(), metavar="LOG|SHARE",
           help="Log that the result is tried on, repeatable; or a share such as 30%: the end of every log."),
    output_options("the servos, files for simulators, and a report"),
    examples=[
        "dynid actuate pendulum.urdf kp100.json --law servo.toml --map xl330 --held-out kp800.json",
        "dynid actuate go2.xml log.npz --law go2_law.toml --map map.toml --held-out 30% --out legs",
    ],
)  # fmt: skip
def actuate(run: ActuatorRun) -> Screen:
    """Identify servos from commands and encoders, without torque.

    The logs say where the joints were sent and where they went. The command prints armature, friction, gains, delay and
    the like with their standard deviations, and what the motions do not tell. With alike = true the same joint of
    several legs has one value of each parameter. dynid excite --method commands designs motions for such logs. The
    exit code is 1 if the model is of no use: motions that it was not fitted to are off by more than half of what the
    commands are off by, or hardly less than joints that merely follow their commands late and scaled.
    """
    from dynid.report.sections.servo_sections import servo_table

    robot, logs, law, chart, out = _given("robot", "logs", "law", "channel_map", "out")
    design_logs = f"dynid excite {robot} --method commands --out commands"
    run_again = f"dynid actuate {robot} {' '.join(logs)} --law {law}{chart} --out servos"
    return Screen(
        verdict=run.verdict,
        good=run.is_usable,
        tables=[servo_table(run.found)],
        findings=run.findings,
        files=[run.scope],
        commands=[design_logs] if not run.is_usable else [f"dynid validate {out} NEW_LOG{chart}" if out else run_again,
                                                     *([design_logs] if run.found.open_directions else [])],
    )  # fmt: skip


@run_command(
    "dynid.workflows.plan_run.DesignMotion", "searching", *ROBOT,
    option("--method", type=click.Choice(["fourier", "energy-points", "commands"]),
           help="A Fourier series (default), points whose energies reveal the parameters best, joined by fifth-order "
           "segments in minimal time, or commands for logs without torque: rests, levels, ramps and fast motion."),
    option("--acceleration", metavar="NUMBER[,NUMBER...]",
           help="Acceleration limit of all joints, or of each joint [rad/s^2 or m/s^2]; URDF files have none."),
    option("--time-limit", "time_limit_s", type=POSITIVE, metavar="SECONDS",
           help="Duration of the search for a Fourier series [s]; 30 by default. Ctrl-C keeps the best motion."),
    recipe_options("period_s=20, scale=0.5, floor=0, tool_speed=1 or velocity=2"),
    output_options("the motion and a report", required=True),
    examples=[
        "dynid excite ur10 --out plan",
        "dynid excite arm.urdf --set scale=0.5 --set period_s=20 --time-limit 60 --out plan",
        "dynid excite arm.urdf --set floor=0.05 --set clearance=0.02 --out plan",
        "dynid excite arm.urdf --method energy-points --set points=30 --acceleration 5 --out plan",
        "dynid excite arm.urdf --method commands --out commands",
    ],
)  # fmt: skip
def excite(run: DesignRun) -> Screen:
    """Design the motion that reveals the parameters best.

    The motion keeps the robot's limits, reduced to 80 % (--set scale=0.8). The screen and the report name the limits
    that are unknown and not checked.
    """
    from dynid.excitation.excitation import Excitation

    plan = run.plan
    out, robot = _given("out", "robot")
    if not isinstance(plan, Excitation):
        return Screen(
            verdict=plan.summary(),
            good=None,
            files=[f"commands: {out}/commands.csv"],
            commands=[f"dynid actuate {robot} LOG --law LAW --map MAP"],
        )
    state = "interrupted: this is the best motion so far; " if plan.interrupted else ""
    return Screen(
        verdict=f"{state}condition number {plan.condition_number:.3g}, {plan.trajectory.duration:g} s; speed reached: "
        f"{plan.speed_text}",
        good=not plan.interrupted,
        findings=plan.cautions,
        files=[plan.checks_summary, f"motion: {out}/trajectory.csv"],
        commands=[f"dynid inspect LOG --robot {robot} > map.toml",
                  f"dynid identify {robot} LOG --map map.toml --hold-out 30% --out result"],
        details=plan.summary(),
    )  # fmt: skip


def _check_patterns(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse patterns of local paths that match no log; URLs are looked up when the task runs.

    A callback of click, which demands ``param``.
    """
    from dynid.fleet.fleet_logs import find_logs

    local = [pattern for pattern in given if "://" not in pattern]
    if local and not ctx.resilient_parsing:  # not while a shell completes a command line
        find_logs(local)
    return given


@run_command(
    "dynid.workflows.fleet_run.IdentifyFleet", "reducing logs", *ROBOT,
    argument("logs", nargs=-1, required=True, metavar="PATTERN...", callback=_check_patterns), MAP,
    option("--store", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
           help="Keep reduced logs in this folder; the next run reads only new or changed logs."),
    option("--window", "window_days", type=POSITIVE, default=30.0, show_default=True, metavar="DAYS",
           help="Length of the windows of time in which friction is followed [days]."),
    ENGINE, recipe_options("cutoff_hz=10 or gate=false"),
    output_options("the numbers, the typical robot and a report", required=True),
    examples=[
        "dynid fleet arm.urdf 'logs/{arm}/*.parquet' --map map.toml --out fleet",
        "dynid fleet arm.urdf 'logs/{arm}/{date}.csv' --map map.toml --store factors --out fleet",
        "dynid fleet arm.urdf 's3://b/{arm}/*.mcap' --engine tcp://h:8786 --out f",
    ],
)  # fmt: skip
def fleet(fleet: Fleet) -> Screen:
    """Identify many arms of one type from all their logs.

    A PATTERN is a path or URL in which {arm} stands for the arm's name and {date}, if it is there, for a date such as
    2026-03-01, with wildcards; quote it. A folder stands for its logs. Inertial parameters are shared, friction and
    offsets are every arm's own. The exit code is 1 if an arm differs from the others, changed, or has a log that could
    not be used.
    """
    robot, chart = _given("robot", "channel_map")
    rows = [(arm.name, arm.logs, difference.sentence) for arm in fleet.outliers for difference in arm.differences]
    alone = "\nThere is one arm: nothing to compare it with. Does {arm} stand for the right part of the path?"
    return Screen(
        verdict=f"{fleet.title}: {fleet.verdict}{alone if len(fleet.arms) == 1 else ''}",
        good=fleet.exit_code == 0,
        tables=[Table.of(("arm", "logs", "what differs"), rows)] if rows else [],
        # the table has these two already
        findings=[finding for finding in fleet.findings if finding.code not in ("arm-differs", "arm-changed")],
        files=fleet.remarks,
        commands=[f"dynid identify {robot} {quote(f'LOGS_OF_{arm.name}')}{chart} --hold-out 30% --out {quote(arm.name)}"
                  for arm in fleet.outliers],
        details=fleet.summary(),
    )  # fmt: skip


@run_command(
    "dynid.workflows.drift_run.CompareRuns", "comparing", argument("stored", type=EXISTING),
    argument("later", nargs=-1, required=True, type=EXISTING), MAP, GATE, output_options("the comparison and its page"),
    examples=[
        "dynid compare-runs result/ run9.csv --map map.toml",
        "dynid compare-runs january/ june/ december/ --out wear",
    ],
)  # fmt: skip
def compare_runs(drift: Drift) -> Screen:
    """Tell which parameters have drifted or worn since a result, and which of two runs predicts better.

    STORED is a folder that dynid identify wrote; LATER are such folders, or logs, which are identified again with the
    model of STORED. Two runs are judged on identical samples: those that either was judged on. The exit code is 1 if a
    parameter moved.
    """
    rows = [(one.date, one.name, part.sentence) for one in drift.later for part in one.moved]
    return Screen(
        verdict="\n".join([drift.verdict, *(comparison.sentence for comparison in drift.comparisons)]),
        good=not drift.has_moved,
        tables=[Table.of(("date", "run", "what moved"), rows)] if rows else [],
    )


@command(
    argument("result", type=EXISTING), argument("logs", nargs=-1, type=EXISTING), MAP,
    option("--per-hour", type=FiniteRange(min=0.0, min_open=True, max=3600.0), default=1.0, show_default=True,
           metavar="RATE", help="Rate of false alarms of the whole arm [1/h]."),
    option("--clean", multiple=True, type=EXISTING, metavar="LOG",
           help="Log in which nothing touched the robot, for the calibration; repeatable. By default the logs of "
           "the result are read again, and parts of them left out in turn."),
    option("--live", is_flag=True, help="Read samples from standard input, one a line, and print alarms at once. "
           "CSV must begin with a header: time [s], then q1 ... [rad or m], dq1 ... [rad/s or m/s] and tau1 ... "
           "[N m or N] of every joint, in the robot's order, as in time,q1,q2,dq1,dq2,tau1,tau2 for two joints. "
           "JSON lines have the same names, or lists: {\"time\": 0.01, \"q\": [...], \"dq\": [...], \"tau\": "
           "[...]}."),
    option("--learn", type=FiniteRange(min=0.0), default=0.0, metavar="SECONDS",
           help="With --live: calibrate from the first seconds of the stream, in which nothing may touch the "
           "robot, instead of from logs."),
    output_options("the alarms and a report"),
    examples=[
        "dynid watch result/ run9.csv --map map.toml",
        "dynid watch result/ run9.csv --map map.toml --per-hour 60 --out watched",
        "robot_program | dynid watch result/ --live --learn 60",
        "(echo time,q1,q2,dq1,dq2,tau1,tau2; robot_program) | dynid watch result/ --live",
    ],
)  # fmt: skip
def watch(**given: Any) -> None:
    """Tell what pushed against the arm, when, and where.

    RESULT is a folder that dynid identify wrote. While nothing pushes, alarms come at the stated rate. The exit code is
    1 if there is an alarm.
    """
    if given["live"]:
        _watch_stream(**given)  # does not return
    if given["learn"]:
        raise ArgumentError("--learn needs --live", remedy="Give --clean for logs.")
    if not given["logs"]:
        raise ArgumentError("there is no log to watch", remedy="Give a log, or --live.")
    execute("dynid.workflows.watch_run.WatchLogs", "watching", show_watch, given)


def show_watch(run: WatchRun) -> Screen:
    """Make the screen of a watch of logs: the verdict and the alarms of every log."""
    result, logs, chart = _given("result", "logs", "channel_map")
    live = f"robot_program | dynid watch {result} --live --learn 60"
    return Screen(
        verdict="\n".join([*(f"{found.source}: {found.verdict}" for found in run.watches), run.sight.sentence]),
        good=not run.alarms,
        tables=[found.table() for found in run.watches if found.alarms],
        commands=[f"dynid compare-runs {result} {logs[0]}{chart}" if run.alarms else live],
    )


def _watch_stream(**given: Any) -> None:
    """Watch the samples of the standard input until it ends, then exit."""
    from dynid.cli.live_stream import watch_stream
    from dynid.export.result_file import read_result
    from dynid.workflows.live_calibration import calibrate_live
    from dynid.workflows.validation_run import saved_cutoff

    if given["logs"] or given["out"] is not None:
        raise ArgumentError("--live reads samples, not logs", remedy="Omit the logs and --out.")
    saved = read_result(given["result"])
    fit = saved.identification()
    calibrate = partial(calibrate_live, Path(given["result"]), fit, clean=given["clean"],
                        channel_map=given["channel_map"], notice=show_finding)  # fmt: skip
    sys.exit(watch_stream(fit, calibrate, learn=given["learn"], per_hour=given["per_hour"], as_json=given["as_json"],
                          cutoff_hz=saved_cutoff(saved)))  # fmt: skip
