"""Results and signals as pandas data frames, and these as Parquet or CSV files.

The sources are identifications, loads, logs and experiments; ``dynid export`` calls `write_tables`. Numbers are not
rounded. ``frame.attrs`` holds the units of the columns and where the table comes from (robot, method,
source); CSV files have the unit behind the name of the column, ``q_joint1 [rad]``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from dynid.array_types import Floats
from dynid.checks import require_library
from dynid.compiled import inverse_dynamics
from dynid.errors import ExportError
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.export.result_file import SavedResult
from dynid.identification.identification_view import shared_friction
from dynid.identification.identify import Identification
from dynid.identification.rich.joint_friction import joint_friction
from dynid.logs.joint_order import match_joints
from dynid.logs.recording import Recording
from dynid.payload.load import NAMES, UNITS, Load
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.safe_files import make_folder, write_atomically

WRENCH = {"fx": "N", "fy": "N", "fz": "N", "mx": "N m", "my": "N m", "mz": "N m"}
"""Component of a wrench -> its unit."""
MOTION = {"q": ("rad", "m"), "dq": ("rad/s", "m/s"), "ddq": ("rad/s^2", "m/s^2"), "current": ("A", "A")}
"""Signal -> its units for joints that turn and for joints that slide; other signals are torques [N m] or forces [N]."""


def parameter_table(
    source: Identification | SavedResult | Load, kind: Literal["base", "standard"] = "base"
) -> pd.DataFrame:
    """Make a table of parameters with their uncertainty, one row each.

    The column ``status`` says what determines the value:

    - ``data``: the data.
    - ``shared``: the data, but it is one of several terms that carry the friction of a joint together.
    - ``prior``: the prior values of the robot more than the data. In the table of standard parameters also one that
      the data determine only in combination with others; ``std`` and the 95 % interval are NaN there.
    - ``unidentifiable``: nothing, the motion leaves it open; ``std`` and the interval are NaN.

    Args:
        source: The identification, a result from `read_result`, or a load with its ten parameters.
        kind: For identifications: ``base`` for the estimated base parameters (combinations of inertial parameters) and
            friction terms, or ``standard`` for the parameters of every link and joint. The latter table also has the
            values before the identification (``prior``) and the ``owner``.

    Example:
        >>> table = dynid.export.parameter_table(fit)
        >>> list(table.columns)[:4]
        ['parameter', 'value', 'unit', 'std']
        >>> set(table["status"])
        {'data'}
    """
    if isinstance(source, Load):
        status = ["unidentifiable" if unknown else "data" for unknown in source.undetermined.tolist()]
        columns = _parameter_columns(NAMES, source.vector, UNITS, source.stderr, status)
        return _frame(columns, {"frame": source.frame, "method": source.method})
    fit = source.identification() if isinstance(source, SavedResult) else source
    return _standard_table(fit) if kind == "standard" else _base_table(fit)


def _standard_table(fit: Identification) -> pd.DataFrame:
    """Make the table of the parameters of every link and joint."""
    layout = fit.base.layout
    status = dict.fromkeys(layout.names, "data")
    status |= dict.fromkeys(fit.prior_dominated, "prior") | dict.fromkeys(fit.base.unidentifiable, "unidentifiable")
    stderr = fit.standard_stderr
    # these parameters are those of the plain model, with Coulomb and viscous friction alone; the estimate is of the
    # rich model, whose parameters FC and FV mean another friction: take the deviations of the total friction
    friction = {joint.name: {"FC": joint.dry.stderr, "FV": joint.viscous.stderr} for joint in joint_friction(fit)}
    for k, parameter in enumerate(layout):
        stderr[k] = friction.get(parameter.owner, {}).get(parameter.symbol, stderr[k])
    columns = _parameter_columns(layout.names, fit.standard, layout.units, stderr, list(status.values()))
    columns |= {"prior": fit.robot.parameter_vector.copy(), "owner": [parameter.owner for parameter in layout]}
    return _frame(columns, _facts(fit))


def _base_table(fit: Identification) -> pd.DataFrame:
    """Make the table of the estimated base parameters and friction terms."""
    estimate = fit.estimate
    shared = shared_friction(fit.equations)  # names of parameters that are one of several of a friction
    words = {"data": "data", "prior": "prior", "open": "unidentifiable"}
    status = [
        "shared" if origin == "data" and name in shared else words[origin]
        for name, origin in zip(estimate.names, estimate.sources, strict=True)
    ]
    columns = _parameter_columns(estimate.names, estimate.values, estimate.units, estimate.stderr, status)
    columns["expression"] = [*fit.base.expressions, *(term.name for term in fit.terms)]
    return _frame(columns, _facts(fit))


def _parameter_columns(
    names: Sequence[str], values: Floats, units: Sequence[str], stderr: Floats, status: Sequence[str]
) -> dict[str, Any]:
    """Make the columns that every table of parameters has; all arguments have one item per parameter."""
    known = np.isfinite(stderr) & (np.array(status) != "unidentifiable")
    std = np.where(known, stderr, np.nan)
    return {
        "parameter": list(names),
        "value": values,
        "unit": list(units),
        "std": std,
        "lower_95": values - TWO_SIDED_95 * std,
        "upper_95": values + TWO_SIDED_95 * std,
        "status": status,
    }


def _frame(
    columns: Mapping[str, Any], facts: Mapping[str, str], units: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Make a data frame from columns by name; the facts and the units of columns become its attributes."""
    frame = pd.DataFrame(dict(columns))
    frame.attrs.update({"units": dict(units or {}), **facts})
    return frame


