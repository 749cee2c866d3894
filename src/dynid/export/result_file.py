"""Result files: an identification as one JSON file with version and checksum, written and restored.

`write_result` writes it (for ``dynid identify``), `read_result` checks and reads it, and `SavedResult.identification`
restores an identification without its logs, which can predict torques and be validated on new data.

An `Identification` has base parameters (the combinations of link, friction and other parameters that torques reveal)
with their estimate, and two models of the robot: a rich one with the friction terms that predict best, and a plain one
that simulators can hold. In the file, dataclasses are JSON objects with the name of their class in the key ``type``:
`to_plain` and `from_plain` convert them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from dynid.array_types import Floats
from dynid.checks import LARGEST_SIGNAL
from dynid.data_reduction import Information
from dynid.errors import DataError, DynidError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate
from dynid.findings import Finding
from dynid.identifiability.base import Method, base_parameters
from dynid.identifiability.base_set import BaseParameters
from dynid.identification.identify import Identification
from dynid.identification.rich.models import Model
from dynid.identification.significance import PrunedRobot, PruningCost
from dynid.identification.validation import Validation, training_error_in_band
from dynid.plain_data import from_plain, json_values, pick, to_plain
from dynid.processing.experiment import Experiment
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.safe_files import write_atomically
from dynid.safe_files.records import Finite, Text, Whole, as_record, check_bounded
from dynid.safe_files.small_files import read_json
from dynid.safe_files.transaction import check_listed
from dynid.tape import OperationCount
from dynid.terms import TERMS
from dynid.terms.base import Reference, Term
from dynid.terms.coupling import Coupling

SCHEMA = 2
"""Version of the file's layout."""
_IDENTIFY_AGAIN = "Run dynid identify again."
"""What to do about a file that cannot be restored."""
# numbers with bounds, which msgspec checks
_BoundedNumber = Annotated[float, Meta(ge=-LARGEST_SIGNAL, le=LARGEST_SIGNAL)]
_Rate = Annotated[float, Meta(ge=0.0, le=LARGEST_SIGNAL)]


class _LogRecord(Struct, forbid_unknown_fields=True):
    """Layout of what a result file says on one log, as `data_facts` writes it; fields are those of `Experiment`."""

    source: Text
    sha256: Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")]
    rate_hz: _Rate
    recipe: list[Text]
    """Steps of the processing."""
    dropped: dict[str, Whole]
    samples: Whole = 0
    cutoff_hz: Finite | None = None
    temperature_degC: list[Finite | None] = []  # noqa: N815 (the key of the file)
    stretch_keys: list[Finite] = []


class _Significant(Struct):
    """Layout of the short model, in which insignificant parameters are zero."""

    threshold: Text
    """Share of the torque below which a parameter counts as insignificant, such as ``1%``."""
    pruned: dict[str, Any]


class _Result(Struct):
    """Layout of the keys of a result file that are checked when it is read.

    Other keys are for people and for the report, or are checked as parts of `_StoredFit`.
    """

    robot: Text
    joint_names: list[Text]
    training_error_percent: dict[str, Finite | None]
    standard_parameters: dict[str, _BoundedNumber]
    data: list[_LogRecord]
    band_hz: _Rate | None
    model: dict[str, Any]
    terms: list[Any]
    base: Method | None = None
    training_error_in_band_percent: Finite | None = None
    significant: _Significant | None = None


@dataclass(frozen=True, slots=True)
class _ModelPart:
    """A model, plain or rich, without its robot."""

    parameters: tuple[float, ...]
    """(p,) standard parameters in the order of `Robot.parameter_vector`."""
    terms: tuple[Term, ...]
    """Friction terms of the model with their values, in addition to those of the robot."""


