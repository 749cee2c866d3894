"""Results as matplotlib figures, drawn from the same numbers as the report; needs the extra ``plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynid.errors import ArgumentError
from dynid.excitation.excitation import Excitation
from dynid.links.identify import Identification
from dynid.links.validation import Validation
from dynid.processing.experiment import Experiment
from dynid.report.html_blocks import Plot, unpack
from dynid.report.identification_sections import residual_plots, torques_chapter
from dynid.report.series import MOST_POINTS, joint_torques

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


def _draw(axis: Any, block: Plot) -> None:
    """Draw the curves of a plot of the report."""
    x = unpack(block.x)
    for curve in block.curves:
        axis.plot(x, unpack(curve.y), "--" if curve.dashed else "-", label=curve.label, linewidth=1.2, alpha=0.8)
    axis.set(xlabel=block.x_label, ylabel=block.y_label)


def _identification(fit: Identification, run: Experiment | None) -> Figure:
    """Torques of every joint, and distribution, autocorrelation and dependence on speed of the residuals."""
    drawn = fit.equations.excerpts[0] if run is None else run
    if not drawn.samples:
        raise ArgumentError("a saved result holds no data to draw", remedy="Pass an experiment: plot(fit, run).")
    joints = joint_torques(fit, drawn)
    torques = [block for block in torques_chapter(joints, (), seen=True).blocks if isinstance(block, Plot)]
    figure, axes = _subplots(len(joints), 4, figsize=(15, 2.1 * len(joints)), width_ratios=(3, 1, 1, 1))
    for joint, torque, row in zip(joints, torques, axes, strict=True):
        for axis, block in zip(row, [torque, *residual_plots(joint, drawn.rate_hz)], strict=False):
            _draw(axis, block)
    axes[0, 0].legend(ncols=4, fontsize="small", loc="upper right")
    return figure


def _validation(check: Validation) -> Figure:
    """Held-out errors of every joint and of all, with the limit and the prior model."""
    figure, axes = _subplots(1, 1, figsize=(7, 3.5))
    axis = axes[0, 0]
    axis.bar([*check.joint_names, "all"], [*check.per_joint, check.relative_error], label="held-out error")
    axis.axhline(check.limit, linestyle="--", color="tab:red", label=f"limit {check.limit:g} %")
    axis.axhline(check.prior_error, linestyle=":", color="tab:gray", label="prior model, all joints")
    axis.set(ylabel="relative torque error [%]", title=check.verdict)
    axis.legend(fontsize="small")
    return figure


def _excitation(plan: Excitation) -> Figure:
    """Positions, speeds and accelerations; what is to be recorded is shaded."""
    samples = plan.sample(MOST_POINTS / plan.trajectory.duration)
    figure, axes = _subplots(3, 1, figsize=(9, 7), sharex=True)
    kinds = {"position": samples.q, "speed": samples.dq, "acceleration": samples.ddq}
    for axis, (label, values) in zip(axes[:, 0], kinds.items(), strict=True):
        axis.plot(samples.time, values, label=samples.joint_names, linewidth=1)
        axis.axvspan(*plan.trajectory.recorded, color="tab:gray", alpha=0.12)
        axis.set_ylabel(f"{label} [rad, m, s]")
    axes[0, 0].set_title(f"{plan.robot}: condition number {plan.condition_number:.3g}; shaded: to record")
    axes[0, 0].legend(ncols=4, fontsize="small")
    axes[2, 0].set_xlabel("time [s]")
    return figure
