"""Logs read piece by piece: each is reduced to a `Leaf` by a worker, and the leaves are merged to equations.

`reduce_logs` is the main function. `make_leaf` is the task of one worker: it reads, checks, processes and reduces one
log in one pass, whatever its length. A leaf depends on its task alone, so it can be made again where a worker was lost,
kept in a store, and merged with others in the order of the logs: the result is the same to the last bit for any number
of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction import Information, reduce_samples
from dynid.errors import ArgumentError, DataError, EngineError, UnreachableLogError
from dynid.estimators.equations import Factors, merge_information, next_segment
from dynid.findings import Finding
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters, require_kept_columns
from dynid.identification.log_reader import Log, LogReader, Progress
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMap, ChannelMapSource, read_channel_map
from dynid.logs.recording import Recording
from dynid.parallel.base import Engine, Local
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot

MOST_BLOCKS = 8
"""Number of blocks of time of one log at which pairs of neighbours are joined to one block each (convention: four to
eight are left, enough to see correlated errors; a leaf of seven joints then takes about 0.2 MB)."""
FIRST_BLOCK = 256
"""Length of the first blocks [samples] (convention: short logs have several blocks, too)."""
EXCERPT_SAMPLES = 500
"""Number of samples of a log's beginning that are kept for the plots of reports (convention)."""
CUTOFF_LOGS = 5
"""Number of logs from whose beginnings a common cutoff is chosen (convention: more would change it little)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafTask:
    """The task of a worker: one log, and everything else that its leaf depends on."""

    log: Log
    """File, folder, recording, or the URL of a file that fsspec can open."""
    robot: Robot
    """The robot with its terms."""
    columns: tuple[int, ...]
    """Columns of the regressor that are kept: those of the base parameters."""
    recipe: Recipe
    """It has a cutoff; see `fix_cutoff`."""
    channel_map: ChannelMap | None = None
    """The map itself rather than its file, which a worker on another machine may not see."""
    version: str = ""
    """Version of dynid that must make the leaf."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """One log, reduced to the information that equations need."""

    log: str
    """Path, URL or name of the log."""
    information: Information
    """The reduced equations; their segments are blocks of time."""
    start_s: float
    """First time stamp of the log [s]; Unix time in most logs of machines."""
    samples: int
    """Number of samples that were reduced."""
    beginning: Experiment | None = None
    """Its first samples, for reports."""
    findings: tuple[Finding, ...] = ()
    """Warnings of the gate."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Samples that were left out, by reason."""
    temperature: Floats | None = None
    """(n,) mean temperature of each joint [degC], NaN where it is not known; None where the log has none."""


def leaf_tasks(
    robot: Robot, logs: Sequence[Log], recipe: Recipe, channel_map: ChannelMapSource | None, base: BaseParameters
) -> list[LeafTask]:
    """Make the task of each log.

    Args:
        robot: The robot with its terms.
        logs: The logs.
        recipe: The recipe, with a cutoff; see `fix_cutoff`.
        channel_map: Their channel map.
        base: The base parameters of the robot.
    """
    chosen = None if channel_map is None else read_channel_map(channel_map)
    return [
        LeafTask(
            log=log, robot=robot, columns=base.columns, recipe=recipe, channel_map=chosen, version=installed_version()
        )
        for log in logs
    ]