@dataclass(frozen=True, slots=True)
class _StoredFit:
    """The dataclasses from which an identification is restored; each field is a key of the file."""

    model: Robot
    """The robot of the equations."""
    estimate: Estimate
    """Estimate (b + k unknowns) of the base parameters, then of the fitted terms."""
    terms: tuple[Term, ...]
    """(k,) the fitted terms that the robot itself does not have, without values: these are in the estimate."""
    plain: _ModelPart
    rich: _ModelPart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SavedResult:
    """A result file that was read and checked."""

    content: Mapping[str, Any]
    """Keys and values of the whole file, without its checksum."""

    def __repr__(self) -> str:
        """Robot and size in one line."""
        joints = len(self.content["joint_names"])
        parameters = len(self.content["standard_parameters"])
        return f"SavedResult('{self.content['robot']}', {joints} joints, {parameters} parameters)"

    def identification(self) -> Identification:
        """Restore the identification without its data: it predicts torques and can be validated.

        Raises:
            DataError: The base parameters differ from those that this version of dynid finds for the robot, or the
                content is not that of a result.
        """
        with _content_errors():
            return self._restore()

    @property
    def training_error_in_band(self) -> float:
        """Relative error on the data of the identification in the band of its equations [%]; NaN if not stored."""
        stored = self.content.get("training_error_in_band_percent")
        return float("nan") if stored is None else float(stored)

    def pruned(self) -> PrunedRobot:
        """Restore the robot with the significant parameters alone, for generated code.

        Raises:
            DataError: The result was identified without ``significant``, or the content is not that of a result.
        """
        part = self.content.get("significant")
        if part is None:
            remedy = "Run dynid identify with --significant 1%, or write fit.with_significant('1%')."
            raise DataError("the result holds no significant parameters", remedy=remedy)
        with _content_errors():  # they become a DataError
            pruned: PrunedRobot = _restore_type(PrunedRobot, part["pruned"], "significant.pruned")
            return pruned

    def _restore(self) -> Identification:
        """Restore the identification; errors about the content may be of any type."""
        kept = {field.name: self.content[field.name] for field in fields(_StoredFit)}
        # the file has no type names for the two models
        models = {name: {**kept[name], "type": "_ModelPart"} for name in ("plain", "rich")}
        state: _StoredFit = _restore_type(_StoredFit, {**kept, **models})
        robot = state.model
        estimate = state.estimate
        terms = state.terms
        base = base_parameters(robot)  # they are not in the file, but follow from the robot
        if (*base.names, *(term.name for term in terms)) != tuple(estimate.names):
            raise DataError("the base parameters of the result are not those of its robot", remedy=_IDENTIFY_AGAIN)
        errors = np.array([*self.content["training_error_percent"].values()], dtype=float)
        self._check_sizes(state, base, errors)
        runs = tuple(_experiment_without_samples(robot, facts) for facts in self.content["data"])
        # friction with memory depends on the sampling rate of the logs
        rate = next((run.rate_hz for run in runs), None)
        no_data = Information(
            robot=robot.name, fingerprint=robot.fingerprint, columns=(), supports=((),) * robot.dof,
            parts=(),
        )  # fmt: skip
        equations = Factors(
            robot=robot, base=base, excerpts=runs, information=no_data, blocks=(), terms=terms,
            band_hz=self.content["band_hz"],
        )  # fmt: skip
        plain, rich = (
            Model(robot, np.array(stored.parameters), stored.terms, rate) for stored in (state.plain, state.rich)
        )
        fit = Identification(equations=equations, estimate=estimate, plain=plain, rich=rich)
        if (chosen := self.content.get("base")) is not None:
            fit = fit.in_set(base_parameters(robot, chosen))
        # fill the cached property, which would otherwise be computed from the data: these are not in the file
        vars(fit)["training_error"] = errors
        return fit

    def _check_sizes(self, state: _StoredFit, base: BaseParameters, errors: Floats) -> None:
        """Check that the arrays of the file have the sizes that its robot needs.

        Args:
            state: The restored parts.
            base: The base parameters of the robot.
            errors: Errors on the data of the identification of every joint, then of all.
        """
        robot = state.model
        estimate = state.estimate
        b = len(estimate.names)
        found = {  # place in the file -> (what it holds, what the robot needs)
            "joint_names": (self.content["joint_names"], [*robot.joint_names]),
            "standard_parameters": ([*self.content["standard_parameters"]], [*base.layout.names]),
            "training_error_percent": (errors.shape, (robot.dof + 1,)),
            "plain.parameters": (len(state.plain.parameters), len(base.layout)),
            "rich.parameters": (len(state.rich.parameters), len(base.layout)),
            "rich.terms": (len(state.rich.terms), len(state.terms)),
            "estimate.units": (len(estimate.units), b),
            "estimate.covariance": (estimate.covariance.shape, (b, b)),
        }
        found |= {f"estimate.{n}": (getattr(estimate, n).shape, (b,)) for n in ("values", "undetermined")}
        joints = ("noise_std", "inflation", "samples")
        found |= {f"estimate.{n}": (getattr(estimate, n).shape, (robot.dof,)) for n in joints}
        for place, (stored, wanted) in found.items():
            if stored != wanted:
                raise DataError(f"it is {stored}, and the robot's is {wanted}", place=place)


