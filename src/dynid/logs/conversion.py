"""From the tables of a log to the fields of a `Recording`: SI units, on the joint side, in the robot's order of joints.

Input are the `ColumnTable`s of one run, one per file (name of a column -> its numbers), and the `ChannelMap`, which
says for every quantity, such as position or effort (torque), which columns hold it, in which unit and with which gear.
`convert` is called by the functions that read logs; its result are the keyword arguments of `Recording`.

`_Conversion.fields` has the five steps. Each value is computed as ``offset + gear^-1 (sign * unit * logged)`` (torques:
``offset + gear (...)``), in `_to_joint_side` and `_through_gear`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.array_types import Floats, Ints
from dynid.checks import LARGEST_SIGNAL
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.channel_map import ChannelMap, Signal
from dynid.logs.columns import Picked, pick_columns
from dynid.logs.joint_order import (
    column_order,
    count_mismatch,
    joint_findings,
    names_in_columns,
    refuse_contradiction,
    refuse_unnamed,
)
from dynid.logs.readers.base import ColumnTable
from dynid.logs.recording import Commands, Temperatures
from dynid.logs.units import Unit, known_unit, parse_unit
from dynid.robot.model import Robot

_RECORDING_FIELDS = {"position": "q", "velocity": "dq", "effort": "effort", "current": "current", "wrench": "wrench"}
"""Quantity of the map -> field of `Recording`."""
_EXAMPLE_UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m", "current": "A", "wrench": "N", "time": "s"}
_EXAMPLE_UNITS |= {"reference": "rad", "reference_velocity": "rad/s", "supply": "V", "temperature": "degC"}
"""Quantity of the map -> unit that an error proposes."""
_COMMANDS_FIELDS = {"reference": "position", "reference_velocity": "velocity"}
"""Quantity of the map -> field of `Commands`, where it has another name."""
_PLAIN_NUMBERS = ("enabled", "kp", "kd")
"""Quantities of drives that have no unit unless one is declared."""
_TRANSPOSE_REMEDY = "Check transpose, which is true where samples run along the second axis"
"""Remedy for a log whose rows and columns seem exchanged."""
_WRENCH_DIMENSIONS = ("force",) * 3 + ("torque",) * 3
"""Physical dimensions of the six columns of a wrench."""
_DIMENSIONS_OF_KIND = {
    "revolute": ("angle", "angular velocity", "torque"),
    "prismatic": ("length", "velocity", "force"),
}
"""Kind of a joint -> dimensions that quantities have for joints of this kind only."""


def convert(
    channel_map: ChannelMap, tables: Mapping[str, ColumnTable], robot: Robot | None = None, first_row: int = 0
) -> dict[str, Any]:
    """Convert the tables of a run to arguments of `Recording`.

    Args:
        channel_map: What the columns mean.
        tables: Key of a file of the run -> its table, or one piece of it.
        robot: The joints of the log are matched by its names and counted against it; None if it is not known.
        first_row: Number of rows of the run before these tables; above 0 for later pieces of a run read in pieces.

    Returns:
        Field of `Recording` -> its value.

    Raises:
        DataError: The map does not fit the tables, or leaves a unit undeclared.
    """
    return _Conversion(channel_map, tables, robot, first_row).fields()


class _Conversion:
    """The conversion of one run; it gathers notes and findings on its way."""

    def __init__(
        self, channel_map: ChannelMap, tables: Mapping[str, ColumnTable], robot: Robot | None, first_row: int
    ) -> None:
        """Take the arguments of `convert`."""
        self._map = channel_map
        self._tables = tables
        self._robot = robot
        self._first_row = first_row
        # quantity -> its section of the map (columns, unit, gear, ...): measured signals, commands, temperature
        self._signals = {**channel_map.signals, **channel_map.commands}
        if channel_map.temperature is not None:
            self._signals["temperature"] = channel_map.temperature
        self.joints = channel_map.joints or (robot.joint_names if robot else ())
        self._times: dict[tuple[str, int], Floats] = {}  # (column, id of the table) -> time stamps [s]
        # tables of messages (those with clocks) count times from their own first message: the earliest is zero for all
        self._epoch_ns = min((table.epoch_ns for table in tables.values() if table.clocks), default=0)
        several = len(tables) > 1
        self._notes = [f"{key}: {note}" if several else note for key, table in tables.items() for note in table.notes]
        self._findings = [
            _report_loss(f"{key}: {loss}" if several else loss)
            for key, table in tables.items()
            for loss in table.salvaged
        ]

    def fields(self) -> dict[str, Any]:
        """Convert all quantities; return the arguments of `Recording`."""
        # 1. the columns of every quantity, side by side as the log has them: names and arrays, then (N, k)
        picked = self._pick_all()
        raw = {name: self._side_by_side(name, self._signals[name], item) for name, item in picked.items()}
        # 2. which column is which joint: there are as many as the robot has, in its order or in another
        main = {name: item for name, item in picked.items() if name in _RECORDING_FIELDS}
        self._check_counts(main, raw)
        orders = self._orders(picked)
        # 3. SI units on the joint side, still in the log's order, with time stamps for each quantity
        with np.errstate(all="ignore"):  # infinities and NaN of the log are kept; later checks find them
            values = {
                name: self._to_joint_side(name, item, raw[name], orders.get(name)) for name, item in picked.items()
            }
            times = {name: self._time(name, item, len(values[name])) for name, item in picked.items()}
            for name in {*main} - {"wrench"}:
                _for_each_joint(name, values[name], values["position"].shape[1])
            gains = self._torque_from_current(values, times)
        # 4. the robot's order; torques computed from currents are in the order of the currents
        if "current" in orders:
            orders.setdefault("effort", orders["current"])
        for name in orders.keys() & values.keys():
            values[name] = np.ascontiguousarray(values[name][:, orders[name]])
        if "effort" in orders:
            gains = {key: numbers[orders["effort"]] for key, numbers in gains.items()}
        # 5. names of the joints; commands, temperatures, findings and notes
        width = values["position"].shape[1]
        names = self._robot.joint_names if self._robot else self.joints or picked["position"].joints
        if not names and self._map.effort is None and self._map.reference is not None:
            names = names_in_columns(picked["position"].names)
        return {
            **gains,
            **{field: values[name] for name, field in _RECORDING_FIELDS.items() if name in values},
            **_clocks(times),
            "commands": self._commands(values, times, width),
            "temperature": Temperatures(
                time=times["temperature"], values=_for_each_joint("temperature", values["temperature"], width)
            )
            if "temperature" in values
            else None,
            "joint_names": names if len(names) == width else (),
            "findings": (*self._findings, *joint_findings(main, self._map.joints, self._robot, orders)),
            "notes": tuple(dict.fromkeys(self._notes)),
            "isolated": self._map.time.isolated,
        }

    # --- columns ---------------------------------------------------------------------------------------------------

    def _pick_all(self) -> dict[str, Picked]:
        """Find the columns of every quantity in the map; optional ones may be missing.

        Returns:
            Quantity -> its table, with the names and arrays of its columns.
        """
        picked = {}
        for quantity, signal in self._signals.items():
            try:
                picked[quantity] = pick_columns(signal, quantity, self._tables, self.joints)
            except DataError as error:
                if not signal.optional:
                    raise
                self._notes.append(f"no {quantity}: {error.reason}")
        if "position" not in picked:
            raise DataError("the channel map has no [position]", remedy="Without positions nothing can be identified.")
        if "reference" not in picked:  # without commanded positions other commands are of no use
            picked = {name: item for name, item in picked.items() if name in (*_RECORDING_FIELDS, "temperature")}
        for quantity, item in picked.items():
            if len({item.table.clocks[name] for name in item.names if name in item.table.clocks}) > 1:
                reason = f"the joints of {quantity} come in different messages, each with its own times"
                raise _refusal(quantity, reason, "List under joints only those that one publisher sends.")
        return picked

    def _check_counts(self, picked: Mapping[str, Picked], raw: Mapping[str, Floats]) -> None:
        """Refuse a log with another number of joints than the robot or the map, before units are looked at.

        Args:
            picked: Measured quantity -> its columns.
            raw: Quantity -> (N, k) numbers as logged.
        """
        joints = raw["position"].shape[1]
        for quantity, item in picked.items():
            width = raw[quantity].shape[1]
            if self._robot is not None and quantity != "wrench" and width != self._robot.dof:
                names = self._naming_texts(item) if len(item.names) == width else ()
                has_array = any(array.ndim == 2 for array in item.arrays)
                hint = f" {_TRANSPOSE_REMEDY}." if has_array else ""
                raise count_mismatch(quantity, width, names, self._robot, hint)
        if self._map.joints and len(self._map.joints) != joints:
            reason = f"{len(self._map.joints)} joints are named for {joints} columns of position"
            raise DataError(reason, place="joints", remedy="Name every joint of the log once, in the robot's order.")

    def _naming_texts(self, item: Picked) -> tuple[str, ...]:
        """Choose the texts that say which column belongs to which joint.

        These are the names of joints in the log, else those in the map, else the names of the columns.
        """
        return item.joints or (self._map.joints if len(self._map.joints) == len(item.names) else item.names)

    def _orders(self, picked: Mapping[str, Picked]) -> dict[str, Ints]:
        """Find the quantities whose columns are in another order than the robot's joints, by their names.

        Returns:
            Quantity -> (n,) for each joint of the robot the index of its column.
        """
        orders: dict[str, Ints] = {}
        for quantity, item in picked.items():
            gear = self._signals[quantity].gear
            single = quantity not in _RECORDING_FIELDS and len(item.names) == 1  # one number for all joints
            if quantity in ("wrench", "supply") or single or (gear is not None and gear.ndim == 2):
                continue  # columns of coupled motors have no joint of their own
            names = self._naming_texts(item)
            declared = bool(self._map.joints) and names == self._map.joints
            if declared and self._robot is not None:
                refuse_contradiction(quantity, names, item.names, self._robot)
            whose, place = ("the channel map", "joints") if declared else ("the log", f"[{quantity}] columns")
            order = column_order(names, self._robot, whose=whose, place=place)
            if order is not None:
                orders[quantity] = order
        if self._robot is not None and orders and not self._map.joints:
            others = {
                quantity: self._naming_texts(item)
                for quantity, item in picked.items()
                if quantity in _RECORDING_FIELDS and quantity not in orders
            }
            refuse_unnamed(next(iter(orders)), others, self._robot)
        return orders

    # --- values ----------------------------------------------------------------------------------------------------

    def _to_joint_side(self, quantity: str, picked: Picked, values: Floats, order: Ints | None) -> Floats:
        """Convert one quantity to SI units on the joint side, (N, n), in the log's order of joints.

        Args:
            quantity: Name of the quantity.
            picked: Its columns.
            values: (N, k) numbers as logged.
            order: For each joint of the robot the index of its column; None where the orders agree.
        """
        signal = self._signals[quantity]
        width = values.shape[1]
        declared = tuple(picked.table.units.get(name, "") for name in picked.names)
        units = self._units(quantity, signal, declared, width)
        if signal.gear is None:  # otherwise it is of the motor, which turns even if its joint slides
            self._check_dimensions(quantity, units, picked.names, order)
        scale = np.array([unit.factor for unit in units])
        factors = scale  # times the rated value and the sign, below
        if any(unit.dimension == "share" for unit in units):
            if signal.rated is None:
                reason = f"{quantity} is given in per cent, of what is not declared"
                raise _refusal(quantity, reason, "Add rated = [...] with the value of 100 % in SI units.")
            factors = factors * _per_joint(quantity, "rated", signal.rated, width)
        if signal.sign is not None:
            factors = factors * _per_joint(quantity, "sign", signal.sign, width)
        values = values if np.all(factors == 1.0) else values * factors  # large logs are mostly in SI units already
        if any(unit.zero for unit in units):  # scales of temperature
            values = values + np.array([unit.zero for unit in units])
        if signal.gear is not None and quantity != "current":  # a current stays the motor's; its torque passes the gear
            values = _through_gear(quantity, signal.gear, values)
        if signal.offset is not None:  # of the joint, not of the motor, though in the unit of the log
            values = values + scale * _per_joint(quantity, "offset", signal.offset, width)
        return self._without_absurd(quantity, picked.names, values)

    def _side_by_side(self, quantity: str, signal: Signal, picked: Picked) -> Floats:
        """Put the columns of a quantity side by side, (N, k), as the log has them.

        Args:
            quantity: Name of the quantity, for errors.
            signal: Its section of the map.
            picked: Its columns, each (N,) or (N, k).
        """
        blocks = [array[:, None] if array.ndim == 1 else array for array in picked.arrays]
        blocks = [block.T for block in blocks] if signal.transpose else blocks
        if len({len(block) for block in blocks}) > 1:
            lengths = ", ".join(f"{name} {len(block)}" for name, block in zip(picked.names, blocks))
            reason = f"the columns of {quantity} have different lengths: {lengths}"
            raise _refusal(quantity, reason, "Name columns of one length; give others a time of their own.")
        raw = np.concatenate(blocks, axis=1) if len(blocks) > 1 else blocks[0]
        if signal.width is None:
            return raw
        # one number per line, the numbers of a sample one below the other
        width = signal.width if signal.width != "joints" else self._robot.dof if self._robot else len(self.joints)
        if not width or raw.shape[1] != 1 or raw.size % width:
            reason = f"{raw.shape[0]} lines of {raw.shape[1]} numbers do not make rows of {width or '?'}"
            remedy = "Declare the numbers per sample as width, or give the robot."
            raise _refusal(quantity, reason, remedy, "width")
        return raw.reshape(-1, width)

    def _units(self, quantity: str, signal: Signal, declared: tuple[str, ...], width: int) -> list[Unit]:
        """Find the unit of each column: the map's, else the one that the log's format declares; never a guess."""
        names: tuple[str, ...] = signal.unit or (("number",) if quantity in _PLAIN_NUMBERS else declared)  # type: ignore[assignment]
        names = names * width if len(names) == 1 else names
        # a note where the map and the log declare different units
        given = zip(names, declared * width) if signal.unit else ()
        other = [logged for own, logged in given if logged not in ("", "SI") and known_unit(logged) != known_unit(own)]
        if other:
            self._notes.append(f"{quantity}: the map's unit overrides {other[0]}, which the log declares")
        if not all(names):
            remedy = f'Add a line such as unit = "{_EXAMPLE_UNITS[quantity]}" to [{quantity}] in the channel map.'
            raise _refusal(quantity, f"the unit of {quantity} is not declared", remedy)
        if len(names) != width:
            reason = f"{len(names)} units for {width} columns"
            raise _refusal(quantity, reason, "Give one unit, or one for every column.", "unit")
        return [parse_unit(name, quantity) for name in names]

    def _check_dimensions(self, quantity: str, units: list[Unit], columns: Sequence[str], order: Ints | None) -> None:
        """Refuse units that contradict the joint: millimetres of a revolute joint, newtons of a moment.

        Args:
            quantity: The quantity.
            units: Unit of each column.
            columns: Names of the columns.
            order: For each joint of the robot the index of its column; None where the orders agree.
        """
        if quantity == "wrench":
            if len(units) != 6 or any(
                unit.dimension not in ("SI", wanted) for unit, wanted in zip(units, _WRENCH_DIMENSIONS)
            ):
                remedy = 'Give six columns and six units, as unit = ["N", "N", "N", "N m", "N m", "N m"].'
                raise _refusal(quantity, "a wrench is three forces and three moments", remedy)
            return
        joints = list(self._robot.moving_joints) if self._robot else []
        joints = joints if order is None else [joints[k] for k in np.argsort(order)]  # in the log's order
        names = columns if len(columns) == len(units) else [f"{quantity} {k + 1}" for k in range(len(units))]
        for joint, unit, name in zip(joints, units, names):
            other_kind = "revolute" if joint.kind == "prismatic" else "prismatic"
            if unit.dimension in _DIMENSIONS_OF_KIND[other_kind]:
                raise _refusal(
                    quantity,
                    f"joint '{joint.name}' is {joint.kind}, but the unit of its column '{name}' is one of "
                    f"{unit.dimension}",
                    "Check that the log is of this robot and its columns in the robot's order. Then give a list "
                    "with the unit of every joint, or the gear of motor-side signals.",
                    "unit",
                )

    def _without_absurd(self, quantity: str, names: Sequence[str], values: Floats) -> Floats:
        """Replace numbers beyond `LARGEST_SIGNAL` by NaN, with a finding.

        Raises:
            DataError: More than half of a column is beyond it: its unit is wrong.
        """
        flat = values.ravel(order="K")
        if flat @ flat <= LARGEST_SIGNAL**2:  # then no number is beyond it; the sum is cheap, and false with a NaN
            return values
        absurd = np.isfinite(values) & (np.abs(values) > LARGEST_SIGNAL)
        if not absurd.any():
            return values
        worst = int(np.argmax(absurd.sum(axis=0)))
        name = names[worst] if len(names) == values.shape[1] else quantity
        peak = f"'{name}' reaches {np.abs(values[absurd]).max():.3g} in SI units, which no robot does"
        if 2 * absurd[:, worst].sum() > len(values):
            raise _refusal(quantity, peak, "Check the column, its unit and its gear.")
        rows = np.flatnonzero(absurd.any(axis=1)) + self._first_row
        where = f"rows {rows[0]} to {rows[-1]}" if rows.size > 1 else f"row {rows[0]}"
        self._findings.append(_report_loss(f"{peak}; {rows.size} such samples of {quantity} are missing ({where})"))
        return np.where(absurd, np.nan, values)

    def _torque_from_current(self, values: dict[str, Floats], times: dict[str, Floats]) -> dict[str, Floats]:
        """Compute the effort from currents with the map's gains or torque constants, or scale an effort by its gain.

        The map states either ``gain`` (joint torque per motor current), or ``torque_constant`` (motor torque per motor
        current) with a gear.

        Args:
            values: Quantity -> (N, n) values; the effort is put in.
            times: Quantity -> (N,) time stamps; those of the effort are put in.

        Returns:
            `Recording.gain` and `Recording.gain_std` (relative), as far as the map states them.
        """
        signals = {name: self._signals[name] for name in ("current", "effort") if name in values}
        stated = {name: x for name, x in signals.items() if x.gain is not None or x.torque_constant is not None}
        if not stated:
            return {}
        quantity, signal = next(iter(stated.items()))
        if quantity == "current":
            if "effort" in values:
                reason = "effort is both measured and computed from currents"
                raise _refusal(quantity, reason, "Take [effort] out, or gain and torque_constant.")
            self._notes.append("effort computed from currents with the declared constants")
        drive = values[quantity]
        width = drive.shape[1]
        times["effort"] = times[quantity]
        if signal.gain is None:
            torque = drive * _per_joint(quantity, "torque_constant", signal.torque_constant, width)
            values["effort"] = torque if signal.gear is None else _through_gear("effort", signal.gear, torque)
            return {"gain_std": np.zeros(width)}
        gain, std = (_per_joint(quantity, "gain", x, width) for x in (signal.gain.gain, signal.gain.stderr))
        values["effort"] = drive * gain
        return {"gain": gain, "gain_std": std / np.abs(gain)}

    def _commands(self, values: Mapping[str, Floats], times: Mapping[str, Floats], width: int) -> Commands | None:
        """Make the commands to the drives, on the clock of the commanded positions; None without these.

        Args:
            values: Quantity -> (M, k) values in SI units, in the robot's order.
            times: Quantity -> (M,) time stamps [s].
            width: Number of joints n.
        """
        if "reference" not in values:
            return None
        fields: dict[str, Any] = {}
        for quantity in self._map.commands:
            if (array := values.get(quantity)) is None:
                continue
            if quantity != "supply":
                array = _for_each_joint(quantity, array, width)
            elif array.shape[1] > 1:
                raise _refusal(quantity, "it is one voltage for all drives", "Name one column.", "columns")
            if not np.array_equal(times[quantity], times["reference"], equal_nan=True):
                # another clock: each value holds until the next one
                last = np.searchsorted(times[quantity], times["reference"], side="right") - 1
                array = array[np.clip(last, 0, max(len(array) - 1, 0))]
            fields[_COMMANDS_FIELDS.get(quantity, quantity)] = array
        return Commands(time=times["reference"], held=self._signals["reference"].held, **fields)

    # --- time ------------------------------------------------------------------------------------------------------

    def _time(self, quantity: str, picked: Picked, rows: int) -> Floats:
        """Find the time stamps of one quantity, (rows,) [s].

        They come from the column that the map names for this quantity; else from the messages of the log; else from the
        map's section [time], which names a column or states the time between rows.
        """
        clock = self._map.time
        own = self._signals[quantity].time
        table = picked.table
        # columns with the times of messages; `_pick_all` has checked that there is one at most
        inherent = {table.clocks[name] for name in picked.names if name in table.clocks}
        if own or (not inherent and clock.column):
            place = (own or str(clock.column), id(table))
            if place not in self._times:  # most signals of a table have the same clock
                self._times[place] = self._declared_time(place[0], table)
            time = self._times[place]
        elif inherent:
            time = table.columns[inherent.pop()] + (table.epoch_ns - self._epoch_ns) * 1e-9
        elif clock.sample_time is None or clock.unit is None:
            remedy = 'Declare it: [time] column = "..." and unit, or sample_time = 1 and unit = "ms".'
            raise _refusal("time", "the log has no time column", remedy)
        else:
            counted = np.arange(self._first_row, self._first_row + rows, dtype=np.float64)
            time = counted * (clock.sample_time * parse_unit(clock.unit, "time").factor)
        if time.shape != (rows,):
            remedy = f"{_TRANSPOSE_REMEDY}, or name the right time column."
            raise _refusal(quantity, f"{quantity} has {rows} rows, its time column {time.size}", remedy)
        return time

    def _declared_time(self, column: str, table: ColumnTable) -> Floats:
        """Read the stamps (N,) in a time column [s]; those in the map's column of fractions are added."""
        clock = self._map.time
        unit = clock.unit
        time: Floats | float = 0.0
        for name in (column, *([clock.fraction] if clock.fraction else [])):
            picked = pick_columns(Signal(columns=(name,), file=clock.file), "time", self._tables, (), prefer=table)
            if len(picked.names) != 1:
                reason = f"time is one column, not {len(picked.names)}"
                raise _refusal("time", reason, "Name the one with stamps.", "column")
            unit = unit or picked.table.units.get(picked.names[0])
            if not unit:
                remedy = 'Add unit = "s" (or ms, us, ns) to [time].'
                raise _refusal("time", "the unit of time is not declared", remedy)
            part = picked.arrays[0].reshape(-1) * parse_unit(unit, "time").factor
            time = time + np.where(np.abs(part) <= LARGEST_SIGNAL, part, np.nan)
            unit = clock.fraction_unit
        return np.asarray(time)


