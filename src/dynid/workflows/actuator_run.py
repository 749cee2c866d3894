"""Identify servos from logs of commands and encoders, and judge them on others.

This is what ``dynid actuate`` does, and ``dynid validate`` with a folder that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.diagnosis.commands import check_commands
from dynid.diagnosis.signals import check_clock, check_limits
from dynid.errors import ArgumentError, DataError, DynidError, ExportError
from dynid.export.servo_config import write_isaac_actuators
from dynid.export.servo_robot import ServoFile, notes_text, write_servo_mjcf, write_servo_urdf
from dynid.findings import Finding
from dynid.identification.given_data import check_copies
from dynid.logs.channel_map import ChannelMapSource, read_channel_map
from dynid.logs.joint_order import column_order
from dynid.logs.lerobot import GRIPPER, columns_of_joints, is_lerobot, read_info, read_lerobot, root_of
from dynid.logs.reading import log_digest, read_recording
from dynid.logs.recording import Recording
from dynid.plain_data import from_plain, json_values, pick, to_plain
from dynid.report.html_blocks import Bullets, Text
from dynid.report.page import Chapter, Page
from dynid.report.sections.servo_sections import list_remarks, servo_page
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.safe_files.small_files import read_json
from dynid.servos.drive_laws import MotorLaw, PositionLaw
from dynid.servos.kinds import milli
from dynid.servos.motion import CommandedMotion, stretches_of
from dynid.servos.motion_errors import MotionError, motion_error
from dynid.servos.recorded_motion import commanded_motion, lost_samples
from dynid.servos.servo_files import read_servo_model
from dynid.servos.servo_identification import ActuatorEstimate, fit_servos, predict_parts
from dynid.servos.servo_model import ServoModel, ServoParameter
from dynid.tables import Table
from dynid.terms.coupling import Coupling
from dynid.workflows.protocol import RunContext, Task, refuse_used
from dynid.workflows.run_folder import RunFolder, read_run

LEAST_SAMPLES_TO_SPLIT = 200
"""A single log with fewer samples than this is too short to predict parts of it from the others (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServoCheck:
    """A servo model, and how well it predicts motions: the result of ``dynid validate``."""

    model: ServoModel
    error: MotionError
    """Root mean square error over the motions that the verdict rests on."""
    is_usable: bool
    """Whether the model predicts these motions well enough to be used."""
    judged: str
    """A phrase that names these motions, such as "held-out logs"."""
    tried: Sequence[CommandedMotion]
    """The predicted motions, not yet split at their gaps."""
    errors: tuple[MotionError, ...]
    """Error of every predicted motion."""
    findings: tuple[Finding, ...]
    """Warnings and notes about the logs and the model."""

    @property
    def verdict(self) -> str:
        """Whether the model is usable, as one sentence."""
        error = self.error
        unit = milli(error.unit)
        word = "NOT USABLE" if not self.is_usable else "usable" if error.is_good else "usable with care"
        sentence = f"{word}: {self.judged} are predicted to {1e3 * error.rms:.3g} {unit} rms"
        return f"{sentence}; the commands themselves are off by {1e3 * error.command_rms:.3g} {unit}"

    @property
    def scope(self) -> str:
        """A sentence with the range of commands for which the errors hold; beyond it drives may saturate."""
        parts = stretches_of(self.tried)
        unit = self.model.unit
        step = max(float(np.abs(np.diff(part.command, axis=0)).max(initial=0.0)) for part in parts)
        behind = max(float(np.abs(part.command - part.position).max()) for part in parts)
        return (f"These errors hold for commands that change by at most {step:.3g} {unit} at once and are at most "
                f"{behind:.3g} {unit} ahead of the joints; larger steps may be predicted worse.")  # fmt: skip

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0, or 1 where the model is not usable."""
        return int(not self.is_usable)

    def table(self) -> Table:
        """The rms errors of every joint: of the model, of the commands themselves, of commands scaled and delayed."""
        error = self.error
        units = [milli(unit) for unit in self.model.robot.position_units]
        rows = zip(error.joint_names, *(1e3 * error.joint_rms).tolist(), units, strict=True)
        return Table.of(("joint", "model", "commands", "delayed commands", "unit"), tuple(rows), digits=3)

    def to_json(self) -> dict[str, Any]:
        """Contents of ``validation.json``."""
        motions = [pick(e, "name", "unit", "rms", "command_rms", "follower_rms") for e in self.errors]
        return {**self._judgement(), "joints": self.table().to_columns(), "motions": motions}

    def _judgement(self) -> dict[str, Any]:
        """Collect verdict and findings, which both files of results hold."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"verdict": self.verdict, "usable": self.is_usable, "findings": findings}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActuatorRun(ServoCheck):
    """Identified servos with their check: the result of ``dynid actuate``."""

    found: ActuatorEstimate
    """Values, standard deviations and open directions of the parameters."""
    motions: tuple[CommandedMotion, ...]
    """The motions that the model was fitted to."""

    def to_json(self) -> dict[str, Any]:
        """Contents of ``servos.json``; a standard deviation that is infinite or NaN is written as None."""
        found = self.found
        names = self.model.robot.joint_names
        robot = replace(self.model.robot.with_terms(), source=None)  # servos replace the terms of the joints
        return {
            "robot": robot.name,
            **self._judgement(),
            "law": type(self.model.law).__name__,
            "model": to_plain(replace(self.model, robot=robot), SAVED_TYPES),
            "followers": to_plain(found.followers, ()),
            "parameters": [
                pick(e, "name", "kind", "unit", "lower", "upper")
                | {"joints": [names[j] for j in e.joints], "value": value, "std": json_values(std),
                   "at_bound": e.name in found.at_bound}
                for e, value, std in zip(self.model.entries, found.values, found.std, strict=True)
            ],
            "open": [pick(d, "names", "at_least") | {"says": str(d)} for d in found.open_directions],
            **pick(found, "at_bound", "converged"),
            "motions": [
                pick(error, "name", "trained", "unit", "mean_absolute", "rms", "command_rms", "noise")
                for error in self.errors
            ],
        }  # fmt: skip


SAVED_TYPES = (Robot, Link, Joint, JointLimits, Inertia, Coupling, ServoModel, ServoParameter, PositionLaw, MotorLaw)
"""Types that may be restored from ``servos.json``; a file that names another type is refused."""


@dataclass(frozen=True, slots=True, eq=False)
class ValidateServos(Task[ServoCheck]):
    """Compare the motions that saved servos predict with those of logs that they were not fitted to."""

    verb = "validate"
    files = ("validation.json",)
    reads = ("result", "logs", "channel_map")

    result: str | Path
    """A folder that `IdentifyServos` wrote, or its ``servos.json``."""
    logs: Sequence[str | Path]
    """The logs to predict."""
    channel_map: ChannelMapSource | None = None

    def check(self) -> None:
        check_copies(self.logs)
        # a log of the fit would prove nothing, and is refused by its digest
        used = self._inputs(held_out=False)
        for log in self.logs:
            refuse_used(log, log_digest(log), used)

    def _inputs(self, *, held_out: bool) -> dict[str, str]:
        """Digest -> path of the run's held-out logs, or of all its other inputs."""
        facts = read_run(Path(self.result) if Path(self.result).is_dir() else Path(self.result).parent)
        logs = facts["options"].get("held_out") or ()
        return {entry["sha256"]: entry["path"] for entry in facts["inputs"] if (entry["path"] in logs) == held_out}

    def compute(self, context: RunContext) -> ServoCheck:
        model, followers = _read_servos(Path(self.result))
        motions, log_findings = _motions(self.logs, model.robot, self.channel_map)
        errors = tuple(motion_error(model, model.start, m, followers, trained=False) for m in stretches_of(motions))
        error = MotionError.mean(errors)
        context.findings.extend([*log_findings, *filter(None, [error.finding])])
        is_known = self._inputs(held_out=True).keys() >= {*map(log_digest, self.logs)}
        judged = "the held-out logs of the run" if is_known else "these logs"
        return ServoCheck(model=model, error=error, is_usable=error.is_usable, judged=judged, tried=motions,
                          errors=errors, findings=tuple(context.findings))  # fmt: skip

    def page(self, result: ServoCheck, settings: Sequence[Chapter]) -> Page:
        remarks = Bullets(list_remarks(result.findings))
        chapter = Chapter("Servos on other logs", (Text(f"{result.verdict}. {result.scope}"), result.table(), remarks))
        return Page.of(f"{result.model.robot.name}: servos on other logs", [chapter, *settings])


def is_servo_run(path: str | Path) -> bool:
    """Whether a path is a folder that ``dynid actuate`` wrote, or its ``servos.json``."""
    return Path(path).name == "servos.json" or (Path(path) / "servos.json").is_file()


def _read_servos(path: Path) -> tuple[ServoModel, Floats]:
    """Read the model, whose start values are the identified ones, and the followers (3, n).

    Followers are the offset, gain and lag of joints that merely follow their commands: a model must beat them.

    Raises:
        DataError: The file is damaged, or of an earlier version.
    """
    file = path / "servos.json" if path.is_dir() else path
    remedy = "Run dynid actuate again."
    content = read_json(file, remedy=remedy)
    try:
        model = from_plain(content["model"], SAVED_TYPES, "model")
        followers = np.asarray(from_plain(content["followers"], (), "followers"), dtype=float)
        model.law.gains(model.dof)  # raises where they are not valid gains
        if not isinstance(model, ServoModel) or followers.shape != (3, model.dof) or not np.isfinite(followers).all():
            raise DataError("it holds no model of servos")
    except (AttributeError, DynidError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"these are no servos that can be read: {error}", path=file, remedy=remedy) from error
    return model, followers


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyServos(Task[ActuatorRun]):
    """Identify the servos of a robot from logs without torque."""

    verb = "actuate"
    files = ("servos.json",)
    reads = ("logs", "held_out", "law", "channel_map")

    robot: Robot
    """The robot on a fixed base."""
    logs: Sequence[str | Path]
    """The logs to fit."""
    law: str | Path
    """File with the law of the drives and the parameters to find, see `dynid.servos.read_servo_model`."""
    held_out: Sequence[str | Path] = ()
    """Logs that are predicted and not fitted; a share such as "30%" stands for the end of every log."""
    channel_map: ChannelMapSource | None = None

    def check(self) -> None:
        remedy = "Hold out a log that the fit does not see."
        _, held_out_logs = _held_out(self.held_out)
        check_copies(self.logs, held_out_logs, why="that is trained on", remedy=remedy)

    def compute(self, context: RunContext) -> ActuatorRun:
        model = read_servo_model(self.law, self.robot)
        share, held_out_logs = _held_out(self.held_out)
        motions, log_findings = _motions(self.logs, self.robot, self.channel_map)
        others, held_out_findings = _motions(held_out_logs, self.robot, self.channel_map)
        if share is not None:
            parts = [motion.cut_at(1.0 - share) for motion in motions]
            motions = tuple(first for first, _ in parts)
            others = tuple(rest for _, rest in parts)
        found = fit_servos(model, motions, others)
        judged = "held-out logs" if others else "the logs of the fit alone"
        if not others and (len(motions) > 1 or len(motions[0].time) >= LEAST_SAMPLES_TO_SPLIT):
            # without held-out data, each part is predicted by a model fitted to the others
            judged = "parts of the logs that the fit did not see"
            found = replace(found, errors=(*found.errors, *predict_parts(model, motions)))
        context.findings.extend([
            *log_findings, *held_out_findings, *_massless(self.robot),
            *_warn_saturated(self.robot, model, (*motions, *others)), *found.findings,
        ])  # fmt: skip
        return ActuatorRun(found=found, model=found.model, error=found.error, is_usable=found.is_usable, judged=judged,
                           tried=others or motions, errors=found.errors, findings=tuple(context.findings),
                           motions=motions)  # fmt: skip

    def write(self, folder: RunFolder, result: ActuatorRun) -> ActuatorRun:
        written = []
        stated = _with_gains(result.found, result.motions)
        for name, write in ROBOT_FILES.items():
            path = folder.path / name
            try:
                written.append(write(stated, path, force=True))
            except ExportError as error:  # the format cannot hold the law
                written.append(ServoFile(path, refused=f"{error.reason}. {error.remedy}"))
        notes = notes_text(written, [] if result.is_usable else [result.verdict])
        folder.write("not_in_the_files.txt", notes)
        return result

    def page(self, result: ActuatorRun, settings: Sequence[Chapter]) -> Page:
        # three motions are enough curves for one page
        return servo_page(result.found, stretches_of(result.tried)[:3], settings, result.findings, result.table())


def _held_out(given: Sequence[str | Path]) -> tuple[float | None, list[str | Path]]:
    """Split the words of ``held_out`` into a share of every log, None where none is given, and whole logs."""
    shares = [word for word in given if isinstance(word, str) and word.endswith("%")]
    if not shares:
        return None, list(given)
    try:
        (word,) = given
        share = float(str(word)[:-1]) / 100.0
        as_number("share", share, above=0.0, most=0.9)
    except (ValueError, ArgumentError) as error:
        remedy = "Give one share such as 30%, at most 90%, or logs."
        raise ArgumentError(f"held out are {', '.join(map(str, given))}", remedy=remedy) from error
    return share, []


def _motions(
    logs: Sequence[str | Path], robot: Robot, channel_map: ChannelMapSource | None
) -> tuple[tuple[CommandedMotion, ...], tuple[Finding, ...]]:
    """Read logs as motions; returns them with the warnings about them.

    Raises:
        DataError: A clock, positions or commands show an error, for example commands that do not fit the positions.
    """
    motions = list[CommandedMotion]()
    log_findings = list[tuple[str, Finding]]()
    lost = list[Finding]()
    for log, name, recording in _recordings(logs, robot, channel_map):
        found = [*check_clock(recording), *_check_reach(recording, robot), *check_commands(recording)]
        if wrong := _gather(("", finding) for finding in found if finding.severity == "error"):
            reason = "; ".join(finding.sentence.removesuffix(".") for finding in wrong)
            raise DataError(reason, path=log, remedy="Mend the channel map or the log; dynid check shows all findings.")
        motions.append(commanded_motion(recording, robot, name))
        # `lost_samples` reports gaps with their number
        doubts = [finding for finding in found if finding.severity == "warning" and finding.code != "gap"]
        log_findings += [(name, finding) for finding in (*recording.findings, *doubts)]
        lost += lost_samples(motions[-1])
    return tuple(motions), (*_gather(log_findings), *lost)


def _gather(found: Iterable[tuple[str, Finding]]) -> list[Finding]:
    """Merge findings (log, finding) of the same code, place and remedy into one that names their logs and joints.

    The message is that of the first.
    """
    groups: dict[tuple[str, str, str], list[tuple[str, Finding]]] = {}
    for log, one in found:
        groups.setdefault((one.code, one.where, one.remedy), []).append((log, one))
    gathered = []
    for group in groups.values():
        _, first = group[0]
        joints = dict.fromkeys(str(one.joint) for _, one in group)
        if len(joints) > 1:
            first = replace(first, joint=None, message=f"{', '.join(joints)}: {first.message}")
        gathered.append(replace(first, where=f"{', '.join(dict.fromkeys(log for log, _ in group))}, {first.where}"))
    return gathered


def _recordings(
    logs: Sequence[str | Path], robot: Robot, channel_map: ChannelMapSource | None
) -> Iterator[tuple[str | Path, str, Recording]]:
    """Yield each log's path, its name for messages and its recording; a LeRobot data set yields one per episode."""
    chart = None if channel_map is None else read_channel_map(channel_map)
    position = None if chart is None else chart.signals.get("position")
    for log in logs:
        name = Path(log).name
        root = root_of(Path(log))
        if not is_lerobot(log):
            # a single file of a LeRobot data set names no joints; only its folder does
            grippers = {} if root is None else columns_of_joints(read_info(root)["features"])
            if position is not None and position.columns and position.columns[0] in grippers:
                raise DataError(GRIPPER, path=log, remedy=f"Give the folder: {root}.")
            yield log, name, read_recording(log, robot, channel_map=channel_map)
            continue
        if chart is None or position is None or not position.unit:
            remedy = "Give --map lerobot_rad or --map lerobot_deg."
            raise DataError("a LeRobot data set does not declare the unit of its positions", path=log, remedy=remedy)
        for recording in read_lerobot(log, robot, unit=position.unit[0], joints=chart.joints):
            yield log, f"{name} {recording.source.rpartition(' episode ')[2]}", recording


def _massless(robot: Robot) -> Iterator[Finding]:
    """Warn of joints whose outboard links have no mass in the robot's description."""
    mass = [body.inertia.mass for body in robot.bodies]
    for index in reversed(range(len(mass))):  # children first: masses add up towards the base
        parent = robot.bodies[index].parent
        if parent >= 0:
            mass[parent] += mass[index]
    names = [name for name, carried in zip(robot.joint_names, mass, strict=True) if carried == 0.0]
    if names:
        yield Finding(
            code="unusual-inertia", severity="warning", where="robot",
            message=f"the robot's file gives no mass to what these joints carry: {', '.join(names)}; the fit has no "
                    "weight and no inertia of links, and armature and friction stand for both",
            remedy="Give the links masses and inertias: without them gains, zeros and friction cannot be told apart.",
            evidence={"joints": len(names)},
        )  # fmt: skip


def _warn_saturated(robot: Robot, model: ServoModel, motions: Sequence[CommandedMotion]) -> Iterator[Finding]:
    """Warn of joints whose position errors times kp exceed the effort limit of the robot's file.

    A law with a torque limit, stated or identified, covers this case by itself.
    """
    if not isinstance(model.law, PositionLaw) or {"effort_limit", "stall_torque"} & {*model.kinds}:
        return
    stated_kp = model.law.gains(model.dof)["kp"]
    largest_torque = np.max([
        np.abs((stated_kp if motion.kp is None else motion.kp) * (motion.command - motion.position)).max(axis=0)
        for motion in stretches_of(motions)
    ], axis=0)  # fmt: skip
    limits = [joint.limits.effort for joint in robot.moving_joints]
    over = [f"{name} {most:.3g} of {limit:g}" for name, most, limit
            in zip(robot.joint_names, largest_torque, limits, strict=True) if most > limit]  # fmt: skip
    if over:
        yield Finding(
            code="beyond-limits", severity="warning", where="law",
            message=f"kp times the position error exceeds the effort of the robot's file [N m or N]: {', '.join(over)}",
            remedy="If the drives saturate there, say so in the law: effort_limit under [fixed], or under free.",
            evidence={"joints": len(over)},
        )  # fmt: skip


def _check_reach(recording: Recording, robot: Robot) -> Iterator[Finding]:
    """Report positions far beyond the robot's limits, where the recording has one column per joint."""
    order = column_order(recording.joint_names, robot)
    q = recording.q if order is None else recording.q[:, order]
    if q.shape[1] == robot.dof:
        yield from check_limits(robot, Recording(time=recording.time, q=q, joint_names=robot.joint_names))


def _with_gains(found: ActuatorEstimate, motions: Sequence[CommandedMotion]) -> ActuatorEstimate:
    """Put the gains and the voltage of the logs into the law that is written, where it has none and all logs agree."""
    law = found.model.law
    taken = {}
    if not isinstance(law, (PositionLaw, MotorLaw)):
        return found
    for name in ("kp", "kd", "ki", "voltage"):
        first, *others = (getattr(motion, name) for motion in motions)
        if getattr(law, name, 0.0) is None and first is not None and all(np.array_equal(first, v) for v in others):
            taken[name] = first
    return replace(found, model=replace(found.model, law=replace(law, **taken)))


ROBOT_FILES: Mapping[str, Callable[..., ServoFile]] = {
    "servos.xml": write_servo_mjcf, "servos.urdf": write_servo_urdf, "isaac_actuators.json": write_isaac_actuators,
}  # fmt: skip
"""Name of each file that is written for a simulator -> the function that writes it."""
