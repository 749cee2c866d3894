"""Validation: torque errors of an identified robot on held-out data, compared with those of the prior model.

`validate` makes a `Validation`, which holds the errors, judges them and names their likely cause. `robot_error` gives
the error of any robot without a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.compiled import inverse_dynamics
from dynid.diagnosis.runs import explain_residuals
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors, relative_errors
from dynid.estimators.rows import torque_along
from dynid.findings import Finding
from dynid.identification.given_data import list_data, shares_samples
from dynid.identification.identify import Data, Identification
from dynid.identification.log_errors import Comparison, LogError, name_logs, name_worst
from dynid.identification.log_reader import LogReader, common_cutoff
from dynid.identification.recipe import Recipe
from dynid.logs.channel_map import ChannelMapSource
from dynid.plain_data import json_values
from dynid.processing.cutoff import ALIKE, noise_through
from dynid.processing.experiment import Experiment, matched_runs
from dynid.processing.filters import Butterworth
from dynid.robot.model import Robot
from dynid.tables import Table, html_card

Mask = NDArray[np.bool_]
NOISE_SHARE = 50.0
"""Share of the residual's power from which on noise is called its reason [%] (convention: the larger part)."""
FAILING_LIMIT_FACTOR = 2.0
"""Multiple of the limit above which a single joint fails, where the model rather than noise is the reason (convention:
the real logs have errors of 24 % at most, at a limit of 15 %)."""

BIASING = frozenset({"controller", "delay", "drift", "gain", "load", "inconsistent"})
"""Codes of findings about logs and estimates that mean a biased result."""


class KindError(NamedTuple):
    """The error of the joints of one kind: newtons and newton metres cannot be added."""

    name: str
    """``torques [N m]`` of turning joints or ``forces [N]`` of slides."""
    error: float
    """Relative error over these joints together [%]."""
    prior_error: float
    """Relative error of the prior model over these joints together [%]."""
    joints: Mask | None = None
    """(n,) these joints; None for all."""


