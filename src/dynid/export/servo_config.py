"""Identified servos as actuator settings for Isaac Lab: plain data, and a JSON file of them.

A servo is a joint with its drive and the drive's position controller. `ActuatorEstimate` has a control law with gains
and a table of identified parameters: kind (armature, friction, delay, torque limit, ...) -> values (n,).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dynid.export.servo_robot import ServoFile, drive_gains, missing_in
from dynid.safe_files import write_atomically
from dynid.servos.drive_laws import MotorLaw
from dynid.servos.servo_identification import ActuatorEstimate


def isaac_actuators(found: ActuatorEstimate) -> dict[str, Any]:
    """Make the settings of one Isaac Lab actuator group as plain data.

    The class is DCMotorCfg where there is a motor or a torque-speed line, DelayedPDActuatorCfg where there is a delay,
    and IdealPDActuatorCfg otherwise; ``missing`` lists the parameters that this class has no place for. Delays are
    counted in the usual time step of 5 ms. Nothing here runs Isaac Lab.

    Args:
        found: Identified servos whose law states the gains.

    Raises:
        ExportError: The law is none of gains.

    Example:
        >>> dynid.export.isaac_actuators(servos)["class"]
        'IdealPDActuatorCfg'
    """
    kp, kd = drive_gains(found)
    table = found.table  # kind of parameter -> its values (n,)
    names = found.model.robot.joint_names

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
    contained = ["armature", "effort_limit"]  # kinds that the class has a place for
    delay_steps = round(float(np.max(table["delay"])) / 0.005)
    line = _torque_speed_line(found)
    if line is not None:
        settings |= {"class": "DCMotorCfg"} | {field: by_joint(values) for field, values in line.items()}
        contained += ["stall_torque", "no_load_speed", "current_limit"]
    elif delay_steps > 0:
        settings |= {"class": "DelayedPDActuatorCfg", "min_delay": delay_steps, "max_delay": delay_steps}
        contained += ["delay"] if np.ptp(table["delay"]) == 0.0 else []  # it is one number for all joints
    settings["missing"] = list(missing_in(found, tuple(contained)))
    return settings


def write_isaac_actuators(found: ActuatorEstimate, path: Path, *, force: bool = False) -> ServoFile:
    """Write `isaac_actuators` as JSON."""
    content = isaac_actuators(found)
    write_atomically(path, json.dumps(content, indent=1) + "\n", force=force)
    return ServoFile(path, tuple(content["missing"]))


def _torque_speed_line(found: ActuatorEstimate) -> dict[str, Any] | None:
    """Find the line on which the largest torque falls with the speed: fields of DCMotorCfg -> values (n,).

    None without such a line.

    A motor at a duty cycle of one gives the torque ``kt V / R`` at rest and none at the idle speed ``V / kt``. Driven
    backwards it gives more, twice the torque at rest when its speed is minus the idle speed: this is the effort limit
    where no limit of the current is lower.
    """
    table = found.table
    law = found.model.law
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
