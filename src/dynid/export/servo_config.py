"""Identified servos as plain data: actuator settings for Isaac Lab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dynid.export.servo_robot import ServoFile, drive_gains, missing_in
from dynid.files import write_atomically
from dynid.servos.drive_laws import MotorLaw
from dynid.servos.servo_identification import ActuatorEstimate


def isaac_actuators(found: ActuatorEstimate) -> dict[str, Any]:
    """Settings of one Isaac Lab actuator group as plain data.

    The class is DCMotorCfg where there is a motor or a torque-speed line, DelayedPDActuatorCfg where there is a delay,
    and IdealPDActuatorCfg otherwise; ``missing`` says what that class does not hold. Delays are counted in the usual
    time step of 5 ms. Nothing here runs Isaac Lab.

    Args:
        found: Identified servos whose law states the gains.

    Raises:
        ExportError: The law is none of gains.

    Example:
        >>> dynid.export.isaac_actuators(servos)["class"]
        'IdealPDActuatorCfg'
    """
    kp, kd = drive_gains(found)
    table, names = found.table, found.model.robot.joint_names

    def by_joint(values: Any) -> dict[str, float]:
        return {name: float(value) for name, value in zip(names, values, strict=True)}

    settings: dict[str, Any] = {
        "class": "IdealPDActuatorCfg",
        "joint_names_expr": list(names),
        "stiffness": by_joint(kp),
        "damping": by_joint(kd),
    }
    fields = {
        "armature": "armature",
        "coulomb": "friction",
        "viscous": "viscous_friction",
        "effort_limit": "effort_limit",
    }
    settings |= {field: by_joint(table[kind]) for kind, field in fields.items() if kind in table}
    held, delay = ["armature", "effort_limit"], round(float(np.max(table["delay"])) / 0.005)
    line = _torque_speed_line(found)
    if line is not None:
        settings |= {"class": "DCMotorCfg"} | {field: by_joint(values) for field, values in line.items()}
        held += ["stall_torque", "no_load_speed", "current_limit"]
    elif delay > 0:
        settings |= {"class": "DelayedPDActuatorCfg", "min_delay": delay, "max_delay": delay}
        held += ["delay"] if np.ptp(table["delay"]) == 0.0 else []
    settings["missing"] = list(missing_in(found, tuple(held)))
    return settings


def write_isaac_actuators(found: ActuatorEstimate, path: Path, *, force: bool = False) -> ServoFile:
    """Write `isaac_actuators` as JSON."""
    content = isaac_actuators(found)
    write_atomically(path, json.dumps(content, indent=1) + "\n", force=force)
    return ServoFile(path, tuple(content["missing"]))


def _torque_speed_line(found: ActuatorEstimate) -> dict[str, Any] | None:
    """Fields of a motor's torque-speed line (n,); None without one.

    A duty cycle of one gives ``kt V / R`` at rest and nothing at ``V / kt``; against its motion a motor reaches twice
    the torque at rest before its speed is that at which it idles.
    """
    table, law = found.table, found.model.law
    if isinstance(law, MotorLaw):
        voltage = law.gains(found.model.dof)["voltage"]
        stall = table["kt"] * voltage / table["resistance"]
        largest = table["kt"] * table["current_limit"] if "current_limit" in table else 2.0 * stall
        return {"saturation_effort": stall, "velocity_limit": voltage / table["kt"], "effort_limit": largest}
    if "stall_torque" in table:
        largest = table.get("effort_limit", 2.0 * table["stall_torque"])
        return {"saturation_effort": table["stall_torque"], "velocity_limit": table["no_load_speed"],
                "effort_limit": largest}  # fmt: skip
    return None
