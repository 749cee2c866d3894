"""The ROS 2 nodes against a stand-in of rclpy and its message classes that publishes a simulated robot's messages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.processing.simulation import sum_of_sines
from support.small_fit import small_fit

SCRIPT = Path(__file__).parents[1] / "examples" / "ros2_nodes.py"
RATE_HZ = 125.0


@pytest.fixture(scope="module")
def nodes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ros2_nodes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "rclpy" not in sys.modules
    return module


def header(time: float) -> SimpleNamespace:
    return SimpleNamespace(stamp=SimpleNamespace(sec=int(time), nanosec=round(1e9 * (time - int(time)))), frame_id="")


def joint_state(time: float, names: list[str], q: Any, dq: Any = (), effort: Any = ()) -> SimpleNamespace:
    return SimpleNamespace(header=header(time), name=names, position=list(q), velocity=list(dq), effort=list(effort))


def wrench_stamped(time: float, values: Any) -> SimpleNamespace:
    force, torque = (SimpleNamespace(x=v[0], y=v[1], z=v[2]) for v in (values[:3], values[3:]))
    return SimpleNamespace(header=header(time), wrench=SimpleNamespace(force=force, torque=torque))


def inertia_stamped() -> SimpleNamespace:
    body = SimpleNamespace(m=0.0, com=SimpleNamespace(x=0.0, y=0.0, z=0.0), **dict.fromkeys(
        ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 0.0))  # fmt: skip
    return SimpleNamespace(header=header(0.0), inertia=body)


def arm() -> dynid.Robot:
    return dynid.robots.puma560()


BODY = dynid.Inertia.from_com(1.5, [0.01, -0.02, 0.08], np.diag([0.01, 0.012, 0.004]))


def motion(duration_s: float) -> tuple[np.ndarray, ...]:
    time = 1.7e9 + np.arange(0.0, duration_s, 1.0 / RATE_HZ)  # Unix time
    return (time, *sum_of_sines(6, period_s=4.0, amplitude=0.6, seed=3)(time - time[0]))


def test_joints_are_matched_by_name_in_every_message(nodes: ModuleType) -> None:
    robot = arm()
    recorder = nodes.Recorder(robot)
    names = list(robot.joint_names)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(5, 6))
    for k, row in enumerate(q):
        order = rng.permutation(6)
        extra = ["gripper", *(names[j] for j in order)]
        recorder.joint_state(joint_state(0.1 * k, extra, [9.0, *row[order]], effort=[8.0, *(10 * row[order])]))
        recorder.joint_state(joint_state(0.1 * k, ["gripper"], [9.0]))
    recorder.joint_state(joint_state(0.6, names[:2], [1.0, 2.0]))
    found = recorder.recording()
    np.testing.assert_array_equal(found.q[:5], q)
    np.testing.assert_array_equal(found.effort[:5], 10 * q)
    np.testing.assert_array_equal(found.q[5], [1.0, 2.0, *4 * [np.nan]])
    assert found.dq is None
    assert found.joint_names == robot.joint_names


def test_no_message_is_an_error_with_a_remedy(nodes: ModuleType) -> None:
    with pytest.raises(dynid.errors.DataError, match="Check the topic"):
        nodes.Recorder(arm()).recording()


def test_a_push_is_told_from_messages(nodes: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    fit, run = small_fit()
    guard = dynid.monitor.LiveWatch(fit, dynid.monitor.calibrate(fit))
    watcher = nodes.Watcher(guard, fit.robot)
    names = ["gripper", *reversed(fit.robot.joint_names)]
    for k in range(400):
        push = [0.0, -3.0 if k >= 300 else 0.0, 0.0]
        rows = [[0.0, *reversed(row)] for row in (run.q[k], run.dq[k], run.effort[k] + push)]
        watcher.joint_state(joint_state(float(run.time[k]), names, *rows))
        watcher.joint_state(joint_state(float(run.time[k]), names[:2], rows[0][:2]))  # incomplete
    assert watcher.alarms[0].joint == "joint2"
    assert "contact at joint2" in capsys.readouterr().out


class StandIn:
    """rclpy and the message packages: `spin` publishes the messages that were put in, then interrupts."""

    def __init__(self, messages: list[tuple[str, Any]]) -> None:
        self.messages = messages
        self.callbacks: dict[str, Any] = {}
        self.published: list[Any] = []
        self.timers: list[Any] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rclpy, qos = ModuleType("rclpy"), ModuleType("rclpy.qos")
        sensor, geometry = ModuleType("sensor_msgs.msg"), ModuleType("geometry_msgs.msg")
        clock = SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: header(1.0).stamp))
        node = SimpleNamespace(
            create_subscription=lambda kind, topic, callback, depth: self.callbacks.__setitem__(topic, callback),
            create_publisher=lambda kind, topic, depth: SimpleNamespace(publish=self.published.append),
            create_timer=lambda period, callback: self.timers.append(callback),
            get_clock=lambda: clock,
            destroy_node=lambda: None,
        )
        for name, value in {"init": lambda: None, "create_node": lambda name: node, "spin": self.spin,
                            "try_shutdown": lambda: None, "qos": qos}.items():  # fmt: skip
            setattr(rclpy, name, value)
        qos.qos_profile_sensor_data = 10  # type: ignore[attr-defined]
        sensor.JointState = object  # type: ignore[attr-defined]
        geometry.InertiaStamped, geometry.WrenchStamped = inertia_stamped, object  # type: ignore[attr-defined]
        packages = {"sensor_msgs": ModuleType("sensor_msgs"), "geometry_msgs": ModuleType("geometry_msgs")}
        for name, module in (packages | {"rclpy": rclpy, "rclpy.qos": qos, "sensor_msgs.msg": sensor,
                                         "geometry_msgs.msg": geometry}).items():  # fmt: skip
            monkeypatch.setitem(sys.modules, name, module)

    def spin(self, node: Any) -> None:
        for topic, message in self.messages:
            self.callbacks[topic](message)
        for timer in self.timers:
            timer()
        raise KeyboardInterrupt


def messages(
    time: np.ndarray, names: list[str], parts: list[np.ndarray], wrench: np.ndarray, late: float = 0.0
) -> list[tuple[str, Any]]:
    """A state of the joints and a wrench, which may be late, for every sample."""
    states = [("/joint_states", joint_state(t, names, *rows)) for t, *rows in zip(time, *parts, strict=True)]
    forces = [("/ft", wrench_stamped(t + late, row)) for t, row in zip(time, wrench, strict=True)]
    return [one for pair in zip(states, forces, strict=True) for one in pair]


def test_the_recorder_writes_a_log_that_dynid_reads(
    nodes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = arm()
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    time, q, dq, ddq = motion(2.0)
    effort = dynid.inverse_dynamics(robot, q, dq, ddq)
    order = [3, 0, 5, 1, 4, 2]
    names = [robot.joint_names[j] for j in order]
    wrench = np.tile(np.arange(6.0), (time.size, 1))
    StandIn(messages(time, names, [x[:, order] for x in (q, dq, effort)], wrench, 0.001)).install(monkeypatch)
    nodes.main(["record", str(tmp_path / "arm.urdf"), "--wrench", "/ft", "--out", str(tmp_path / "run")])
    log = dynid.read_recording(tmp_path / "run" / "run.csv", robot, channel_map=tmp_path / "run" / "map.toml")
    np.testing.assert_allclose(log.q, q, atol=1e-12)
    np.testing.assert_allclose(log.effort, effort, atol=1e-9)
    np.testing.assert_allclose(np.diff(log.time), 1.0 / RATE_HZ, atol=1e-6)
    np.testing.assert_allclose(log.wrench[1:-1], wrench[1:-1])


def test_the_load_node_publishes(nodes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = arm()
    dynid.write_urdf(robot, tmp_path / "arm.urdf")
    link = robot.bodies[-1].joint.child
    time, q, dq, ddq = motion(2.0)
    wrench = dynid.compiled.wrench_regressor(robot, link, q, dq, ddq) @ BODY.vector
    stand_in = StandIn(messages(time, list(robot.joint_names), [q, dq], wrench))
    stand_in.install(monkeypatch)
    nodes.main(["load", str(tmp_path / "arm.urdf"), "--link", link, "--wrench", "/ft"])
    message = stand_in.published[0]
    assert message.header.frame_id == link
    body = message.inertia
    assert body.m == pytest.approx(1.5, rel=0.002)
    np.testing.assert_allclose([body.com.x, body.com.y, body.com.z], BODY.com, atol=5e-4)
    np.testing.assert_allclose([body.ixx, body.iyy, body.izz], np.diag(BODY.about_com), atol=5e-4)
    with pytest.raises(SystemExit):
        nodes.main(["load", str(tmp_path / "arm.urdf")])
