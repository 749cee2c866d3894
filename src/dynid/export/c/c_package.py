"""From a robot to a folder of real-time C code that can check itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from dynid.checks import as_whole
from dynid.decompositions import eigvalsh
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.errors import ArgumentError, DescriptionError, ExportError
from dynid.export.c.c_check import check_code, reference
from dynid.export.c.c_extras import cmake_text, readme_text, selftest_text
from dynid.export.c.c_functions import FUNCTIONS, OBSERVER, TWO_RATE, record_function, record_synchronous
from dynid.export.c.c_model import CodeModel, build_model
from dynid.export.c.c_printer import printed_count
from dynid.export.c.c_source import (
    TOLERANCE,
    CodeText,
    header_text,
    operation_table,
    source_text,
    two_rate_header,
    two_rate_source,
)
from dynid.export.c.model_code import model_files
from dynid.export.c.observer_code import check_observer, observer_files
from dynid.export.result_file import SavedResult
from dynid.files import begin, write_atomically
from dynid.links.identify import Identification
from dynid.links.significance import PrunedRobot, PruningCost, Significance
from dynid.links.validation import Validation
from dynid.monitor.observer import ObserverModel
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.safe_text import c_identifier
from dynid.tape import OperationCount, Tape, record

SELFTEST_SAMPLES = 5
"""States in the generated self-test; a convention that keeps the file short."""
SINGULAR = 1e-13
"""Smallest eigenvalue of the scaled inertia matrix below which it is singular: a few hundred times the rounding."""


Source = Robot | Identification | SavedResult | Significance | PrunedRobot
"""Sources of generated code."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CPackage:
    """Generated C code, not written yet."""

    name: str
    """Prefix of every file and symbol."""
    files: Mapping[str, str]
    """File name -> text."""
    counts: Mapping[str, OperationCount]
    """Operations per call of each function, two-rate task and setter."""
    text: CodeText = field(repr=False)
    """The description that the files were made from."""
    warnings: tuple[str, ...] = ()
    """What must be known before the code is used; also in the header and at the end of `summary`."""

    def __repr__(self) -> str:
        """Name and size in one line."""
        lines = sum(len(content.splitlines()) for content in self.files.values())
        return f"CPackage('{self.name}', {len(self.files)} files, {lines} lines)"

    @property
    def tolerance(self) -> float:
        """Largest error against Python, relative to the size of the terms of the sum."""
        return TOLERANCE[self.text.precision]

    def check(self, samples: int = 1000, *, seed: int = 0) -> dict[str, float]:
        """Compile the code in a temporary folder, run it on random states and compare it with Python.

        Args:
            samples: Number of states.
            seed: Seed of the random states.

        Returns:
            Largest error of each function, and of the torque by ``two_rate``, relative to the size of the terms of the
            sum.

        Raises:
            ExportError: There is no compiler, or it rejects the code.
            GeneratedCodeMismatch: The code and Python disagree beyond `tolerance`; the message names the worst sample.
        """
        answers = reference(self.text.model, self.text.answered, as_whole("samples", samples, least=1), seed)
        errors = check_code(self.text, self.files, answers, self.tolerance)
        if self.text.observer is not None:
            errors[OBSERVER] = check_observer(self.text.observer, self.name, self.text.precision, self.tolerance)
        return errors

    def write(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the files into a folder, which is made if it is missing: all of them, or none.

        Raises:
            ExportError: A file exists and ``force`` is False (then nothing is written), or the system rejects it.
        """
        target = Path(folder)
        there = [name for name in self.files if (target / name).exists()]
        if there and not force:
            raise ExportError(
                f"the folder already contains {there[0]}",
                path=target,
                remedy="Choose another folder, or overwrite it (--force, force=True).",
            )
        transaction = begin(target)
        try:
            transaction.clear()
            for name, content in self.files.items():
                write_atomically(transaction.stage / name, content)
            transaction.commit(list(self.files))
        except BaseException:
            if not transaction.is_committed:
                transaction.discard()
            raise
        return target

    def summary(self) -> str:
        """Files, operations and notes as text."""
        model = self.text.model
        lines = [f"C package '{self.name}' of {model.robot!r}", f"model hash {model.model_hash}"]
        lines += [f"{len(model.columns)} parameters can be changed at run time"] if model.columns else []
        lines += [f"  {name} ({len(content.splitlines())} lines)" for name, content in self.files.items()]
        notes = self.text.notes[len(self.warnings) :]  # the header has the warnings first, a terminal last
        ending = ["", *self.warnings] if self.warnings else []
        return "\n".join([*lines, "", operation_table(self.text).to_text(), *notes, *ending])


def generate_c(
    source: Source,
    functions: Sequence[str] = tuple(FUNCTIONS),
    *,
    name: str | None = None,
    precision: Literal["double", "float"] = "double",
    parameters: Literal["folded", "struct"] = "folded",
    base: BaseParameters | None = None,
    load: Literal["struct"] | None = None,
    two_rate: bool | None = None,
) -> CPackage:
    """Generate C99 code of a robot's dynamics.

    Args:
        source: A robot with its parameter values, an identification, a result from `read_result`, significant
            parameters from `significant_parameters`, or a model from `prune`.
        functions: Names of functions: ``inverse_dynamics``, ``inertia_matrix``, ``gravity``, ``velocity_torque``,
            ``christoffel_coefficients``, ``friction``, ``forward_dynamics``, ``energy``, ``regressor``,
            ``external_torque``; ``observer_step`` beside them adds the momentum observer with all terms.
        name: Prefix of files and symbols; by default made from the name of the robot.
        precision: Type of all numbers.
        parameters: ``folded`` writes the values as constants; ``struct`` keeps them in a struct that can change at run
            time.
        base: Base parameters: the columns of the regressor and, with ``struct``, the run-time values. With Lin's set
            (``base_parameters(robot, "minimal-combinations")``) inverse and forward dynamics compute in it.
        load: ``struct`` for a load on the last link that can be changed at run time.
        two_rate: Whether to add the two-rate structure (background and synchronous tasks); by default yes, unless the
            inertia matrix of a pruned model is not positive definite (`CPackage.warnings` then says so).

    Raises:
        ArgumentError: A function is unknown, or an option does not fit the robot.
        DescriptionError: Forward dynamics is requested although a joint moves nothing with inertia.

    Example:
        >>> sorted(dynid.generate_c(robot, ["inverse_dynamics"], name="arm").files)[:2]
        ['CMakeLists.txt', 'README.md']
    """
    given = source.pruned if isinstance(source, Significance) else source
    given = given.identification() if isinstance(given, SavedResult) else given
    robot, notes = _robot_and_notes(given, name)
    indefinite = _indefinite_warning(given, two_rate)
    with_tasks = not indefinite if two_rate is None else two_rate
    warnings = (*_negative_warning(given), *indefinite)
    functions = [functions] if isinstance(functions, str) else functions
    _check_options(functions, precision, parameters, load)
    if "forward_dynamics" in functions:
        _check_motion(robot, given)
    model = build_model(robot, parameters=parameters, base=base, load=load)
    tapes = {function: record_function(model, function) for function in FUNCTIONS if function in functions}
    tasks = {task: record_function(model, task) for task in TWO_RATE} if with_tasks else {}
    text = CodeText(
        name=c_identifier(robot.name if name is None else name),
        precision=precision,
        model=model,
        tapes=tapes,
        setters=_setters(model),
        tasks={**tasks, "synchronous": record_synchronous(robot)} if with_tasks else {},
        observer=ObserverModel.of(given if isinstance(given, Identification) else robot)
        if OBSERVER in functions
        else None,
        whole=given.rich if isinstance(given, Identification) and given.rich.terms else None,
        notes=(*warnings, *notes),
    )
    counts = {entry: printed_count(tape) for entry, tape in {**text.tapes, **text.tasks, **text.setters}.items()}
    if text.whole is not None:
        counts["model_torque"] = printed_count(text.whole.step)
    if text.observer is not None:
        counts[OBSERVER] = printed_count(text.observer.step)
    files = MappingProxyType(_files(text))
    return CPackage(name=text.name, files=files, counts=MappingProxyType(counts), text=text, warnings=warnings)


def _robot_and_notes(source: Source, name: str | None) -> tuple[Robot, tuple[str, ...]]:
    if isinstance(source, Robot):
        return source, ()
    if isinstance(source, PrunedRobot):
        return source.robot, tuple(source.notes())
    if isinstance(source, Identification):
        held = {placed.term.kind for placed in source.identified.terms}
        missing = dict.fromkeys(term.kind for term in source.rich.terms if term.kind not in held)
        file = f"{c_identifier(source.robot.name if name is None else name)}_model.h"
        return source.identified, (f"Only {file} has the rich friction: {', '.join(missing)}.",) if missing else ()
    raise ArgumentError(
        f"code cannot be generated from a {type(source).__name__}", remedy="Pass a Robot or an identification."
    )


def _negative_warning(source: Source) -> tuple[str, ...]:
    """Say where a robot has masses that no body has; an estimate of base parameters alone may have them."""
    negative = [link.name for link in source.links if link.inertia.mass < 0.0] if isinstance(source, Robot) else []
    text = f"WARNING: the mass of {', '.join(negative[:3])} is negative: no body has such a mass."
    return (text,) if negative else ()


def _indefinite_samples(source: Source) -> str:
    """How often the inertia matrix of a pruned model is no inertia matrix; empty where it always is one."""
    if isinstance(source, PrunedRobot) and source.indefinite:
        return f"the pruned inertia matrix is not positive definite on {source.indefinite} of {source.samples} samples"
    return ""


def _indefinite_warning(source: Source, two_rate: bool | None) -> tuple[str, ...]:
    if not (where := _indefinite_samples(source)):
        return ()
    return (
        f"WARNING: {where}.",
        "Use only the whole torque of inverse dynamics, at planned accelerations: this matrix times accelerations",
        "from feedback may drive a joint the wrong way, and forward dynamics is not defined.",
        *["The two-rate files are left out for this reason. Prune less (a smaller threshold) to get them."]
        * (two_rate is None),
    )


def _check_options(functions: Sequence[str], precision: str, parameters: str, load: str | None) -> None:
    unknown = [function for function in functions if function not in (*FUNCTIONS, OBSERVER)]
    if unknown or not set(functions) - {OBSERVER}:
        what = f"there is no function '{unknown[0]}'" if unknown else "no function is requested"
        raise ArgumentError(what, remedy=f"Choose from {', '.join(FUNCTIONS)}; {OBSERVER} beside them.")
    for name, value, choices in (
        ("precision", precision, ("double", "float")),
        ("parameters", parameters, ("folded", "struct")),
        ("load", load, ("struct", None)),
    ):
        if value not in choices:
            raise ArgumentError(f"{name} is {value!r}", remedy=f"Choose {' or '.join(map(repr, choices))}.")


def _check_motion(robot: Robot, source: Source) -> None:
    """Refuse forward dynamics if the inertia matrix is singular."""
    if where := _indefinite_samples(source):
        raise ArgumentError(
            f"{where}: forward dynamics is not defined",
            remedy="Omit forward_dynamics from the functions, or prune with a smaller threshold.",
        )
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, robot.dof)
    inertia = np.asarray(composite_inertia_matrix(robot, robot.parameter_vector, q), dtype=float)
    own = np.sqrt(np.abs(np.diag(inertia)))
    scaled = inertia / np.outer(own, own) if own.all() else inertia * 0.0
    if np.abs(eigvalsh(scaled)).min(initial=1.0) < SINGULAR:
        joint = f"joint '{robot.joint_names[int(np.argmin(own))]}'" if not own.all() else "a joint"
        raise DescriptionError(
            f"robot '{robot.name}': {joint} moves nothing with inertia, so forward dynamics is not defined",
            remedy="Give the link a mass or the joint a RotorInertia, or omit forward_dynamics from the functions.",
        )


def _setters(model: CodeModel) -> dict[str, Tape]:
    if not model.columns:
        return {}
    size = (len(model.columns),)
    setters = {"set_parameters": record(lambda values: {"value": values}, values=size)}
    if model.load:
        loaded = record(lambda values, load: {"value": values + model.load_map @ load}, values=size, load=(10,))
        setters["set_load"] = loaded
    return setters


def _files(text: CodeText) -> dict[str, str]:
    name, tolerance = text.name, TOLERANCE[text.precision]
    answers = reference(text.model, text.answered, SELFTEST_SAMPLES, varied=False)
    files = {
        f"{name}.h": header_text(text),
        f"{name}.c": source_text(text),
        f"{name}_selftest.c": selftest_text(text, answers, tolerance),
    }
    if text.tasks:
        files[f"{name}_two_rate.h"] = two_rate_header(text)
        files[f"{name}_two_rate.c"] = two_rate_source(text)
    if text.whole is not None:
        files |= model_files(text.whole, name, text.precision)
    if text.observer is not None:
        files |= observer_files(text.observer, name, text.precision)
    sources = [entry for entry in files if entry.endswith(".c") and "selftest" not in entry]
    headers = [entry for entry in files if entry.endswith(".h")]
    files["CMakeLists.txt"] = cmake_text(text, sources, headers)
    files["README.md"] = readme_text(text, tolerance)
    return files


def count_code(source: Source) -> Mapping[str, OperationCount]:
    """Operations per call of the generated inverse dynamics and of the tasks of the two-rate structure.

    Args:
        source: As for `generate_c`.
    """
    return generate_c(source, ["inverse_dynamics"], two_rate=True).counts


def pruning_cost(fit: Identification, full: Validation | None = None, pruned: Validation | None = None) -> PruningCost:
    """Compare the code of an identification with that of its significant parameters alone.

    Args:
        fit: An identification by `Identification.with_significant`.
        full: Its validation on held-out data.
        pruned: The validation of ``fit.significance`` on the same data.

    Raises:
        ArgumentError: The identification has no significant parameters.

    Example:
        >>> from dataclasses import replace
        >>> short = replace(fit, significance=dynid.links.significant_parameters(fit.equations))
        >>> type(dynid.export.pruning_cost(short)).__name__
        'PruningCost'
    """
    found = fit.significance
    if found is None:
        remedy = "Call fit.with_significant('1%')."
        raise ArgumentError("the identification has no significant parameters", remedy=remedy)
    before, after = count_code(fit), count_code(found)
    joints: dict[str, tuple[float, float]] = {}
    if full is not None and pruned is not None:
        pairs = zip(full.per_joint.tolist(), pruned.per_joint.tolist(), strict=True)
        joints = dict(zip(full.joint_names, pairs, strict=True))
    return PruningCost(
        parameters=(len(fit.estimate.names), len(found.kept)),
        training_error=(float(fit.training_error[-1]), float(found.training_error[-1])),
        held_out_error=None if full is None or pruned is None else (full.relative_error, pruned.relative_error),
        joint_errors=joints,
        operations={name: (count, after[name]) for name, count in before.items()},
    )