class Fitted(Protocol):
    """Anything that was fitted to experiments and predicts torques: an `Identification`, a `Significance`."""

    @property
    def equations(self) -> Factors:
        """The equations of the fit."""

    @property
    def robot(self) -> Robot:
        """The prior model."""

    @property
    def training_error(self) -> Any:  # Floats; type checkers differ about a property that is kept
        """(n + 1,) relative torque error of each joint and of all together on the data used [%]."""

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) predicted torques [N m or N]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Validation:
    """Torque errors on held-out data."""

    joint_names: tuple[str, ...]
    per_joint: Floats
    """(n,) relative error 100 |measured - predicted| / |measured| of each joint [%]."""
    relative_error: float
    """Relative error over all joints together [%]; torques and forces are added as plain numbers, see `by_kind`."""
    plain_error: float
    """Relative error of the plain model over all joints together [%]."""
    prior_error: float
    """Relative error of the prior model over all joints together [%]."""
    plain_per_joint: Floats
    """(n,) relative error of the plain model for each joint [%]."""
    prior_per_joint: Floats
    """(n,) relative error of the prior model for each joint [%]."""
    training_error: float
    """Relative error on the training data [%]; NaN where they are not at hand in this band."""
    rms: Floats
    """(n,) root mean square of each joint's residual torque [N m or N]."""
    whiteness: Floats
    """(n,) lag-one autocorrelation of each joint's residuals; near 1 means model error rather than noise."""
    samples: int
    """Number of joint samples that were compared."""
    limit: float
    """Largest relative error that passes [%]."""
    band_hz: float | None = None
    """Band to which measured and predicted torques were low-passed before the comparison [Hz]; None for all."""
    trim_s: float | None = None
    """Time left out at both ends of every low-passed stretch [s]; None for the settling time of the filter."""
    doubts: tuple[str, ...] = ()
    """Findings of the checks that mean biased parameters, such as an uncorrected delay; see `name_doubts`."""
    by_kind: tuple[KindError, ...] = ()
    """The errors of turning joints and of slides, which are judged apart; empty where all joints are of one kind."""
    noise_percent: Floats | None = None
    """(n,) share of noise in the power of each joint's residual [%]; None where it is unknown."""
    causes: tuple[Finding, ...] = ()
    """What explains most of the residuals, another load for example; empty where nothing known does."""
    by_log: tuple[LogError, ...] = ()
    """The errors on each held-out log."""

    @property
    def passed(self) -> bool:
        """Whether errors are within the limit and not larger than those of the prior model, without any doubts.

        Turning joints and slides are judged separately, and single joints by `failed_joints`.
        """
        return not self._objection

    @property
    def of_model(self) -> Mask:
        """(n,) whether the model rather than noise is the larger part of each joint's residual."""
        if self.noise_percent is None:
            return np.ones(len(self.joint_names), dtype=np.bool_)
        return np.asarray(self.noise_percent < NOISE_SHARE)

    @property
    def failed_joints(self) -> Mask:
        """(n,) joints above the limit because of the model, and above the prior model's error or twice the limit."""
        # NaN of joints that were not compared drops out of fmin and fmax, and is never above the bound
        bound = np.fmax(self.limit, np.fmin(ALIKE * self.prior_per_joint, FAILING_LIMIT_FACTOR * self.limit))
        return np.asarray((self.per_joint > bound) & self.of_model)

    @property
    def _held_out(self) -> str:
        """Words for the data that were compared, with their band."""
        return "on held-out data" + ("" if self.band_hz is None else f" below {self.band_hz:g} Hz")

    @property
    def _objection(self) -> str:
        """Why the validation does not pass, as one sentence; empty where it passes."""
        if not np.isfinite(self.relative_error):
            return "failed: nothing could be compared"
        all_joints = KindError("", self.relative_error, self.prior_error)
        for kind in sorted(self.by_kind or (all_joints,), key=lambda kind: -kind.error):  # the worst kind first
            error = f"{kind.error:.2f} %{f' of the {kind.name}' if kind.name else ''} {self._held_out}"
            others = [f"{other.name} {other.error:.2f} %" for other in self.by_kind if other is not kind]
            aside = f" ({', '.join(others)}; both together {self.relative_error:.2f} %)" if others else ""
            aside += name_worst(self.by_log, self.joint_names, kind.joints)
            if kind.error > self.limit:
                return f"failed: {error} exceeds the limit of {self.limit:g} %{aside}"
            if kind.error > ALIKE * kind.prior_error:
                return f"failed: {error} is worse than the prior model ({kind.prior_error:.2f} %){aside}"
        error = f"{self.relative_error:.2f} % {self._held_out}"
        rows = zip(self.joint_names, self.per_joint, self.prior_per_joint, self.failed_joints, strict=True)
        named = [f"{name} ({error:.3g} %, prior model {prior:.3g} %)" for name, error, prior, failed in rows if failed]
        if named:
            worst = name_worst(self.by_log, self.joint_names, self.failed_joints)
            reason = (
                f"worse than by the prior model or beyond {FAILING_LIMIT_FACTOR:g} times the limit because of the model"
            )
            return f"failed: {error} is within the limit, but joints are predicted {reason}: {', '.join(named)}{worst}"
        if self.doubts:
            return f"not passed: {error} is within the limit, but {'; '.join(self.doubts)}{self._name_unjudged()}"
        return ""

    @property
    def verdict(self) -> str:
        """The verdict as one sentence."""
        error = f"{self.relative_error:.2f} % {self._held_out}"
        training = f"training {self.training_error:.2f} %, " if np.isfinite(self.training_error) else ""
        kinds = "".join(f"{kind.name} {kind.error:.2f} %, " for kind in self.by_kind)
        models = f"plain model {self.plain_error:.2f} %, {training}prior model {self.prior_error:.2f} %"
        return self._objection or f"passed: {error} ({kinds}{models}){self._name_unjudged()}"

    def _name_unjudged(self) -> str:
        """A clause that names the joints of which nothing could be compared; empty where there are none."""
        rows = zip(self.joint_names, self.per_joint.tolist(), strict=True)
        named = ", ".join(name for name, error in rows if np.isnan(error))
        return (
            f"; not judged, because the held-out data hold no torque of a moving joint there: {named}" if named else ""
        )

    @property
    def joints_above_limit(self) -> str:
        """A sentence that names the joints whose own error exceeds the limit; empty where there are none."""
        above = [
            f"{name} ({error:.3g} %)"
            for name, error in zip(self.joint_names, self.per_joint, strict=True)
            if error > self.limit
        ]
        if not above:
            return ""
        judges = (
            "the verdict judges joints together"
            + (", turning ones and slides apart" if self.by_kind else "")
            + ", and a joint by itself where the prior model predicts it better or beyond "
            + f"{FAILING_LIMIT_FACTOR:g} times the limit"
        )
        return f"Above the limit of {self.limit:g} %: {', '.join(above)}; {judges}."

    def summary(self) -> str:
        """Verdict, the joints above the limit with what explains them, a table per joint, and one of several logs."""
        causes = (f"Likely cause: {cause.sentence}" for cause in self.causes)
        head = "\n".join(filter(None, (self.verdict, self.joints_above_limit, *causes)))
        tables = (self.table(), self.log_table()) if len(self.by_log) > 1 else (self.table(),)
        return "\n\n".join([head, *(table.to_text() for table in tables)])

    def table(self) -> Table:
        """Errors of every joint."""
        columns = (self.per_joint, self.plain_per_joint, self.prior_per_joint, self.rms, self.whiteness)
        figures = np.column_stack(columns).tolist()
        rows = [(name, *row) for name, row in zip(self.joint_names, figures, strict=True)]
        header = ["joint", "error %", "plain model %", "prior model %", "rms residual", "lag-one correlation"]
        return Table.of(header, rows)

    def log_table(self) -> Table:
        """Errors of every held-out log, and the joint that adds most to each."""
        worst = [(log, log.worst_joint()) for log in self.by_log]
        rows = [(log.name, log.error(), self.joint_names[j], float(log.per_joint[j])) for log, j in worst]
        return Table.of(["held-out log", "error %", "joint that adds most", "its error %"], rows)

    def __repr__(self) -> str:
        """The verdict in one line."""
        return f"Validation({self.verdict}; {len(self.joint_names)} joints, {self.samples} torques)"

    def _repr_html_(self) -> str:
        """The verdict and the errors of every joint, for notebooks."""
        return html_card(self.verdict, table=self.table())

    def to_json(self) -> dict[str, Any]:
        """The validation as values that JSON can hold."""
        return dict(json_values({
            "verdict": self.verdict,
            "passed": self.passed,
            "relative_error_percent": self.relative_error,
            "plain_error_percent": self.plain_error,
            "prior_error_percent": self.prior_error,
            "training_error_percent": self.training_error,
            "limit_percent": self.limit,
            "doubts": self.doubts,
            "by_kind_percent": {kind.name: kind.error for kind in self.by_kind},
            "prior_by_kind_percent": {kind.name: kind.prior_error for kind in self.by_kind},
            "by_log": [
                {
                    "log": log.name,
                    "relative_error_percent": log.error(),
                    "per_joint_percent": self._by_joint(log.per_joint),
                }
                for log in self.by_log
            ],
            "failed_joints": list(compress(self.joint_names, self.failed_joints)),
            "causes": [cause.to_dict() for cause in self.causes],
            "band_hz": self.band_hz,
            "per_joint_percent": self._by_joint(self.per_joint),
            "plain_per_joint_percent": self._by_joint(self.plain_per_joint),
            "prior_per_joint_percent": self._by_joint(self.prior_per_joint),
            "rms_residual": self._by_joint(self.rms),
            "lag_one_correlation": self._by_joint(self.whiteness),
            "joint_samples": self.samples,  # each joint counts for itself; data have samples in time
        }))  # fmt: skip

    def _by_joint(self, values: Floats) -> dict[str, float]:
        """Joint -> value; NaN where nothing could be compared."""
        return dict(zip(self.joint_names, values, strict=True))

    def __str__(self) -> str:
        return self.summary()


