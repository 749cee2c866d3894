"""Identified links: from experiments to a robot one can simulate, control and write to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import one_blas_thread
from dynid.diagnosis.refined_geometry import RefinedGeometry, refine_geometry
from dynid.diagnosis.runs import diagnose_runs
from dynid.engines.engine_names import make_engine, refuse_missing_dask
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, Samples, build_equations
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.noisy.gain_uncertainty import add_gain_uncertainty
from dynid.estimation.perturbation import EstimateBounds, estimate_bounds
from dynid.estimation.physical.definiteness import check_inertia
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.friction_signs import check_friction, note_lone_terms
from dynid.estimation.physical.nearest import lift_parameters, with_possible_links
from dynid.estimation.physical.prior import term_signs
from dynid.estimation.physical.restriction import restrict_parameters
from dynid.estimation.registry import capabilities
from dynid.estimation.rows import torque_along, torque_of_terms
from dynid.estimation.selection import Selection
from dynid.estimation.streamed_logs import stream_equations
from dynid.findings import Finding
from dynid.kernels import inverse_dynamics, kernel
from dynid.lazy import cached_property
from dynid.links.common.averaging import average_models
from dynid.links.common.base_tilt import is_tilted, leave_out_tilts, note_unsure, unsure_tilts
from dynid.links.common.common_cutoff import CutoffChoice
from dynid.links.common.friction_misfit import count_friction_misfit
from dynid.links.common.kept_faults import check_kept_terms
from dynid.links.common.leaves import fix_cutoff, reduce_logs
from dynid.links.common.run_differences import settle_runs
from dynid.links.common.term_selection import select_terms
from dynid.links.couplings import with_coupled_motors
from dynid.links.estimators import make_estimator
from dynid.links.given_data import list_data
from dynid.links.identification_view import identification_card, identification_line, parameter_tables
from dynid.links.log_reader import ChannelMapSource, Log, LogReader, read_in_pieces, refuse_in_pieces
from dynid.links.pruning import read_share
from dynid.links.recipe import Recipe
from dynid.links.significance import Significance, significant_parameters
from dynid.logs.recording import Recording
from dynid.parameters.base_set import BaseParameters
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.robot.term_names import add_terms
from dynid.tables import Table, plain_number
from dynid.terms.base import StateTerm, Term

Data = Experiment | Recording | str | Path | Any
"""An experiment, a recording, a log file, or a table in memory: a data frame or a dictionary of arrays."""

SAME = 1e-6
"""Relative difference up to which a robot has the estimated base parameters (convention: well above rounding)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Identification:
    """The identified parameters of a robot's links and joints, with the data and the method behind them."""

    equations: Factors
    estimate: Estimate
    """Base parameters with their uncertainty."""
    standard: Floats
    """(p,) standard parameters of a physically possible robot; see `prior_dominated`.

    Of estimators that give base parameters only it is the possible robot nearest to them, for simulators and files;
    `predict` and `torque` use the base parameters themselves."""
    selection: Selection | None = None
    """How the terms were selected, where they were."""
    significance: Significance | None = None
    """The significant parameters, fitted again without the others, where the recipe asks for them."""

    @property
    def robot(self) -> Robot:
        """The robot as it was before: geometry, terms, prior parameters."""
        return self.equations.robot

    @property
    def base(self) -> BaseParameters:
        """The combinations that were estimated."""
        return self.equations.base

    @cached_property
    def identified(self) -> Robot:
        """The robot with the identified parameters and its own terms only, as simulators accept it.

        Where the model has further terms, the robot is refitted to the torques of the whole model, so that its own
        terms take over what they can; `torque` has the whole. Links fixed to a moving one keep their inertias, unless
        nothing possible would be left for the moving one: then it takes the whole body.
        """
        return self.restrict_terms(lambda term: True) if self.terms else self.with_signs

    @cached_property
    def with_signs(self) -> Robot:
        """The robot with the standard parameters; what must not be negative is not."""
        theta = self.standard.copy()
        signs = np.concatenate([np.zeros(10 * self.robot.dof, dtype=bool), term_signs(self.robot)]).astype(bool)
        theta[signs] = np.maximum(theta[signs], 0.0)
        return with_possible_links(self.robot, theta)

    def restrict_terms(self, holds: Callable[[Term], bool]) -> Robot:
        """Refit the robot with those of its own terms that a destination holds, nearest to the model's torques.

        Args:
            holds: Whether the destination, a file format for example, can hold a term.

        Raises:
            ArgumentError: The identification was read from a file, which does not hold the equations.
        """
        dropped = [self.base.layout.names[10 * self.robot.dof + place]
                   for place, placed in enumerate(self.robot.terms) if not holds(placed.term)]  # fmt: skip
        if not self.terms and not dropped:
            return self.with_signs
        if not self.equations.information.parts:
            raise ArgumentError(
                "an identification that was read from a file has no equations to refit from",
                remedy="Use the robot files of its run folder, or identify again.",
            )
        theta = restrict_parameters(self.equations, self.estimate, self.with_signs, dropped).theta
        return with_possible_links(self.robot, theta)

    @cached_property
    def with_terms(self) -> Robot:
        """The identified robot with its selected terms on its joints: what kernels and most of the C code can carry.

        Terms with memory, and those that depend on other joints, are missing (`terms_left_out` names them); where there
        are such terms, the others are refitted to the torques of the whole model.
        """
        if not self.terms:
            return self.identified
        theta, count = self.carried_parameters, self.standard.size
        carried = [term.with_value(v) for term, v in zip(self._carried, theta[count:].tolist(), strict=True)]
        return with_possible_links(self.robot, theta[:count]).with_terms(*carried, keep=True)

    @property
    def terms_left_out(self) -> tuple[str, ...]:
        """Terms that `with_terms` cannot carry; `torque` has them all."""
        return tuple(term.name for term in self.terms if not isinstance(term, StateTerm))

    @property
    def _carried(self) -> tuple[StateTerm, ...]:
        return tuple(term for term in self.terms if isinstance(term, StateTerm))

    @cached_property
    def carried_parameters(self) -> Floats:
        """(p + k,) parameters of `with_terms`: the robot's own, then those of its selected terms."""
        if self.terms_left_out:
            return restrict_parameters(self.equations, self.estimate, self.with_signs, (), self._carried).theta
        return np.concatenate([self.standard, self.estimate.values[self.base.rank :]])

    @property
    def _by_base(self) -> bool:
        """Whether torques come from the base parameters themselves: no possible robot need have them.

        What they leave open is taken from the prior by `standard`, unless no possible robot was found at all, or
        terms may have taken over a part of it.
        """
        if self.estimate.standard is not None:
            values = self.estimate.values[: self.base.rank]
            away = np.abs(self.base.grouping @ self.standard - values)
            return bool(np.any(away > SAME * (np.abs(values) + np.abs(values).max(initial=0.0))))
        if self.terms:
            return True
        open_ones = bool(self.estimate.undetermined.any())
        return not open_ones or np.array_equal(self.standard, self.robot.parameter_vector)

    @property
    def prior_dominated(self) -> tuple[str, ...]:
        """Standard parameters that the data determine only in combination, less than the prior does, or not at all."""
        alone = set(self.base.identifiable)
        names = [self.base.layout[column].name for column in self.base.columns]
        left_open = self.estimate.undetermined[: self.base.rank]
        open_ones = {name for name, free in zip(names, left_open, strict=True) if free}
        open_ones |= set(self.estimate.prior_dominated)
        return tuple(name for name in self.base.layout.names if name not in alone or name in open_ones)

    @property
    def standard_stderr(self) -> Floats:
        """(p,) standard deviation of the standard parameters; infinite where the data alone do not determine them."""
        spread = np.full(self.standard.size, np.inf)
        stderr = dict(zip(self.base.columns, self.estimate.stderr[: self.base.rank], strict=True))
        for name in self.base.identifiable:
            column = self.base.layout.index(name)
            spread[column] = stderr[column]
        return spread

    @property
    def terms(self) -> tuple[Term, ...]:
        """What acts on the torques besides the identified robot's links and its own terms."""
        return self.equations.terms

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
        """(N, n) torques of a motion by the identified robot and its terms without memory [N m or N].

        Args:
            q: (N, n) or (n,) positions [rad or m].
            dq: Velocities, of the same shape.
            ddq: Accelerations, of the same shape.

        Raises:
            ArgumentError: The model has friction with memory, which needs to know the sampling rate; see `torque`.
        """
        if self.terms:
            remembering = [term.name for term in self.terms if term.has_memory]
            if remembering:
                raise ArgumentError(
                    f"the identified model has terms with memory ({', '.join(remembering)}), which need gap-free "
                    "motion of a known sampling rate",
                    remedy="Use Identification.torque(experiment), or identify without these terms.",
                )
            return self._predict_with_terms(q, dq, ddq)
        if not self._by_base:
            return inverse_dynamics(self.identified, q, dq, ddq)
        states = (np.asarray(channel, dtype=float) for channel in (q, dq, ddq))
        theta = self.equations.representative(self.estimate.values)
        return np.asarray(kernel(self.robot, "inverse_dynamics", symbolic_parameters=True)(*states, theta))

    def _predict_with_terms(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
        """Torques of single states by a model whose terms have no memory, so that no rate is needed."""
        motion = [np.atleast_2d(np.asarray(channel, dtype=float)) for channel in (q, dq, ddq)]
        rows, width = motion[0].shape
        states = Experiment(
            time=np.arange(rows, dtype=float), q=motion[0], dq=motion[1], ddq=motion[2],
            effort=np.zeros((rows, width)), valid=np.ones((rows, width), dtype=bool),
            segment=np.zeros(rows, dtype=np.int64), rate_hz=1.0, joint_names=self.robot.joint_names,
        )  # fmt: skip
        torque = self.torque(states)
        return torque[0] if np.ndim(q) == 1 else torque

    @property
    def torque_parameters(self) -> Floats:
        """(p,) parameters of the robot with which `torque` computes, to which it adds the further terms."""
        if self._by_base:
            return self.equations.representative(self.estimate.values)
        return self.standard if self.terms else self.identified.parameter_vector

    def torque(self, experiment: Experiment) -> Floats:
        """(N, n) torques of an experiment's motion by the identified robot and its terms [N m or N].

        The columns are in the order of the experiment's own, also where that is not the robot's: the joints are matched
        by name, and ``run.effort - fit.torque(run)`` is the residual.
        """
        model = (self.standard.tobytes(), self.estimate.values.tobytes(), self._by_base)
        latest, known = _TORQUES.get(self.equations, (None, WeakKeyDictionary()))
        if latest != model:
            _TORQUES[self.equations] = (model, known := WeakKeyDictionary())
        if experiment not in known:
            known[experiment] = self._torque(experiment)
        return known[experiment].copy()

    def _torque(self, experiment: Experiment) -> Floats:
        if self._by_base:
            return self.equations.torque(self.estimate.values, experiment)
        run = experiment.matched(self.robot)
        if not self.terms:
            torque = torque_along(self.robot, self.identified.parameter_vector, run)
        else:
            values = self.estimate.values[self.base.rank :]
            torque = torque_along(self.robot, self.standard, run)
            torque += torque_of_terms(self.robot, self.terms, values, run)
        return experiment.as_recorded(torque, self.robot)

    @cached_property
    def training_error(self) -> Floats:
        """(n + 1,) relative torque error of each joint and of all together on the data used [%], by the robot found."""
        squares, total = np.zeros(self.robot.dof), np.zeros(self.robot.dof)
        if not isinstance(self.equations, Samples):
            information = self.equations.information
            squares = information.per_joint_residual(self.estimate.values).sum(axis=0)
            total = np.array([(information.factor(j)[:, -1] ** 2).sum() for j in range(self.robot.dof)])
        for run in self.equations.experiments if isinstance(self.equations, Samples) else ():
            residual = np.where(run.valid, run.effort - self.torque(run), 0.0)
            squares += (residual**2).sum(axis=0)
            total += (np.where(run.valid, run.effort, 0.0) ** 2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.append(squares / total, squares.sum() / total.sum())
        return np.asarray(100.0 * np.sqrt(ratio))

    @cached_property
    def bounds(self) -> EstimateBounds:
        """How far torque errors as large as the residual can move the estimate, [GautierKhalil1992] eq. (12)."""
        return estimate_bounds(self.equations, self.estimate)

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
        hidden = self.base.unidentifiable
        if hidden:
            lines += ["", f"These parameters never act on the torques and stay unknown: {', '.join(hidden)}."]
        if self.selection is not None:
            lines += ["", "Terms tried, best first:", self.selection.table().to_text()]
        if self.significance is not None:
            lines += ["", self.significance.headline + ":", ", ".join(self.significance.kept) + "."]
        lines += [f"{finding.severity.capitalize()}: {finding.sentence}" for finding in estimate.findings]
        physical = [name for name in estimate.at_bound if name not in estimate.given_bounds]
        if physical:
            lines.append(
                "Held at the limit of what is physically possible (the data alone would give impossible values): "
                f"{', '.join(physical)}."
            )
        if estimate.given_bounds:
            lines.append(f"At a bound that was given: {', '.join(estimate.given_bounds)}.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    __repr__, _repr_html_ = identification_line, identification_card


_TORQUES: WeakKeyDictionary[Factors, tuple[object, WeakKeyDictionary[Experiment, Floats]]] = WeakKeyDictionary()
"""Equations -> their latest model, and run -> its torques: whatever is said about a model, they are the same."""


def identify(
    robot: Robot,
    data: Data | Sequence[Data],
    recipe: Recipe | None = None,
    *,
    estimator: Estimator | str | None = None,
    channel_map: ChannelMapSource | None = None,
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
    threads: int = 1,
) -> Identification:
    """Identify a robot's parameters by a recipe, as ``dynid identify`` does.

    Logs (files or recordings) are checked and processed as the recipe says. Experiments are taken as they are: the
    gate and the processing of the recipe do not apply to them, a hold-out is refused; its terms, its selection, its
    band and its estimator apply. `Recipe.bare()` adds nothing to the robot.

    Args:
        robot: Geometry and terms; its parameter values are the prior for what the data leave open.
        data: One or several experiments (see `dynid.process`), recordings, log files, data frames or dictionaries of
            arrays (`dynid.logs.as_recording` says which names they have); experiments are not mixed with logs.
        recipe: All settings; the defaults of `Recipe` if None.
        estimator: Estimator, or its name such as "wls", that replaces the one named by the recipe.
        channel_map: Channel map of log files, or its file; its gear matrix also gives couplings of motors.
        base: The base parameters of the robot with its terms, where they were computed before.
        terms: Further terms of the torques that are in the model in any case.
        threads: Number of threads that reduce the samples.

    Raises:
        ArgumentError: Settings exclude each other, or data of several kinds are mixed.
        DataError: The gate refuses a log, or a log cannot be used.

    Example:
        >>> fit = dynid.identify(robot, run, dynid.Recipe.bare(), estimator="wls")
        >>> len(fit.estimate.names)
        21
    """
    chosen = recipe or Recipe()
    if isinstance(estimator, str):
        chosen, estimator = replace(chosen, estimator=estimator), None
    given = list_data(data, robot, channel_map)
    model = prepare_robot(robot, chosen, channel_map)
    logs = [item for item in given if not isinstance(item, Experiment)]
    if logs and len(logs) < len(given):
        raise ArgumentError("experiments and logs are mixed", remedy="Give experiments only, or logs only.")
    method = estimator or make_estimator(chosen, model, logs, channel_map)
    if logs:
        reader = LogReader(robot=model, recipe=chosen, channel_map=channel_map)
        return identify_logs(reader, logs, method, base=base, terms=terms, threads=threads)[0]
    if chosen.hold_out is not None:
        raise ArgumentError(
            "hold_out splits logs before they are processed, and these are processed",
            remedy="Give logs, or split the data with cross_validate.",
        )
    runs = [item for item in given if isinstance(item, Experiment)]
    return identify_experiments(model, runs, chosen, method, base=base, terms=terms, threads=threads)


def prepare_robot(robot: Robot, recipe: Recipe, channel_map: ChannelMapSource | None = None) -> Robot:
    """Add the terms of a recipe to a robot under the recipe's gravity, and the couplings that a channel map states.

    Args:
        robot: The robot.
        recipe: The recipe.
        channel_map: The channel map, if any.
    """
    model = add_terms(recipe.placed(robot), recipe.terms)
    return with_coupled_motors(model, channel_map) if recipe.couplings and channel_map is not None else model


@one_blas_thread()
def identify_logs(
    reader: LogReader,
    logs: Sequence[Log],
    estimator: Estimator,
    *,
    held_out: Sequence[Log] = (),
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
    threads: int = 1,
) -> tuple[Identification, list[Experiment]]:
    """Identify a robot that has its terms from logs, in memory or piece by piece.

    Args:
        reader: Reads the logs by its recipe.
        logs: The logs to identify from.
        estimator: The estimator.
        held_out: Logs that are read for the proof, where the recipe does not hold out parts of the first ones.
        base: As for `identify`.
        terms: As for `identify`.
        threads: As for `identify`.

    Returns:
        The identification, and the held-out experiments.
    """
    recipe = reader.recipe
    for name in ("law", "control_rate_hz"):
        if getattr(recipe, name) is not None and not estimator.simulates_loop:
            reader.note("unused-setting", f"{name} has no effect: the estimator simulates no control loop")
    springs = recipe.spring_terms(reader.robot)
    choose = CutoffChoice(reader.robot, band_hz=recipe.band_hz, terms=(*springs, *terms), base=base)
    whole = _needs_whole_logs(recipe, estimator, terms)
    if recipe.engine != "local":
        refuse_in_pieces(whole)
        refuse_missing_dask(recipe.engine)
        reader.note("in-pieces", "logs are read piece by piece: terms are not selected")
        fixed = fix_cutoff(reader, logs, choose)
        with make_engine(recipe.engine, workers=recipe.workers, scheduler=recipe.scheduler) as engine:
            equations = reduce_logs(fixed, logs, engine, base)
        proof = reader.experiments(held_out, for_validation=True, cutoff_hz=choose.hz)
        fit = identify_equations(equations, estimator)
        return replace(fit, estimate=choose.noted(fit.estimate)), proof
    if recipe.stream is True or (recipe.stream == "auto" and read_in_pieces(logs, needed_whole=bool(whole))):
        refuse_in_pieces(whole)
        reader.note("in-pieces", "logs are read piece by piece: terms are not selected")
        streams = reader.streams(logs, choose)
        proof = reader.experiments(held_out, for_validation=True, cutoff_hz=choose.hz)
        fit = identify_equations(stream_equations(reader.robot, streams, base=base), estimator)
        return replace(fit, estimate=choose.noted(fit.estimate)), proof
    if whole and recipe.stream == "auto" and read_in_pieces(logs, needed_whole=False):
        other = " (--validate LOG holds out a log of its own without that)" if whole[0] == "hold_out" else ""
        reader.note("whole-logs", f"{whole[0]} needs whole logs in memory, which takes long for large files{other}")
    runs, proof = reader.training_and_proof(logs, held_out, choose)
    if recipe.selection is not None and not estimator.accepts_terms:
        reader.note("no-selection", "terms are not selected: the estimator knows links and the robot's own terms only")
    fit = identify_experiments(reader.robot, runs, recipe, estimator, base=choose.base, terms=terms, threads=threads)
    return replace(fit, estimate=choose.noted(fit.estimate)), proof


def _needs_whole_logs(recipe: Recipe, estimator: Estimator, terms: Sequence[Term]) -> list[str]:
    """Settings that need whole logs in memory."""
    wanted = [key for key in ("hold_out", "band_hz", "springs", "significant", "free") if getattr(recipe, key)]
    wanted += ["terms"] if terms else []
    kind = type(_searching(estimator))
    return wanted if capabilities(kind).accepts_streams else [*wanted, f"estimator {kind.name}"]


def _searching(estimator: Estimator) -> Estimator:
    """The estimator itself, or the one that was given a control loop."""
    if not estimator.simulates_loop:
        return estimator
    from dynid.estimation.closed_loop.in_loop import InLoop

    return estimator.estimator if isinstance(estimator, InLoop) else estimator


@one_blas_thread()
def identify_experiments(
    robot: Robot,
    runs: Sequence[Experiment],
    recipe: Recipe,
    estimator: Estimator,
    *,
    base: BaseParameters | None = None,
    terms: Sequence[Term] = (),
    threads: int = 1,
    freed: RefinedGeometry | None = None,
) -> Identification:
    """Identify a robot that has its terms from experiments; see `identify`. Geometry is freed once."""
    runs = matched_runs(robot, runs)
    if recipe.free and freed is None:
        freed = refine_geometry(robot, runs, recipe.free)
    if freed is not None:
        robot, base = freed.robot, None
    present = (*recipe.spring_terms(robot), *terms)
    equations = build_equations(robot, runs, base=base, terms=present, band_hz=recipe.band_hz, threads=threads)
    settled = settle_runs(equations, recipe.per_run)
    if settled is not None:
        equations = build_equations(
            robot, settled.runs, base=equations.base, terms=present, band_hz=recipe.band_hz, threads=threads
        )
    selection = None
    if recipe.selection is not None and estimator.accepts_terms:
        # the mean of fits is possible where each of them is; other estimators take the model of the rule
        rule = recipe.selection if isinstance(estimator, FeasibleWLS) else replace(recipe.selection, average=False)
        equations, selection = select_terms(equations, rule)
        if freed is None and is_tilted(equations):  # its term is linear in the angle: gravity is turned where logs tell
            exact = refine_geometry(robot, runs, ("tilt",))
            if exact.is_shown:
                return identify_experiments(robot, runs, recipe, estimator, terms=terms, threads=threads, freed=exact)
    fit = identify_equations(equations, estimator, selection)
    if selection is not None and (unsure := unsure_tilts(fit.terms, selection.terms, fit.estimate)):
        equations, selection = leave_out_tilts(equations, selection, list(unsure))
        fit = identify_equations(equations, estimator, selection)
        fit = replace(fit, estimate=replace(fit.estimate, findings=(*fit.estimate.findings, note_unsure(unsure))))
    if freed is not None:
        fit = replace(fit, estimate=replace(fit.estimate, findings=(*freed.findings, *fit.estimate.findings)))
    fit = replace(fit, estimate=count_friction_misfit(equations, fit.estimate, fit.torque))
    if settled is not None:
        estimate = settled.noted(fit.estimate, equations)
        fit = replace(fit, equations=replace(fit.equations, excerpts=tuple(runs)), estimate=estimate)
    if recipe.significant is None:
        return fit
    return replace(fit, significance=significant_parameters(equations, threshold=read_share(recipe.significant)))


def identify_equations(
    equations: Factors, estimator: Estimator | None = None, selection: Selection | None = None
) -> Identification:
    """Identify a robot's parameters from equations, such as those of `stream_equations`.

    Args:
        equations: The equations.
        estimator: The estimator; physically consistent weighted least squares if None.
        selection: Protocol of the selection of the terms, if there was one.
    """
    method = estimator or FeasibleWLS()
    if selection is not None and len(set(map(frozenset, selection.models))) > 1 and isinstance(method, FeasibleWLS):
        estimate = average_models(equations, method, method.solve_for_mean(equations), selection)
    else:
        estimate = method.solve(equations)
    estimate = add_gain_uncertainty(equations, estimate)
    standard = estimate.standard
    if standard is None:
        standard, findings = lift_parameters(equations, estimate)
        estimate = replace(estimate, findings=(*estimate.findings, *findings))
    found = Identification(equations=equations, estimate=estimate, standard=standard, selection=selection)
    kept = check_kept_terms(found.robot, found.terms, estimate)
    findings = (*estimate.findings, *_physical_findings(found), *diagnose_runs(equations), *kept)
    return replace(found, estimate=replace(estimate, findings=findings))


def _physical_findings(found: Identification) -> tuple[Finding, ...]:
    """What the parameters that give the torques cannot be: an indefinite inertia matrix, friction that drives."""
    estimate, rank, equations = found.estimate, found.base.rank, found.equations
    theta = equations.representative(estimate.values) if found._by_base else found.standard
    friction = (*check_friction(equations, estimate, theta), *note_lone_terms(found.robot, found.terms))
    if found._by_base and estimate.undetermined.any():  # the inertia matrix is open, which another finding says
        return friction
    return (*check_inertia(equations, theta, estimate.values[rank:]), *friction)