def _facts(fit: Identification) -> dict[str, str]:
    """Collect robot, method and logs of an identification, for the attributes of its tables."""
    sources = ", ".join(run.source for run in fit.equations.excerpts)
    return {"robot": fit.robot.name, "method": fit.estimate.method, "source": sources}


def signal_tables(log: Recording | Experiment, robot: Robot | None = None) -> tuple[pd.DataFrame, ...]:
    """Make tables of the signals of a log, one column per signal and joint.

    Args:
        log: A recording, for the signals as measured; channels with a clock of their own become a second or third
            table. Or an experiment, for the processed signals and whether each sample counts (``valid``).
        robot: Says which joints slide, so that units are right; without it all joints are taken to turn.

    Example:
        >>> (table,) = dynid.export.signal_tables(run, robot)
        >>> table.attrs["units"]["q_joint1"]
        'rad'
    """
    if isinstance(log, Experiment):
        log = log if robot is None else log.matched(robot)
        # each table: its time (N,) and the signals with this clock
        clocks = [(log.time, ["q", "dq", "ddq", "effort", "valid", "wrench"])]
    else:
        log = match_joints(log, robot)
        clocks = [(log.time, ["q", "dq"])]
        for clock, names in ((log.effort_time, ["effort", "current"]), (log.wrench_time, ["wrench"])):
            if clock is None:  # they have the clock of the positions
                clocks[0][1].extend(names)
            else:
                clocks.append((clock, names))
    tables = []
    for clock, names in clocks:
        columns, units = _signal_columns({name: getattr(log, name) for name in names}, log.joint_names, robot)
        first_columns = {"time": clock, "segment": log.segment} if isinstance(log, Experiment) else {"time": clock}
        if columns:
            facts = {"source": log.source, "sha256": log.sha256}
            tables.append(_frame({**first_columns, **columns}, facts, {"time": "s", **units}))
    return tuple(tables)


