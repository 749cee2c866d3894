"""The sections of an identification report, each made from the finished result alone."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from dynid.data.recording import Experiment
from dynid.identification.links import Identification
from dynid.identification.validation import Validation
from dynid.kernels import inverse_dynamics
from dynid.report.page import Section, packed, widget
from dynid.tables import Table

__all__ = ["Parameters", "Provenance", "Residuals", "Torques", "Verdict"]

Floats = NDArray[np.float64]
MOST_POINTS = 5000
"""Points of a curve in the report; more are thinned to the extremes of each stretch."""


def thinned(*channels: Floats) -> list[Floats]:
    """The same rows of several channels, so many that peaks of the first one after the time stay visible."""
    size = channels[0].size
    if size <= MOST_POINTS:
        return list(channels)
    kept: list[int] = []
    for part in np.array_split(np.arange(size), MOST_POINTS // 2):
        values = np.nan_to_num(channels[1][part])
        kept += sorted({int(part[np.argmin(values)]), int(part[np.argmax(values)])})
    return [channel[kept] for channel in channels]


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(Section):
    """The judgement, and the figures behind it."""

    fit: Identification
    check: Validation | None

    @property
    def title(self) -> str:
        """Heading."""
        return "Verdict"

    def body(self) -> str:
        """One sentence and some large numbers."""
        if self.check is None:
            kind, text = "open", "not proven: no held-out data was given"
        else:
            kind, text = ("good" if self.check.passed else "bad"), self.check.verdict
        estimate = self.fit.estimate
        numbers = [
            ("base parameters", str(len(estimate.names))),
            ("left open by the motion", str(int(estimate.undetermined.sum()))),
            ("condition number", f"{estimate.condition:.3g}"),
            ("training error", f"{self.fit.training_error[-1]:.2f} %"),
        ]
        if self.check is not None:
            numbers += [
                ("held-out error", f"{self.check.relative_error:.2f} %"),
                ("model before", f"{self.check.prior_error:.2f} %"),
            ]
        cards = "".join(
            f'<div class="card"><b>{escape(n)}</b><span>{escape(label)}</span></div>' for label, n in numbers
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in estimate.notes)
        held = (
            f"<p>Held by a physical constraint: {escape(', '.join(estimate.at_bound))}.</p>"
            if estimate.at_bound
            else ""
        )
        return f'<p class="verdict {kind}">{escape(text)}</p><div class="cards">{cards}</div><ul>{notes}</ul>{held}'


@dataclass(frozen=True, slots=True, eq=False)
class Torques(Section):
    """Measured, predicted and residual torque of every joint."""

    fit: Identification
    run: Experiment
    seen: bool
    """Whether the run was used for the identification."""

    @property
    def title(self) -> str:
        """Heading."""
        return "Torques on the data used" if self.seen else "Torques on held-out data"

    def body(self) -> str:
        """One zoomable plot per joint."""
        found = self.fit.torque(self.run)
        before = inverse_dynamics(self.fit.robot, self.run.q, self.run.dq, self.run.ddq)
        plots = []
        for j, name in enumerate(self.fit.robot.joint_names):
            measured = np.where(self.run.valid[:, j], self.run.effort[:, j], np.nan)
            channels = thinned(self.run.time, measured, found[:, j], before[:, j], measured - found[:, j])
            unit = "N" if self.fit.robot.bodies[j].prismatic else "N m"
            labels = ("measured", "identified", "before", "residual")
            data = {
                "x": packed(channels[0]),
                "xlabel": "time [s]",
                "ylabel": f"{name} [{unit}]",
                "lines": [
                    {"label": n, "y": packed(c), "dashed": n == "identified"} for n, c in zip(labels, channels[1:])
                ],
            }
            plots.append(widget("lines", f"torque of {name}: measured, identified, before, residual", data, 230))
        hint = "Drag to move, turn the wheel with Shift or Ctrl to zoom, double-click for all; keys: + - arrows Home."
        return f'<p class="hint">{hint}</p>' + "".join(plots)


@dataclass(frozen=True, slots=True, eq=False)
class Residuals(Section):
    """What the model leaves unexplained: distribution, memory, dependence on speed."""

    fit: Identification
    run: Experiment

    @property
    def title(self) -> str:
        """Heading."""
        return "Residuals"

    def body(self) -> str:
        """Histogram, autocorrelation and mean over speed of every joint."""
        residual = self.run.effort - self.fit.torque(self.run)
        plots = []
        for j, name in enumerate(self.fit.robot.joint_names):
            good = self.run.valid[:, j]
            e, speed = residual[good, j], self.run.dq[good, j]
            if e.size < 32:
                continue
            plots += [self._histogram(name, e), self._autocorrelation(name, e), self._over_speed(name, e, speed)]
        text = (
            "White residuals fall to zero at once in the middle plot; a slow fall means model error rather than noise."
        )
        return f'<p class="hint">{text}</p><div class="grid">{"".join(plots)}</div>'

    def _histogram(self, name: str, e: Floats) -> str:
        counts, edges = np.histogram(e, bins=60, range=tuple(np.percentile(e, [0.2, 99.8])))
        return _small(f"{name}: residual [N m]", "samples", 0.5 * (edges[1:] + edges[:-1]), counts)

    def _autocorrelation(self, name: str, e: Floats) -> str:
        spectrum = np.abs(np.fft.rfft(e - e.mean(), 2 * e.size)) ** 2
        lags = min(e.size // 2, int(self.run.rate_hz))
        correlation = np.fft.irfft(spectrum)[:lags] / max(float(np.sum((e - e.mean()) ** 2)), 1e-300)
        return _small(f"{name}: lag [s]", "autocorrelation", np.arange(lags) / self.run.rate_hz, correlation)

    def _over_speed(self, name: str, e: Floats, speed: Floats) -> str:
        order = np.argsort(speed)
        parts = [part for part in np.array_split(order, 40) if part.size]
        means = np.array([e[part].mean() for part in parts])
        return _small(
            f"{name}: speed [rad/s]", "mean residual", np.array([speed[part].mean() for part in parts]), means
        )


def _small(x_label: str, y_label: str, x: Floats, y: Floats) -> str:
    data = {"x": packed(x), "xlabel": x_label, "ylabel": "", "lines": [{"label": y_label, "y": packed(y)}]}
    return widget("lines", f"{y_label} over {x_label}", data, 170)


@dataclass(frozen=True, slots=True, eq=False)
class Parameters(Section):
    """Base parameters with intervals; standard parameters with what supports them."""

    fit: Identification

    @property
    def title(self) -> str:
        """Heading."""
        return "Parameters"

    def body(self) -> str:
        """Two tables and the plain words of what cannot be known."""
        estimate, base = self.fit.estimate, self.fit.base
        interval = estimate.interval()
        features = [feature.name for feature in self.fit.features]
        prior = np.concatenate([base.project(self.fit.robot.parameter_vector), np.zeros(len(features))])
        rows = [
            (name, expression, float(value), float(low), float(high), float(before), unit, "left open" if free else "")
            for name, expression, value, (low, high), before, unit, free in zip(
                estimate.names,
                (*base.expressions, *features),
                estimate.values,
                interval,
                prior,
                estimate.units,
                estimate.undetermined,
                strict=True,
            )
        ]
        header = ["base parameter", "is", "value", "95 % from", "to", "before", "unit", ""]
        found = Table.of(header, rows).to_html()
        bodies = f'<h3>Bodies</h3><div class="scroll">{self._bodies()}</div>'
        return f'<div class="scroll">{found}</div>{self._hidden()}{bodies}'

    def _hidden(self) -> str:
        reasons = self.fit.base.reasons
        items = "".join(f"<li><b>{escape(name)}</b>: {escape(text)}</li>" for name, text in reasons.items())
        return f"<h3>Parameters without effect on the torques</h3><ul>{items}</ul>" if items else ""

    def _bodies(self) -> str:
        rows = []
        for before, after in zip(self.fit.robot.bodies, self.fit.identified.bodies, strict=True):
            com = ", ".join(f"{1000 * c:.1f}" for c in after.inertia.com)
            moments = ", ".join(f"{m:.4g}" for m in np.linalg.eigvalsh(after.inertia.about_com))
            rows.append((after.joint.child, after.inertia.mass, before.inertia.mass, com, moments))
        header = ["body", "mass [kg]", "before", "centre of mass [mm]", "principal moments [kg m^2]"]
        note = "Physically possible bodies; where data leave a choice, the one nearest to the model before."
        return f'<p class="hint">{note}</p>' + Table.of(header, rows).to_html()


@dataclass(frozen=True, slots=True, eq=False)
class Provenance(Section):
    """Which data, treated how; which methods."""

    fit: Identification

    @property
    def title(self) -> str:
        """Heading."""
        return "Data and methods"

    def body(self) -> str:
        """Recipe of every run, hashes, joints, versions."""
        runs = []
        for run in self.fit.problem.experiments:
            steps = "".join(f"<li>{escape(step)}</li>" for step in run.recipe)
            dropped = ", ".join(f"{count} {reason}" for reason, count in run.dropped.items()) or "nothing"
            runs.append(
                f"<h3>{escape(run.source)}</h3><p><code>sha256 {escape(run.sha256[:16] or 'none')}</code>, "
                f"{run.samples} samples at {run.rate_hz:g} Hz; left out: {escape(dropped)}</p><ul>{steps}</ul>"
            )
        joints = Table.of(
            ["joint", "samples", "residual std", "samples per independent one", "training error %"],
            [
                (name, int(count), float(std), float(factor), float(error))
                for name, count, std, factor, error in zip(
                    self.fit.robot.joint_names,
                    self.fit.estimate.samples,
                    self.fit.estimate.noise_std,
                    self.fit.estimate.inflation,
                    self.fit.training_error,
                    strict=False,
                )
            ],
        )
        return f'<p>{escape(self.fit.estimate.method)}</p><div class="scroll">{joints.to_html()}</div>{"".join(runs)}'
