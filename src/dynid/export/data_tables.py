"""Results and signals as plain tables of columns, for pandas, polars, Parquet and CSV.

A `DataTable` holds whole columns without rounding; the unit of a column travels with it: as metadata of the field in
Parquet, in ``DataFrame.attrs`` in pandas, and behind the name in the first line of a CSV file, ``q_joint1 [rad]``.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.checks import require_library
from dynid.errors import ExportError
from dynid.estimation.estimate import TWO_SIDED_95, Source
from dynid.export.result_file import SavedResult
from dynid.files import make_folder, write_atomically
from dynid.kernels import inverse_dynamics
from dynid.links.identification_view import shared_friction
from dynid.links.identify import Identification
from dynid.load.load import NAMES, UNITS, Load
from dynid.logs.joint_order import match_joints
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.tables import Table, html_card

Status = Literal["data", "shared", "prior", "unidentifiable"]
"""Where the value of a parameter comes from; see `parameter_table`."""
STATUS: dict[Source, Status] = {"data": "data", "prior": "prior", "open": "unidentifiable"}
"""The word of tables for the source of an estimated value."""
SHOWN = 10
"""Rows that a notebook shows (convention)."""
WRENCH = {"fx": "N", "fy": "N", "fz": "N", "mx": "N m", "my": "N m", "mz": "N m"}
"""Columns of a wrench with their units."""
MOTION = {"q": ("rad", "m"), "dq": ("rad/s", "m/s"), "ddq": ("rad/s^2", "m/s^2"), "effort": ("N m", "N")}
"""Signal -> its units for joints that turn and for joints that slide."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataTable:
    """Named columns of equal length."""

    name: str
    """What the table holds, as a word that can be part of a file's name."""
    columns: Mapping[str, NDArray[Any]]
    """Column -> (N,) values: numbers, booleans or text. NaN where a number is not known."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Column -> SI unit, for columns that have one."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the table comes from: robot, method, source."""

    def __post_init__(self) -> None:
        """Refuse columns of different lengths."""
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ExportError(f"the columns of table '{self.name}' have different lengths")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        """Name, size and columns in one line."""
        names = list(self.columns)
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        return f"DataTable('{self.name}', {self.rows} rows: {shown})"

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        shown = [
            [cell.item() for cell in row]
            for row in zip(*(column[:SHOWN] for column in self.columns.values()), strict=True)
        ]
        names = [f"{name} [{self.units[name]}]" if name in self.units else name for name in self.columns]
        more = [f"{self.rows - SHOWN} more rows"] if self.rows > SHOWN else []
        return html_card(repr(self), more, Table.of(names, shown))

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``; ``attrs`` has the units and the facts.

        Raises:
            ArgumentError: pandas is not installed.
        """
        frame = require_library("pandas", "pandas").DataFrame(dict(self.columns))
        frame.attrs.update({"units": dict(self.units), **self.facts})
        return frame

    def to_arrow(self) -> Any:
        """The table as a ``pyarrow.Table``; a field's metadata has its unit, the schema's the facts.

        Raises:
            ArgumentError: pyarrow is not installed.
        """
        arrow = require_library("pyarrow", "dynid[parquet]")
        arrays = [arrow.array(column) for column in self.columns.values()]
        fields = [
            arrow.field(name, array.type, metadata={"unit": self.units[name]} if name in self.units else None)
            for name, array in zip(self.columns, arrays, strict=True)
        ]
        return arrow.table(arrays, schema=arrow.schema(fields, metadata={"dynid": json.dumps(dict(self.facts))}))

    def to_csv(self) -> str:
        """The table as CSV text: numbers with all their digits, an empty field where a number is not known."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([f"{name} [{self.units[name]}]" if name in self.units else name for name in self.columns])
        cells = [_csv_cells(column) for column in self.columns.values()]
        writer.writerows(zip(*cells, strict=True))
        return stream.getvalue()

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the table whole or not at all, in the format of the path's ending: ``.parquet`` or ``.csv``.

        Raises:
            ExportError: The ending is another one, the file exists, or it cannot be written.
            ArgumentError: Parquet needs pyarrow, which is not installed.
        """
        ending = Path(path).suffix.lower()
        if ending == ".csv":
            return write_atomically(path, self.to_csv(), force=force)
        if ending != ".parquet":
            raise ExportError(
                f"tables have no format '{ending}'", path=path, remedy="End the name in .parquet or .csv."
            )
        table, stream = self.to_arrow(), io.BytesIO()
        require_library("pyarrow.parquet", "dynid[parquet]").write_table(table, stream)
        return write_atomically(path, stream.getvalue(), force=force)


def _csv_cells(column: NDArray[Any]) -> list[Any]:
    values = column.tolist()
    if column.dtype.kind != "f":
        return [str(value).lower() if isinstance(value, bool) else value for value in values]
    return ["" if value != value else repr(value) for value in values]


def parameter_table(fit: Identification | SavedResult) -> DataTable:
    """The estimated base parameters and terms with their uncertainty, one row each.

    ``status`` is ``data`` where the data determine the value, ``shared`` where it is one of several terms that carry
    the friction of a joint together, ``prior`` where the prior determines it more than the data, ``unidentifiable``
    where the motion leaves it open; ``std`` and the 95 % interval are NaN there.

    Args:
        fit: The identification, or a result from `read_result`.

    Example:
        >>> table = dynid.export.parameter_table(fit)
        >>> list(table.columns)[:4]
        ['parameter', 'value', 'unit', 'std']
        >>> sorted({str(status) for status in table.columns["status"]})
        ['data']
    """
    fit = fit.identification() if isinstance(fit, SavedResult) else fit
    estimate = fit.estimate
    parts = shared_friction(fit.equations)
    status: list[Status] = [
        "shared" if source == "data" and name in parts else STATUS[source]
        for name, source in zip(estimate.names, estimate.sources, strict=True)
    ]
    expressions = [str(text) for text in (*fit.base.expressions, *(term.name for term in fit.terms))]
    columns = _parameter_columns(estimate.names, estimate.values, estimate.units, estimate.stderr, status)
    return DataTable(
        name="parameters", columns={**columns, "expression": np.array(expressions, dtype=str)}, facts=_facts(fit)
    )


def standard_parameter_table(fit: Identification | SavedResult) -> DataTable:
    """The parameters of every link and joint, one row each, with the values before the identification (``prior``).

    ``status`` is ``data`` only for parameters that the data determine by themselves; ``prior`` where they determine it
    in combination with others at most, so that the value rests on the prior model or on the wish for a possible robot;
    ``unidentifiable`` where the parameter never acts on the torques. Only ``data`` rows have a standard deviation.

    Example:
        >>> table = dynid.export.standard_parameter_table(fit)
        >>> [str(word) for word in table.columns["status"][:3]]
        ['unidentifiable', 'unidentifiable', 'unidentifiable']
    """
    fit = fit.identification() if isinstance(fit, SavedResult) else fit
    layout, hidden, doubtful = fit.base.layout, set(fit.base.unidentifiable), set(fit.prior_dominated)
    status: list[Status] = [
        "unidentifiable" if name in hidden else "prior" if name in doubtful else "data" for name in layout.names
    ]
    columns = _parameter_columns(layout.names, fit.standard, layout.units, fit.standard_stderr, status)
    columns["prior"] = fit.robot.parameter_vector.copy()
    columns["owner"] = np.array([parameter.owner for parameter in layout], dtype=str)
    return DataTable(name="standard_parameters", columns=columns, facts=_facts(fit))


def load_table(load: Load) -> DataTable:
    """The ten parameters of a load with their uncertainty, one row each; columns as in `parameter_table`.

    Args:
        load: The load.

    Example:
        >>> load = dynid.Load.of(dynid.Inertia.from_com(1.5, [0, 0, 0.1], np.eye(3) * 1e-3), "tool0", stderr=0.01)
        >>> dynid.export.load_table(load)
        DataTable('load', 10 rows: parameter, value, unit, std, lower_95, upper_95, ...)
    """
    status: list[Status] = ["unidentifiable" if unknown else "data" for unknown in load.undetermined.tolist()]
    columns = _parameter_columns(NAMES, load.vector, UNITS, load.stderr, status)
    return DataTable(name="load", columns=columns, facts={"frame": load.frame, "method": load.method})


def _parameter_columns(
    names: Sequence[str], values: Floats, units: Sequence[str], stderr: Floats, status: Sequence[Status]
) -> dict[str, NDArray[Any]]:
    known = np.isfinite(stderr) & (np.array(status) != "unidentifiable")
    std = np.where(known, stderr, np.nan)
    return {
        "parameter": np.array(names, dtype=str),
        "value": np.array(values, dtype=float),
        "unit": np.array(units, dtype=str),
        "std": std,
        "lower_95": values - TWO_SIDED_95 * std,
        "upper_95": values + TWO_SIDED_95 * std,
        "status": np.array(status, dtype=str),
    }


def _facts(fit: Identification) -> dict[str, str]:
    sources = ", ".join(run.source for run in fit.equations.excerpts)
    return {"robot": fit.robot.name, "method": fit.estimate.method, "source": sources}


def experiment_table(run: Experiment, robot: Robot | None = None) -> DataTable:
    """A processed log: time, motion, torques and which of them count, one column per joint.

    Args:
        run: The experiment.
        robot: Tells which joints slide, so that units are right; without it all joints are taken to turn.

    Example:
        >>> dynid.export.experiment_table(run, robot).units["q_joint1"]
        'rad'
    """
    run = run if robot is None else run.matched(robot)
    columns: dict[str, NDArray[Any]] = {"time": run.time, "segment": run.segment}
    units = {"time": "s"}
    for signal in MOTION:
        _add_joints(columns, units, signal, getattr(run, signal), (run.joint_names, _slides(robot, run)))
    for j, name in enumerate(_names(run.joint_names, run.q.shape[1])):
        columns[f"valid_{name}"] = run.valid[:, j]
    if run.wrench is not None:
        columns |= {f"wrench_{axis}": run.wrench[:, k] for k, axis in enumerate(WRENCH)}
        units |= {f"wrench_{axis}": unit for axis, unit in WRENCH.items()}
    facts = {"source": run.source, "sha256": run.sha256, "rate_hz": f"{run.rate_hz:.17g}"}
    return DataTable(name="experiment", columns=columns, units=units, facts=facts)


def recording_tables(recording: Recording, robot: Robot | None = None) -> tuple[DataTable, ...]:
    """A raw log as it was measured; channels that have a clock of their own become a table of their own.

    Args:
        recording: The log.
        robot: Tells which joints slide, so that units are right; without it all joints are taken to turn.

    Example:
        >>> [table.name for table in dynid.export.recording_tables(log)]
        ['recording']
    """
    recording = match_joints(recording, robot)
    slides = _slides(robot, recording)
    facts = {"source": recording.source, "sha256": recording.sha256}
    names = ("", "_effort", "_wrench")
    clocks = (recording.time, recording.effort_time, recording.wrench_time)
    parts: list[tuple[dict[str, NDArray[Any]], dict[str, str]]] = [
        ({} if clock is None else {"time": clock}, {"time": "s"}) for clock in clocks
    ]
    for signal in ("q", "dq", "effort", "current"):
        values = getattr(recording, signal)
        if values is not None:
            own = 1 if signal in ("effort", "current") and recording.effort_time is not None else 0
            _add_joints(*parts[own], signal, values, (recording.joint_names, slides))
    if recording.wrench is not None:
        columns, units = parts[2 if recording.wrench_time is not None else 0]
        columns |= {f"wrench_{axis}": recording.wrench[:, k] for k, axis in enumerate(WRENCH)}
        units |= {f"wrench_{axis}": unit for axis, unit in WRENCH.items()}
    return tuple(
        DataTable(name=f"recording{name}", columns=columns, units=units, facts=facts)
        for name, (columns, units) in zip(names, parts, strict=True)
        if len(columns) > 1
    )


def prediction_table(fit: Identification, run: Experiment) -> DataTable:
    """Measured and predicted torques of an experiment, the residual, and the prior model's prediction.

    Samples that were left out have ``valid_...`` False; their residual is given where the torque was measured.

    Args:
        fit: The identification.
        run: An experiment of the same robot: of the identification, or held out.

    Example:
        >>> table = dynid.export.prediction_table(fit, other)
        >>> bool(np.std(table.columns["residual_joint1"]) < np.std(table.columns["measured_joint1"]))
        True
    """
    run = run.matched(fit.robot)
    predicted = fit.torque(run)
    prior = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
    columns: dict[str, NDArray[Any]] = {"time": run.time, "segment": run.segment}
    units = {"time": "s"}
    joints = (fit.robot.joint_names, _slides(fit.robot, run))
    parts = {"measured": run.effort, "predicted": predicted, "residual": run.effort - predicted, "prior": prior}
    for name, values in parts.items():
        _add_joints(columns, units, name, values, joints)
    columns |= {f"valid_{name}": run.valid[:, j] for j, name in enumerate(_names(joints[0], run.q.shape[1]))}
    return DataTable(name="prediction", columns=columns, units=units, facts={**_facts(fit), "source": run.source})


def _add_joints(
    columns: dict[str, NDArray[Any]],
    units: dict[str, str],
    signal: str,
    values: Floats,
    joints: tuple[Sequence[str], Sequence[bool]],
) -> None:
    """Add one column per joint."""
    pair = ("A", "A") if signal == "current" else MOTION.get(signal, MOTION["effort"])
    for j, (name, slides) in enumerate(zip(_names(joints[0], values.shape[1]), joints[1], strict=True)):
        columns[f"{signal}_{name}"] = values[:, j]
        units[f"{signal}_{name}"] = pair[slides]


def _names(names: Sequence[str], count: int) -> Sequence[str]:
    return names or [f"joint{j + 1}" for j in range(count)]


def _slides(robot: Robot | None, run: Experiment | Recording) -> list[bool]:
    return [False] * run.q.shape[1] if robot is None else [body.is_prismatic for body in robot.bodies]


def table_ending(ending: str) -> str:
    """The format of tables: for ``auto`` Parquet where pyarrow is installed, CSV elsewhere."""
    return ending if ending != "auto" else "parquet" if find_spec("pyarrow") else "csv"


def write_tables(
    fit: Identification,
    folder: str | os.PathLike[str],
    runs: Sequence[Experiment] = (),
    *,
    ending: Literal["auto", "parquet", "csv"] = "auto",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write the parameters of an identification, and the predictions of experiments, as tables.

    The files are ``parameters``, ``standard_parameters``, and ``prediction_1``, ``prediction_2``, ... for the runs.

    Args:
        fit: The identification.
        folder: Folder for the files.
        runs: Experiments whose torques are predicted.
        ending: ``parquet`` or ``csv``; ``auto`` writes Parquet where pyarrow is installed and CSV elsewhere.
        force: Whether existing files may be replaced.

    Returns:
        The paths of the files.

    Example:
        >>> [path.name for path in dynid.export.write_tables(fit, folder / "tables", [run], ending="csv")]
        ['parameters.csv', 'standard_parameters.csv', 'prediction_1.csv']
    """
    if ending not in ("auto", "parquet", "csv"):
        raise ExportError(f"tables have no format '{ending}'", remedy="Give 'auto', 'parquet' or 'csv'.")
    place, kind = make_folder(folder), table_ending(ending)
    files = [(table.name, table) for table in (parameter_table(fit), standard_parameter_table(fit))]
    files += [(f"prediction_{number}", prediction_table(fit, run)) for number, run in enumerate(runs, start=1)]
    return tuple(table.write(place / f"{name}.{kind}", force=force) for name, table in files)