def make_leaf(task: LeafTask, progress: Progress | None = None) -> Leaf:
    """Read, check, process and reduce a log.

    Args:
        task: The log, and how it is reduced.
        progress: As for `LogReader`, where the log is read in this process.

    Raises:
        DataError: The log cannot be read, or the gate refuses it.
        EngineError: Another version of dynid runs here.
    """
    if task.version and task.version != (here := installed_version()):
        raise EngineError(
            f"a worker has dynid {here}, this run needs {task.version}",
            remedy=f"Install dynid=={task.version} on all workers.",
        )
    warnings = list[Finding]()
    beginning = list[Experiment]()  # at most one: the first samples
    samples = 0
    dropped = Counter[str]()
    temperatures = list[tuple[int, Floats | None]]()  # number of samples and mean temperature of each piece

    def collect_facts(pieces: Iterator[Experiment]) -> Iterator[Experiment]:
        """Pass the pieces on, and note what the leaf tells besides the equations."""
        nonlocal samples
        for piece in pieces:
            samples += piece.samples
            dropped.update(piece.dropped)
            if not beginning:
                beginning.append(piece.rows(slice(0, EXCERPT_SAMPLES)))
            temperatures.append((piece.samples, piece.temperature))
            yield piece

    with _fetch(task.log) as log:
        reader = LogReader(robot=task.robot, recipe=task.recipe, channel_map=task.channel_map,
                           notice=warnings.append, progress=progress)  # fmt: skip
        information = reduce_in_blocks(task.robot, task.columns, collect_facts(reader.stream(log)))
    if not beginning:
        raise DataError("the log has no sample that can be used", path=_name(task.log), remedy="See dynid check.")
    return Leaf(
        log=_name(task.log), information=information, start_s=float(beginning[0].time[0]), samples=samples,
        beginning=beginning[0], findings=tuple(warnings), dropped=dict(dropped),
        temperature=average_temperature(temperatures),
    )  # fmt: skip


def average_temperature(parts: Sequence[tuple[int, Floats | None]]) -> Floats | None:
    """(n,) mean temperature of pieces or logs, from their numbers of samples and temperatures [degC].

    It is that of the parts where it is known: NaN for a joint without any, None where no part has temperatures.
    """
    known = [(samples, values) for samples, values in parts if samples and values is not None]
    if not known:
        return None
    samples, values = zip(*known, strict=True)
    return np.asarray(np.ma.filled(np.ma.average(np.ma.masked_invalid(values), axis=0, weights=samples), np.nan))


def leaf_equations(robot: Robot, base: BaseParameters, leaves: Sequence[Leaf], *, excerpts: bool = True) -> Factors:
    """The equations of several leaves, merged in the order given.

    Args:
        robot: The robot with its terms.
        base: The base parameters of the leaves' columns.
        leaves: The leaves.
        excerpts: Whether the beginnings of the logs are kept for reports.
    """
    parts: list[Information] = []
    for leaf in leaves:
        parts.append(leaf.information.renumber(next_segment(parts)))
    drawn = tuple(leaf.beginning for leaf in leaves if leaf.beginning is not None) if excerpts else ()
    return Factors(
        robot=robot, base=base, information=merge_information(parts), blocks=tuple(part.segments for part in parts),
        excerpts=drawn,
    )  # fmt: skip


def reduce_logs(reader: LogReader, logs: Sequence[Log], engine: Engine, base: BaseParameters | None) -> Factors:
    """The equations of logs, one leaf each, made by an engine.

    Args:
        reader: Reads the logs; its recipe has a cutoff.
        logs: The logs.
        engine: Where the leaves are made.
        base: The base parameters; of every motion by default.

    Raises:
        DataError: A log cannot be used; the message names all of them.
    """
    chosen = require_kept_columns(choose_base(reader.robot, base))
    tasks = leaf_tasks(reader.robot, logs, reader.recipe, reader.channel_map, chosen)
    leaves: dict[int, Leaf] = {}
    failed = []  # number of the log, and its error
    # a single log in this process shows its own progress; otherwise progress goes from log to log
    is_single = isinstance(engine, Local) and len(logs) == 1
    work = partial(make_leaf, progress=reader.progress) if is_single else make_leaf
    for done, outcome in enumerate(engine.run(work, tasks), start=1):
        if outcome.error is not None:
            failed.append((outcome.number, outcome.error))
        else:
            leaves[outcome.number] = outcome.result()
        if reader.progress is not None:
            reader.progress(done / len(tasks), f"{done} of {len(tasks)} logs reduced")
    if failed:
        failed.sort(key=lambda pair: pair[0])
        number, error = failed[0]
        if len(failed) == 1:
            raise error
        others = ", ".join(_name(tasks[number].log) for number, _ in failed[1:])
        raise DataError(
            f"{len(failed)} of {len(tasks)} logs cannot be used; the first because {error.reason}", path=error.path,
            place=error.place, remedy=f"Mend or omit them; the others are {others}.",
        )  # fmt: skip
    for number in sorted(leaves):
        for finding in leaves[number].findings:
            reader.notice(finding)
    return leaf_equations(reader.robot, chosen, [leaves[number] for number in sorted(leaves)])