def name_doubts(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Clauses, each with log and joint, that repeat the findings which mean a biased result; each clause once."""
    return tuple(
        dict.fromkeys(
            ": ".join(part for part in (finding.log, finding.joint, finding.message) if part)
            for finding in findings
            if finding.code in BIASING and finding.severity != "note"
        )
    )


def validate(
    fit: Fitted,
    experiments: Data | Sequence[Data],
    *,
    limit: float = 15.0,
    band_hz: float | None = None,
    trim_s: float | None = None,
    channel_map: ChannelMapSource | None = None,
) -> Validation:
    """Compare predicted and measured torques of experiments that were not used for the identification.

    Args:
        fit: The identification, or its significant parameters alone (`Identification.significance`).
        experiments: Held-out data, without samples of the identification. Logs, recordings and tables in memory (see
            `identify`) are checked and processed as a recipe does by default, with the cutoff of the identification.
        limit: Largest relative error that passes [%].
        band_hz: Band to which both measured and predicted torques are low-passed before they are compared, so that
            sensor noise above it does not count as error of the model [Hz]; the band of the identification by default.
        trim_s: Time left out at both ends of every low-passed stretch [s]; the filter's settling time by default.
        channel_map: Channel map of log files and tables, or its file.

    Raises:
        ArgumentError: An experiment was used for the identification.

    Example:
        >>> dynid.validate(fit, other).passed
        False
    """
    as_number("limit", limit, above=0.0)
    if hasattr(fit, "identification"):  # a result file's content from `read_result`, given instead of its fit
        raise ArgumentError(
            f"fit is a {type(fit).__name__}, the content of a result file",
            remedy="Restore the identification first: dynid.validate(saved.identification(), experiment).",
        )
    band = fit.equations.band_hz if band_hz is None else band_hz
    runs = matched_runs(fit.robot, _process_held_out(fit, experiments, channel_map))
    if any(shares_samples(run, used) for run in runs for used in fit.equations.excerpts):
        raise ArgumentError(
            "an experiment that was used for the identification cannot validate it",
            remedy="Hold out one run, or a part of one.",
        )
    plain_model = fit.plain if isinstance(fit, Identification) else fit
    comparison = Comparison(band, trim_s)
    residuals, predictions, logs = [], [], []
    # sums over all runs, each (n,): squares of the prior and the plain model's residuals, and number of samples
    prior_squares, plain_squares, counts = np.zeros((3, fit.robot.dof))
    for run, name in zip(runs, name_logs(runs), strict=True):
        predicted = fit.torque(run)
        prior_torque = torque_along(fit.robot, fit.robot.parameter_vector, run)
        (measured, residual, plain_residual, prior_residual), counted = comparison.torques(
            run, run.effort, run.effort - predicted, run.effort - plain_model.torque(run), run.effort - prior_torque
        )
        predictions.append(predicted)
        residuals.append(residual)
        logs.append(LogError(name, (residual**2).sum(axis=0), (measured**2).sum(axis=0)))
        plain_squares += (plain_residual**2).sum(axis=0)
        prior_squares += (prior_residual**2).sum(axis=0)
        counts += counted.sum(axis=0)
    squares = np.sum([log.squares for log in logs], axis=0)
    total = np.sum([log.total for log in logs], axis=0)
    errors, plain_errors, prior_errors = (relative_errors(x, total) for x in (squares, plain_squares, prior_squares))
    with np.errstate(divide="ignore", invalid="ignore"):
        rms = np.sqrt(squares / counts)
        check = Validation(
            joint_names=fit.robot.joint_names,
            per_joint=errors[:-1],
            relative_error=float(errors[-1]),
            plain_per_joint=plain_errors[:-1],
            plain_error=float(plain_errors[-1]),
            prior_per_joint=prior_errors[:-1],
            prior_error=float(prior_errors[-1]),
            training_error=training_error_in_band(fit, comparison),
            rms=rms,
            whiteness=np.sum([(r[1:] * r[:-1]).sum(axis=0) for r in residuals], axis=0) / squares,
            samples=int(counts.sum()),
            limit=limit,
            band_hz=band,
            trim_s=trim_s,
            by_kind=_errors_by_kind(fit.robot, squares, prior_squares, total),
            noise_percent=_noise_percent(runs, rms, band),
            by_log=tuple(logs),
        )
    return replace(check, causes=explain_residuals(fit.robot, runs, predictions, check.of_model))


def _errors_by_kind(robot: Robot, squares: Floats, prior: Floats, total: Floats) -> tuple[KindError, ...]:
    """The errors of turning joints and of slides; empty where the robot does not have both, with measured torques.

    Args:
        robot: Its joints are turning ones or slides.
        squares: (n,) sums of squares of the residuals.
        prior: (n,) sums of squares of the prior model's residuals.
        total: (n,) sums of squares of the measured torques.
    """
    slides = np.array([body.is_prismatic for body in robot.bodies], dtype=np.bool_)
    masks = (("torques [N m]", ~slides), ("forces [N]", slides))
    kinds = [(name, mask) for name, mask in masks if total[mask].sum() > 0.0]
    if len(kinds) < 2:
        return ()

    def error(sums: Floats, mask: Mask) -> float:
        return float(relative_errors(sums[mask], total[mask])[-1])

    return tuple(KindError(name, error(squares, mask), error(prior, mask), mask) for name, mask in kinds)


def _noise_percent(runs: Sequence[Experiment], rms: Floats, band_hz: float | None) -> Floats:
    """(n,) share of noise in the power of the residuals [%]; 100 where there is no residual.

    Args:
        runs: The runs; the longest shows the noise of the measured torques.
        rms: (n,) root mean square of the residuals [N m or N].
        band_hz: Band of the residuals [Hz]; None for all frequencies.
    """
    longest = max(runs, key=lambda run: run.samples)

    def gain(frequency: Floats) -> Floats:
        if band_hz is None:
            return np.ones_like(frequency)
        return Butterworth(longest.rate_hz, band_hz).gain(frequency)

    noise = noise_through(longest, band_hz, gain)
    known = np.isfinite(rms) & (rms > 0.0)
    return np.where(known, 100.0 * np.minimum(1.0, (noise / np.where(known, rms, 1.0)) ** 2), 100.0)


def robot_error(
    robot: Robot,
    experiments: Experiment | Sequence[Experiment],
    *,
    band_hz: float | None = None,
    trim_s: float | None = None,
) -> tuple[float, dict[str, float]]:
    """Relative torque error of a robot, such as one read from a file, over all experiments and joints [%].

    It is NaN where no torque was measured. With it the errors of turning joints and of slides by the name of a
    `KindError`; none where all are of one kind.

    Args:
        robot: The robot with its terms.
        experiments: The measured motion and torques.
        band_hz: Band of the comparison, as for `validate`; all frequencies by default.
        trim_s: As for `validate`.
    """
    # Gravity is a constant of a compiled program, so a tilted base needs a new program in any case. It is compiled
    # quicker with the parameter values as constants, too, than with parameters as inputs as in `torque_along`.
    is_tilted = np.count_nonzero(robot.gravity) > 1

    def predict(run: Experiment) -> Floats:
        if is_tilted:
            return np.asarray(inverse_dynamics(robot, run.q, run.dq, run.ddq))
        return torque_along(robot, robot.parameter_vector, run)

    found = Comparison(band_hz, trim_s).error(matched_runs(robot, experiments), predict)
    kinds = _errors_by_kind(robot, found.squares, found.squares, found.total)  # prior errors are not used here
    return found.error() if found.total.any() else np.nan, {kind.name: kind.error for kind in kinds}


def _process_held_out(
    fit: Fitted, data: Data | Sequence[Data], channel_map: ChannelMapSource | None
) -> list[Experiment]:
    """Turn held-out data into experiments: logs are checked and processed, experiments are taken as they are."""
    given = list_data(data, fit.robot, channel_map)
    runs = [item for item in given if isinstance(item, Experiment)]
    logs = [item for item in given if not isinstance(item, Experiment)]
    if not logs:
        return runs
    reader = LogReader(robot=fit.robot, recipe=Recipe(band_hz=fit.equations.band_hz), channel_map=channel_map)
    return runs + reader.experiments(logs, for_validation=True, cutoff_hz=common_cutoff(fit.equations.excerpts))


def training_error_in_band(fit: Fitted, comparison: Comparison | None = None) -> float:
    """Relative error on the training data [%]: low-passed as the comparison says, or all frequencies without a band.

    It is NaN where a band is given and no samples are in memory.
    """
    compared = comparison or Comparison(fit.equations.band_hz)
    if compared.band_hz is None:
        return float(fit.training_error[-1])
    return compared.error(fit.equations.excerpts, fit.torque).error() if fit.equations.excerpts else np.nan
