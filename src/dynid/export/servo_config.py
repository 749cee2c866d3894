"""Identified servos as plain data: actuator settings for Isaac Lab, and the JSON of servo friction models."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.actuators.drive_laws import MotorLaw
from dynid.actuators.servo_identification import ActuatorEstimate
from dynid.errors import ExportError
from dynid.export.servo_robot import drive_gains, missing_in

SERVO_MODEL = ("zero", "delay", "offset", "breakaway", "load_drive", "load_external", "armature")
"""Kinds, of those that other formats may lack, that the JSON of a servo friction model holds."""


def isaac_actuators(found: ActuatorEstimate, step_s: float = 0.005) -> dict[str, Any]:
    """Settings of one Isaac Lab actuator group as plain data.

    The class is DCMotorCfg where there is a motor or a torque-speed line, DelayedPDActuatorCfg where there is a delay,
    and IdealPDActuatorCfg otherwise; ``missing`` says what that class does not hold. Nothing here runs Isaac Lab.

    Args:
        found: Identified servos whose law states the gains.
        step_s: Time step of the simulation [s], in which the delay is counted.

    Raises:
        ExportError: The law is none of gains.

    Example:
        >>> dynid.export.isaac_actuators(servos)["class"]
        'IdealPDActuatorCfg'
    """
    kp, kd = drive_gains(found)
    table, names = found.model.table(found.values), found.model.robot.joint_names

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
    held, delay = ["armature", "effort_limit"], round(float(np.max(table["delay"])) / step_s)
    line = _torque_speed_line(found)
    if line is not None:
        settings |= {"class": "DCMotorCfg"} | {field: by_joint(values) for field, values in line.items()}
        held += ["stall_torque", "no_load_speed", "current_limit"]
    elif delay > 0:
        settings |= {"class": "DelayedPDActuatorCfg", "min_delay": delay, "max_delay": delay}
        held += ["delay"] if np.ptp(table["delay"]) == 0.0 else []
    settings["missing"] = list(missing_in(found, tuple(held)))
    return settings


def _torque_speed_line(found: ActuatorEstimate) -> dict[str, Any] | None:
    """Fields of a motor's torque-speed line (n,); None without one.

    A duty cycle of one gives ``kt V / R`` at rest and nothing at ``V / kt``; against its motion a motor reaches twice
    the torque at rest before its speed is that at which it idles.
    """
    table, law = found.model.table(found.values), found.model.law
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


def servo_friction_json(found: ActuatorEstimate) -> dict[str, Any]:
    """The constants of one servo under the names that servo friction models use (kt, R, friction_base, ...).

    Args:
        found: An estimate of one joint under a `MotorLaw`.

    Raises:
        ExportError: There are several joints, or another law.
    """
    if not isinstance(found.model.law, MotorLaw) or found.model.dof != 1:
        raise ExportError(
            "this format describes one servo under its motor law", remedy="Identify one joint with MotorLaw."
        )
    table = {kind: float(values[0]) for kind, values in found.model.table(found.values).items()}
    loaded, stribeck = "load_drive" in table or "load_external" in table, "breakaway" in table
    fields = {
        "kt": "kt", "R": "resistance", "armature": "armature", "q_offset": "zero", "friction_base": "coulomb",
        "friction_viscous": "viscous", "friction_stribeck": "breakaway", "dtheta_stribeck": "stribeck_speed",
        "load_friction_motor": "load_drive", "load_friction_external": "load_external",
        "error_gain_scale": "gain_scale", "command_delay": "delay", "torque_offset": "offset",
    }  # fmt: skip
    return {
        "model": {(False, False): "m1", (True, False): "m2", (False, True): "m3", (True, True): "m4"}[stribeck, loaded],
        "alpha": 2.0,
        **{field: table[kind] for field, kind in fields.items() if kind in table},
    }