def _types() -> list[type[Any]]:
    """List the dataclasses that a result file may hold; terms are those in `dynid.terms.TERMS`."""
    fixed = [Robot, Link, Joint, JointLimits, Inertia, Coupling, Reference, Estimate, Finding]
    return [*fixed, PrunedRobot, PruningCost, OperationCount, *TERMS]


def _restore_type(kind: type[Any], content: Mapping[str, Any], place: str = "") -> Any:
    """Restore a dataclass, with all dataclasses in it, from plain data; errors name the ``place`` in the file."""
    return from_plain({**content, "type": kind.__name__}, [*_types(), _StoredFit, _ModelPart], place)


def _experiment_without_samples(robot: Robot, facts: Mapping[str, Any]) -> Experiment:
    """Restore what a result file keeps of an experiment: its source and its processing."""
    none = np.zeros((0, robot.dof))
    degrees = facts.get("temperature_degC")
    temperature = None if degrees is None else np.array(degrees, dtype=float)
    return Experiment(
        time=np.zeros(0), q=none, dq=none, ddq=none, effort=none, valid=none.astype(bool),
        segment=np.zeros(0, dtype=np.int64), rate_hz=facts["rate_hz"], joint_names=robot.joint_names,
        processing_steps=tuple(facts["recipe"]), dropped=dict(facts["dropped"]),
        source=facts["source"], sha256=facts["sha256"], temperature=temperature,
        stretch_keys=tuple(facts.get("stretch_keys", ())),
    )  # fmt: skip


def data_facts(run: Experiment) -> dict[str, Any]:
    """Collect the source and the processing of an experiment as plain data."""
    return (
        pick(run, "source", "sha256", "samples", "rate_hz", "dropped", "stretch_keys")
        | {
            "cutoff_hz": None if run.derivation is None else run.derivation.smoothing.cutoff_hz,
            "recipe": run.processing_steps,
        }
        | ({} if run.temperature is None else {"temperature_degC": run.temperature})
    )


def result_json(
    fit: Identification,
    check: Validation | None = None,
    cost: PruningCost | None = None,
    files: Sequence[Mapping[str, object]] = (),
) -> dict[str, Any]:
    """Make the content of a result file.

    Args:
        fit: The identification.
        check: Its validation on held-out data.
        cost: Errors and operations of the short model with the significant parameters alone.
        files: The robot files of the same run, as `RobotFile.to_json` describes them.
    """
    estimate = fit.estimate
    base = fit.base
    types = _types()
    return dict(json_values({
        "schema": SCHEMA,
        "robot": fit.robot.name,
        "fingerprint": fit.robot.fingerprint,
        "joint_names": fit.robot.joint_names,
        "method": estimate.method,
        "condition": None if estimate.undetermined.any() else estimate.condition,
        "findings": [
            pick(finding, "code", "severity") | {"text": finding.sentence} for finding in estimate.findings
        ],
        "training_error_percent": dict(zip([*fit.robot.joint_names, "all"], fit.training_error, strict=True)),
        "training_error_in_band_percent": training_error_in_band(fit)
        if check is None or check.band_hz != fit.equations.band_hz
        else check.training_error,
        "base_parameters": [
            dict(zip(("name", "value", "std", "unit", "expression", "determined", "source"), entry, strict=True))
            for entry in zip(
                estimate.names,
                estimate.values,
                estimate.stderr,
                estimate.units,
                (*base.expressions, *(term.name for term in fit.terms)),
                [source != "open" for source in estimate.sources],
                estimate.sources,
                strict=True,
            )
        ],
        "standard_parameters": dict(zip(base.layout.names, fit.standard, strict=True)),
        "plain": _model_part(fit.plain, types),
        "rich": _model_part(fit.rich, types),
        "files": files,
        "significant": _significant_part(fit, cost),
        "selection": [] if fit.selection is None else fit.selection.to_json(),
        "data": [data_facts(run) for run in fit.equations.excerpts],
        "validation": None if check is None else check.to_json(),
        "band_hz": fit.equations.band_hz,
        "model": to_plain(replace(fit.robot, source=None), types),  # the equations need no description file
        "terms": to_plain(fit.terms, types),
        # name of the method of the set that the user chose, without what follows it
        "base": None if fit.chosen is None else fit.chosen.method.partition(",")[0],
        "estimate": to_plain(fit.in_columns.estimate, types),
    }))  # fmt: skip


