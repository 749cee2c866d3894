"""dynid: identify the dynamics of robots.

The names below are the whole public interface. They are loaded at first use, so that ``import dynid`` stays quick; the
types are in ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "dynid.closed_loop.laws": ["PD", "PID", "ComputedTorqueLaw", "UserLaw", "assumed_law", "read_law"],
    "dynid.closed_loop.loop": ["Loop", "ReferenceMotion"],
    "dynid.closed_loop.simulate": ["LoopSimulation", "simulate_loop"],
    "dynid.data.channel_map": ["ChannelMap", "read_channel_map"],
    "dynid.data.delay": ["Delay", "estimate_delay"],
    "dynid.data.differentiation": [
        "CentralDifferences",
        "Fourier",
        "MeasuredVelocity",
        "QuasiStatic",
        "SavitzkyGolay",
        "SmoothingSpline",
    ],
    "dynid.data.drives": [
        "CurrentGains",
        "GearMatrix",
        "ThreePhase",
        "TorqueConstants",
        "gains_from_added_mass",
        "gains_from_lever_arm",
        "gains_from_static_load",
    ],
    "dynid.data.filters": ["Butterworth", "Decimation", "Fir"],
    "dynid.data.findings": ["Finding", "QualityReport"],
    "dynid.data.inspect": ["inspect_log"],
    "dynid.data.periods": ["PeriodAverage", "average_periods"],
    "dynid.data.processing": ["Processing", "process"],
    "dynid.data.quality": ["check_recording"],
    "dynid.data.reading": ["read_recording", "read_stream"],
    "dynid.data.recording": ["Experiment", "Recording"],
    "dynid.data.rest": ["Rest"],
    "dynid.data.simulation": ["Noise", "simulate_experiment"],
    "dynid.data.stream_check": ["StreamCheck"],
    "dynid.data.streaming": ["process_stream"],
    "dynid.data.uniform": ["Cleaning"],
    "dynid.errors": [
        "ArgumentError",
        "DataError",
        "DescriptionError",
        "DynidError",
        "EstimationError",
        "ExcitationError",
        "ExportError",
        "GeneratedCodeMismatch",
        "IdentifiabilityError",
        "LogReadError",
    ],
    "dynid.estimation.bootstrap": ["BlockBootstrap"],
    "dynid.estimation.bounds": ["Bounds"],
    "dynid.estimation.candidates": ["standard_candidates"],
    "dynid.estimation.controller_check": ["check_controller"],
    "dynid.estimation.energy": ["Energy"],
    "dynid.estimation.estimate": ["Estimate", "Estimator"],
    "dynid.estimation.feasible": ["FeasibleWLS"],
    "dynid.estimation.features": [
        "AngleFriction",
        "AngleHarmonic",
        "AsymmetricViscous",
        "Feature",
        "Hysteresis",
        "LaggedSign",
        "MotorFriction",
        "SaturatingViscous",
        "SmoothSign",
        "Stribeck",
    ],
    "dynid.estimation.joint_terms": ["JointTerm"],
    "dynid.estimation.kalman": ["Kalman"],
    "dynid.estimation.in_loop": ["InLoop", "with_loop"],
    "dynid.estimation.instrumental": ["InstrumentalVariables"],
    "dynid.estimation.least_squares": ["OLS", "WLS"],
    "dynid.estimation.likelihood": ["ML"],
    "dynid.estimation.link_by_link": ["LinkByLink"],
    "dynid.estimation.load_features": [
        "BaseTilt",
        "CrossTalk",
        "DriveGain",
        "LoadFriction",
        "Reference",
        "SensorCurvature",
    ],
    "dynid.estimation.momentum": ["Momentum"],
    "dynid.estimation.output_error": ["CLIE", "CLOE", "DIDIM"],
    "dynid.estimation.power": ["Power"],
    "dynid.estimation.prior_wls": ["PriorWLS"],
    "dynid.estimation.problem": ["Problem", "build_problem"],
    "dynid.estimation.recursive": ["Recursive"],
    "dynid.estimation.reduced_set": ["ReducedSet"],
    "dynid.estimation.ridge": ["Ridge"],
    "dynid.estimation.robust": ["Cauchy", "Huber"],
    "dynid.estimation.scales": ["fitted_scales"],
    "dynid.estimation.selection": ["Candidate", "ForwardSelection"],
    "dynid.estimation.stream_problem": ["stream_problem"],
    "dynid.estimation.total_least_squares": ["TLS"],
    "dynid.estimation.truncated_svd": ["TruncatedSVD"],
    "dynid.excitation.capsules": ["Capsule", "skeleton_capsules"],
    "dynid.excitation.criteria": [
        "AOptimality",
        "ColumnScaled",
        "ConditionNumber",
        "DOptimality",
        "EOptimality",
        "PredictedDeviation",
    ],
    "dynid.excitation.design": ["design_excitation"],
    "dynid.excitation.excitation": ["Excitation"],
    "dynid.excitation.fourier": ["FourierTrajectory"],
    "dynid.excitation.geometry": ["urdf_hulls"],
    "dynid.excitation.hulls": ["Hull", "hull_capsules"],
    "dynid.excitation.limits": ["Cell", "HalfSpace", "MotionLimits", "Workspace"],
    "dynid.excitation.measured": ["LoadTorques", "LoadWrench"],
    "dynid.excitation.optimiser": ["SearchSettings"],
    "dynid.excitation.plan_files": ["write_plan"],
    "dynid.excitation.quintic": ["QuinticTrajectory", "minimum_jerk"],
    "dynid.excitation.spline": ["SplineTrajectory"],
    "dynid.excitation.time_scaling": ["scaled_to_limits"],
    "dynid.export.c_package": ["CPackage", "generate_c"],
    "dynid.export.payload_dialogs": ["payload_dialogs"],
    "dynid.export.result_file": ["read_result", "write_result"],
    "dynid.identification.links": ["Identification", "identify"],
    "dynid.identification.load": ["Load"],
    "dynid.identification.arm_uncertainty": ["ArmUncertainty"],
    "dynid.identification.calibration": ["SensorCalibration", "calibrate_sensor"],
    "dynid.identification.drive_gains": ["DriveGains", "identify_drive_gains"],
    "dynid.identification.end_link": ["identify_end_link"],
    "dynid.identification.load_files": ["read_library", "read_load"],
    "dynid.identification.load_motions": ["design_load_motion", "wrist_test_motion"],
    "dynid.identification.load_study": ["LoadStudy", "study_load", "study_payload"],
    "dynid.identification.online_load": ["OnlineLoad"],
    "dynid.identification.payload": ["identify_payload"],
    "dynid.identification.recognition": ["KnownObject", "Recognition", "recognise", "verify_grasp"],
    "dynid.identification.significance": ["essential_parameters", "significant_parameters"],
    "dynid.identification.validation": ["Validation", "cross_validate", "validate"],
    "dynid.identification.sensor_checks": ["Proposal", "check_wrench"],
    "dynid.identification.wrench_delay": ["WrenchDelay", "find_wrench_delay"],
    "dynid.identification.wrench_equations": ["WrenchData", "pose_equations"],
    "dynid.identification.wrist": ["Sensing", "identify_load", "identify_load_from_poses", "wrench_data"],
    "dynid.information": ["Information", "reduce_samples", "reduce_stream"],
    "dynid.kernels": [
        "Kernel",
        "energy_regressor",
        "forward_dynamics",
        "gravity_torque",
        "inertia_matrix",
        "inverse_dynamics",
        "kernel",
        "momentum_regressor",
        "regressor",
        "velocity_torque",
        "wrench_regressor",
    ],
    "dynid.parameters.base": ["BaseParameters", "base_parameters"],
    "dynid.parameters.layout": ["Parameter", "ParameterLayout", "parameters"],
    "dynid.plots": ["plot"],
    "dynid.report.report": ["write_report"],
    "dynid.robot.check": ["check_robot"],
    "dynid.robot.dh": ["DH", "StandardDH", "from_dh"],
    "dynid.robot.inertia": ["Inertia"],
    "dynid.robot.joint_models": ["Coulomb", "Coupling", "JointModel", "Offset", "RotorInertia", "Viscous"],
    "dynid.robot.mjcf": ["read_mjcf"],
    "dynid.robot.mjcf_writer": ["write_mjcf"],
    "dynid.robot.model": ["Robot"],
    "dynid.robot.modified_dh": ["modified_dh"],
    "dynid.robot.parts": ["Joint", "JointLimits", "Link"],
    "dynid.robot.text_format": ["read_text", "write_text"],
    "dynid.robot.urdf": ["read_urdf"],
    "dynid.robot.urdf_writer": ["write_urdf"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["__version__", "robots", *_MODULE_OF]


def __getattr__(name: str) -> object:
    """Load a public name at its first use."""
    if name == "robots":
        return import_module("dynid.robot.zoo")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dynid' has no attribute '{name}'")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
