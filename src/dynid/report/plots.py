"""Results as matplotlib figures, drawn from the same numbers as the report; needs the extra ``plot``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.errors import ArgumentError
from dynid.excitation.excitation import Excitation
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import subtract_start
from dynid.report.series import FEWEST, MOST_POINTS, autocorrelate, bin_residuals, joint_torques, mean_over_speed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(result: Identification | Validation | Excitation, run: Experiment | None = None) -> Figure:
    """Draw a result.

    Args:
        result: An identification (torques and residuals of every joint), a validation (errors of every joint against
            the prior model) or a designed motion (positions and speeds).
        run: The experiment to draw for an identification; by default the first one it was made from.

    Returns:
        A matplotlib figure, to show or to save.

    Raises:
        ArgumentError: matplotlib is not installed, or the result is of another type.

    Example:
        >>> type(dynid.plot(fit)).__name__
        'Figure'
    """
    if isinstance(result, Identification):
        return _show_once(_identification(result, run))
    if run is not None:
        raise ArgumentError("only an identification can be drawn with a run", remedy="Call plot(result) without a run.")
    if isinstance(result, Validation):
        return _show_once(_validation(result))
    if isinstance(result, Excitation):
        return _show_once(_excitation(result))
    raise ArgumentError(
        f"plot cannot draw a {type(result).__name__}",
        remedy="Pass the result of identify, validate or design_excitation.",
    )


def _show_once(figure: Figure) -> Figure:
    """Take a figure from pyplot's list where a notebook would show it a second time, besides the returned one."""
    import matplotlib
    from matplotlib import pyplot

    if "inline" in matplotlib.get_backend():
        pyplot.close(figure)
    return figure


def _subplots(rows: int, columns: int, **options: Any) -> tuple[Figure, Any]:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ArgumentError("matplotlib is not installed", remedy="pip install 'dynid[plot]'") from error
    figure, axes = pyplot.subplots(rows, columns, squeeze=False, layout="constrained", **options)
    return figure, axes


def _identification(fit: Identification, run: Experiment | None) -> Figure:
    drawn = fit.equations.excerpts[0] if run is None else run
    if not drawn.samples:
        raise ArgumentError("a saved result holds no data to draw", remedy="Pass an experiment: plot(fit, run).")
    joints = joint_torques(fit, drawn)
    figure, axes = _subplots(len(joints), 4, figsize=(15, 2.1 * len(joints)), width_ratios=(3, 1, 1, 1))
    shapes: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("residual [{unit}]", lambda e, speed: bin_residuals(e)),
        ("lag [s]", lambda e, speed: autocorrelate(e, drawn.rate_hz)),
        ("speed [{speed_unit}]", mean_over_speed),
    )
    for joint, row in zip(joints, axes, strict=True):
        time, time_label = subtract_start(joint.time, "time [s]")
        for label, values, style, colour in (
            ("measured", joint.measured, "-", "tab:blue"),
            ("prior model", joint.prior, "-", "tab:green"),
            ("residual", joint.residual, "-", "tab:purple"),
            ("identified", joint.identified, "--", "tab:orange"),
        ):
            faint = 1.0 if style == "--" else 0.6
            row[0].plot(time, values, style, label=label, color=colour, alpha=faint, linewidth=1.2)
        row[0].set(ylabel=f"{joint.name} [{joint.unit}]", xlabel=time_label)
        good = joint.counted
        if good.sum() < FEWEST:
            continue
        for axis, (label, shape) in zip(row[1:], shapes, strict=True):
            axis.plot(*shape(joint.residual[good], joint.speed[good]))
            axis.set_xlabel(label.format(unit=joint.unit, speed_unit=joint.speed_unit))
    axes[0, 0].legend(ncols=4, fontsize="small", loc="upper right")
    for axis, title in zip(
        axes[0], ("torques", "residuals", "autocorrelation of the residuals", "mean residual over speed"), strict=True
    ):
        axis.set_title(title)
    return figure


def _validation(check: Validation) -> Figure:
    figure, axes = _subplots(1, 1, figsize=(7, 3.5))
    axis = axes[0, 0]
    places = np.arange(len(check.joint_names) + 1)
    values = np.append(check.per_joint, check.relative_error)
    axis.bar(places, values, color="tab:blue", label="held-out error")
    axis.axhline(check.limit, linestyle="--", color="tab:red", label=f"limit {check.limit:g} %")
    axis.axhline(check.prior_error, linestyle=":", color="tab:gray", label="prior model, all joints")
    axis.set_xticks(places, [*check.joint_names, "all"], rotation=30, ha="right")
    axis.set(ylabel="relative torque error [%]", title=check.verdict)
    axis.legend(fontsize="small")
    return figure


def _excitation(plan: Excitation) -> Figure:
    samples = plan.sample(MOST_POINTS / plan.trajectory.duration)
    figure, axes = _subplots(3, 1, figsize=(9, 7), sharex=True)
    for axis, values, label in zip(
        axes[:, 0], (samples.q, samples.dq, samples.ddq), ("position", "speed", "acceleration"), strict=True
    ):
        for name, column in zip(samples.joint_names, values.T, strict=True):
            axis.plot(samples.time, column, label=name, linewidth=1)
        axis.axvspan(*plan.trajectory.recorded, color="tab:gray", alpha=0.12)
        axis.set_ylabel(f"{label} [rad, m, s]")
    axes[0, 0].set_title(f"{plan.robot}: condition number {plan.condition_number:.3g}; shaded: to record")
    axes[0, 0].legend(ncols=4, fontsize="small")
    axes[2, 0].set_xlabel("time [s]")
    return figure
