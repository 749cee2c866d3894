"""Three ROS 2 nodes: one records a log for dynid, one identifies a load while the robot moves, one watches for pushes.

    python ros2_nodes.py record arm.urdf --out run1
    dynid identify arm.urdf run1/run.csv --map run1/map.toml --out result

    python ros2_nodes.py load arm.urdf --link tool0 --wrench /ft_sensor/wrench

    python ros2_nodes.py watch result

The nodes subscribe to sensor_msgs/JointState, whose joints are matched by name in every message, and to
geometry_msgs/WrenchStamped. The second publishes geometry_msgs/InertiaStamped on ``~/load`` once a second. rclpy and
the message packages are imported by `main` only: `Recorder`, `LoadTracker` and `Watcher` take any objects with the
fields of the messages; the last one prints alarms. dynid does not import this file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import dynid
from dynid.export import signal_tables, write_table
from dynid.safe_files import make_folder, write_atomically
from dynid.workflows.live_calibration import calibrate_live

SLOWEST = 0.1
"""Age of a joint state beyond which a wrench is not paired with it [s]; convention."""


def stamp_of(message) -> float:
    """Time of a message [s]."""
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


class JointStates:
    """Joint states by name: the joints of a message may come in any order, and others may be among them."""

    def __init__(self, robot: dynid.Robot) -> None:
        self.names = robot.joint_names
        self.place = {name: j for j, name in enumerate(self.names)}

    def row(self, message, field: str) -> np.ndarray | None:
        """(n,) values of the robot's joints, NaN where the message lacks one; None where it has no such field."""
        values = getattr(message, field)
        if len(values) != len(message.name):
            return None
        row = np.full(len(self.names), np.nan)
        for name, value in zip(message.name, values, strict=True):
            if name in self.place:
                row[self.place[name]] = value
        return None if np.isnan(row).all() else row


class Recorder:
    """Collects messages and writes them as a table with its channel map."""

    def __init__(self, robot: dynid.Robot) -> None:
        self.robot, self.states = robot, JointStates(robot)
        self.rows: list[tuple[float, np.ndarray, np.ndarray | None, np.ndarray | None]] = []
        self.wrenches: list[tuple[float, np.ndarray]] = []

    def joint_state(self, message) -> None:
        """Take a sensor_msgs/JointState; one without any joint of the robot is left out."""
        q = self.states.row(message, "position")
        if q is not None:
            self.rows.append(
                (stamp_of(message), q, self.states.row(message, "velocity"), self.states.row(message, "effort"))
            )

    def wrench(self, message) -> None:
        """Take a geometry_msgs/WrenchStamped."""
        self.wrenches.append((stamp_of(message), wrench_of(message)))

    def recording(self) -> dynid.Recording:
        """The messages so far; the wrench is interpolated at the stamps of the joint states."""
        if not self.rows:
            raise dynid.errors.DataError(
                "no joint state of this robot has come", remedy="Check the topic and the joint names."
            )
        time = np.array([row[0] for row in self.rows])
        empty = np.full(len(self.states.names), np.nan)
        q, dq, effort = (
            np.array([empty if row[k] is None else row[k] for row in self.rows]) for k in (1, 2, 3)
        )  # fmt: skip
        wrench = None
        if len(self.wrenches) > 1:
            clock, values = np.array([w[0] for w in self.wrenches]), np.array([w[1] for w in self.wrenches])
            wrench = np.stack([np.interp(time, clock, column, np.nan, np.nan) for column in values.T], axis=1)
        known = [None if np.isnan(x).all() else x for x in (dq, effort)]
        names = self.states.names
        return dynid.Recording(
            time=time, q=q, dq=known[0], effort=known[1], wrench=wrench, joint_names=names, source="ROS 2"
        )

    def write(self, folder: str | Path) -> Path:
        """Write ``run.csv`` and ``map.toml``; nothing is overwritten."""
        place = make_folder(folder)
        (table,) = signal_tables(self.recording(), self.robot)
        path = write_table(table, place / "run.csv")
        units = table.attrs["units"]
        header = [f"{name} [{units[name]}]" if name in units else name for name in table.columns]
        lines = [
            f"joints = {json.dumps(list(self.states.names))}",
            "",
            "[time]",
            f"column = {json.dumps(header[0])}",
            'unit = "s"',
        ]
        for quantity, start in (("position", "q_"), ("velocity", "dq_"), ("effort", "effort_"), ("wrench", "wrench_")):
            columns = [title for name, title in zip(table.columns, header, strict=True) if name.startswith(start)]
            if columns:
                lines += ["", f"[{quantity}]", f"columns = {json.dumps(columns)}"]
        write_atomically(place / "map.toml", "\n".join(lines) + "\n")
        return path


def wrench_of(message) -> np.ndarray:
    """(6,) force and moment of a geometry_msgs/WrenchStamped."""
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z], dtype=float)