def fix_cutoff(reader: LogReader, logs: Sequence[Log]) -> LogReader:
    """Give the reader one cutoff for all logs, chosen from the beginnings of at most `CUTOFF_LOGS` of the logs."""
    if reader.recipe.cutoff_hz != "auto":
        return reader
    places = np.unique(np.linspace(0, len(logs) - 1, min(CUTOFF_LOGS, len(logs))).round().astype(int))
    with ExitStack() as stack:
        hz = reader.cutoff_of_beginnings([stack.enter_context(_fetch(logs[place])) for place in places])
    return replace(reader, recipe=replace(reader.recipe, cutoff_hz=hz))


def reduce_in_blocks(robot: Robot, columns: Sequence[int], pieces: Iterable[Experiment]) -> Information:
    """Reduce the pieces of a log in one pass, in few blocks of time however long it is.

    Blocks begin short. When there are `MOST_BLOCKS`, neighbours are joined and the next ones are twice as long. What
    is kept therefore does not grow with the log, and where the pieces were cut makes no difference to the blocks.

    Args:
        robot: The robot.
        columns: Columns of its regressor.
        pieces: Consecutive processed pieces.
    """
    blocks: list[Information] = []
    growing: Information | None = None  # the block that is not full yet
    length = FIRST_BLOCK  # samples of a full block
    filled = 0  # samples of the growing block
    for piece in pieces:
        start = 0
        while start < piece.samples:
            stop = min(piece.samples, start + length - filled)
            part = _reduce_block(robot, columns, piece.rows(slice(start, stop)))
            growing = part if growing is None else _join_blocks(growing, part)
            filled += stop - start
            start = stop
            if filled == length:
                blocks.append(growing)
                growing = None
                filled = 0
            if len(blocks) == MOST_BLOCKS:
                blocks = [_join_blocks(a, b) for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
                length *= 2
    blocks = blocks if growing is None else [*blocks, growing]
    if not blocks:
        return _reduce_block(robot, columns, None)
    total = blocks[0]
    for number, block in enumerate(blocks[1:], start=1):
        total = total.merge(block.renumber(number))
    return total


def _reduce_block(robot: Robot, columns: Sequence[int], run: Experiment | None) -> Information:
    """The information of some samples as one block of time; that of no samples where there is no experiment."""
    nothing = np.zeros((0, robot.dof))
    arrays = (nothing,) * 4 if run is None else (run.q, run.dq, run.ddq, run.effort)
    return reduce_samples(robot, *arrays, columns=columns, valid=None if run is None else run.valid).as_one()


def _join_blocks(a: Information, b: Information) -> Information:
    """The information of two neighbouring blocks of time as one block."""
    return a.merge(b.renumber(1)).as_one()


@cache
def installed_version() -> str:
    """Version of dynid in this process."""
    from importlib.metadata import PackageNotFoundError, version  # imported late: it loads Python's e-mail packages

    with suppress(PackageNotFoundError):
        return version("dynid")
    return "unknown"


@contextmanager
def _fetch(log: Log) -> Iterator[Log]:
    """A log on this machine: a file behind a URL is copied to a temporary folder, which is deleted afterwards."""
    if not isinstance(log, str) or "://" not in log:
        yield log
        return
    try:
        import fsspec
    except ImportError as error:
        raise ArgumentError(
            "URLs of logs need fsspec", path=log, remedy="Install it: pip install 'dynid[cluster]'."
        ) from error
    with TemporaryDirectory(prefix="dynid-") as folder:
        system, path = fsspec.core.url_to_fs(log)
        copy = Path(folder) / Path(path).name
        try:
            system.get_file(path, str(copy))
        except (OSError, ValueError) as error:
            raise UnreachableLogError(
                f"the file cannot be fetched: {error}", path=log, remedy="Check the URL and the access rights."
            ) from error
        yield copy


def _name(log: Log) -> str:
    """Path, URL or name of a log, for messages."""
    return log.source if isinstance(log, Recording) else str(log)
