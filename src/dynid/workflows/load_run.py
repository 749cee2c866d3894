"""Identify what a robot holds from logs: what ``dynid load`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from dynid.errors import ArgumentError
from dynid.findings import Finding, QualityReport
from dynid.identification.given_data import check_copies
from dynid.identification.log_part import check_part
from dynid.identification.log_reader import LogReader, Notice
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.logs.recording import Recording
from dynid.payload.load import Load, read_load_file
from dynid.payload.load_study import LoadStudy, check_load_log
from dynid.payload.payload import check_arm, identify_payload
from dynid.payload.recognition import read_library
from dynid.payload.sensing import Find, Sensing
from dynid.payload.sensor_faults import SensorProposal, check_wrench, find_wrench_delay
from dynid.payload.wrist import identify_load
from dynid.processing.experiment import Experiment
from dynid.processing.process import PreparedLog, Processing, check_delay
from dynid.report.load_sections import dialogs_of, frame_hint, load_page
from dynid.report.page import Chapter, Page
from dynid.robot.formats.urdf import write_urdf
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.safe_files import file_digest
from dynid.safe_text import safe_name
from dynid.settings import Number, Positive, TomlSettings
from dynid.workflows.protocol import RunContext, Task
from dynid.workflows.run_folder import RunFolder

ONLY_FOR_TORQUES = "is for loads from joint torques; a sensor feels the load alone"
"""Why an option is refused together with a wrist sensor: the end of that sentence."""
LEAVE_ONE_OUT = "Leave it out, or leave --sensor out."
"""What to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecipe(TomlSettings):
    """All settings of the identification of a load."""

    file_keys: ClassVar[tuple[str, ...]] = ("tare", "library")

    sensor: str | None = None
    """Link that carries a force and torque sensor; None uses joint torques."""
    link: str | None = None
    """Link that carries the load, for joint torques; None for the last one."""
    arm: str = "known"
    """Knowledge of the arm without unloaded logs: "known", or "MASS,COM" with the standard deviations of each link's
    mass (relative) and centre of mass [m]."""
    sign: Literal[1, -1] = 1
    """-1 if the sensor reports the wrench on the robot."""
    axes: Literal["sensor", "base"] = "sensor"
    """Axes in which the wrench was recorded: those of the sensor's link, or of the robot's base."""
    find: tuple[Find, ...] = ()
    """What is estimated together with the load: a linear drift of the sensor's bias, a bias for each log, the
    orientation of the sensor on its link, the direction of gravity; or, with none of these, the compliance of the
    sensor, from the swinging of the load."""
    form: Literal["differential", "integral", "static"] | None = None
    """Equations of the sensor: with accelerations, integrated over intervals without them, or gravity alone; None lets
    the data decide."""
    delay_s: Number | Literal["auto"] = 0.0
    """Delay of the wrenches (or, without a sensor, of the torques) behind the positions [s]; "auto" estimates it."""
    cutoff_hz: Positive | Literal["auto"] | None = "auto"
    """Cutoff of the low-pass of the positions [Hz]; "auto" chooses it from the noise, None filters nothing."""
    time: str | None = None
    """Part of every log that is used, in seconds since its start, such as "2.5:30"; None for all."""
    gate: bool = True
    """Whether logs are checked first, and refused when the check finds an error."""
    tare: str | None = None
    """File load.json of the gripper alone, which is subtracted with its uncertainty."""
    library: str | None = None
    """File with known objects (TOML), among which the load is recognised."""
    flange: str | None = None
    """Link whose frame the payload dialogs use; None for the frame of the load."""

    def __post_init__(self) -> None:
        """Refuse settings that have no meaning or exclude each other."""
        self.settle_kinds()
        check_delay("delay_s", self.delay_s)
        check_part(None, self.time)
        self.arm_knowledge()
        if self.sensor is None and (self._sensing() != Sensing() or self.form is not None):
            remedy = "Name its link with sensor (--sensor)."
            raise ArgumentError("find, axes, form and sign are about a wrist sensor", remedy=remedy)
        if self.sensor is not None and self.link is not None:
            reason = "link is for joint torques, and a sensor's link is sensor (--sensor)"
            raise ArgumentError(reason, remedy="Leave one of them out.")
        if self.sensor is not None and self.arm != "known":
            raise ArgumentError(f"arm (--arm) {ONLY_FOR_TORQUES}", remedy=LEAVE_ONE_OUT)

    def arm_knowledge(self) -> tuple[float, float] | None:
        """Standard deviations of each link's mass (relative) and centre of mass [m]; None where the model is exact."""
        if self.arm == "known":
            return None
        try:
            mass, com = (float(part) for part in self.arm.split(","))
        except ValueError:
            raise ArgumentError(
                f"arm: '{self.arm}' is neither known nor MASS,COM",
                remedy="Two standard deviations are written like 0.1,0.01: ten percent and ten millimetres.",
            ) from None
        check_arm((mass, com))
        return mass, com

    def _sensing(self) -> Sensing:
        """Settings of the sensor; its delay is left at zero."""
        return Sensing(sign=self.sign, axes=self.axes, find=self.find)

    def sensing(self, robot: Robot, loaded: Sequence[Experiment], notice: Notice) -> Sensing:
        """Settings of the sensor with the delay of the wrench, given or estimated from the runs with the load."""
        if self.delay_s != "auto":
            return replace(self._sensing(), delay_s=self.delay_s)
        found = find_wrench_delay(robot, loaded, sensor_frame=str(self.sensor), sensing=self._sensing(), form=self.form)
        message = (
            f"the wrenches are delayed by {1e3 * found.seconds:.3g} ms (interval +- {1e3 * found.half_width_s:.2g} ms)"
        )
        notice(Finding(code="estimated-delay", severity="note", where="wrench", message=message))
        return replace(self._sensing(), delay_s=found.seconds)

    def check(
        self, recording: Recording, options: Processing, robot: Robot
    ) -> tuple[QualityReport, PreparedLog | None]:
        """Check one log before it is used; see `check_load_log`. `LogReader` calls this."""
        return check_load_log(recording, robot, options, by_sensor=self.sensor is not None)

    def log_recipe(self) -> Recipe:
        """Settings by which the logs are read; a delay of the wrench is corrected later, by `sensing`."""
        return Recipe(
            cutoff_hz=self.cutoff_hz,
            delay_s=self.delay_s if self.sensor is None else 0.0,
            gate=self.gate,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoadRun:
    """An identified load with its texts: the result of ``dynid load``."""

    study: LoadStudy
    """The load, its checks and its verdict."""
    text: str
    """Summary, proposals and payload dialogs."""
    dialogs: tuple[str, ...]
    """Lines with proposed settings, then with the values for the payload dialogs of controllers."""
    logs: Mapping[str, str]
    """SHA-256 digest -> name of every log with the load."""
    first_run: Experiment
    """The first run with the load, whose motion the report shows."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 where the result is doubtful, otherwise 0."""
        return 1 if self.study.verdict == "doubtful" else 0

    def to_json(self) -> dict[str, Any]:
        """Contents of ``load.json``."""
        return {**self.study.to_dict(), "logs": dict(self.logs)}


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyLoad(Task[LoadRun]):
    """Identify what a robot holds, by a wrist sensor or by joint torques."""

    verb = "load"
    files = ("load.json", "load.txt")
    reads = ("logs", "unloaded", "channel_map")

    robot: Robot
    """The robot; for joint torques, joints without rotor inertia, friction and offset get these terms."""
    logs: Sequence[str | Path]
    """The logs with the load."""
    recipe: LoadRecipe = field(default_factory=LoadRecipe)
    unloaded: Sequence[str | Path] = ()
    """The logs without the load, for joint torques."""
    channel_map: ChannelMapSource | None = None

    def check(self) -> None:
        recipe = self.recipe
        logs = self.logs
        unloaded = self.unloaded
        if unloaded and recipe.sensor is not None:
            raise ArgumentError(f"--unloaded {ONLY_FOR_TORQUES}", remedy=LEAVE_ONE_OUT)
        if unloaded and recipe.arm != "known":
            raise ArgumentError(
                "with --unloaded the arm's model does not matter", remedy="Leave --arm or --unloaded out."
            )
        check_copies(unloaded)
        check_copies(logs, unloaded, why="which holds the load", remedy="Give a run of the robot without the load.")
        loaded = {file_digest(log): log for log in logs}
        tare_logs = {} if recipe.tare is None else read_load_file(recipe.tare).logs
        for digest, name in tare_logs.items():
            if digest in loaded:
                raise ArgumentError(
                    f"tare {recipe.tare} was identified from {name}, which is {loaded[digest]}: "
                    "nothing would be left of the load",
                    remedy="Give the load.json of the gripper alone.",
                )

    def compute(self, context: RunContext) -> LoadRun:
        recipe = self.recipe
        gripper = None if recipe.tare is None else Load.read(recipe.tare)
        objects = () if recipe.library is None else read_library(recipe.library)
        robot = self.robot
        model = add_terms(robot)
        reader = LogReader(robot=model, recipe=recipe.log_recipe(), channel_map=self.channel_map, time=recipe.time,
                           notice=context.notify, progress=context.progress, needs_torques=recipe.sensor is None,
                           check=recipe.check)  # fmt: skip
        loaded = reader.experiments(self.logs)
        unloaded = reader.experiments(self.unloaded)
        if recipe.sensor is None:
            load = identify_payload(model, loaded=loaded, unloaded=unloaded or None, link=recipe.link,
                                    arm=recipe.arm_knowledge(), tare=gripper)  # fmt: skip
            study = LoadStudy(robot=model, load=load, library=objects)
            sensing = Sensing()  # of no meaning without a sensor
        else:
            sensing = recipe.sensing(robot, loaded, context.notify)
            settings: dict[str, Any] = {"sensor_frame": recipe.sensor, "sensing": sensing, "form": recipe.form}
            proposals = check_wrench(robot, loaded, **settings)
            load = identify_load(robot, loaded, tare=gripper, **settings)
            study = LoadStudy(robot=robot, load=load, proposals=proposals, library=objects)
        dialogs = dialogs_of(study, recipe.flange)
        hints = [frame_hint(study, recipe.flange)] if dialogs else []
        lines = (*_proposed_settings(study.proposals, sensing), *hints, *map(str, dialogs))
        text = "\n".join([str(study), *lines])
        logs = {file_digest(log): Path(log).name for log in self.logs}
        return LoadRun(study=study, text=text, dialogs=lines, logs=logs, first_run=loaded[0])

    def write(self, folder: RunFolder, result: LoadRun) -> LoadRun:
        study = result.study
        folder.write("load.txt", result.text + "\n")
        if study.load.mass > 0.0:  # not where it is unknown (NaN), or negative
            name = f"{safe_name(study.robot.name)}_with_load.urdf"
            write_urdf(study.robot_with_load, folder.path / name, force=True, allow_unphysical=True)
        return result

    def page(self, result: LoadRun, settings: Sequence[Chapter]) -> Page:
        return load_page(result.study, result.first_run, settings, self.recipe.flange)


def _proposed_settings(proposals: Sequence[SensorProposal], given: Sensing) -> list[str]:
    """The line "Try: --set ..." with the proposed settings of the sensor that differ from the given ones, or none."""
    better = proposals[-1].sensing if proposals else given  # each proposal includes those before it
    found = [name for name in better.find if name not in given.find]
    settings = {  # setting -> whether it differs
        f"find={','.join((*given.find, *found))}": bool(found),
        f"axes={better.axes}": better.axes != given.axes,
        f"sign={better.sign}": better.sign != given.sign,
        f"delay_s={better.delay_s:.3g}": better.delay_s != given.delay_s,
    }
    chosen = [f"--set {setting}" for setting, is_needed in settings.items() if is_needed]
    if better.moment_unit != given.moment_unit:
        chosen.append('moments in "N mm" under [wrench] in the map')
    return [f"Try: {', '.join(chosen)}."] if chosen else []