def prediction_table(fit: Identification, run: Experiment) -> pd.DataFrame:
    """Make a table of measured and predicted torques of an experiment, residuals, and torques of the prior model.

    The prior model is the robot before the identification. Samples that were left out have ``valid_...`` False; their
    residual is given where the torque was measured.

    Args:
        fit: The identification.
        run: An experiment of the same robot: of the identification, or held out.

    Example:
        >>> table = dynid.export.prediction_table(fit, other)
        >>> bool(table["residual_joint1"].std() < table["measured_joint1"].std())
        True
    """
    run = run.matched(fit.robot)
    predicted = fit.torque(run)
    prior = inverse_dynamics(fit.robot, run.q, run.dq, run.ddq)
    signals = {"measured": run.effort, "predicted": predicted, "residual": run.effort - predicted, "prior": prior}
    columns, units = _signal_columns({**signals, "valid": run.valid}, fit.robot.joint_names, fit.robot)
    facts = {**_facts(fit), "source": run.source}
    return _frame({"time": run.time, "segment": run.segment, **columns}, facts, {"time": "s", **units})


def _signal_columns(
    signals: Mapping[str, Any], joints: Sequence[str], robot: Robot | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Make one column per joint, or component of a wrench, of every signal that is not None.

    Args:
        signals: Name -> values (N, n), or (N, 6) for ``wrench``.
        joints: Names of the joints; empty for names by number.
        robot: Says which joints slide; None where all turn.

    Returns:
        Columns by name, and units by the name of the column.
    """
    columns: dict[str, Any] = {}
    units: dict[str, str] = {}
    for signal, values in signals.items():
        if values is None:
            continue
        names = list(WRENCH) if signal == "wrench" else joints or [f"joint{j + 1}" for j in range(values.shape[1])]
        for j, name in enumerate(names):
            columns[f"{signal}_{name}"] = values[:, j]
            if signal != "valid":
                slides = robot is not None and signal != "wrench" and robot.bodies[j].is_prismatic
                of_turning, of_sliding = MOTION.get(signal, ("N m", "N"))
                units[f"{signal}_{name}"] = WRENCH.get(name, of_sliding if slides else of_turning)
    return columns, units


def write_table(frame: pd.DataFrame, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a table whole or not at all, in the format of the path's ending: ``.parquet`` or ``.csv``.

    Raises:
        ExportError: The ending is another one, the file exists, or it cannot be written.
        ArgumentError: Parquet needs pyarrow, which is not installed.

    Example:
        >>> dynid.export.write_table(dynid.export.parameter_table(fit), folder / "table.csv").name
        'table.csv'
    """
    units = frame.attrs["units"]
    if Path(path).suffix.lower() == ".csv":
        shown = frame.rename(columns={name: f"{name} [{unit}]" for name, unit in units.items()})
        return write_atomically(path, shown.to_csv(index=False, lineterminator="\n"), force=force)
    if Path(path).suffix.lower() != ".parquet":
        raise ExportError("tables are Parquet or CSV files", path=path, remedy="End the name in .parquet or .csv.")
    require_library("pyarrow", "dynid[readers]")
    stream = io.BytesIO()
    frame.to_parquet(stream, engine="pyarrow", index=False)
    return write_atomically(path, stream.getvalue(), force=force)


def write_tables(
    tables: Mapping[str, pd.DataFrame],
    folder: str | os.PathLike[str],
    *,
    kind: str = "tables",
    force: bool = False,
) -> tuple[Path, ...]:
    """Write tables into a folder.

    Args:
        tables: Name of the file without its ending -> table.
        folder: The folder, which is made if it does not exist.
        kind: ``parquet`` or ``csv``; ``tables`` for Parquet where pyarrow is installed and CSV elsewhere.
        force: Whether existing files may be replaced.
    """
    made = make_folder(folder)
    usual = "parquet" if find_spec("pyarrow") else "csv"
    ending = usual if kind == "tables" else kind
    return tuple(write_table(table, made / f"{name}.{ending}", force=force) for name, table in tables.items())


def result_tables(fit: Identification, runs: Sequence[Experiment] = ()) -> dict[str, pd.DataFrame]:
    """Make the tables of an identification: name of the file -> table, with predictions for the given experiments."""
    tables = {"parameters": parameter_table(fit), "standard_parameters": parameter_table(fit, "standard")}
    return tables | {f"prediction_{number}": prediction_table(fit, run) for number, run in enumerate(runs, start=1)}
