"""dynid: identify the dynamics of robots.

The names below are what most programs need. The others stand in the packages of `PACKAGES`, such as
``dynid.excitation.Criterion``. All are loaded at first use, so that ``import dynid`` stays quick; the types are in
``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.3.0"

_NAMES = {
    "dynid.servos.servo_identification": "identify_actuators",
    "dynid.diagnosis.log_check": "check_recording",
    "dynid.errors": "DynidError",
    "dynid.estimators.estimate": "Estimate",
    "dynid.estimators.linear.least_squares": "OLS WLS",
    "dynid.estimators.linear.robust": "Huber",
    "dynid.estimators.physical.feasible": "FeasibleWLS",
    "dynid.excitation.design": "design_excitation",
    "dynid.excitation.excitation": "Excitation",
    "dynid.excitation.limits": "MotionLimits",
    "dynid.export.c.c_package": "generate_c",
    "dynid.export.result_file": "read_result write_result",
    "dynid.findings": "Finding",
    "dynid.compiled": "energy_regressor forward_dynamics gravity_torque inertia_matrix "
    "inverse_dynamics momentum_regressor regressor velocity_torque",
    "dynid.identification.identify": "Identification identify",
    "dynid.identification.recipe": "Recipe",
    "dynid.identification.validation": "Validation validate",
    "dynid.payload.load": "Load",
    "dynid.payload.payload": "identify_payload",
    "dynid.payload.wrist": "identify_load",
    "dynid.logs.channel_map": "ChannelMap",
    "dynid.logs.inspect": "inspect_log",
    "dynid.logs.reading": "read_recording",
    "dynid.logs.recording": "Recording",
    "dynid.identifiability.base": "base_parameters",
    "dynid.identifiability.base_set": "BaseParameters",
    "dynid.identifiability.layout": "parameter_layout",
    "dynid.processing.experiment": "Experiment",
    "dynid.processing.process": "Processing process",
    "dynid.processing.simulation": "Noise simulate_experiment",
    "dynid.report.report": "write_report",
    "dynid.robot.check": "check_robot",
    "dynid.robot.formats.dh": "DH from_dh",
    "dynid.robot.formats.mjcf.read": "read_mjcf",
    "dynid.robot.formats.mjcf.write": "write_mjcf",
    "dynid.robot.formats.simulator_models": "from_mujoco from_pinocchio",
    "dynid.robot.formats.urdf": "read_urdf write_urdf",
    "dynid.robot.inertia": "Inertia",
    "dynid.robot.model": "Robot",
    "dynid.robot.parts": "Joint Link",
    "dynid.workflows.watch_run": "watch",
    "dynid.terms.base": "Term",
    "dynid.terms.friction": "Coulomb Viscous",
    "dynid.terms.motors": "Offset RotorInertia",
}
"""Module -> its names in this package."""
_HOME = {module: names.split() for module, names in _NAMES.items()}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
PACKAGES = (
    "compiled",
    "control_loop",
    "diagnosis",
    "errors",
    "estimators",
    "excitation",
    "export",
    "findings",
    "fleet",
    "identifiability",
    "identification",
    "logs",
    "monitor",
    "payload",
    "processing",
    "report",
    "robot",
    "servos",
    "terms",
    "workflows",
)
"""Packages and modules with further public names."""
_RENAMED = (
    "links:identification load:payload actuators:servos loop:control_loop engines:parallel gate:diagnosis "
    "estimation:estimators runs:workflows kernels:compiled parameters:identifiability information:data_reduction "
    "arrays:array_types files:safe_files"
)
"""Earlier name of each package that was renamed, and its name now."""

__all__ = ["__version__", "robots", *_MODULE_OF]


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name == "robots":
        return import_module("dynid.robot.zoo")
    if name in PACKAGES:
        return import_module(f"dynid.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dynid' has no attribute '{name}'{_new_place(name)}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def _new_place(name: str) -> str:
    """End of an error message about an unknown name: the package that has it, or a similar name of this one."""
    if name.startswith("_"):
        return ""
    renamed = dict(pair.split(":") for pair in _RENAMED.split())
    if name in renamed:
        return f"; it is dynid.{renamed[name]} now"
    from dynid.errors import did_you_mean

    for package in PACKAGES:
        if name in import_module(f"dynid.{package}").__all__:
            return f"; it is dynid.{package}.{name}"
    return f". {did_you_mean(name, __dir__()) or 'CHANGELOG.md lists the names that moved or went'}"


def __dir__() -> list[str]:
    """The public names and packages."""
    return sorted([*__all__, *PACKAGES])