class LoadTracker:
    """A load from the messages so far.

    Accelerations are differences of the velocities before and after a sample. One low-pass then smooths the wrench and
    its equations alike, which keeps them true and takes away the noise of the differences.
    """

    def __init__(
        self, robot: dynid.Robot, link: str, *, sign: float = 1.0, time_constant_s: float = 0.03, noise_std=1.0
    ) -> None:
        self.robot, self.link, self.sign, self.time_constant_s = robot, link, sign, time_constant_s
        self.states = JointStates(robot)
        self.online = dynid.payload.OnlineLoad(frame=link, noise_std=noise_std)
        self.joints: tuple[float, np.ndarray, np.ndarray] | None = None
        self.last: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]] = []
        self.smooth: np.ndarray | None = None  # (6, 11): equations and wrench

    def joint_state(self, message) -> None:
        """Take a sensor_msgs/JointState with positions and velocities of all joints."""
        q, dq = self.states.row(message, "position"), self.states.row(message, "velocity")
        if q is not None and dq is not None and np.isfinite(q).all() and np.isfinite(dq).all():
            self.joints = stamp_of(message), q, dq

    def wrench(self, message) -> None:
        """Take a geometry_msgs/WrenchStamped, whose frame is the link; the newest joint state belongs to it."""
        time, wrench = stamp_of(message), self.sign * wrench_of(message)
        if self.joints is None or not 0.0 <= time - self.joints[0] < SLOWEST or not np.isfinite(wrench).all():
            return
        if self.last and not 0.0 < time - self.last[-1][0] < SLOWEST:  # a gap: begin again
            self.last, self.smooth = [], None
        self.last = [*self.last[-2:], (time, *self.joints[1:], wrench)]
        if len(self.last) < 3:
            return
        (before, _, slower, _), (_, q, dq, middle), (after, _, faster, _) = self.last
        ddq = (faster - slower) / (after - before)
        matrix = dynid.compiled.wrench_regressor(self.robot, self.link, q, dq, ddq)
        now = np.column_stack([matrix, middle])
        share = 1.0 - np.exp(-0.5 * (after - before) / self.time_constant_s)
        smooth = self.smooth = now if self.smooth is None else self.smooth + share * (now - self.smooth)
        self.online.update(np.ascontiguousarray(smooth[:, :10]), np.ascontiguousarray(smooth[:, 10]))

    def fill(self, message) -> bool:
        """Write the load into a geometry_msgs/InertiaStamped: NaN for what is open. False if there is none yet."""
        load = self.online.estimate()
        if load.undetermined.all():
            return False
        message.header.frame_id = self.link
        body, tensor = message.inertia, load.inertia_about_com  # about the centre of mass, as the message has it
        body.m = float(load.mass)
        body.com.x, body.com.y, body.com.z = (float(value) for value in load.com)
        body.ixx, body.ixy, body.ixz = (float(value) for value in tensor[0])
        body.iyy, body.iyz, body.izz = float(tensor[1, 1]), float(tensor[1, 2]), float(tensor[2, 2])
        return True


class Watcher:
    """Tells what pushes against the arm, from joint states with positions, velocities and efforts."""

    def __init__(self, guard: dynid.monitor.LiveWatch, robot: dynid.Robot) -> None:
        self.guard, self.states = guard, JointStates(robot)
        self.alarms: list[object] = []
        self.last = -np.inf

    @classmethod
    def of(cls, folder: str, per_hour: float) -> Watcher:
        """A watch with a result of dynid identify, calibrated from its own logs."""
        fit = dynid.read_result(folder).identification()
        known = calibrate_live(Path(folder), fit)
        return cls(dynid.monitor.LiveWatch(fit, known, per_hour=per_hour), fit.robot)

    def joint_state(self, message) -> None:
        """Take one message; incomplete, absurd, repeated and late ones are left out."""
        found = [self.states.row(message, field) for field in ("position", "velocity", "effort")]
        rows = [row for row in found if row is not None and np.all(np.abs(row) < 1e12)]
        time = stamp_of(message)
        if len(rows) < 3 or time <= self.last:
            return
        self.last = time
        for alarm in self.guard.step(time, *rows):
            self.alarms.append(alarm)
            print(f"{alarm.time_s:.3f} s: {alarm.kind} at {alarm.joint}, {alarm.torque:.3g} N m or N", flush=True)


def make_taker(given: argparse.Namespace) -> Recorder | LoadTracker | Watcher:
    """What takes the messages of a node."""
    if given.node == "watch":
        return Watcher.of(given.robot, given.per_hour)
    robot = dynid.read_urdf(given.robot)
    return Recorder(robot) if given.node == "record" else LoadTracker(robot, given.link, sign=given.sign)


def main(words: list[str] | None = None) -> None:
    """Run one of the nodes until it is interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("node", choices=["record", "load", "watch"])
    parser.add_argument("robot", help="URDF of the robot; for watch a folder that dynid identify wrote")
    parser.add_argument("--joints", default="/joint_states", help="topic of the joint states")
    parser.add_argument("--wrench", help="topic of the wrench")
    parser.add_argument("--out", default="run", help="folder for the log (record)")
    parser.add_argument("--link", help="link that carries the load, in whose frame the wrench is (load)")
    parser.add_argument(
        "--sign", type=float, default=1.0, help="-1 if the sensor reports what the load does to it (load)"
    )
    parser.add_argument("--per-hour", type=float, default=1.0, help="rate of false alarms (watch) [1/h]")
    given = parser.parse_args(words)
    if given.node == "load" and not (given.link and given.wrench):
        parser.error("the node load needs --link and --wrench")
    import rclpy
    from geometry_msgs.msg import InertiaStamped, WrenchStamped
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import JointState

    taker = make_taker(given)
    rclpy.init()
    node = rclpy.create_node(f"dynid_{given.node}")
    node.create_subscription(JointState, given.joints, taker.joint_state, qos_profile_sensor_data)
    if given.wrench and not isinstance(taker, Watcher):
        node.create_subscription(WrenchStamped, given.wrench, taker.wrench, qos_profile_sensor_data)
    if isinstance(taker, LoadTracker):
        publisher = node.create_publisher(InertiaStamped, "~/load", 1)

        def publish() -> None:
            message = InertiaStamped()
            message.header.stamp = node.get_clock().now().to_msg()
            if taker.fill(message):
                publisher.publish(message)

        node.create_timer(1.0, publish)
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
    if isinstance(taker, Recorder):
        print(f"written: {taker.write(given.out)}, {Path(given.out) / 'map.toml'}")


if __name__ == "__main__":
    main()
