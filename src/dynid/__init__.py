"""dynid: identify the dynamics of robots.

The names below are the whole public interface. They are loaded at first use, so that ``import dynid`` stays quick; the
types are in ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.2.0"

_HOME = {
    "dynid.loop.laws": ["PD", "PID", "ComputedTorqueLaw", "UserLaw", "assumed_law"],
    "dynid.loop.law_files": ["read_law"],
    "dynid.loop.loop": ["Loop", "ReferenceMotion"],
    "dynid.loop.simulator": ["LoopSimulation", "simulate_loop"],
    "dynid.logs.channel_map": ["ChannelMap", "read_channel_map"],
    "dynid.processing.delay": ["Delay", "estimate_delay"],
    "dynid.processing.differentiation": [
        "CentralDifferences",
        "Fourier",
        "MeasuredVelocity",
        "QuasiStatic",
        "SavitzkyGolay",
        "SmoothingSpline",
    ],
    "dynid.logs.drives": ["CurrentGains", "GearMatrix", "ThreePhase"],
    "dynid.processing.filters": ["Butterworth", "Decimation", "Fir"],
    "dynid.findings": ["Finding", "QualityReport"],
    "dynid.logs.inspect": ["inspect_log"],
    "dynid.processing.periods": ["PeriodAverage", "average_periods"],
    "dynid.processing.process": ["Processing", "process"],
    "dynid.gate.quality": ["check_recording"],
    "dynid.logs.reading": ["read_recording", "read_stream"],
    "dynid.logs.recording": ["Recording"],
    "dynid.processing.experiment": ["Experiment"],
    "dynid.processing.rest": ["Rest"],
    "dynid.processing.simulation": ["Noise", "simulate_experiment"],
    "dynid.gate.stream_check": ["StreamCheck"],
    "dynid.processing.streaming": ["process_stream"],
    "dynid.processing.uniform": ["Cleaning"],
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
    "dynid.estimation.physical.bounds": ["Bounds"],
    "dynid.estimation.candidates": ["standard_candidates"],
    "dynid.estimation.closed_loop.law_test": ["check_controller"],
    "dynid.estimation.linear.energy_balance": ["Energy"],
    "dynid.estimation.estimate": ["Estimate", "Estimator"],
    "dynid.estimation.physical.feasible": ["FeasibleWLS"],
    "dynid.estimation.noisy.kalman": ["Kalman"],
    "dynid.estimation.closed_loop.in_loop": ["InLoop", "with_loop"],
    "dynid.estimation.closed_loop.instrumental": ["InstrumentalVariables"],
    "dynid.estimation.linear.least_squares": ["OLS", "WLS"],
    "dynid.estimation.noisy.likelihood": ["ML"],
    "dynid.estimation.linear.link_by_link": ["LinkByLink"],
    "dynid.estimation.linear.momentum": ["Momentum"],
    "dynid.estimation.closed_loop.output_error": ["CLIE", "CLOE", "DIDIM"],
    "dynid.estimation.linear.power": ["Power"],
    "dynid.estimation.physical.prior_wls": ["PriorWLS"],
    "dynid.estimation.equations": ["Factors", "LoopedRuns", "Samples", "StreamedLogs", "build_equations"],
    "dynid.estimation.linear.recursive": ["Recursive"],
    "dynid.estimation.linear.reduced_set": ["ReducedSet"],
    "dynid.estimation.linear.ridge": ["Ridge"],
    "dynid.estimation.linear.robust": ["Cauchy", "Huber"],
    "dynid.estimation.registry": ["estimator", "estimators"],
    "dynid.estimation.scales": ["fitted_scales"],
    "dynid.estimation.selection": ["Candidate", "ForwardSelection"],
    "dynid.estimation.stream_equations": ["stream_equations"],
    "dynid.estimation.noisy.total_least_squares": ["TLS"],
    "dynid.estimation.linear.truncated_svd": ["TruncatedSVD"],
    "dynid.excitation.collision.capsules": ["Capsule", "skeleton_capsules"],
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
    "dynid.excitation.trajectories.fourier": ["FourierTrajectory"],
    "dynid.excitation.collision.geometry": ["urdf_hulls"],
    "dynid.excitation.collision.hulls": ["Hull", "hull_capsules"],
    "dynid.excitation.limits": ["Cell", "HalfSpace", "MotionLimits", "Workspace"],
    "dynid.excitation.measured": ["JointTorques", "LoadTorques", "LoadWrench"],
    "dynid.excitation.design_settings": ["DesignGoal", "SearchSettings"],
    "dynid.excitation.plan_files": ["write_plan"],
    "dynid.excitation.trajectories.quintic": ["QuinticTrajectory", "minimum_jerk"],
    "dynid.excitation.trajectories.spline": ["SplineTrajectory"],
    "dynid.excitation.trajectories.time_scaling": ["scale_to_limits"],
    "dynid.export.c.c_package": ["CPackage", "generate_c"],
    "dynid.export.payload_dialogs": ["payload_dialogs"],
    "dynid.export.result_file": ["read_result", "write_result"],
    "dynid.links.identify": ["Identification", "identify"],
    "dynid.links.recipe": ["Recipe"],
    "dynid.load.load": ["Load"],
    "dynid.load.sensor_calibration": ["SensorCalibration", "calibrate_sensor"],
    "dynid.load.drive_gains": [
        "DriveGains",
        "gains_from_added_mass",
        "gains_from_lever_arm",
        "gains_from_static_load",
        "identify_drive_gains",
    ],
    "dynid.load.load_files": ["read_library", "read_load"],
    "dynid.load.load_motions": ["design_load_motion", "wrist_test_motion"],
    "dynid.load.load_study": ["LoadStudy", "study_load", "study_payload"],
    "dynid.load.online_load": ["OnlineLoad"],
    "dynid.load.payload": ["ArmUncertainty", "identify_end_link", "identify_payload"],
    "dynid.load.recognition": ["KnownObject", "Recognition", "recognise", "verify_grasp"],
    "dynid.links.significance": ["essential_parameters", "significant_parameters"],
    "dynid.links.validation": ["Validation", "cross_validate", "validate"],
    "dynid.load.sensor_checks": ["Proposal", "WrenchDelay", "check_wrench", "find_wrench_delay"],
    "dynid.load.wrench_equations": ["WrenchData", "pose_equations"],
    "dynid.load.wrist": ["Sensing", "identify_load", "identify_load_from_poses", "wrench_data"],
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
    "dynid.parameters.layout": ["Parameter", "ParameterLayout", "parameter_layout"],
    "dynid.report.plots": ["plot"],
    "dynid.report.report": ["write_report"],
    "dynid.robot.check": ["check_robot"],
    "dynid.robot.formats.dh": ["DH", "StandardDH", "from_dh"],
    "dynid.robot.inertia": ["Inertia"],
    "dynid.terms.base": ["MemoryTerm", "Reference", "StateTerm", "Term"],
    "dynid.terms.coupling": ["Coupling", "MotorFriction"],
    "dynid.terms.motors": ["Offset", "RotorInertia"],
    "dynid.terms.friction": [
        "AngleFriction",
        "AsymmetricViscous",
        "Coulomb",
        "SaturatingViscous",
        "SmoothSign",
        "Stribeck",
        "Viscous",
    ],
    "dynid.terms.load_dependent": ["BaseTilt", "CrossTalk", "DriveGain", "LoadFriction", "SensorCurvature"],
    "dynid.terms.memory": ["Hysteresis", "LaggedSign"],
    "dynid.terms.springs": ["AngleHarmonic"],
    "dynid.robot.formats.mjcf.read": ["read_mjcf"],
    "dynid.robot.formats.mjcf.write": ["write_mjcf"],
    "dynid.robot.model": ["Robot"],
    "dynid.robot.formats.modified_dh": ["modified_dh"],
    "dynid.robot.parts": ["Joint", "JointLimits", "Link"],
    "dynid.robot.formats.text_format": ["read_text", "write_text"],
    "dynid.robot.formats.urdf": ["read_urdf", "write_urdf"],
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
