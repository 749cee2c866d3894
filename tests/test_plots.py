"""Figures: the report's numbers in them, one clear error without matplotlib."""

from __future__ import annotations

import builtins
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.estimation.linear.least_squares import WLS
from dynid.excitation.design import design_excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.search import SearchSettings
from dynid.links.identify import Identification, identify
from dynid.links.recipe import Recipe
from dynid.links.validation import validate
from dynid.processing.process import process
from dynid.processing.simulation import Noise, simulate_experiment, sum_of_sines
from dynid.robot.zoo import ur10
from dynid.terms.friction import Viscous


@pytest.fixture(scope="module")
def fit() -> Identification:
    robot = ur10().with_terms(Viscous(0.5))
    run = process(
        simulate_experiment(robot, sum_of_sines(6, seed=0), rate_hz=100, duration_s=8, noise=Noise(effort=0.1), seed=0)
    )
    return identify(robot, run, Recipe.bare(), estimator=WLS())


@pytest.fixture
def pyplot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    module = pytest.importorskip("matplotlib.pyplot")
    yield module
    module.close("all")


def test_an_identification_shows_its_torques(fit: Identification, pyplot: Any) -> None:
    figure = dynid.plot(fit)
    run = fit.equations.experiments[0]
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert set(lines) == {"measured", "prior model", "identified", "residual"}
    assert np.allclose(lines["identified"].get_ydata(), fit.torque(run)[:, 0])
    assert np.allclose(lines["residual"].get_ydata(), (run.effort - fit.torque(run))[:, 0], equal_nan=True)
    assert len(figure.axes) == 4 * fit.robot.dof
    figure.savefig(stream := io.BytesIO(), format="png")
    assert stream.getvalue().startswith(b"\x89PNG")


def test_a_notebook_shows_a_figure_once(fit: Identification, pyplot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dynid.plot(fit)
    assert len(pyplot.get_fignums()) == 1  # a script shows it with pyplot.show()
    pyplot.close("all")
    monkeypatch.setattr("matplotlib.get_backend", lambda: "module://matplotlib_inline.backend_inline")
    dynid.plot(fit)
    assert pyplot.get_fignums() == []  # the notebook shows the returned figure only


def test_a_validation_shows_its_errors(fit: Identification, pyplot: Any) -> None:
    other = process(simulate_experiment(fit.robot, sum_of_sines(6, seed=1), rate_hz=100, duration_s=8))
    check = validate(fit, other)
    bars = dynid.plot(check).axes[0].patches
    assert np.allclose([bar.get_height() for bar in bars], [*check.per_joint, check.relative_error])


def test_a_plan_shows_the_motion(fit: Identification, pyplot: Any) -> None:
    limits = MotionLimits.from_robot(fit.robot, scale=0.5)
    plan = design_excitation(
        fit.robot, limits, period_s=6, harmonics=2, settings=SearchSettings(starts=1, time_limit_s=2)
    )
    figure = dynid.plot(plan)
    line = figure.axes[0].get_lines()[1]
    assert np.allclose(
        line.get_ydata(), plan.trajectory.evaluate(np.minimum(line.get_xdata(), plan.trajectory.duration))[0][:, 1]
    )


def test_what_has_no_picture_is_refused(fit: Identification, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dynid.errors.ArgumentError, match="cannot draw a str"):
        dynid.plot("fit")
    load = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(dynid.errors.ArgumentError, match=r"pip install 'dynid\[plot\]'"):
        dynid.plot(fit)
