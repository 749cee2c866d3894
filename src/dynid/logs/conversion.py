"""From tables to a `Recording`: a channel map picks the columns and converts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import DataError
from dynid.findings import Finding
from dynid.logs.channel_map import ChannelMap, Signal, StatedGain
from dynid.logs.columns import Picked, pick, refuse_huge, side_by_side
from dynid.logs.joint_order import (
    assigned_findings,
    column_order,
    count_mismatch,
    named_joints,
    names_in_columns,
    order_finding,
    refuse_unnamed,
    unnamed_findings,
)
from dynid.logs.readers.base import Table
from dynid.logs.recording import Commands, Temperatures
from dynid.logs.units import Unit, known_unit, parse_unit
from dynid.robot.model import Robot

_FIELDS = {"position": "q", "velocity": "dq", "effort": "effort", "current": "current", "wrench": "wrench"}
_EXAMPLE = {"position": "rad", "velocity": "rad/s", "effort": "N m", "current": "A", "wrench": "N", "time": "s"}
_EXAMPLE |= {"reference": "rad", "reference_velocity": "rad/s", "supply": "V", "temperature": "degC"}
_PLAIN_NUMBERS = ("enabled", "kp", "kd")
"""Quantities of drives that have no unit unless one is declared."""
_COMPONENTS = ("force", "force", "force", "torque", "torque", "torque")


class Converter:
    """Applies one map to the tables of one run."""

    def __init__(
        self, channel_map: ChannelMap, tables: Mapping[str, Table], robot: Robot | None, first_row: int = 0
    ) -> None:
        """Prepare the conversion; a later piece of a run begins at its row `first_row`."""
        self._first_row = first_row
        self._map = channel_map
        self._signals = {**channel_map.signals, **channel_map.commands}
        if channel_map.temperature is not None:
            self._signals["temperature"] = channel_map.temperature
        self._tables = tables
        self._robot = robot
        self._order_of: Mapping[str, NDArray[np.int64]] = {}
        self._told: Mapping[str, Picked] = {}
        self._times: dict[tuple[str, int], Floats] = {}
        self._joints = channel_map.joints or (robot.joint_names if robot else ())
        self._epoch_ns = min((table.epoch_ns for table in tables.values() if table.clocks), default=0)
        self._notes = [
            f"{key}: {note}" if len(tables) > 1 else note for key, table in tables.items() for note in table.notes
        ]

    def fits(self) -> bool:
        """Whether every required column exists."""
        signals = [signal for signal in self._map.signals.values() if not signal.optional]
        try:
            return all(self._pick(signal, "").arrays for signal in signals) and not self._map.files
        except DataError:
            return False

    def fits_robot(self) -> bool:
        """Whether the positions have as many columns as the robot has joints."""
        try:
            picked = self._pick(self._map.signals["position"], "position")
        except (DataError, KeyError):
            return False
        width = sum(1 if array.ndim == 1 else array.shape[1] for array in picked.arrays)
        return self._robot is None or width == self._robot.dof

    def fields(self) -> dict[str, Any]:
        """The arguments of `Recording`."""
        picked = self._pick_all()
        self._check_counts(picked)
        self._order_of = self._orders(picked)
        for quantity, item in picked.items():
            self._check_one_clock(quantity, item)
        with np.errstate(all="ignore"):  # infinities and NaN of the log are kept, so that the quality gate finds them
            values = {quantity: self._values(quantity, item) for quantity, item in picked.items()}
            times = {quantity: self._time(quantity, item, len(values[quantity])) for quantity, item in picked.items()}
            self._check_widths(values)
            gains = self._torque_from_current(values, times)
            values = {quantity: self._in_robot_order(quantity, array) for quantity, array in values.items()}
            commands = self._commands(values["position"].shape[1])
            temperature = self._temperature(values["position"].shape[1])
        return {
            "commands": commands,
            "temperature": temperature,
            "constants": {name: number for table in self._tables.values() for name, number in table.constants.items()},
            **{name: self._in_robot_order("effort", numbers[None])[0] for name, numbers in gains.items()},
            **{_FIELDS[quantity]: array for quantity, array in values.items()},
            **self._clocks(times),
            "joint_names": self._names(picked["position"], values["position"].shape[1]),
            "findings": (
                *self._salvaged(),
                *self._order_findings(picked["position"]),
                *([] if self._robot is None or self._map.joints else unnamed_findings(picked, self._robot)),
                *assigned_findings(picked["position"], self._map.joints, None if commands is None else self._robot),
            ),
            "notes": (*dict.fromkeys(self._notes), *self._unused({**picked, **self._told})),
            "isolated": self._map.clock.isolated,
        }

    def _check_counts(self, picked: Mapping[str, Picked]) -> None:
        """Refuse a log with other joints than the robot has, before anything is said about units."""
        for quantity, item in picked.items():
            signal = self._map.signals[quantity]
            if self._robot is None or quantity == "wrench" or signal.width is not None:
                continue
            wide = [array.ndim == 2 for array in item.arrays]
            widths = [array.shape[0 if signal.transpose else 1] if array.ndim == 2 else 1 for array in item.arrays]
            if sum(widths) != self._robot.dof:
                names = self._joint_words(item) if len(widths) == sum(widths) else ()
                hint = f" {_orientation_note(signal)}." if any(wide) else ""
                raise count_mismatch(quantity, sum(widths), names, self._robot, hint)

    def _commands(self, width: int) -> Commands | None:
        """What the drives were told, on the clock of the commanded positions."""
        picked = {name: found for name in self._map.commands if (found := self._picked_command(name)) is not None}
        if "reference" not in picked:
            return None
        self._order_of = {**self._order_of, **self._orders(picked)}
        values, times = {}, {}
        for quantity, item in picked.items():
            self._check_one_clock(quantity, item)
            array = self._values(quantity, item)
            times[quantity] = self._time(quantity, item, len(array))
            if array.shape[1] == 1 and width > 1 and quantity not in ("reference", "reference_velocity"):
                array = np.repeat(array, width, axis=1)  # one number for all joints
            elif quantity != "supply" and array.shape[1] != width:
                raise DataError(
                    f"{quantity} has {array.shape[1]} columns, position {width}",
                    place=f"[{quantity}]",
                    remedy="Name one column per joint.",
                )
            values[quantity] = _held(times[quantity], self._in_robot_order(quantity, array), times["reference"])
        self._told = picked
        supply, on = values.get("supply"), values.get("enabled")
        return Commands(
            time=times["reference"],
            position=values["reference"],
            velocity=values.get("reference_velocity"),
            enabled=None if on is None else on > 0.0,
            kp=values.get("kp"),
            kd=values.get("kd"),
            supply=None if supply is None else supply[:, 0],
            held=self._signals["reference"].held,
        )

    def _temperature(self, width: int) -> Temperatures | None:
        """Temperatures of the joints; one column stands for all of them."""
        signal = self._map.temperature
        if signal is None:
            return None
        try:
            picked = self._pick(signal, "temperature")
        except DataError:
            if not signal.optional:
                raise
            return None
        values = self._values("temperature", picked)
        if values.shape[1] not in (1, width):
            raise DataError(
                f"temperature has {values.shape[1]} columns, position {width}",
                place="[temperature]",
                remedy="Name one column, or one per joint.",
            )
        if values.shape[1] == width:
            self._order_of = {**self._order_of, **self._orders({"temperature": picked})}
            values = self._in_robot_order("temperature", values)
        self._told = {**self._told, "temperature": picked}
        time = self._time("temperature", picked, len(values))
        return Temperatures(time=time, values=np.broadcast_to(values, (len(values), width)))

    def _picked_command(self, quantity: str) -> Picked | None:
        """The columns of something that the drives were told; None where it is optional and missing."""
        signal = self._signals[quantity]
        try:
            return self._pick(signal, quantity)
        except DataError as error:
            if not signal.optional:
                raise
            self._notes.append(f"no {quantity}: {error.reason}")
            return None

    def _orders(self, picked: Mapping[str, Picked]) -> dict[str, NDArray[np.int64]]:
        """Quantity -> the places of the robot's joints among its columns, where names and order disagree."""
        orders = {}
        for quantity, item in picked.items():
            gear = self._signals[quantity].gear
            if quantity == "wrench" or (gear is not None and gear.ndim == 2):  # columns of coupled motors
                continue
            names = self._joint_words(item)
            declared = bool(self._map.joints) and names == self._map.joints
            whose, place = ("the channel map", "joints") if declared else ("the log", f"[{quantity}] columns")
            order = column_order(names, self._robot, whose=whose, place=place)
            if order is not None:
                orders[quantity] = order
        if self._robot is not None and orders and not self._map.joints:
            words = {quantity: self._joint_words(item) for quantity, item in picked.items()}
            refuse_unnamed(next(iter(orders)), {q: w for q, w in words.items() if q not in orders}, self._robot)
        return orders

    def _joint_words(self, item: Picked) -> tuple[str, ...]:
        """The names that say which column belongs to which joint: the log's, the map's, or the columns' own."""
        return item.joints or (self._map.joints if len(self._map.joints) == len(item.names) else item.names)

    def _in_robot_order(self, quantity: str, values: Floats) -> Floats:
        """The columns of a quantity in the robot's order; torques made of currents follow the currents."""
        followed = quantity if quantity in self._signals else "current"
        order = self._order_of.get(followed)
        return values if order is None else np.ascontiguousarray(values[:, order])

    def _order_findings(self, position: Picked) -> tuple[Finding, ...]:
        """A finding where the log, or the map, has the joints in another order than the robot."""
        if self._robot is None:
            return ()
        if self._order_of:
            return (order_finding(self._joint_words(position), self._robot, declared=True),)
        listed = [name for name in position.table.names if name in position.names]
        joints = [position.joints[position.names.index(name)] for name in listed] if position.joints else []
        told = [joint for joint in named_joints(joints, self._robot) if joint is not None]
        other = told != sorted(told) and len(set(told)) == self._robot.dof
        return (order_finding(joints, self._robot, declared=False),) if other else ()

    def _salvaged(self) -> tuple[Finding, ...]:
        """A finding for everything that was lost of damaged files."""
        named = len(self._tables) > 1
        losses = [f"{key}: {loss}" if named else loss for key, table in self._tables.items() for loss in table.salvaged]
        return tuple(
            Finding(
                code="salvaged",
                severity="warning",
                where="file",
                message=loss,
                remedy="The rest was read; copy or export the file again if more of it is needed.",
            )
            for loss in losses
        )

    def _pick_all(self) -> dict[str, Picked]:
        """The columns of every quantity; optional ones may be missing."""
        picked = {}
        for quantity, signal in self._map.signals.items():
            try:
                picked[quantity] = self._pick(signal, quantity)
            except DataError as error:
                if not signal.optional:
                    raise
                self._notes.append(f"no {quantity}: {error.reason}")
        if "position" not in picked:
            raise DataError("the channel map has no [position]", remedy="Without positions nothing can be identified.")
        return picked

    def _pick(self, signal: Signal, quantity: str) -> Picked:
        return pick(signal, quantity, self._tables, self._joints)

    # --- values ----------------------------------------------------------------------------------------------------

    def _values(self, quantity: str, picked: Picked) -> Floats:
        """One quantity, (N, n), in SI units on the joint side."""
        signal = self._signals[quantity]
        raw = self._shaped(quantity, signal, picked)
        units = self._units(quantity, signal, picked, raw.shape[1])
        factors = np.array([unit.factor for unit in units])
        if any(unit.dimension == "share" for unit in units):
            factors = factors * self._per_joint(quantity, "rated", signal.rated, raw.shape[1])
        if signal.sign is not None:
            factors = factors * self._per_joint(quantity, "sign", signal.sign, raw.shape[1])
        values = raw if np.all(factors == 1.0) else raw * factors  # large logs are mostly in SI units already
        if any(unit.zero for unit in units):
            values = values + np.array([unit.zero for unit in units])
        if signal.gear is not None and quantity != "current":  # a current stays the motor's; its torque passes the gear
            values = self._through_gear(quantity, signal, values)
        if signal.offset is not None:
            declared = [parse_unit(signal.offset_unit, quantity)] if signal.offset_unit else units
            if any(
                a.dimension != b.dimension for a in declared for b in units if "SI" not in (a.dimension, b.dimension)
            ):
                raise DataError(
                    f"the offset is one of {declared[0].dimension}, {quantity} one of {units[0].dimension}",
                    place=f"[{quantity}] offset_unit",
                    remedy="Give the offset in a unit of the signal's kind; leave offset_unit out for the same unit.",
                )
            scale = np.array([unit.factor for unit in declared])
            values = values + scale * self._per_joint(quantity, "offset", signal.offset, values.shape[1])
        self._note_conversion(quantity, signal, units)
        refuse_huge(quantity, picked.names, np.asarray(values))
        return np.asarray(values)

    def _shaped(self, quantity: str, signal: Signal, picked: Picked) -> Floats:
        """The picked columns side by side, (N, k)."""
        wide = [array[:, None] if array.ndim == 1 else array for array in picked.arrays]
        if signal.transpose:
            wide = [array.T for array in wide]
        if len({len(array) for array in wide}) > 1:
            lengths = ", ".join(f"{name} {len(array)}" for name, array in zip(picked.names, wide))
            raise DataError(
                f"the columns of {quantity} have different lengths: {lengths}",
                place=f"[{quantity}]",
                remedy="Name columns of one length; give others a time of their own.",
            )
        raw = side_by_side(wide)
        if signal.width is None:
            return raw
        width = signal.width or (self._robot.dof if self._robot else len(self._joints))
        if not width or raw.shape[1] != 1 or raw.size % width:
            raise DataError(
                f"{raw.shape[0]} lines of {raw.shape[1]} numbers do not make rows of {width or '?'}",
                place=f"[{quantity}] width",
                remedy="Declare the numbers per sample as width, or give the robot.",
            )
        return raw.reshape(-1, width)

    def _units(self, quantity: str, signal: Signal, picked: Picked, width: int) -> list[Unit]:
        """The unit of each column: the map's, else the one the format declares; never a guess."""
        declared = tuple(picked.table.units.get(name, "") for name in picked.names)
        names = signal.unit or (("number",) if quantity in _PLAIN_NUMBERS else declared)
        names = names * width if len(names) == 1 else names
        given = zip(names, declared * width if len(declared) == 1 else declared) if signal.unit else ()
        other = [said for own, said in given if said not in ("", "SI") and known_unit(said) != known_unit(own)]
        if other:
            self._notes.append(f"{quantity}: the map's unit overrides {other[0]}, which the log declares")
        if not all(names):
            raise DataError(
                f"the unit of {quantity} is not declared",
                place=f"[{quantity}]",
                remedy=f'Add a line such as unit = "{_EXAMPLE[quantity]}" to [{quantity}] in the channel map.',
            )
        if len(names) != width:
            remedy = "Give one unit, or one for every column."
            raise DataError(f"{len(names)} units for {width} columns", place=f"[{quantity}] unit", remedy=remedy)
        units = [parse_unit(name, quantity) for name in names]
        if signal.gear is None:  # a motor turns even if its joint slides
            self._check_dimensions(quantity, units, picked.names)
        return units

    def _check_dimensions(self, quantity: str, units: list[Unit], columns: Sequence[str]) -> None:
        """Refuse millimetres of a turning joint, newtons of a moment."""
        if quantity == "wrench":
            if len(units) != 6 or any(unit.dimension not in ("SI", wanted) for unit, wanted in zip(units, _COMPONENTS)):
                raise DataError(
                    "a wrench is three forces and three moments",
                    place="[wrench]",
                    remedy='Give six columns and six units, as unit = ["N", "N", "N", "N m", "N m", "N m"].',
                )
            return
        joints = list(self._robot.moving_joints) if self._robot else []
        if (order := self._order_of.get(quantity)) is not None:
            joints = [joints[k] for k in np.argsort(order)]
        names = columns if len(columns) == len(units) else [f"{quantity} {k + 1}" for k in range(len(units))]
        for joint, unit, name in zip(joints, units, names):
            slides = joint.kind == "prismatic"
            if quantity == "current" or unit.dimension in ("SI", "share", "voltage", "number", "temperature"):
                continue
            if slides != (unit.dimension in ("length", "velocity", "force")):
                raise DataError(
                    f"joint '{joint.name}' is {joint.kind}, but the unit of its column '{name}' is one of "
                    f"{unit.dimension}",
                    place=f"[{quantity}] unit",
                    remedy="Check that the log is of this robot and its columns in the robot's order. Then give a list "
                    "with the unit of every joint, or the gear of motor-side signals.",
                )

    def _per_joint(self, quantity: str, key: str, value: Floats | None, width: int) -> Floats:
        """A factor per column from a scalar or a list."""
        if value is None:
            raise DataError(
                f"{quantity} is given in per cent, of what is not declared",
                place=f"[{quantity}]",
                remedy="Add rated = [...] with the value of 100 % in SI units.",
            )
        if value.shape not in ((), (1,), (width,)):
            remedy = "Give one value, or one for every joint."
            raise DataError(f"{value.size} values for {width} joints", place=f"[{quantity}] {key}", remedy=remedy)
        return np.broadcast_to(value, (width,))

    def _through_gear(self, quantity: str, signal: Signal, motor: Floats) -> Floats:
        """Motor side to joint side: positions and velocities through the inverse, torques through the matrix itself."""
        if quantity == "wrench":
            raise DataError("a wrench does not pass a gear", place="[wrench] gear", remedy="Take gear out.")
        matrix = self._gear_matrix(quantity, signal, motor.shape[1])
        if quantity == "effort":
            return np.asarray(motor @ matrix.T)
        return np.asarray(np.linalg.solve(matrix, motor.T).T)

    def _gear_matrix(self, quantity: str, signal: Signal, width: int) -> Floats:
        """The gear as (n, n) matrix."""
        if signal.gear is not None and signal.gear.ndim == 2:
            if signal.gear.shape != (width, width):
                remedy = "Give one row and one column for every joint."
                place = f"[{quantity}] gear"
                raise DataError(
                    f"the gear matrix is {signal.gear.shape} for {width} joints", place=place, remedy=remedy
                )
            return signal.gear
        return np.diag(self._per_joint(quantity, "gear", signal.gear, width))

    def _torque_from_current(self, values: dict[str, Floats], times: dict[str, Floats]) -> dict[str, Floats]:
        """Effort from currents, where the map gives gains or torque constants and no effort.

        Returns:
            `Recording.gain` and `Recording.gain_std`, as far as the map states them.
        """
        signal = self._map.signals.get("current")
        if signal is None or (signal.torque_constant is None and signal.gain is None) or "current" not in values:
            return self._scaled_effort(values)
        if "effort" in values:
            key = "gain" if signal.torque_constant is None else "torque_constant"
            raise DataError(
                "effort is both measured and computed from currents",
                place=f"[current] {key}",
                remedy=f"Take [effort] or {key} out.",
            )
        width = values["current"].shape[1]
        if signal.gain is not None:
            gain, std = self._stated("current", signal.gain, width)
            values["effort"], times["effort"] = values["current"] * gain, times["current"]
            self._notes.append("effort computed from currents with the declared gains")
            return {"gain": gain, "gain_std": std / np.abs(gain)}
        constant = self._per_joint("current", "torque_constant", signal.torque_constant, values["current"].shape[1])
        torque = values["current"] * constant
        values["effort"] = torque if signal.gear is None else self._through_gear("effort", signal, torque)
        times["effort"] = times["current"]
        self._notes.append("effort computed from currents with the declared torque constants")
        return {"gain_std": np.zeros(width)}

    def _scaled_effort(self, values: dict[str, Floats]) -> dict[str, Floats]:
        """Effort times the declared gain, where there is one."""
        signal = self._map.signals.get("effort")
        if signal is None or signal.gain is None or "effort" not in values:
            return {}
        gain, std = self._stated("effort", signal.gain, values["effort"].shape[1])
        values["effort"] = values["effort"] * gain
        return {"gain": gain, "gain_std": std / np.abs(gain)}

    def _stated(self, quantity: str, gain: StatedGain, width: int) -> tuple[Floats, Floats]:
        """(n,) gains and their standard deviations."""
        value, std = (self._per_joint(quantity, "gain", part, width) for part in (gain.value, gain.std))
        return np.broadcast_to(value, (width,)), np.broadcast_to(std, (width,))

    # --- time ------------------------------------------------------------------------------------------------------

    def _time(self, quantity: str, picked: Picked, rows: int) -> Floats:
        """The clock of one quantity, (rows,) [s]."""
        clock, own = self._map.clock, self._signals[quantity].time
        inherent = {picked.table.clocks[name] for name in picked.names if name in picked.table.clocks}
        if own or (not inherent and clock.column):
            place = (own or str(clock.column), id(picked.table))
            if place not in self._times:  # most signals of a table have the same clock
                self._times[place] = self._declared_time(place[0], picked.table)
            time = self._times[place]
        elif inherent:
            time = self._inherent_time(picked.table, inherent.pop())
        else:
            time = self._constant_rate(rows)
        if time.shape != (rows,):
            raise DataError(
                f"{quantity} has {rows} rows, its time column {time.size}",
                place=f"[{quantity}]",
                remedy=f"{_orientation_note(self._signals[quantity])}, or name the right time column.",
            )
        return time

    def _check_one_clock(self, quantity: str, picked: Picked) -> None:
        """Refuse joints that different publishers send at different times."""
        if len({picked.table.clocks[name] for name in picked.names if name in picked.table.clocks}) > 1:
            raise DataError(
                f"the joints of {quantity} come in different messages, each with its own times",
                place=f"[{quantity}]",
                remedy="List under joints only those that one publisher sends.",
            )

    def _declared_time(self, column: str, table: Table) -> Floats:
        """The time column the map names, in seconds."""
        clock = self._map.clock
        picked = pick(Signal(columns=(column,), file=clock.file), "time", self._tables, (), prefer=table)
        if len(picked.names) != 1:
            raise DataError(
                f"time is one column, not {len(picked.names)}",
                place="[time] column",
                remedy="Name the one with stamps.",
            )
        unit = clock.unit or picked.table.units.get(picked.names[0])
        if not unit:
            raise DataError(
                "the unit of time is not declared", place="[time]", remedy='Add unit = "s" (or ms, us, ns) to [time].'
            )
        time = np.asarray(picked.arrays[0].reshape(-1) * parse_unit(unit, "time").factor)
        if clock.fraction is None:
            return time
        part = pick(Signal(columns=(clock.fraction,), file=clock.file), "time", self._tables, (), prefer=picked.table)
        return time + part.arrays[0].reshape(-1) * parse_unit(clock.fraction_unit, "time").factor

    def _inherent_time(self, table: Table, column: str) -> Floats:
        """The clock a format gives, from the earliest epoch of the run [s]."""
        return np.asarray(table.columns[column] + (table.epoch_ns - self._epoch_ns) * 1e-9, dtype=np.float64)

    def _constant_rate(self, rows: int) -> Floats:
        """Times of a log without a time column."""
        clock = self._map.clock
        if clock.sample_time is None or clock.unit is None:
            raise DataError(
                "the log has no time column",
                place="[time]",
                remedy='Declare it: [time] column = "..." and unit, or sample_time = 1 and unit = "ms".',
            )
        self._notes.append(f"time counted from the declared sample time of {clock.sample_time:g} {clock.unit}")
        counted = np.arange(self._first_row, self._first_row + rows, dtype=np.float64)
        return counted * (clock.sample_time * parse_unit(clock.unit, "time").factor)

    def _clocks(self, times: Mapping[str, Floats]) -> dict[str, Floats | None]:
        """Time of the positions, and the clocks that differ from it."""
        time = times["position"]

        def other(quantity: str) -> Floats | None:
            clock = times.get(quantity)
            same = clock is None or clock is time or np.array_equal(clock, time, equal_nan=True)
            return None if same else clock

        if other("velocity") is not None:
            raise DataError("velocities have other times than positions", remedy="Leave [velocity] out of the map.")
        drives = [other(quantity) for quantity in ("effort", "current") if quantity in times]
        if len(drives) == 2 and not np.array_equal(times["effort"], times["current"], equal_nan=True):
            raise DataError("effort and current have different times", remedy="Leave one of them out of the map.")
        return {"time": time, "effort_time": drives[0] if drives else None, "wrench_time": other("wrench")}

    # --- names and notes -------------------------------------------------------------------------------------------

    def _names(self, picked: Picked, width: int) -> tuple[str, ...]:
        """Joint names: the robot's, else the log's."""
        names = self._robot.joint_names if self._robot else self._joints or picked.joints
        if not names and "effort" not in self._map.signals and "reference" in self._map.commands:
            names = names_in_columns(picked.names)
        return names if len(names) == width else ()

    def _check_widths(self, values: Mapping[str, Floats]) -> None:
        """Every joint signal must have the robot's number of joints, and each a name where names are given."""
        columns = values["position"].shape[1]
        if self._map.joints and len(self._map.joints) != columns:
            raise DataError(
                f"{len(self._map.joints)} joints are named for {columns} columns of position",
                place="joints",
                remedy="Name every joint of the log once, in the robot's order.",
            )
        width = self._robot.dof if self._robot else columns
        whose = f"the robot '{self._robot.name}' has {width} joints" if self._robot else f"position has {width}"
        for quantity, array in values.items():
            if quantity != "wrench" and array.shape[1] != width:
                raise DataError(
                    f"{quantity} has {array.shape[1]} columns, {whose}",
                    place=f"[{quantity}]",
                    remedy=f"Name one column per joint. {_orientation_note(self._map.signals.get(quantity))}.",
                )

    def _note_conversion(self, quantity: str, signal: Signal, units: list[Unit]) -> None:
        """Note how a quantity was converted."""
        names = signal.unit * len(units) if len(signal.unit) == 1 else signal.unit
        changed = [f"{name} to {unit.si}" for name, unit in zip(names, units) if unit.factor != 1.0]
        steps = [f"from {', '.join(dict.fromkeys(changed))}"] if changed else []
        used = [key for key in ("sign", "gear", "offset", "rated") if getattr(signal, key) is not None]
        steps += [f"by {', '.join(used)}"] if used else []
        if steps:
            self._notes.append(f"{quantity}: converted {' and '.join(steps)}")

    def _unused(self, picked: Mapping[str, Picked]) -> tuple[str, ...]:
        """A note on the columns that the map does not use."""
        used = {name.split("[")[0] for item in picked.values() for name in item.names}
        used |= {name for item in picked.values() for name in item.names} | {
            str(self._map.clock.column),
            str(self._map.clock.fraction),
        }
        clocks = {clock for table in self._tables.values() for clock in table.clocks.values()}
        left = [name for table in self._tables.values() for name in table.names if name not in used | clocks]
        shown = ", ".join(left[:12]) + (f" and {len(left) - 12} more" if len(left) > 12 else "")
        return (f"columns not used: {shown}",) if left else ()


def _held(own: Floats, values: Floats, time: Floats) -> Floats:
    """Values (M, k) of another clock, each held until the next one came; before the first, the first."""
    if np.array_equal(own, time, equal_nan=True):
        return values
    last = np.searchsorted(own, time, side="right") - 1
    return np.asarray(values[np.clip(last, 0, max(len(own) - 1, 0))])


def _orientation_note(signal: Signal | None) -> str:
    """Remedy for a log whose rows and columns seem exchanged."""
    if signal is not None and signal.transpose:
        return "Take transpose out, which is for samples along the second axis"
    return "Set transpose = true where samples run along the second axis"