def _report_loss(loss: str) -> Finding:
    """Make the finding for a part of a damaged file that was lost; ``loss`` describes it."""
    remedy = "The rest was read; copy or export the file again if more of it is needed."
    return Finding(code="salvaged", severity="warning", where="file", message=loss, remedy=remedy)


def _refusal(quantity: str, reason: str, remedy: str, key: str = "") -> DataError:
    """Make the error for a section of the map (one quantity), or for one of its keys."""
    return DataError(reason, place=f"[{quantity}] {key}".strip(), remedy=remedy)


def _per_joint(quantity: str, key: str, value: Floats, width: int) -> Floats:
    """Expand a number or a list of the map to a factor for each of `width` columns; `key` is its key in the map."""
    if value.shape not in ((), (1,), (width,)):
        reason = f"{value.size} values for {width} joints"
        raise _refusal(quantity, reason, "Give one value, or one for every joint.", key)
    return np.broadcast_to(value, (width,))


def _through_gear(quantity: str, gear: Floats, motor: Floats) -> Floats:
    """Convert motor-side values (N, n) to joint-side ones.

    Positions and velocities of motors are ``gear @ joint``, so the inverse of the gear converts them; joint torques are
    ``gear @ motor torque``, with the gear that the map states for torques.

    Args:
        quantity: The quantity that the values are of.
        gear: Ratio, ratios (n,) or matrix (n, n).
        motor: (N, n) values of the motors.
    """
    if quantity == "wrench":
        raise _refusal(quantity, "a wrench does not pass a gear", "Take gear out.", "gear")
    width = motor.shape[1]
    matrix = np.diag(_per_joint(quantity, "gear", gear, width)) if gear.ndim < 2 else gear
    if matrix.shape != (width, width):
        reason = f"the gear matrix is {matrix.shape} for {width} joints"
        raise _refusal(quantity, reason, "Give one row and one column for every joint.", "gear")
    return np.asarray(motor @ matrix.T if quantity == "effort" else np.linalg.solve(matrix, motor.T).T)