def _model_part(model: Model, types: Sequence[type[Any]]) -> dict[str, Any]:
    """Convert a model without its robot to plain data."""
    return {"parameters": model.theta, "terms": to_plain(model.terms, types)}


def _significant_part(fit: Identification, cost: PruningCost | None) -> dict[str, Any] | None:
    """Convert the robot with the significant parameters alone to plain data; None if they were not asked for."""
    found = fit.significance
    if found is None:
        return None
    pruned = replace(found.pruned, cost=cost)
    return {
        "threshold": f"{100 * found.threshold:g}%",
        "pruned": to_plain(replace(pruned, robot=replace(pruned.robot, source=None)), _types()),
    }


def write_result(
    fit: Identification,
    path: str | os.PathLike[str],
    check: Validation | None = None,
    cost: PruningCost | None = None,
    *,
    files: Sequence[Mapping[str, object]] = (),
    force: bool = False,
) -> Path:
    """Write a result file with a checksum of its content; see `result_json`.

    Example:
        >>> path = dynid.write_result(fit, folder / "result.json")
        >>> path.exists()
        True
    """
    content = result_json(fit, check, cost, files)
    content["sha256"] = _digest(content)
    return write_atomically(path, json.dumps(content, indent=1, allow_nan=False) + "\n", force=force)


def is_result(path: Path) -> bool:
    """Whether a path is a saved result, a folder with one, or the folder of a run, which may have been refused."""
    return path.suffix.lower() == ".json" or any((path / name).exists() for name in ("run.json", "result.json"))


def read_result(path: str | os.PathLike[str]) -> SavedResult:
    """Read a result file, or the one in a folder that ``dynid identify`` wrote.

    Raises:
        DataError: The file is missing, damaged, or of another version.

    Example:
        >>> path = dynid.write_result(fit, folder / "saved.json")
        >>> dynid.read_result(folder / "saved.json").identification().robot.name
        'ddarm'
    """
    file = Path(path) / "result.json" if Path(path).is_dir() else Path(path)
    check_listed(file)  # refuses a file that differs from the manifest of the run in its folder
    remedy = "Give a folder that dynid identify wrote, or the result.json in it; logs come after it."
    if file.is_file() and file.suffix.lower() != ".json":
        raise DataError("this is no result of an identification", path=file, remedy=remedy)
    content = read_json(file, remedy=remedy, odd_names=True)
    version = content.get("schema") if isinstance(content, dict) else None
    if version != SCHEMA:
        newer = isinstance(version, int) and version > SCHEMA
        remedy = "Read it with the newer dynid that wrote it." if newer else _IDENTIFY_AGAIN
        reason = f"the result file has version {version}, but this dynid reads version {SCHEMA}"
        raise DataError(reason, path=file, remedy=remedy)
    if content.pop("sha256", None) != _digest(content):
        reason = "the result was changed or damaged: its checksum does not match"
        raise DataError(reason, path=file, remedy=_IDENTIFY_AGAIN)
    as_record(content, _Result, path=file, remedy=_IDENTIFY_AGAIN)
    with _content_errors(file):
        check_bounded({"model": content["model"], "terms": content["terms"]}, LARGEST_SIGNAL)
    return SavedResult(content=content)


@contextmanager
def _content_errors(path: Path | None = None) -> Iterator[None]:
    """Turn any error about the content of a file into a `DataError`."""
    try:
        yield
    except DataError as error:
        raise DataError(error.reason, path=path, place=error.place, remedy=error.remedy or _IDENTIFY_AGAIN) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, DynidError) as error:
        what = f"the content is not that of a result: {type(error).__name__} {error}"
        raise DataError(what, path=path, remedy=_IDENTIFY_AGAIN) from error


def _digest(content: Mapping[str, Any]) -> str:
    """Compute the checksum of a file's content, which does not depend on the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
