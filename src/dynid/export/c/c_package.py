"""Generate a package of real-time C code from a robot or an identification: `generate_c` and its `CPackage`.

The way from a robot to C text, with the module of each step:

1. `c_model.build_model` chooses body frames and parameter values that need few operations.
2. `c_functions.record_function` runs each dynamics function once with symbols and records a *tape*: the straight-line
   list of its operations, in which products with zero are left out ([Izaguirre1992]).
3. `c_source`, `two_rate_code` and `c_extras` write tapes as C functions, with headers, CMake project and README.
4. Functions that keep a state from call to call (observer, load tracker, ...) are C texts around tapes, each in files
   of its own; a `StateCode` holds them.

`c_check` compiles the code and compares it with NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from dynid.checks import as_whole, check_names
from dynid.compiled import inertia_matrix
from dynid.decompositions import eigvalsh
from dynid.errors import ArgumentError, DescriptionError, ExportError
from dynid.export.c.c_check import compare_results, package_driver, reference, selftest_text
from dynid.export.c.c_extras import cmake_text, readme_text
from dynid.export.c.c_functions import FUNCTIONS, TWO_RATE, record_function
from dynid.export.c.c_model import build_model
from dynid.export.c.c_source import TOLERANCE, CodeText, header_text, operation_table, source_text
from dynid.export.c.model_code import model_code
from dynid.export.c.observer_code import observer_code
from dynid.export.c.recursive_code import recursive_code
from dynid.export.c.state_code import StateCode
from dynid.export.c.tracker_code import tracker_code
from dynid.export.c.two_rate_code import two_rate_files
from dynid.export.result_file import SavedResult
from dynid.identifiability.base_set import BaseParameters
from dynid.identification.identify import Identification
from dynid.identification.significance import PrunedRobot, Significance
from dynid.monitor.observer import ObserverModel
from dynid.robot.model import Robot
from dynid.safe_files import file_digest, write_atomically
from dynid.safe_files.transaction import changing, earlier_files
from dynid.safe_text import c_identifier
from dynid.spatial import ROUNDING
from dynid.tape import OperationCount, count

DIGEST_FILE = "generated.json"
"""Name of the file of a written package that lists the digests of the others."""
STATEFUL_FUNCTIONS = ("observer_step", "load_tracker", "least_squares")
"""Functions of `generate_c` that keep a state from call to call; each is written to separate files."""

Source = Robot | Identification | SavedResult | Significance | PrunedRobot
"""What code can be generated from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CPackage:
    """Generated C code in memory: it can be checked against Python and written to a folder."""

    name: str
    """Prefix of every file and symbol."""
    files: Mapping[str, str]
    """File name -> text."""
    counts: Mapping[str, OperationCount]
    """Name of each function, two-rate task and setter (it sets run-time parameters) -> its operations per call."""
    text: CodeText = field(repr=False)
    """The description that the files were made from."""
    warnings: tuple[str, ...] = ()
    """Warnings about the model, one line each; also in the header of the code and at the end of `summary`."""

    def __repr__(self) -> str:
        """Name and size in one line."""
        lines = sum(len(content.splitlines()) for content in self.files.values())
        return f"CPackage('{self.name}', {len(self.files)} files, {lines} lines)"

    @property
    def tolerance(self) -> float:
        """Largest allowed difference from Python, relative to the size of the summands of each number."""
        return TOLERANCE[self.text.precision]

    def check(self, samples: int = 1000) -> dict[str, float]:
        """Compile the code in a temporary folder, run it on random states and compare it with Python.

        Args:
            samples: Number of states.

        Returns:
            Name of each function, ``two_rate`` for the torque by both tasks, ``observer_step`` for the observer ->
            its largest error relative to the size of the summands.

        Raises:
            ExportError: There is no compiler, or it rejects the code.
            ExportError: The code and Python disagree beyond `tolerance`; the message names the worst sample.
        """
        text = self.text
        # inputs and expected results of random states
        answers = reference(text.model, text.checkable, as_whole("samples", samples, least=1))
        found = package_driver(text, answers).answer(self.files, answers.rows)
        errors = compare_results(text, found, answers, self.tolerance)
        for code in text.parts:
            if code.check is not None:
                errors[f"{code.part}_step"] = code.check(self.name, text.precision, self.tolerance)
        return errors

    def write(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the files into a folder, which is made if it is missing: all of them, or none.

        Files of an earlier package in the folder are removed, except those that differ from their digest in
        ``generated.json``, because somebody changed them.

        Raises:
            ExportError: A file exists and ``force`` is False (then nothing is written), or the system rejects it.
        """
        target = Path(folder)
        existing = [name for name in (*self.files, DIGEST_FILE) if (target / name).exists()]
        if existing and not force:
            raise ExportError(
                f"the folder already contains {existing[0]}",
                path=target,
                remedy="Choose another folder, or overwrite it (--force, force=True).",
            )
        with changing(target) as transaction:
            for name, content in self.files.items():
                write_atomically(transaction.stage / name, content)
            digests = {name: file_digest(transaction.stage / name) for name in self.files}
            write_atomically(transaction.stage / DIGEST_FILE, json.dumps({"outputs": digests}, indent=1) + "\n")
            earlier = {name for name in earlier_files(target, DIGEST_FILE) if _is_generated(target / name)}
            transaction.commit([*self.files, DIGEST_FILE], earlier)
        return target

    def summary(self) -> str:
        """Describe files, operations and notes as text."""
        model = self.text.model
        values = model.runtime.names
        lines = [f"C package '{self.name}' of {model.robot!r}", f"model hash {model.model_hash}"]
        lines += [f"{len(values)} parameters can be changed at run time"] if values else []
        lines += [f"  {name} ({len(content.splitlines())} lines)" for name, content in self.files.items()]
        notes = self.text.notes[len(self.warnings) :]  # `notes` begin with the warnings; here these come last
        ending = ["", *self.warnings] if self.warnings else []
        return "\n".join([*lines, "", operation_table(self.text).to_text(), *notes, *ending])


def _is_generated(path: Path) -> bool:
    """Whether the text of a file says that dynid wrote it: a list of digests is no proof, anybody can write one.

    The text is "Generated by" or "generated by", hence without its first letter.
    """
    return path.is_file() and b"enerated by dynid" in path.read_bytes()


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
            ``christoffel_coefficients``, ``friction``, ``forward_dynamics``, ``energy``, ``regressor``;
            in addition ``observer_step`` for the momentum observer with all terms,
            ``load_tracker`` for `dynid.monitor.LoadTracker` and ``least_squares`` for
            `dynid.estimators.OnlineLeastSquares`, each in files of its own.
        name: Prefix of files and symbols; by default made from the name of the robot.
        precision: Type of all numbers.
        parameters: ``folded`` writes the values as constants; ``struct`` keeps them in a struct that can change at run
            time.
        base: Base parameters (combinations of the inertial parameters that act on the torques): the columns of the
            regressor and, with ``struct``, the run-time values. With Lin's minimal linear combinations,
            ``base_parameters(robot, "minimal-combinations")``, inverse and forward dynamics compute in them.
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
    # a Robot, Identification or PrunedRobot, which is a robot without insignificant parameters
    given = source.pruned if isinstance(source, Significance) else source
    given = given.identification() if isinstance(given, SavedResult) else given
    functions = [functions] if isinstance(functions, str) else functions
    _check_options(functions, precision, parameters, load)
    robot, notes = _robot_and_notes(given, name)
    doubt = _indefinite_samples(given)  # a sentence against a pruned inertia matrix; empty for none
    if "forward_dynamics" in functions:
        _check_motion(robot, doubt)
    model = build_model(robot, parameters=parameters, base=base, load=load)
    setters = ["default_values", "set_parameters"] if model.runtime.columns else []
    setters += ["set_load"] if setters and model.load else []
    with_tasks = not doubt if two_rate is None else two_rate
    warnings = tuple(_list_warnings(given, doubt, is_two_rate_omitted=two_rate is None))
    text = CodeText(
        name=c_identifier(robot.name if name is None else name),
        precision=precision,
        model=model,
        tapes={function: record_function(model, function) for function in FUNCTIONS if function in functions},
        setters={setter: record_function(model, setter) for setter in setters},
        tasks={task: record_function(model, task) for task in TWO_RATE} if with_tasks else {},
        parts=tuple(_parts(given, robot, functions, base)),
        notes=(*warnings, *notes),
    )
    tapes = {**text.tapes, **text.setters, **text.tasks}
    counts = {function: count(tape) for function, tape in tapes.items()}
    for code in text.parts:
        counts |= code.counts
    files = MappingProxyType(_files(text))
    return CPackage(name=text.name, files=files, counts=MappingProxyType(counts), text=text, warnings=warnings)


def _parts(source: Source, robot: Robot, functions: Sequence[str], base: BaseParameters | None) -> Iterator[StateCode]:
    """Yield the code in separate files: of friction that needs a state, and of the requested stateful functions.

    The rich model of an identification may have friction with memory, which `model_code` writes.
    """
    if isinstance(source, Identification) and source.rich.terms:
        yield model_code(source.rich)
    if "observer_step" in functions:
        yield observer_code(ObserverModel.of(source if isinstance(source, Identification) else robot))
    if "load_tracker" in functions:
        yield tracker_code(robot)
    if "least_squares" in functions:
        yield recursive_code(robot, base)


def _robot_and_notes(source: Source, name: str | None) -> tuple[Robot, tuple[str, ...]]:
    """Find the robot of a source, and notes on what the code of this robot lacks.

    An identification has a plain model, `Identification.identified`, of which this code is made, and perhaps a rich one
    with further friction terms.
    """
    if isinstance(source, Robot):
        return source, ()
    if isinstance(source, PrunedRobot):
        return source.robot, tuple(source.notes())
    if isinstance(source, Identification):
        plain = {placed.term.kind for placed in source.identified.terms}
        missing = dict.fromkeys(term.kind for term in source.rich.terms if term.kind not in plain)
        file = f"{c_identifier(source.robot.name if name is None else name)}_model.h"
        return source.identified, (f"Only {file} has the rich friction: {', '.join(missing)}.",) if missing else ()
    raise ArgumentError(
        f"code cannot be generated from a {type(source).__name__}", remedy="Pass a Robot or an identification."
    )


def _list_warnings(source: Source, doubt: str, *, is_two_rate_omitted: bool) -> Iterator[str]:
    """Warn of negative masses, which an estimate may have, and of a pruned inertia matrix that is indefinite.

    Args:
        source: The source of the code.
        doubt: The sentence of `_indefinite_samples`, empty for none.
        is_two_rate_omitted: Whether the two-rate files are left out if there is such a sentence.
    """
    negative = [link.name for link in source.links if link.inertia.mass < 0.0] if isinstance(source, Robot) else []
    if negative:
        yield f"WARNING: the mass of {', '.join(negative[:3])} is negative: no body has such a mass."
    if doubt:
        yield f"WARNING: {doubt}."
        yield "Use only the whole torque of inverse dynamics, at planned accelerations: this matrix times accelerations"
        yield "from feedback may drive a joint the wrong way, and forward dynamics is not defined."
        if is_two_rate_omitted:
            yield "The two-rate files are left out for this reason. Prune less (a smaller threshold) to get them."


def _indefinite_samples(source: Source) -> str:
    """Say on how many samples the inertia matrix of a pruned model is not positive definite; empty text for none."""
    if isinstance(source, PrunedRobot) and source.indefinite:
        return f"the pruned inertia matrix is not positive definite on {source.indefinite} of {source.samples} samples"
    return ""


def _check_options(functions: Sequence[str], precision: str, parameters: str, load: str | None) -> None:
    """Refuse unknown functions and values of options, and functions that need double precision in float code."""
    check_names("functions", functions, (*FUNCTIONS, *STATEFUL_FUNCTIONS))
    if not set(functions) - set(STATEFUL_FUNCTIONS):
        raise ArgumentError("no function is requested", remedy=f"Choose from {', '.join(FUNCTIONS)}.")
    for name, value, choices in (
        ("precision", precision, ("double", "float")),
        ("parameters", parameters, ("folded", "struct")),
        ("load", load, ("struct", None)),
    ):
        if value not in choices:
            raise ArgumentError(f"{name} is {value!r}", remedy=f"Choose {' or '.join(map(repr, choices))}.")
    need_double = set(functions) & {"load_tracker", "least_squares"}
    if precision == "float" and need_double:
        reason = f"{' and '.join(sorted(need_double))} compute in double precision alone"
        raise ArgumentError(reason, remedy="Leave out precision='float', or generate them in a package of their own.")


def _check_motion(robot: Robot, doubt: str) -> None:
    """Refuse forward dynamics of a robot whose inertia matrix is singular, or indefinite (``doubt``)."""
    if doubt:
        raise ArgumentError(
            f"{doubt}: forward dynamics is not defined",
            remedy="Omit forward_dynamics from the functions, or prune with a smaller threshold.",
        )
    # one random position suffices: a joint that moves no inertia does so everywhere
    inertia = inertia_matrix(robot, np.random.default_rng(0).uniform(-np.pi, np.pi, robot.dof))
    if np.abs(eigvalsh(inertia)).min() <= ROUNDING * np.abs(inertia).max():
        joint = robot.joint_names[int(np.argmin(np.abs(np.diag(inertia))))]
        raise DescriptionError(
            f"robot '{robot.name}': joint '{joint}' moves nothing with inertia by itself, so forward dynamics is not "
            "defined",
            remedy="Give the link a mass or the joint a RotorInertia, or omit forward_dynamics from the functions.",
        )


def _files(text: CodeText) -> dict[str, str]:
    """Write the text of every file of the package; returns file name -> text."""
    name = text.name
    tolerance = TOLERANCE[text.precision]
    answers = reference(text.model, text.checkable, samples=5, varied=False)  # few: the file stays short
    files = {f"{name}.h": header_text(text), f"{name}.c": source_text(text), **two_rate_files(text)}
    for code in text.parts:
        files |= code.files(name, text.precision)
    sources = [entry for entry in files if entry.endswith(".c")]
    headers = [entry for entry in files if entry.endswith(".h")]
    return {
        **files,
        f"{name}_selftest.c": selftest_text(text, answers),
        "CMakeLists.txt": cmake_text(text, sources, headers),
        "README.md": readme_text(text, sources, tolerance),
    }