def _clocks(times: Mapping[str, Floats]) -> dict[str, Floats | None]:
    """Make the fields of `Recording` for clocks: times of the positions; those of effort and wrench if they differ.

    Args:
        times: Quantity -> (N,) time stamps [s].
    """
    time = times["position"]
    # quantities on another clock than the positions
    own = {name: clock for name, clock in times.items() if not np.array_equal(clock, time, equal_nan=True)}
    if "velocity" in own:
        raise DataError("velocities have other times than positions", remedy="Leave [velocity] out of the map.")
    effort, current = times.get("effort"), times.get("current")
    if effort is not None and current is not None and not np.array_equal(effort, current, equal_nan=True):
        raise DataError("effort and current have different times", remedy="Leave one of them out of the map.")
    return {"time": time, "effort_time": own.get("effort", own.get("current")), "wrench_time": own.get("wrench")}


def _for_each_joint(quantity: str, values: Floats, width: int) -> Floats:
    """Check that values have one column per joint, (N, n).

    A single column of a gain, a switch or a temperature is repeated for all joints.
    """
    per_joint = (*_RECORDING_FIELDS, "reference", "reference_velocity")
    if values.shape[1] != width and (values.shape[1] != 1 or quantity in per_joint):
        reason = f"{quantity} has {values.shape[1]} columns, position {width}"
        raise _refusal(quantity, reason, "Name one column per joint.")
    return np.broadcast_to(values, (len(values), width))
