"""Identification of a robot: from logs or experiments to an `Identification`, which holds a plain and a rich model.

`identify` is the entry for users. It calls `identify_logs` (which reads logs by a `LogReader`) or
`identify_experiments`; both end in `conclude`, which makes the two models of an estimate.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from dynid.array_types import Floats
from dynid.decompositions import one_blas_thread
from dynid.diagnosis.refinement import refine_geometry
from dynid.diagnosis.runs import diagnose_runs
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors, Samples, build_equations
from dynid.estimators.estimate import Estimate, Estimator, convert_estimate
from dynid.estimators.perturbation import PerturbationBounds, estimate_bounds
from dynid.estimators.physical.definiteness import check_inertia, check_signs
from dynid.estimators.physical.feasible import FeasibleWLS
from dynid.estimators.physical.nearest import lift_parameters
from dynid.findings import Finding
from dynid.identifiability.base import Method as BaseMethod
from dynid.identifiability.base import base_parameters, choose_base
from dynid.identifiability.base_set import BaseParameters
from dynid.identification.estimators import make_estimator
from dynid.identification.given_data import list_data
from dynid.identification.identification_view import identification_card, identification_line, parameter_tables
from dynid.identification.leaves import fix_cutoff, reduce_logs
from dynid.identification.log_errors import Comparison
from dynid.identification.log_reader import Log, LogReader, read_in_pieces, refuse_in_pieces
from dynid.identification.recipe import Recipe
from dynid.identification.rich.joint_friction import friction_table, joint_friction
from dynid.identification.rich.mechanisms import TILT, load_friction, make_menu
from dynid.identification.rich.models import Model, refit_friction, with_values
from dynid.identification.rich.selection import Selection, select_mechanisms
from dynid.identification.run_differences import subtract_run_differences
from dynid.identification.significance import Significance, read_share, significant_parameters
from dynid.lazy import cached_property
from dynid.logs.channel_map import ChannelMapSource, read_channel_map
from dynid.logs.recording import Recording
from dynid.parallel.engine_names import make_engine
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.spatial import SIX_DIGITS
from dynid.tables import Table, plain_number
from dynid.terms.base import Reference, Term
from dynid.terms.coupling import Coupling
from dynid.terms.load_dependent import LoadFriction, horizontal_axes

Data = Experiment | Recording | str | Path | Any
"""An experiment, a recording, a log file, or a table in memory: a data frame or a dictionary of arrays."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Identification:
    """The identified parameters of a robot's links and joints, with the data and the method behind them."""

    equations: Factors
    """The equations of the rich model."""
    estimate: Estimate
    """Base parameters and rich friction with their uncertainty."""
    plain: Model
    """The links with rotor inertia, Coulomb and viscous friction, offset, and what the user stated."""
    rich: Model
    """The same links with the friction that predicts best; the plain model's where nothing predicts better."""
    selection: Selection | None = None
    """Which mechanisms of friction were kept, where they were tried."""
    significance: Significance | None = None
    """The significant parameters, fitted again without the others; see `with_significant`."""
    chosen: BaseParameters | None = None
    """The set of base parameters that the user chose, where it is not that of the equations."""
    solved: Estimate | None = None
    """The estimate in the base parameters of the equations; None where `estimate` already is."""

    @property
    def robot(self) -> Robot:
        """The robot as it was before: geometry, terms, prior parameters."""
        return self.equations.robot

    @property
    def base(self) -> BaseParameters:
        """The combinations that were estimated."""
        return self.chosen or self.equations.base

    def in_set(self, base: BaseParameters) -> Identification:
        """Convert the estimate to another set of base parameters of the same robot, such as Lin's.

        Args:
            base: The other set; see `dynid.base_parameters`.

        Raises:
            ArgumentError: The set is not of this robot and every motion.
        """
        solved = self.in_columns
        converted = convert_estimate(solved.estimate, solved.base, base)
        return replace(solved, estimate=converted, chosen=base, solved=solved.estimate)

    @property
    def in_columns(self) -> Identification:
        """This identification in the base parameters of the equations, each of which is a column of the regressor."""
        return self if self.solved is None else replace(self, estimate=self.solved, chosen=None, solved=None)

    @property
    def standard(self) -> Floats:
        """(p,) standard parameters of the plain model, a physically possible robot; see `prior_dominated`."""
        return self.plain.theta

    @property
    def identified(self) -> Robot:
        """The robot of the plain model, as simulators and files hold it."""
        return self.plain.identified

    @property
    def prior_dominated(self) -> tuple[str, ...]:
        """Standard parameters that the data determine only in combination, less than the prior does, or not at all."""
        base, estimate = self.equations.base, self.in_columns.estimate
        identifiable_alone = set(base.identifiable)
        names = [base.layout[column].name for column in base.columns]
        left_open = {name for name, is_open in zip(names, estimate.undetermined[: base.rank], strict=True) if is_open}
        left_open |= set(estimate.prior_dominated)
        return tuple(name for name in base.layout.names if name not in identifiable_alone or name in left_open)

    @property
    def standard_stderr(self) -> Floats:
        """(p,) standard deviation of the standard parameters; infinite where the data alone do not determine them."""
        stderr = np.full(self.standard.size, np.inf)
        row_by_column = self.equations.base.rows_alone  # column of a standard parameter -> its base parameter's row
        stderr[list(row_by_column)] = self.in_columns.estimate.stderr[list(row_by_column.values())]
        return stderr

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms of the rich model that the robot itself does not have: friction, springs and what users add."""
        return self.equations.terms

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, rate_hz: float | None = None) -> Floats:
        """(N, n) torques of samples of one log in time order, by the rich model [N m or N].

        A single state (n,) has no past: where friction has memory, the plain model answers, with a warning.

        Args:
            q: (N, n) or (n,) positions [rad or m].
            dq: Velocities, of the same shape.
            ddq: Accelerations, of the same shape.
            rate_hz: Sampling rate, for friction with memory [Hz]; that of the identified logs by default.
        """
        if np.ndim(q) > 1:
            return self.rich.predict(q, dq, ddq, rate_hz=rate_hz)
        if not any(term.has_memory for term in self.rich.terms):
            return np.asarray(self.rich.predict(q, dq, ddq)[0])
        warnings.warn("a single state has no past: the plain model predicts it", stacklevel=2)
        return np.asarray(self.plain.predict(q, dq, ddq)[0])

    @property
    def friction(self) -> Table:
        """The friction of each joint by name: Coulomb and viscous (plain model), the rich model's at three speeds.

        `dynid.identification.joint_friction` has the numbers.
        """
        return friction_table(joint_friction(self))

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) torques of an experiment's motion by the rich model [N m or N].

        Joints are matched by name; the columns are in the order of the experiment's joints, also where the robot has
        another order, so that ``run.effort - fit.torque(run)`` is the residual.
        """
        return self.rich.torque(experiment)

    @cached_property
    def training_error(self) -> Floats:
        """(n + 1,) relative torque error of each joint and of all together on the data used [%], by the rich model."""
        if not isinstance(self.equations, Samples):
            return self.equations.relative_errors(self.in_columns.estimate.values)
        return Comparison().error(self.equations.experiments, self.torque).errors

    @cached_property
    def bounds(self) -> PerturbationBounds:
        """How far torque errors as large as the residual can move the estimate, [GautierKhalil1992] eq. (12)."""
        return estimate_bounds(self.equations, self.in_columns.estimate)

    def with_significant(self, share: str) -> Identification:
        """Add a model of the significant parameters alone, for real-time code; see `significant_parameters`.

        Args:
            share: Share of a joint's largest torque, such as "1%", below which parameters are left out; the others are
                fitted again.

        Raises:
            ArgumentError: The share is no percentage, or the logs were read piece by piece.
        """
        threshold = read_share(share)
        if not isinstance(self.equations, Samples):
            refuse_in_pieces(["significant"])
        selected = () if self.selection is None else self.selection.terms
        stated = [term for term in self.equations.terms if term not in selected]
        short_model = significant_parameters(self.equations.keep(stated), threshold=threshold)  # type: ignore[arg-type]
        return replace(self, significance=short_model)

    def summary(self) -> str:
        """The result as text: method, errors, parameters with their uncertainty, findings."""
        estimate = self.estimate
        condition = "infinite" if estimate.undetermined.any() else plain_number(estimate.condition)
        joints = Table.of(
            ["joint", "samples", "residual std", "autocorrelation factor", "training error %"],
            [
                (name, int(count), *((float(std), float(inflation), float(error)) if count else (None, None, None)))
                for name, count, std, inflation, error in zip(
                    self.robot.joint_names,
                    estimate.samples,
                    estimate.noise_std,
                    estimate.inflation,
                    self.training_error,
                    strict=False,
                )
            ],
        )
        lines = [
            f"{self.robot.name}: {len(estimate.names)} base parameters by {estimate.method}",
            f"condition number {condition}, training error {self.training_error[-1]:.3g} %",
            "",
            joints.to_text(),
            *parameter_tables(self),
        ]
        if estimate.least_norm is not None:
            layout = self.base.layout
            rows = zip(layout.names, estimate.least_norm.tolist(), (entry.unit for entry in layout), strict=True)
            lines += ["", "All standard parameters, seldom those of possible bodies (Table 4 of Atkeson's paper):"]
            lines.append(Table.of(["parameter", "value", "unit"], list(rows)).to_text())
        hidden = self.base.unidentifiable
        if hidden:
            lines += ["", f"These parameters never act on the torques and stay unknown: {', '.join(hidden)}."]
        if self.selection is not None:
            lines += ["", "Mechanisms of friction that were tried, best first:", self.selection.table().to_text()]
        if self.significance is not None:
            lines += ["", self.significance.headline + ":", ", ".join(self.significance.kept) + "."]
        lines += [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in estimate.findings]
        at_physical_bound = [name for name in estimate.at_bound if name not in estimate.given_bounds]
        if at_physical_bound:
            lines.append(
                "Held at the limit of what is physically possible (the data alone would give impossible values): "
                f"{', '.join(at_physical_bound)}."
            )
        if estimate.given_bounds:
            lines.append(f"At a bound that was given: {', '.join(estimate.given_bounds)}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    __repr__, _repr_html_ = identification_line, identification_card


def identify(
    robot: Robot,
    data: Data | Sequence[Data],
    recipe: Recipe | None = None,
    *,
    estimator: Estimator | str | None = None,
    channel_map: ChannelMapSource | None = None,
    base: BaseParameters | BaseMethod | None = None,
    terms: Sequence[Term] = (),
    engine: str = "auto",
) -> Identification:
    """Identify a robot's parameters by a recipe, as ``dynid identify`` does.

    Logs (files or recordings) are checked and processed as the recipe says. Experiments are taken as they are: the
    check and the processing of the recipe do not apply to them, a hold-out is refused; its terms, its friction, its
    band and its estimator apply. `Recipe.bare()` adds nothing to the robot.

    Args:
        robot: Geometry and terms; its parameter values are the prior for what the data leave open.
        data: One or several experiments (see `dynid.process`), recordings, log files, data frames or dictionaries of
            arrays (`dynid.logs.as_recording` says which names they have); experiments are not mixed with logs.
        recipe: All settings; the defaults of `Recipe` if None.
        estimator: Estimator, or its name such as "wls", that replaces the one named by the recipe.
        channel_map: Channel map of log files, or its file; its gear matrix also gives couplings of motors.
        base: The set of base parameters in which the robot with its terms is estimated, or the method of
            `dynid.base_parameters` that makes it, such as "minimal-combinations" for Lin's.
        terms: Further terms of the torques that are in both models.
        engine: How logs are read. ``memory``: as a whole. ``pieces``: piece by piece, whatever their length, with plain
            friction alone; so do ``processes`` or ``processes:4`` (a pool of processes), ``dask`` or the address of a
            Dask cluster, with the same result for any number of workers. ``auto``: in pieces above 200 MB, or 2 GB if
            something in the recipe needs whole logs.

    Raises:
        ArgumentError: Settings exclude each other, or data of several kinds are mixed.
        DataError: The check refuses a log, or a log cannot be used.

    Example:
        >>> fit = dynid.identify(robot, run, dynid.Recipe.bare(), estimator="wls")
        >>> len(fit.estimate.names)
        21
    """
    chosen = recipe or Recipe()
    if isinstance(estimator, str):
        chosen = replace(chosen, estimator=estimator)
        estimator = None
    given = list_data(data, robot, channel_map)
    model = prepare_robot(robot, chosen, channel_map)
    logs = [item for item in given if not isinstance(item, Experiment)]
    if logs and len(logs) < len(given):
        raise ArgumentError("experiments and logs are mixed", remedy="Give experiments only, or logs only.")
    method = estimator or make_estimator(chosen, model, logs, channel_map)
    wanted_base = base_parameters(model, base) if isinstance(base, str) else base and choose_base(model, base)
    # Lin's combinations (`mixing`) are no columns of the regressor: the default set is solved and converted afterwards
    solved_base = wanted_base if wanted_base is None or wanted_base.mixing is None else None
    if logs:
        reader = LogReader(robot=model, recipe=chosen, channel_map=channel_map)
        fit = identify_logs(reader, logs, method, base=solved_base, terms=terms, engine=engine)[0]
        return fit if wanted_base is None or wanted_base is solved_base else _convert_to(fit, wanted_base)
    if chosen.hold_out is not None:
        raise ArgumentError(
            "hold_out splits logs before they are processed, and these are processed",
            remedy="Give logs.",
        )
    runs = [item for item in given if isinstance(item, Experiment)]
    fit = identify_experiments(model, runs, chosen, method, base=solved_base, terms=terms)
    return fit if wanted_base is None or wanted_base is solved_base else _convert_to(fit, wanted_base)


def _convert_to(fit: Identification, base: BaseParameters) -> Identification:
    """Convert a result to Lin's set, which is made again where the fit changed the robot's geometry or gravity."""
    is_same_robot = base.fingerprint == fit.robot.fingerprint
    return fit.in_set(base if is_same_robot else base_parameters(fit.robot, "minimal-combinations"))


def prepare_robot(robot: Robot, recipe: Recipe, channel_map: ChannelMapSource | None = None) -> Robot:
    """Add the terms of a recipe to a robot, and the couplings that a channel map states.

    Args:
        robot: The robot.
        recipe: The recipe.
        channel_map: The channel map, if any.
    """
    model = add_terms(robot, recipe.terms)
    return with_coupled_motors(model, channel_map) if recipe.terms and channel_map is not None else model


def with_coupled_motors(robot: Robot, channel_map: ChannelMapSource) -> Robot:
    """The robot with a `Coupling` for every motor that the map's gear matrix lets turn with several joints.

    Row i of the matrix of positions (of velocities, where they have none) is motor i's speed per speed of each joint.
    Couplings that the robot has already stay as they are.
    """
    signals = read_channel_map(channel_map).signals
    gears = [signals[name].gear for name in ("position", "velocity") if name in signals]
    gear = next((matrix for matrix in gears if matrix is not None and matrix.shape == (robot.dof,) * 2), None)
    if robot.couplings or gear is None:
        return robot
    couplings = []
    for motor, row in enumerate(gear):
        joints = np.flatnonzero(row)
        # speeds are stated per turn of the motor's own joint, or of the last one where it does not turn with its own
        scale = row[motor] if row[motor] else row[joints[-1]] if joints.size else 1.0
        if joints.size > 1 and not any(robot.bodies[j].is_prismatic for j in joints):
            couplings.append(Coupling({robot.joint_names[j]: float(row[j] / scale) for j in joints}))
    return robot.with_couplings(*couplings) if couplings else robot


@one_blas_thread()
def identify_logs(
    reader: LogReader,
    logs: Sequence[Log],
    estimator: Estimator,
    *,
    held_out: Sequence[Log] = (),
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
    engine: str = "auto",
) -> tuple[Identification, list[Experiment]]:
    """Identify a robot from logs, which are read as a whole or piece by piece; the recipe's terms are in the robot.

    Args:
        reader: Reads the logs by its recipe.
        logs: The logs to identify from.
        estimator: The estimator.
        held_out: Logs for the validation; not used where the recipe holds out parts of `logs`.
        base: As for `identify`.
        terms: As for `identify`.
        engine: As for `identify`.

    Returns:
        The identification, and the held-out experiments.
    """
    blockers = _list_blockers(reader, estimator, terms)
    if engine == "memory" or (engine == "auto" and not read_in_pieces(logs, needed_whole=bool(blockers))):
        if blockers and engine == "auto" and read_in_pieces(logs, needed_whole=False):
            reader.note(f"{blockers[0]} needs whole logs in memory, which takes long for large files")
        runs, held_out_runs = reader.training_and_proof(logs, held_out)
        recipe = reader.recipe
        fit = identify_experiments(reader.robot, runs, recipe, estimator, base=base, terms=terms)
        return fit, held_out_runs
    refuse_in_pieces(blockers)
    with make_engine("local" if engine in ("auto", "pieces") else engine) as started_engine:
        reader_with_cutoff = fix_cutoff(reader, logs)
        equations = reduce_logs(reader_with_cutoff, logs, started_engine, base)
    reader.note("logs are read piece by piece: the plain friction alone is fitted")
    return identify_equations(equations, estimator), reader_with_cutoff.experiments(held_out, for_validation=True)


def _list_blockers(reader: LogReader, estimator: Estimator, terms: Sequence[Term]) -> list[str]:
    """Names of the settings in use that need whole logs in memory, so that logs cannot be read piece by piece."""
    blockers = [key for key in ("hold_out", "band_hz", "springs", "free") if getattr(reader.recipe, key)]
    blockers += [key for key in ("rows", "time") if getattr(reader, key)]
    blockers += ["terms"] if terms else []
    return [*blockers, f"estimator {estimator.name}"] if estimator.reads_samples else blockers


@one_blas_thread()
def identify_experiments(
    robot: Robot,
    runs: Sequence[Experiment],
    recipe: Recipe,
    estimator: Estimator,
    *,
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
) -> Identification:
    """Identify a robot from experiments; the recipe's terms are in the robot already. See `identify`."""
    runs = matched_runs(robot, runs)
    refined = refine_geometry(robot, runs, recipe.free) if recipe.free else None
    if refined is not None:
        robot = refined.robot
        base = None  # the given set belongs to the geometry before
    stated = (*recipe.spring_terms(robot), *terms)
    build = partial(build_equations, robot, terms=stated, band_hz=recipe.band_hz)
    equations = build(runs, base=base)
    # runs without their differences, and findings about these; empty where nothing is subtracted
    run_differences = subtract_run_differences(equations, recipe.per_run)
    if run_differences:
        equations = build(run_differences[0], base=equations.base)
    if recipe.friction == "rich" and isinstance(estimator, FeasibleWLS):
        fit = fit_rich(equations, estimator)
    else:
        fit = identify_equations(equations, estimator)
    geometry_findings = refined.findings if refined else ()
    difference_findings = run_differences[1] if run_differences else ()
    findings = (*geometry_findings, *difference_findings, *_note_gains(runs), *fit.estimate.findings)
    return replace(fit, estimate=replace(fit.estimate, findings=findings))


def fit_rich(equations: Samples, estimator: FeasibleWLS, *, tilt: bool = True) -> Identification:
    """Fit the links together with rich friction, then the plain friction to the same links.

    Where the data show a tilt of the base, gravity is turned by it and everything is fitted again without that
    mechanism.

    Args:
        equations: The equations of the plain model.
        estimator: How each model is fitted.
        tilt: Whether a tilt of the base is looked for.
    """
    first = estimator.solve(equations)
    menu = make_menu(equations.robot, equations.experiments, _reference_links(first))
    tried = [mechanism for mechanism in menu if tilt or mechanism.name != TILT]
    weights = 1.0 / (first.noise_std**2 * first.inflation)
    rich_equations, selection = select_mechanisms(equations, tried, weights)
    if TILT in selection.kept:
        tilted = _turn_gravity(equations.robot, estimator.solve(rich_equations))
        if tilted is not None:
            equations = build_equations(tilted, equations.experiments, terms=equations.terms, band_hz=equations.band_hz)
        return fit_rich(equations, estimator, tilt=False)
    stated = equations.terms  # the terms of the rich equations begin with these; the selected ones follow
    rich_equations, selection = _update_load_friction(rich_equations, stated, selection, estimator)
    rich_equations, selection = _drop_zero_terms(rich_equations, stated, selection, estimator.solve(rich_equations))
    return conclude(rich_equations, estimator.solve(rich_equations), equations, selection)


def _reference_links(estimate: Estimate) -> Reference:
    """The estimated links as the reference from which load-dependent friction computes the load of each joint."""
    assert estimate.standard is not None, "feasible has standard parameters"
    return Reference(estimate.standard)


def _turn_gravity(robot: Robot, estimate: Estimate) -> Robot | None:
    """The robot with gravity turned by the estimated tilt of its base; None where the tilt is not significant."""
    places = [k for k, name in enumerate(estimate.names) if name in {"TILTX", "TILTY"}]
    angles = estimate.values[places]
    if not np.any(np.abs(angles) > norm.ppf(0.995) * estimate.stderr[places]):  # significant at 1 %, two-sided
        return None
    turned = robot.gravity + np.cross(angles @ horizontal_axes(robot.gravity), robot.gravity)
    return robot.with_gravity(turned * np.linalg.norm(robot.gravity) / np.linalg.norm(turned))


def _update_load_friction(
    rich_equations: Samples, stated: tuple[Term, ...], selection: Selection, estimator: FeasibleWLS
) -> tuple[Samples, Selection]:
    """Compute the loads of load-dependent friction again, from links that were fitted together with this friction.

    The selection computes them from links that were fitted without it, which contain a part of the friction.
    """
    loaded = [term for term in selection.terms if isinstance(term, LoadFriction)]
    if not loaded:
        return rich_equations, selection
    robot = rich_equations.robot
    runs = rich_equations.experiments
    widths = np.reshape([term.friction.scale for term in loaded], (-1, robot.dof))  # type: ignore[attr-defined]
    updated = load_friction(robot, runs, _reference_links(estimator.solve(rich_equations)), widths)
    # each selected term -> the term that takes its place, in the order of the selection
    replacements = {term: term for term in selection.terms} | dict(zip(loaded, updated, strict=True))
    terms = (*stated, *replacements.values())
    selection = replace(selection, terms=tuple(replacements.values()))
    base, band_hz = rich_equations.base, rich_equations.band_hz
    return build_equations(robot, runs, base=base, terms=terms, band_hz=band_hz), selection


def _drop_zero_terms(
    rich_equations: Samples, stated: tuple[Term, ...], selection: Selection, estimate: Estimate
) -> tuple[Samples, Selection]:
    """Leave out the selected terms whose coefficient is at its lower bound, zero."""
    at_bound = set(estimate.at_bound)
    kept = tuple(term for term in selection.terms if not (term.is_non_negative and term.name in at_bound))
    return rich_equations.keep((*stated, *kept)), replace(selection, terms=kept)


def identify_equations(equations: Factors, estimator: Estimator | None = None) -> Identification:
    """Identify a robot's parameters from equations as they are, such as those of logs that were read piece by piece.

    Args:
        equations: The equations.
        estimator: The estimator; physically consistent weighted least squares if None.
    """
    return conclude(equations, (estimator or FeasibleWLS()).solve(equations))


def conclude(
    equations: Factors, estimate: Estimate, plain: Factors | None = None, selection: Selection | None = None
) -> Identification:
    """Make the plain and the rich model of an estimate, and add findings about what is impossible or doubtful in them.

    Args:
        equations: The equations of the estimate.
        estimate: The estimate.
        plain: The equations of the plain model; those of the estimate by default.
        selection: Which mechanisms were kept, where some were tried.
    """
    rate = next((run.rate_hz for run in equations.excerpts), None)
    standard, findings = estimate.standard, estimate.findings
    if standard is None:
        standard, lifted = lift_parameters(equations, estimate)
        findings = (*findings, *lifted)
    term_values = estimate.values[equations.base.rank :]
    # where no possible robot has the estimated base parameters, the rich model takes these themselves
    is_possible = _has_base(equations, estimate, standard)
    theta = standard if is_possible else equations.representative(estimate.values)
    rich = Model(equations.robot, theta, with_values(equations.terms, term_values), rate)
    if selection is not None and selection.terms and plain is not None:
        refitted = refit_friction(plain, standard)
        size = len(equations.base.layout)
        simple = Model(equations.robot, refitted[:size], with_values(plain.terms, refitted[size:]), rate)
    else:
        simple = rich if is_possible else Model(equations.robot, standard, rich.terms, rate)
    if is_possible or not estimate.undetermined.any():  # another finding reports undetermined parameters
        findings = (*findings, *check_inertia(equations, theta, term_values))
    findings = (*findings, *check_signs(equations, estimate), *diagnose_runs(equations), *_note_selection(selection))
    return Identification(
        equations=equations, estimate=replace(estimate, findings=findings), plain=simple, rich=rich, selection=selection
    )


def _has_base(equations: Factors, estimate: Estimate, standard: Floats) -> bool:
    """Whether a robot with standard parameters (p,) has the estimated base parameters."""
    # undetermined ones cannot be compared: then any robot that differs from the prior one is taken to have them
    if estimate.standard is None and estimate.undetermined.any() and not equations.terms:
        return not np.array_equal(standard, equations.robot.parameter_vector)
    values = estimate.values[: equations.base.rank]
    away = np.abs(equations.base.grouping @ standard - values)
    return not np.any(away > SIX_DIGITS * (np.abs(values) + np.abs(values).max(initial=0.0)))


def _note_gains(runs: Sequence[Experiment]) -> tuple[Finding, ...]:
    """A note that the scale of torques which were computed from motor currents cannot be tested; else nothing."""
    if all(run.gain_std is None for run in runs):
        return ()
    message = "torques are computed from currents: masses and friction scale with gains that these logs cannot test"
    remedy = "Weigh a mass that the arm then holds: dynid drives."
    return (Finding(code="gain", severity="note", where="torques", message=message, remedy=remedy),)


def _note_selection(selection: Selection | None) -> tuple[Finding, ...]:
    """A note that mechanisms of friction were selected on the data of the fit, which intervals do not count."""
    if selection is None or not selection.kept:
        return ()
    message = f"the same data chose {', '.join(selection.kept)}; intervals hold as if they had been known"
    return (Finding(code="selected-friction", severity="note", where="friction", message=message),)
